"""The answers of closed windows as JSON messages on a topic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from ..formats.encode import json_rows, keys_bytes
from ..kafka.outgoing_message import ANY_PARTITION, Outgoing
from ..table.window_groups import WindowGroups
from .sink import ClosedWindow, Origin, SinkTopic

_ROWS = 50_000
"""Windows of up to this many rows are answered from live sketches, larger ones in batches from bytes."""


@dataclass(frozen=True)
class AnswersToKafka:
    """Send the answers of each closed window to a topic, one JSON message per group, each exactly once.

    The value has the answers of `query`: ``{"window_start": "2026-01-01T00:00:00+00:00", "window_end": …,
    "lang": "en", "posts": 7, "users": {"estimate": …, "lower": …, "upper": …}}``. Estimates have the bounds,
    at the confidence, that their aggregates state. The key is the group's: the text of a single key column, a
    JSON array of several, none without keys. Messages with the same key go to the same partition, chosen as
    Java's clients do. The header `final` is 1 for a window that will not be emitted again. A window that only
    silence has closed may be emitted again, complete, and then replaces the earlier one by its `window_start`
    and key (count windows by their `window_id`). Dates are ISO 8601, bytes are hexadecimal, and numbers that
    aren't finite are text: ``"NaN"``, ``"Infinity"``.

    The topic is created with one partition if missing. Read it with
    ``isolation.level=read_committed``. Raises `ValueError` for a topic without a name.

    >>> import polars as pl
    >>> import streamgauge as sg
    >>> rows = sg.Stream.from_schema({"at": pl.Int64, "tag": pl.String}, time=pl.from_epoch("at"))
    >>> by_tag = rows.group_by("tag").tumbling("1m").agg(n=sg.count())
    >>> tester = sg.StreamTester(by_tag, sinks=[sg.AnswersToKafka("answers")])
    >>> _ = tester.feed([{"at": 1_767_225_600, "tag": "a"}])
    >>> sent = tester.finish().sent()
    >>> sent[0].topic, sent[0].key, sent[0].value[-17:]
    ('answers', b'a', b',"tag":"a","n":1}')
    """

    to: str

    several_windows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.to, str) or not self.to:
            raise ValueError(
                f'AnswersToKafka: topic must be a name, as in AnswersToKafka("answers"), got {self.to!r}'
            )

    def topic(self, origin: Origin) -> SinkTopic:
        """See `MessageSink`."""
        return SinkTopic(self.to, 1, {})

    def messages(self, window: ClosedWindow) -> Iterator[Outgoing]:
        """See `MessageSink`."""
        headers = answer_headers(window)
        of = window.origin.keys
        for groups in _answerable(window.groups):
            messages, rows = groups.whole(("messages", of), partial(_messages, of))
            for key, value in messages[rows]:
                yield Outgoing(self.to, ANY_PARTITION, value, headers, key)


def answer_headers(window: ClosedWindow) -> list[tuple[str, bytes]]:
    """The headers of a message with answers: their group and definition, and whether they are final."""
    return [("fingerprint", window.origin.fingerprint.encode()), ("final", b"%d" % window.final)]


def _answerable(groups: WindowGroups) -> Iterator[WindowGroups]:
    """A window's groups, so many at a time that the answers of a million are never all in memory."""
    if len(groups) <= _ROWS:
        yield groups
        return
    for low in range(0, len(groups), _ROWS):
        yield WindowGroups.of_table(groups.table.slice(low, _ROWS))


def _messages(keys: Sequence[str], groups: WindowGroups) -> list[tuple[bytes | None, bytes]]:
    """The key and the value of the message of each group."""
    answers = groups.answers()
    return list(zip(keys_bytes(answers, keys), json_rows(answers)))
