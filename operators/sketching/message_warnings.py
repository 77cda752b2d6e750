"""Warnings about a stream's messages, given once: most can't be counted, a field never occurs, times are in
another unit than the definition says, or many messages were late.

All usually come from a mistake in the stream's definition, which otherwise shows only in numbers.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...sketches.core.lazy import pl
from ..definition.stream import Stream
from ..formats.decode import Decoded
from ..formats.messages import Messages
from ..formats.reasons import kind_of
from ..watermarks.clock import wall_clock
from .dead_letters import DeadLetter
from .time_units import unit_read, wrong_unit

log = logging.getLogger("streamgauge.kafka")

_SAMPLE = 200
_MOST_KINDS = 1_000
_SHOWN = 200
_MANY_LATE, _LATE_SHARE = 20, 0.01
"""The number of late messages, and the share of late rows, that cause a warning."""
_KEYS_NAMED = 3


class Remarks:
    """Examines the messages of a topic as one worker sees them. Warnings are logged and stored in `texts`.

    `example` is the reason why the first refused message can't be counted, empty if none was refused.
    `schema` has the columns of the values; `letters` names the topic for refused messages; `stream` defines
    the event time. `logged` is shared with the warnings of other streams over the same messages, so that each
    warning about a topic is logged once.
    """

    def __init__(
        self,
        topic: str,
        schema: Mapping[str, Any],
        letters: str | None = None,
        stream: Stream | None = None,
        logged: set[tuple[str, str]] | None = None,
    ) -> None:
        self._logged = set() if logged is None else logged
        self.texts: list[str] = []
        self.example = ""
        self._topic = topic
        self._letters = letters
        self._read = self._rows = self._refused = 0
        self._kinds: Counter[str] = Counter()
        self._first: dict[str, DeadLetter] = {}
        self._warned = False
        self._unseen = set(_paths(schema))
        self._sample: list[bytes] = []
        self._stream, self._times = stream, list[float]()
        self._late = 0
        self._late_by = 0
        self._late_keys: Counter[bytes] = Counter()
        self._warned_late = False

    def observe(self, messages: Messages, decoded: Decoded) -> None:
        """Examine a batch of messages and its rows."""
        self._read += len(messages)
        self._rows += decoded.frame.height
        if self._stream is not None and len(self._times) < _SAMPLE and decoded.frame.height:
            self._sample_times(messages, decoded.frame)
        if not self._unseen or not decoded.frame.height:
            return
        self._unseen = {path for path in self._unseen if _all_null(decoded.frame, path)}
        if self._unseen:
            rows = np.arange(len(messages)) if decoded.rows is None else decoded.rows
            wanted = rows[: _SAMPLE - len(self._sample)]
            self._sample += [messages.value_at(row) or b"" for row in wanted.tolist()]

    def refused(self, letter: DeadLetter) -> None:
        """Record a message that can't be counted."""
        self._refused += 1
        self.example = self.example or str(letter.reason)
        kind = kind_of(letter.reason)
        if kind in self._first or len(self._first) < _MOST_KINDS:
            self._kinds[kind] += 1
            self._first.setdefault(kind, letter)

    def late(self, messages: Messages, rows: Sequence[int], late_us: np.ndarray) -> None:
        """Record late messages of a batch, each late by so many microseconds."""
        if self._warned_late or not len(rows):
            return
        self._late += len(rows)
        self._late_by = max(self._late_by, int(late_us.max()))
        for row in rows[: max(0, _MOST_KINDS * _SAMPLE - self._late)]:
            key = messages.key[row].as_py() or b""
            if key in self._late_keys or len(self._late_keys) < _MOST_KINDS:
                self._late_keys[key] += 1

    def report_due(self, messages: int = 20, rows: int = 1_000) -> None:
        """Log the warnings that are due, if enough messages and rows were seen.

        At the end of a stream one of each is enough.
        """
        if not self._warned and 2 * self._refused > self._read >= messages:
            self._warned = True
            self._warn("refused", self._on_refused())
        if self._stream is not None and len(self._times) >= messages:
            self._on_times(self._stream)
        if not self._warned_late and self._late >= max(_MANY_LATE, _LATE_SHARE * self._rows):
            self._warned_late = True
            self._warn("late", self._on_late())
            self._late_keys.clear()
        if self._unseen and self._rows >= rows:
            unseen, self._unseen = self._unseen, set()
            self._on_fields(unseen)
            self._sample = []

    def _sample_times(self, messages: Messages, frame: pl.DataFrame) -> None:
        """Sample the numbers from which event times are computed."""
        assert self._stream is not None
        time = self._stream.time
        if time is None:
            stamps = messages.timestamp[:_SAMPLE]
            self._times += stamps[stamps >= 0].tolist()
        elif len(names := time.meta.root_names()) == 1 and names[0] in frame.columns:
            column = frame[names[0]].head(_SAMPLE)
            if column.dtype.is_numeric() or column.dtype == pl.String:
                self._times += column.cast(pl.Float64, strict=False).drop_nulls().drop_nans().to_list()

    def _on_times(self, stream: Stream) -> None:
        self._stream = None
        name, kind = "", pl.DataType()
        if stream.time is not None:
            (name,) = stream.time.meta.root_names()
            kind = stream.source.schema[name]
        unit = "ms" if stream.time is None else unit_read(stream.time, kind)
        doubt = None if unit is None else wrong_unit(np.array(self._times), unit, int(wall_clock() * 1e6))
        if doubt is None:
            return
        other, words = doubt
        if stream.time is None:
            self._warn(
                "time", f"time: the timestamp of messages of {self._topic!r} {words}: correct the producer"
            )
            return
        column = f'"{name}"' if kind != pl.String else f'pl.col("{name}").cast(pl.Int64)'
        self._warn("time", f'time: "{name}" {words}: write time=pl.from_epoch({column}, time_unit="{other}")')

    def _warn(self, about: str, text: str) -> None:
        self.texts.append(text)
        if (self._topic, about) not in self._logged:
            self._logged.add((self._topic, about))
            log.warning("%s", text)

    def _on_refused(self) -> str:
        ((kind, count),) = self._kinds.most_common(1)
        first = self._first[kind]
        value = "no value" if first.value is None else repr(first.value[:_SHOWN].decode(errors="replace"))
        where = f"they go to the topic {self._letters!r}" if self._letters else "they are dropped"
        return (
            f"{self._refused:,} of the first {self._read:,} messages of {self._topic!r} can't be counted; "
            f"{where}. {count:,} for this reason: {first.reason}. The first of these, "
            f"at {first.topic}[{first.partition}] offset {first.offset}: {value}"
        )

    def _on_late(self) -> str:
        most = self._late_keys.most_common(_KEYS_NAMED)
        keys = ", ".join(f"{key.decode(errors='replace')!r} {count:,}" for key, count in most if key)
        whose = f", most of them of the keys {keys}" if keys else ""
        return (
            f"{self._late:,} of the first {self._rows:,} rows of {self._topic!r} came too late, by up to "
            f"{self._late_by / 1e6:,.0f} s, and are dropped{whose}; a longer delay waits for them"
        )

    def _on_fields(self, unseen: set[tuple[str, ...]]) -> None:
        seen = {path: None for value in self._sample for path in _names(value)}
        # An explicit null counts as present; a missing object stands for all of its fields.
        missing = sorted(p for p in unseen if p not in seen and p[:-1] not in unseen)
        if not missing:
            return
        names = ", ".join(f'"{".".join(path)}"' for path in missing)
        fields = f"the field {names} was" if len(missing) == 1 else f"the fields {names} were"
        theirs = ", ".join(f'"{".".join(path)}"' for path in seen)
        known = f"; the messages have {theirs}" if theirs else ""
        self._warn("fields", f"{fields} in none of the first {self._rows:,} rows of {self._topic!r}{known}")


def _paths(schema: Mapping[str, Any], within: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The fields of a schema, those of its structs included."""
    for name, kind in schema.items():
        yield (*within, name)
        if isinstance(kind, pl.Struct):
            yield from _paths({field.name: field.dtype for field in kind.fields}, (*within, name))


def _all_null(frame: pl.DataFrame, path: tuple[str, ...]) -> bool:
    if path[0] not in frame.columns:
        return False
    column = frame[path[0]]
    for name in path[1:]:
        column = column.struct.field(name)
    return column.null_count() == len(column)


def _names(value: bytes) -> Iterator[tuple[str, ...]]:
    """The fields of a message, if it is a JSON object."""
    try:
        fields = json.loads(value)
        names = list(_inside(fields, ())) if isinstance(fields, dict) else []
    except (ValueError, RecursionError):
        return
    yield from names


def _inside(fields: dict[str, Any], within: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name, value in fields.items():
        yield (*within, name)
        if isinstance(value, dict):
            yield from _inside(value, (*within, name))
