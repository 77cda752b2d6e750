"""A stream's steps over one batch of rows, and the event times of the resulting rows.

Rows on which an expression fails are found and refused one by one, so that the rest of the batch is
processed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ...sketches.core.lazy import pl
from ..definition.event_time import TIME, in_utc, why_none
from ..definition.functions import is_wrong_rows
from ..definition.number_times import AFTER_ALL
from ..definition.stream import Stream
from ..formats.failures import why

Refuse = Callable[[np.ndarray, str], None]
"""Called with rows that can't be counted: their numbers in the caller's frame, and the reason."""

T = TypeVar("T")

_FEW = 16
_NO_TIMESTAMP = 'no event time: the message has no timestamp; take one from the rows, as in time="at"'


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows of a caller's frame, and their numbers in it."""

    frame: pl.DataFrame
    numbers: np.ndarray

    def keep(self, kept: np.ndarray) -> Rows:
        """The rows that a mask selects."""
        return Rows(self.frame.filter(pl.Series(kept)), self.numbers[kept])

    def slice(self, start: int, stop: int) -> Rows:
        """A slice of consecutive rows."""
        return Rows(self.frame.slice(start, stop - start), self.numbers[start:stop])


@dataclass(frozen=True, slots=True)
class Stepped:
    """Rows after all steps: the required columns, and the caller's rows that they come from.

    `numbers` are the numbers of those rows, in order, repeated if `explode` made several rows of one.
    `filtered` is the number of the caller's rows without a result. `duplicate` marks rows whose id occurred
    before, in a deduplicated stream. `whole` means that they are all of the caller's rows, each once.
    """

    frame: pl.DataFrame
    numbers: np.ndarray
    filtered: int
    duplicate: np.ndarray | None = None
    whole: bool = False

    @property
    def messages(self) -> np.ndarray:
        """The numbers of the caller's rows, each once."""
        return self.numbers if self.whole else unique(self.numbers)

    def of(self, values: np.ndarray) -> np.ndarray:
        """The elements for these rows of an array with a value for each of the caller's rows."""
        return values if self.whole else values[self.numbers]

    def keep(self, kept: np.ndarray) -> Stepped:
        """The rows that a mask selects."""
        # A frame without columns, as for rows that are only counted, has no rows to filter.
        frame = self.frame.filter(pl.Series(kept)) if self.frame.width else self.frame
        duplicate = None if self.duplicate is None else self.duplicate[kept]
        return Stepped(frame, self.numbers[kept], self.filtered, duplicate)


