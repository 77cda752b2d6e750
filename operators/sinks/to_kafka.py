"""The answers of closed windows as JSON messages on a topic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..formats.encode import json_bytes, key_bytes
from ..kafka.outgoing import ANY_PARTITION, Outgoing
from ..table.query import query
from .sink import ClosedWindow, Origin, TopicWanted

_ROWS = 10_000
"""Rows answered at a time: of a million groups the messages are never all in memory."""


@dataclass(frozen=True)
class ToKafka:
    """Send the answers of each closed window to a topic, one JSON message a group, each exactly once.

    The value holds what `query` answers: ``{"window_start": "2026-01-01T00:00:00+00:00", "window_end": …,
    "lang": "en", "posts": 7, "users": {"estimate": …, "lower": …, "upper": …}}``; estimates have the bounds,
    at the confidence, that their aggregates state. The key is the group's: the text of one key column, a JSON
    array of several, none without keys. Messages of one key lie in one partition, the one that Java's clients
    choose. The header `final` is 1 for a window that will not come again; one that only silence has closed
    may, whole, and then replaces the earlier by its `window_start` and key (of windows by count, by its
    `window_id`). Dates are ISO 8601, bytes are
    hexadecimal, and numbers that aren't finite are text: ``"NaN"``, ``"Infinity"``.

    The topic is made, with one partition, unless it is there. Read it with
    ``isolation.level=read_committed``. Raises `ValueError` for a topic without a name.

    >>> import polars as pl
    >>> from streamgauge import Stream, StreamTester, ToKafka, count
    >>> rows = Stream.from_batches({"at": pl.Int64, "tag": pl.String}, time=pl.from_epoch("at"))
    >>> by_tag = rows.group_by("tag").tumbling("1m").agg(n=count())
    >>> tester = StreamTester(by_tag, sinks=[ToKafka("answers")])
    >>> _ = tester.feed([{"at": 1_767_225_600, "tag": "a"}])
    >>> sent = tester.finish().sent()
    >>> sent[0].topic, sent[0].key, sent[0].value[-17:]
    ('answers', b'a', b',"tag":"a","n":1}')
    """

    to: str

    def __post_init__(self) -> None:
        if not isinstance(self.to, str) or not self.to:
            raise ValueError(f'ToKafka: the topic is {self.to!r}; name one, as in ToKafka("answers")')

    def topic(self, origin: Origin) -> TopicWanted:
        """See `MessageSink`."""
        return TopicWanted(self.to, 1, {})

    def messages(self, window: ClosedWindow) -> Iterator[Outgoing]:
        """See `MessageSink`."""
        headers = [
            ("fingerprint", window.origin.fingerprint.encode()),
            ("final", b"%d" % window.final),
        ]
        keys = window.origin.keys
        for low in range(0, window.table.num_rows, _ROWS):
            for row in query(window.table.slice(low, _ROWS)).iter_rows(named=True):
                key = key_bytes([row[name] for name in keys])
                yield Outgoing(self.to, ANY_PARTITION, json_bytes(row), headers, key)
