"""A stream's steps over one batch of rows, each row's event time carried along.

Rows on which an expression fails are found and set aside one by one, so that the rest of the batch goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import polars as pl

from .event_time import TIME
from .stream import Stream

Refuse = Callable[[np.ndarray, str], None]
"""Told of rows that can't be counted: their numbers in the caller's frame, and why."""

T = TypeVar("T")

_ROW = "__row"


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows of a caller's frame. `times` are event times (int64 microseconds, UTC), `numbers` the rows'
    places in that frame (None: all of it), `timestamps` their messages' (int64 milliseconds).
    """

    frame: pl.DataFrame
    times: np.ndarray
    numbers: np.ndarray | None = None
    timestamps: np.ndarray | None = None

    def keep(self, kept: np.ndarray) -> Rows:
        """The rows of a mask."""
        return Rows(
            self.frame.filter(pl.Series(kept)),
            self.times[kept],
            np.flatnonzero(kept) if self.numbers is None else self.numbers[kept],
            None if self.timestamps is None else self.timestamps[kept],
        )

    def slice(self, start: int, stop: int) -> Rows:
        """Some rows side by side."""
        return Rows(
            self.frame[start:stop],
            self.times[start:stop],
            np.arange(start, stop) if self.numbers is None else self.numbers[start:stop],
            None if self.timestamps is None else self.timestamps[start:stop],
        )

    def without(self, dropped: np.ndarray | None, refuse: Refuse, reason: str) -> Rows:
        """The rows outside a mask; those in it are refused."""
        if dropped is None:
            return self
        gone = np.flatnonzero(dropped)
        refuse(gone if self.numbers is None else self.numbers[gone], reason)
        return self.keep(~dropped)


@dataclass(frozen=True, slots=True)
class Stepped:
    """Rows after all steps: the columns that are needed and each row's event time.

    `counted` messages are among them, `filtered` left no row; `message_times` are the counted messages' event
    times, once each however many rows they became.
    """

    frame: pl.DataFrame
    times: np.ndarray
    counted: int
    filtered: int
    message_times: np.ndarray


class RowSteps:
    """What happens to rows between decoding and sketching."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        asked = stream.aggregates.values()
        wanted = [*stream.keys, *(column for a in asked for column in a.columns)]
        self._wanted = list(dict.fromkeys(wanted))
        self._expected = list(stream.source.schema)
        self._explodes = any(step.verb == "explode" for step in stream.steps)

    def read(self, frame: pl.DataFrame, timestamps: np.ndarray | None, refuse: Refuse) -> Rows:
        """The rows of a decoded frame that have an event time; the others are refused.

        Raises `ValueError` for a frame without the columns of the stream's source.
        """
        missing = [name for name in self._expected if name not in frame.columns]
        if missing:
            raise ValueError(f"the rows have no column {', '.join(missing)}, only {', '.join(frame.columns)}")
        if self._stream.time is None:
            if timestamps is None:
                raise ValueError("this stream's event time is the messages' timestamp, but none were given")
            return Rows(frame, timestamps * np.int64(1000), None, timestamps)
        rows = Rows(frame, np.empty(frame.height, np.int64), None, timestamps)
        rows, times = _attempt(rows, self._event_times, refuse)
        unknown = times.is_null().to_numpy() if times.null_count() else None
        whole = times.to_physical().fill_null(0).to_numpy()
        rows = replace(rows, times=np.ascontiguousarray(whole, np.int64))
        return rows.without(unknown, refuse, "no event time")

    def apply(self, rows: Rows, refuse: Refuse) -> Stepped:
        """The rows after all steps, in order."""
        if not self._stream.steps:
            return Stepped(rows.frame[self._wanted], rows.times, len(rows.times), 0, rows.times)
        rows, found = _attempt(rows, self._transformed, refuse)
        read = len(rows.times)
        if not self._stream.drops_rows:
            return Stepped(found, rows.times, read, 0, rows.times)
        times = found[TIME].to_numpy()
        firsts = times
        if self._explodes and len(times):
            numbers = found[_ROW].to_numpy()
            firsts = times[np.concatenate([[True], numbers[1:] != numbers[:-1]])]
        return Stepped(found[self._wanted], times, len(firsts), read - len(firsts), firsts)

    def _event_times(self, rows: Rows) -> pl.Series:
        return rows.frame.select(self._stream.time).to_series()

    def _transformed(self, rows: Rows) -> pl.DataFrame:
        frame, carried = rows.frame, []
        if self._stream.drops_rows:
            carried.append(pl.Series(TIME, rows.times))
        if self._explodes:
            carried.append(pl.Series(_ROW, np.arange(len(rows.times))))
        names = tuple(column.name for column in carried)
        lazy = frame.with_columns(carried).lazy() if carried else frame.lazy()
        return self._stream.transform(lazy, names).select(*self._wanted, *names).collect()


def _attempt(rows: Rows, run: Callable[[Rows], T], refuse: Refuse) -> tuple[Rows, T]:
    """`run` over the rows on which it doesn't fail; the others are refused with its error."""
    try:
        return rows, run(rows)
    except pl.exceptions.PolarsError as error:
        failed = np.zeros(len(rows.times), bool)
        for number, reason in _failures(rows, run, 0, error):
            failed[number] = True
            refuse(np.array([number]) if rows.numbers is None else rows.numbers[number : number + 1], reason)
        rows = rows.keep(~failed)
        return rows, run(rows)


def _failures(
    rows: Rows, run: Callable[[Rows], object], start: int, error: Exception
) -> Iterator[tuple[int, str]]:
    """The places and errors of the rows on which `run` fails, by halving: expressions look at single rows."""
    n = len(rows.times)
    if n == 1:
        yield start, str(error).split("\n")[0]
        return
    for low, high in ((0, n // 2), (n // 2, n)):
        half = rows.slice(low, high)
        try:
            run(half)
        except pl.exceptions.PolarsError as inner:
            yield from _failures(half, run, start + low, inner)