class RowSteps:
    """The steps between decoding and sketching; results have the stored columns or the named ones."""

    def __init__(self, stream: Stream, columns: Iterable[str] | None = None) -> None:
        self._stream = stream
        if columns is None:
            aggregates = stream.aggregates.values()
            columns = [*stream.keys, *(column for a in aggregates for column in a.columns)]
            if stream.sending is not None:
                columns = list(stream.columns)
        self._wanted = list(dict.fromkeys(columns))
        self._expected = list(stream.source.schema)
        # A function is called for every row, even if none of its results are needed.
        self._carries = any(step.drops_rows or step.verb == "map_batches" for step in stream.steps)
        self._limits = stream.time_limits
        self._of_time = [] if stream.time is None else list(dict.fromkeys(stream.time.meta.root_names()))

    def apply(self, frame: pl.DataFrame, refuse: Refuse) -> Stepped:
        """Apply all steps to a decoded frame, in order; rows on which a step fails are refused.

        Raises `ValueError` for a frame without the columns of the stream's source.
        """
        missing = [name for name in self._expected if name not in frame.columns]
        if missing:
            raise ValueError(f"the rows have no column {', '.join(missing)}, only {', '.join(frame.columns)}")
        numbers = np.arange(frame.height)
        if not self._stream.steps:
            return Stepped(_chosen(frame, self._wanted), numbers, 0, whole=True)
        rows, result = attempt(Rows(frame, numbers), self._transformed, refuse)
        if not self._carries:
            return Stepped(result, rows.numbers, 0)
        left = result[TIME].to_numpy()
        return Stepped(_chosen(result, self._wanted), left, len(rows.numbers) - len(unique(left)))

    def event_times(
        self, frame: pl.DataFrame, timestamps_ms: np.ndarray | None, left: Stepped, refuse: Refuse
    ) -> tuple[Stepped, np.ndarray]:
        """The resulting rows that have an event time, and their times.

        Times are int64 microseconds in UTC. Rows without a time are refused. A filtered row needs no event
        time, so this comes after the steps, although the time is computed from the row as it was decoded.
        """
        if self._stream.time is None:
            if timestamps_ms is None:
                raise ValueError(
                    "this stream's event time is the messages' timestamp, but no timestamps were given"
                )
            stamps = left.of(timestamps_ms)
            if len(stamps) and stamps.min() < 0:
                refuse(unique(left.numbers[stamps < 0]), _NO_TIMESTAMP)
                left, stamps = left.keep(stamps >= 0), stamps[stamps >= 0]
            return left, np.minimum(stamps, AFTER_ALL // 1000) * np.int64(1000)
        kept = left.messages
        columns = _chosen(frame, self._of_time) if self._of_time else frame
        rows = Rows(columns if len(kept) == frame.height else columns[kept], kept)
        rows, (given, times) = attempt(rows, self._times, refuse)
        if times.null_count():
            known = times.is_not_null().to_numpy()
            for number, value in zip(rows.numbers[~known], given.filter(pl.Series(~known))):
                refuse(np.array([number]), why_none(value, self._of_time))
            rows, times = rows.keep(known), times.filter(pl.Series(known))
        points = np.ascontiguousarray(times.cast(pl.Int64).to_numpy(), np.int64)
        if len(rows.numbers) < len(kept):
            left = left.keep(np.isin(left.numbers, rows.numbers))
        if len(rows.numbers) < len(left.numbers):
            points = points[np.searchsorted(rows.numbers, left.numbers)]
        return left, points

    def _times(self, rows: Rows) -> tuple[pl.Series, pl.Series]:
        """The values of the stream's time expression, and the same as timestamps."""
        time = self._stream.time
        assert time is not None
        if self._limits is not None:
            return rows.frame[self._limits.column], self._limits.times(time, rows.frame, in_utc)
        given = rows.frame.select(time).to_series()
        return given, in_utc(given)

    def _transformed(self, rows: Rows) -> pl.DataFrame:
        frame, carried = rows.frame.lazy(), tuple[str, ...]()
        if self._carries:
            # Streams reserve this name.
            carried = (TIME,)
            frame = frame.with_columns(pl.Series(TIME, rows.numbers))
        return self._stream.reading.transform(frame, carried).select(*self._wanted, *carried).collect()


def _chosen(frame: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Some columns of a frame."""
    # `select` would build a plan and wait for Polars' pool: half a millisecond if all cores are busy.
    return frame[names] if names else frame.select()


def unique(numbers: np.ndarray) -> np.ndarray:
    """Sorted numbers without repetitions."""
    if not len(numbers):
        return numbers
    first = np.empty(len(numbers), bool)
    first[0] = True
    np.not_equal(numbers[1:], numbers[:-1], out=first[1:])
    return numbers if first.all() else numbers[first]


def attempt(rows: Rows, run: Callable[[Rows], T], refuse: Refuse) -> tuple[Rows, T]:
    """Call `run` on the rows on which it doesn't fail; refuse the others with its error.

    Expressions may contain the user's functions, which may raise anything.
    """
    try:
        return rows, run(rows)
    except BaseException as error:
        if is_wrong_rows(error):
            raise
        failed = np.zeros(len(rows.numbers), bool)
        for number, reason in _failures(rows, run, 0, error):
            failed[number] = True
            refuse(rows.numbers[number : number + 1], reason)
        rows = rows.keep(~failed)
        return rows, run(rows)


def _failures(
    rows: Rows, run: Callable[[Rows], object], start: int, error: BaseException
) -> Iterator[tuple[int, str]]:
    """The positions and errors of the rows on which `run`, which is row-wise, fails; found by bisection.

    The last few rows are tried one by one, so that even if all rows fail, there are hardly more calls than
    rows.
    """
    reason = why(error)
    n = len(rows.numbers)
    if n == 1:
        yield start, reason
        return
    step = 1 if n <= _FEW else (n + 1) // 2
    for low in range(0, n, step):
        part = rows.slice(low, min(low + step, n))
        try:
            run(part)
        except BaseException as inner:
            if is_wrong_rows(inner):
                raise
            yield from _failures(part, run, start + low, inner)
