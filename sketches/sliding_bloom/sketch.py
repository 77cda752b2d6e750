"""Whether a value occurred in the last hour, or in any shorter span: a Bloom filter that forgets."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Any, Self

import numpy as np
import pyarrow as pa

from ..bloom.sketch import keys_of, seed_of
from ..core.columns.arrays import as_array, is_scalar
from ..core.columns.times import as_time, as_times
from ..core.groups.group_numbers import frozen
from ..core.parameters import deviations, seconds
from ..core.protocol import Sketch, SketchError
from ..core.values.event_moments import TIME
from ..core.values.item_kinds import as_items, joint_kind, kind_with
from . import cells as kernels
from .images import NAME, Image, Parameters, parse, write

Span = timedelta | float
_NO_LOG = np.empty((0, 3), np.int64)
_ONE = np.zeros(1, np.int64)


class SlidingBloom(Sketch):
    """Whether a value occurred in the last `window` of time, or in any shorter span.

    The span ends with the latest row seen, or at the time that is queried; rows may be late and in any order.
    Promise: a value of the span is always found. A value that did not occur in the span, nor in the 1/128 of
    `window` before it, is found with probability `fpp` at most, while that time has up to `capacity` distinct
    values, however they are distributed and however often each occurs. With more, the rate rises: `rate`
    returns the current one, and `count` estimates the number of values. A value that occurred only in that
    1/128 may be found.

    It takes a fixed 10.5 bytes for each of `capacity` values at 1 %, 16.9 at 0.1 %; its serialised form is
    smaller while it contains few values. `window` is a timedelta or seconds, times are timestamps or int64
    microseconds since 1970; `seed` selects other hash functions. Nulls are skipped; values of another kind
    than the first ones are converted or refused (`values.item_kinds`). A sketch depends only on the rows: no
    order of rows or merges changes a byte. Sketches can be merged if all four parameters are equal.

    Raises `SketchError` for parameters out of range and for bytes that aren't such a filter, `TypeError` for
    rows without times and for types that have no hash.

    Source: Kong, He, Shao, Gui, Cheng, "Time-Out Bloom Filter", ICOIN 2006; Putze, Sanders, Singler, "Cache-,
    Hash- and Space-Efficient Bloom Filters", WEA 2007. The package's docstring explains the choice, with
    measurements.

    >>> import streamgauge as sg
    >>> minute = 60_000_000
    >>> seen = sg.SlidingBloom(capacity=1000, window=3600.0).update(["ann", "bob"], time=[0, 50 * minute])
    >>> seen.contains(["ann", "bob", "eve"]).tolist()
    [True, True, False]
    >>> seen.update("cat", time=70 * minute).contains(["ann", "bob"]).tolist()
    [False, True]
    >>> seen.contains(["bob", "cat"], window=600.0).tolist()
    [False, True]
    """

    family = NAME

    def __init__(
        self, capacity: int = 100_000, fpp: float = 0.01, window: Span = 3600.0, seed: int = 0
    ) -> None:
        self._of(parameters_of(capacity, fpp, window, seed))

    def _of(self, parameters: Parameters) -> None:
        self._parameters = parameters
        self._cells = np.zeros((1, parameters.blocks * kernels.CELLS), np.uint8)
        self._heads = np.array([kernels.NOTHING], np.int64)

    @property
    def capacity(self) -> int:
        """The number of distinct values that a window may have at the promised rate."""
        return self._parameters.capacity

    @property
    def fpp(self) -> float:
        """The promised rate of false positives."""
        return self._parameters.fpp

    @property
    def window(self) -> float:
        """The longest span that can be queried, in seconds."""
        return self._parameters.window / 1e6

    @property
    def seed(self) -> int:
        """The seed that selects the hash functions."""
        return self._parameters.seed

    @property
    def _how(self) -> tuple[int, int]:
        return kernels.width_of(self._parameters.window), self._parameters.window

    def update(self, values: Any, time: Any = None) -> Self:
        """Add values with their event times, one per row or one for all. Returns the sketch itself."""
        items = as_items(values, self.item_kind, NAME)
        times = frozen(np.ascontiguousarray(items.per_value(as_times(time, items.length, NAME))))
        keys = frozen(keys_of(items, "blocked", self.seed))
        groups = frozen(np.zeros(len(keys), np.int64))
        to = self._cells, _ONE, self._heads
        kernels.add_grouped(*to, groups, keys, times, *self._how, _NO_LOG, 0, _ONE)
        self.item_kind = kind_with(self.item_kind, items)
        return self

    def contains(
        self, values: Any, window: Span | None = None, now: datetime | int | None = None
    ) -> np.ndarray:
        """Return for every value (without nulls) False if it certainly was not in the rows later than `now` −
        `window`, True if it probably was.

        `now` is the latest time seen unless given (a datetime or microseconds since 1970). Raises
        `ValueError` for a span longer than the sketch's own or a `now` before the latest row, `TypeError` for
        values of another kind, and `SketchError` for numbers that equal no value of the filter's kind.
        """
        first = self._first(window, now)
        contained: np.ndarray = self._steps(values) >= first
        return contained

    def __contains__(self, value: Any) -> bool:
        """Whether one value probably was in the last window; a null never was."""
        if value is None:
            return False
        if not is_scalar(value) and len(value := as_array(value)) != 1:
            raise TypeError(f"{NAME}: `in` needs one value, got {len(value)}; use contains")
        contained = self.contains(value)
        return len(contained) == 1 and bool(contained[0])  # NaN is a gap except among floats

    def last_seen(self, values: Any) -> pa.Array:
        """Return for every value (without nulls) the latest time it may have occurred, null if it certainly
        did not occur in the last window.

        That is never before its last row, and except with probability `rate` at most 1/128 of the window
        after it. Raises as `contains` does.

        >>> import streamgauge as sg
        >>> seen = sg.SlidingBloom(window=128.0).update(["ann", "bob"], time=[10_000_000, 90_400_000])
        >>> [time and time.timestamp() for time in seen.last_seen(["ann", "bob", "eve"]).to_pylist()]
        [10.999999, 90.4, None]
        """
        steps = self._steps(values)
        latest, base = self._head
        inside = steps >= self._first_step(latest, self._parameters.window)
        if latest == kernels.NEVER:
            return pa.nulls(len(steps), TIME)
        ends = (base + 1 + steps.astype(np.int64)) * self._how[0] - 1
        return pa.array(np.minimum(ends, latest), mask=~inside).view(TIME)

    def _steps(self, values: Any) -> np.ndarray:
        """Return the step in which each value was last seen, or a later one; 0 if it was not seen."""
        items = as_items(values, self.item_kind, NAME)
        keys = frozen(keys_of(items, "blocked", self.seed))
        steps = np.empty(len(keys), np.uint8)
        kernels.earliest(self._cells[0], keys, steps)
        return steps

    @property
    def _head(self) -> tuple[int, int]:
        """Return the latest time, and the step from which cells count."""
        latest, base = self._heads[0].tolist()
        return latest, base

    def _first_step(self, end: int, span: int) -> int:
        """Return the first step of a span, as in cells, at least 1, which is after all steps of older
        rows."""
        base = self._head[1]
        return 1 if base == kernels.NEVER else max(1, (end - span + 1) // self._how[0] - base)

    def _first(self, window: Span | None, now: datetime | int | None) -> int:
        latest = self._head[0]
        span = self._parameters.window if window is None else microseconds(window)
        if span > self._parameters.window:
            raise ValueError(
                f"{NAME}: {self.window:g} s are kept, a span of {span / 1e6:g} s is too long; make "
                "the filter with a longer window"
            )
        end = latest if now is None else as_time(now, NAME)
        if end < latest:
            raise ValueError(f"{NAME}: a row of {latest} µs was seen, so {end} µs can't be now")
        return self._first_step(end, span)

    @property
    def rate(self) -> float:
        """Probability that a value that did not occur in the last window is found now."""
        first = self._first_step(self._head[0], self._parameters.window)
        return float(kernels.chance(self._cells[0], first))

    def count(self, window: Span | None = None, now: datetime | int | None = None) -> float:
        """Estimate of the number of distinct values in the span, from the share of cells that are set;
        infinite if all are set. Raises `ValueError` as `contains` does.

        >>> import streamgauge as sg
        >>> round(sg.SlidingBloom().update(range(1000), time=0).count())
        999
        """
        return self._count(self._first(window, now))

    def _count(self, first: int) -> float:
        cells = self._cells.size
        share = np.count_nonzero(self._cells >= first) / cells
        return math.inf if share == 1 else -cells / kernels.LANES * math.log1p(-share)

    def bounds(
        self, std_devs: int = 2, window: Span | None = None, now: datetime | int | None = None
    ) -> tuple[float, float]:
        """(lower, upper) of `count` at 1, 2 or 3 standard deviations: 68.3, 95.4 or 99.7 % confidence.

        They include the values of 1/128 of the window, which can't be distinguished from the span's. The
        error is that of linear counting in a single lane of the cells, which is larger than the error of all
        eight.

        Raises `ValueError` for any other number, and as `contains` does.

        Source: Whang, Vander-Zanden, Taylor, "A Linear-Time Probabilistic Counting Algorithm for Database
        Applications", TODS 1990, section 4.
        """
        wide, first = deviations(NAME, std_devs), self._first(window, now)
        lower, upper = self._count(first + 1), self._count(first)
        return max(0.0, lower - wide * self._deviation(lower)), upper + wide * self._deviation(upper)

    def _deviation(self, count: float) -> float:
        lane = self._cells.size / kernels.LANES
        if math.isinf(count):
            return 0.0  # all cells are set: only this bound is certain
        return math.sqrt(lane * (math.expm1(count / lane) - count / lane))

    def merge(self, other: Self) -> Self:
        """Add the other's values with their times. Raises `SketchError` unless all parameters are equal."""
        if not isinstance(other, SlidingBloom):
            raise SketchError(f"{NAME}: can't merge with {type(other).__name__}")
        if other._parameters != self._parameters:
            raise SketchError(
                f"{NAME}: can't merge filters of {self._parameters}, and of {other._parameters}"
            )
        item_kind = joint_kind(self.item_kind, other.item_kind, NAME)
        self.fold(other._image_of(None))
        self.item_kind = item_kind
        return self

    def fold(self, image: Image) -> None:
        """Add the contents of an image with the same parameters."""
        if image.latest != kernels.NEVER:
            kernels.fold(self._cells[0], self._heads[0], image.cells(), image.latest, *self._how)

    def answer(self) -> dict[str, Any]:
        """The estimated number of distinct values in the last window, with bounds at 95.4 % confidence, and
        `rate`, the probability that a value that did not occur is found.
        """
        count, (lower, upper) = self.count(), self.bounds()
        numbers = {"count": count, "lower": math.floor(lower) if math.isfinite(lower) else lower}
        numbers["upper"] = math.ceil(upper) if math.isfinite(upper) else upper
        whole = {name: round(n) if math.isfinite(n) else None for name, n in numbers.items()}
        return {**whole, "rate": self.rate}

    def _image_of(self, item_kind: str | None) -> Image:
        kernels.trim(self._cells[0], self._heads[0], *self._how)
        places = np.flatnonzero(self._cells[0])
        latest = int(self._heads[0, kernels.LATEST])
        return Image(self._parameters, latest, places, self._cells[0, places], item_kind)

    def to_bytes(self) -> bytes:
        """The bytes, in the format described in `images`."""
        return write(self._image_of(self.item_kind))

    def _image(self) -> bytes:
        return write(self._image_of(None))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a filter from its bytes. Raises `SketchError` for anything else."""
        image = parse(data)
        sketch = cls.__new__(cls)
        sketch._of(image.parameters)
        sketch.fold(image)
        sketch.item_kind = image.item_kind
        return sketch

    def __repr__(self) -> str:
        size = f"{self._cells.size:,} bytes, window={self.window:g}, seed={self.seed}"
        count = f"about {self.count():,.0f} of {self.capacity:,} values, rate {self.rate:.2%}"
        return f"{NAME}({size}; {count})"


def parameters_of(capacity: int, fpp: float, window: Span, seed: int) -> Parameters:
    """Validate a filter's parameters. Raises `SketchError` if they are out of range, or too large
    together."""
    seed = seed_of("blocked", seed, NAME)
    parameters = Parameters(capacity, fpp, microseconds(window), seed)
    assert parameters.blocks
    return Parameters(int(capacity), float(fpp), parameters.window, seed)


def microseconds(span: Span) -> int:
    """Convert a span of time to microseconds. Raises `SketchError` for anything else."""
    return round(seconds(NAME, "window", span) * 1e6)
