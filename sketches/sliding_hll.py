"""Distinct values of the last hour, or of any shorter span, at any time: HyperLogLog over sliding windows."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from .columns import as_array, as_values
from .distinct_counter import DistinctCounter
from .group_numbers import as_groups
from .hll_coupons import CHUNK, coupon_chunks, read_only
from .hll_estimate import composite_table, relative_errors
from .parameters import seconds, whole
from .protocol import Groups, SketchError
from .sliding_hll_images import read_image, write_image
from .sliding_hll_store import (
    NEVER,
    Store,
    estimates,
    kept_entries,
    new_store,
    update_entries,
    update_groups,
    with_room,
    with_sketches,
)
from .times import as_times

Span = timedelta | float


class SlidingHLLGroups(Groups):
    """One `SlidingHLL` a group, in one set of arrays: see there for the error promised.

    A group takes 12 bytes for each value that may still be a register's greatest in some span, and as much
    again for the places of its hash table that are free.

    >>> groups = SlidingHLLGroups(2, window=60.0)
    >>> groups.update([0, 1, 1], ["ann", "bob", "cat"], time=[0, 0, 90_000_000])
    >>> groups.estimates().round().tolist()
    [1.0, 1.0]
    """

    def __init__(self, n: int = 0, lg_k: int = 12, window: Span = 3600.0) -> None:
        self.lg_k = whole("SlidingHLL", "lg_k", lg_k, 4, 21)
        self._n = n
        self._store: Store = new_store(n, self.lg_k, _microseconds(window))

    def __len__(self) -> int:
        return self._n

    @property
    def window(self) -> float:
        """The longest span that can be asked for, in seconds."""
        return int(self._store.params[1]) / 1e6

    def resize(self, n: int) -> None:
        """Grow to `n` groups; the new ones are empty. Never shrinks."""
        if n > len(self._store.sketches):
            self._store = with_sketches(self._store, max(n, len(self._store.sketches) * 3 // 2))
        self._n = max(n, self._n)

    def update(self, groups: np.ndarray, values: Any, **inputs: Any) -> None:
        """Count values at their `time`, one a row, in their groups; nulls and empty strings are skipped."""
        if set(inputs) != {"time"}:
            raise TypeError("SlidingHLL: expected update(…, time=…), one event time a row")
        values = as_values(values)
        times = values.per_value(as_times(inputs["time"], values.length, "SlidingHLL"))
        numbers = values.per_value(as_groups(groups, values.length, self._n))
        for start, coupons in coupon_chunks(values):
            chunk = slice(start, start + CHUNK)
            self._run(update_groups, numbers[chunk], coupons, times[chunk])

    def _run(self, update: Any, groups: np.ndarray, what: np.ndarray, times: np.ndarray) -> None:
        groups, times = read_only(groups), read_only(np.ascontiguousarray(times))
        done = 0
        while (done := update(self._store, groups, what, times, done)) < len(what):
            self._store = with_room(self._store)

    def merge(self, groups: np.ndarray, column: pa.Array) -> None:
        """Fold serialised sketches in: `column[i]` into group `groups[i]`, nulls skipped.

        A sketch of a larger lg_k is folded to the groups' own. Raises `SketchError`, naming the row, for one
        of a smaller lg_k or another window and for bytes that are no sketch; the rows before it are in then.
        """
        images = as_array(column)
        if not (pa.types.is_binary(images.type) or pa.types.is_large_binary(images.type)):
            if len(images):
                raise SketchError(f"SlidingHLL: expected a binary column of sketches, got {images.type}")
            return
        numbers = as_groups(groups, len(images), self._n)
        for row, (group, image) in enumerate(zip(numbers.tolist(), images)):
            if image.is_valid:
                try:
                    self._fold(group, image.as_buffer())
                except SketchError as refused:
                    raise SketchError(f"row {row}: {refused}") from None

    def _fold(self, group: int, data: Any) -> None:
        image = read_image(data)
        if image.window != self._store.params[1]:
            theirs = image.window / 1e6
            raise SketchError(f"SlidingHLL: windows of {self.window:g} s and {theirs:g} s can't be merged")
        if image.lg_k < self.lg_k and len(image.keys):
            raise SketchError(f"SlidingHLL: groups of lg_k={self.lg_k} can't take one of lg_k={image.lg_k}")
        keys = image.keys & np.uint32((64 << self.lg_k) - 1)
        self._run(update_entries, np.full(len(keys), group), keys, image.times)

    def to_arrow(self) -> pa.Array:
        """The sketches' bytes, in group order."""
        return pa.array((self._image(g) for g in range(self._n)), pa.binary(), size=self._n)

    def _image(self, group: int) -> bytes:
        keys, times = kept_entries(self._store, group)
        return write_image(self.lg_k, int(self._store.params[1]), keys, times)

    def __getitem__(self, group: int) -> SlidingHLL:
        if not -self._n <= group < self._n:
            raise IndexError(f"group {group} of {self._n}")
        return SlidingHLL.from_bytes(self._image(group % self._n))

    def estimates(self, window: Span | None = None, now: datetime | int | None = None) -> np.ndarray:
        """Distinct values in each group later than `now` − `window` (float64); see `SlidingHLL.estimate`."""
        return self._estimates(window, now)[0]

    def bounds(
        self, std_devs: int = 2, window: Span | None = None, now: datetime | int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """(lower, upper) of each group at 1, 2 or 3 standard deviations (68.3, 95.4, 99.7 % confidence)."""
        if std_devs not in (1, 2, 3):
            raise ValueError(f"bounds are known at 1, 2 or 3 standard deviations, not {std_devs}")
        estimate, seen = self._estimates(window, now)
        lower, upper = relative_errors()[self.lg_k, 1, std_devs - 1]
        return np.maximum(estimate / (1 + lower), seen), np.maximum(estimate / (1 - upper), seen)

    def _estimates(self, window: Span | None, now: datetime | int | None) -> tuple[np.ndarray, np.ndarray]:
        span = int(self._store.params[1]) if window is None else _microseconds(window)
        if span > self._store.params[1]:
            raise ValueError(
                f"SlidingHLL: {self.window:g} s are kept, a span of {span / 1e6:g} s is too long"
            )
        latest = self._store.sketches["latest"][: self._n]
        ends = latest if now is None else np.full(self._n, as_times(now, 1, "SlidingHLL")[0])
        if (ends < latest).any():
            raise ValueError(
                f"SlidingHLL: a row of {latest.max()} µs was seen, so {ends.max()} µs can't be now"
            )
        estimate, seen = np.empty(self._n), np.empty(self._n)
        registers = np.empty(1 << self.lg_k, np.uint8)
        after = np.where(ends == NEVER, NEVER, np.maximum(ends, NEVER + span) - span)
        estimates(self._store, after, composite_table(), registers, estimate, seen)
        return estimate, seen


class SlidingHLL(DistinctCounter):
    """How many distinct values the last time span held, for the longest `window` or any shorter span.

    The span ends with the latest row seen, or at the time that is asked for; rows may come late and in any
    order. Promise: the relative standard error of any span is that of a HyperLogLog of 2^lg_k registers that
    saw this span alone, 1.04 / √(2^lg_k) (1.6 % at 12; `lg_k` 4 to 21). `bounds` holds the true count with
    68.3, 95.4 or 99.7 % confidence at 1, 2 or 3 standard deviations. A sketch depends on the rows alone: no
    order of rows or merges changes a byte. Nulls and empty strings are not counted.

    Each register keeps the values that are its greatest in some span that ends now, about ln(rows in the
    window / 2^lg_k) + 1 of them, 12 bytes each in the image. `window` is a timedelta or seconds, times are
    timestamps or int64 microseconds since 1970. Merging takes the smaller lg_k; sketches of other windows are
    refused with `SketchError`.

    Source: Chabchoub and Hébrail, Sliding HyperLogLog (2010), sections III and IV; the estimator is the
    composite one of Apache DataSketches.

    >>> visits = SlidingHLL(window=3600.0)
    >>> visits = visits.update([f"user-{i}" for i in range(1000)], time=[i * 1_000_000 for i in range(1000)])
    >>> abs(visits.estimate() - 1000) < 50, abs(visits.estimate(window=100.0) - 100) < 10
    (True, True)
    """

    family: ClassVar[str] = "SlidingHLL"

    def __init__(self, lg_k: int = 12, window: Span = 3600.0) -> None:
        self._one = SlidingHLLGroups(1, lg_k, window)

    @property
    def lg_k(self) -> int:
        """The base-2 logarithm of the number of registers; merging a smaller sketch lowers it."""
        return self._one.lg_k

    @property
    def window(self) -> float:
        """The longest span that can be asked for, in seconds."""
        return self._one.window

    def update(self, values: Any, time: Any = None) -> Self:
        """Count a column at its event times, one a row, or one for all. Returns the sketch itself."""
        values = as_values(values)
        self._one.update(np.zeros(values.length, np.int64), values, time=time)
        return self

    def merge(self, other: Self) -> Self:
        """Fold `other` in, in place; the result has the smaller lg_k. Returns the sketch itself."""
        if not isinstance(other, SlidingHLL):
            raise SketchError(f"SlidingHLL: can't merge with {type(other).__name__}")
        if other.window != self.window:
            raise SketchError(
                f"SlidingHLL: windows of {self.window:g} s and {other.window:g} s can't be merged"
            )
        if other._saw_nothing():
            return self
        if other.lg_k < self.lg_k:
            smaller = SlidingHLLGroups(1, other.lg_k, self.window)
            smaller._fold(0, self.to_bytes())
            self._one = smaller
        self._one._fold(0, other.to_bytes())
        return self

    def _saw_nothing(self) -> bool:
        return not len(kept_entries(self._one._store, 0)[0])

    def to_bytes(self) -> bytes:
        """The sketch in its own format, drawn in `sliding_hll_images`; there is no common one."""
        return self._one._image(0)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The sketch those bytes hold. Raises `SketchError` for anything else."""
        image = read_image(data)
        sketch = cls(image.lg_k, image.window / 1e6)
        sketch._one._run(update_entries, np.zeros(len(image.keys), np.int64), image.keys, image.times)
        return sketch

    def estimate(self, window: Span | None = None, now: datetime | int | None = None) -> float:
        """The distinct values of the rows later than `now` − `window`.

        `now` is the latest time seen unless given (a datetime or microseconds since 1970). Raises
        `ValueError` for a span longer than the sketch's own, or a `now` before the latest row.
        """
        return float(self._one.estimates(window, now)[0])

    def bounds(
        self, std_devs: int = 2, window: Span | None = None, now: datetime | int | None = None
    ) -> tuple[float, float]:
        """(lower, upper) at 1, 2 or 3 standard deviations: 68.3, 95.4 or 99.7 % confidence."""
        lower, upper = self._one.bounds(std_devs, window, now)
        return float(lower[0]), float(upper[0])

    def __repr__(self) -> str:
        return f"SlidingHLL(lg_k={self.lg_k}, window={self.window:g}): {self._in_words()}"


def _microseconds(span: Span) -> int:
    return round(seconds("SlidingHLL", "window", span) * 1e6)
