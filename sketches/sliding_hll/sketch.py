"""Distinct values of the last hour, or of any shorter span, at any time: sliding HyperLogLog."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar, Self

import numpy as np

from ..core.distinct_counter import DistinctCounter
from ..core.protocol import SketchError
from ..core.values.item_kinds import as_items, joint_kind, kind_with
from .groups import SlidingHLLGroups, Span
from .images import read_image


class SlidingHLL(DistinctCounter):
    """The number of distinct values in the last `window` of time, or in any shorter span.

    The span ends with the latest row seen, or at the time that is queried; rows may be late and in any order.
    Promise: the relative standard error of any span is that of a HyperLogLog of 2^lg_k registers that saw
    this span alone, 1.04 / √(2^lg_k) (1.6 % at 12; `lg_k` 4 to 21). A span of fewer than 2 √(2^lg_k) values
    (127 at 12, 7 at 4) is counted by 32 bits of each value's hash: exact unless two values share these bits,
    one pair in 2^26 or rarer. `bounds` contains the true count with 68.3, 95.4 or 99.7 % confidence at 1, 2
    or 3 standard deviations, however few values there are. A sketch depends only on the rows: no order of
    rows or merges changes a byte. Nulls and empty strings are not counted.

    Each register stores the values that are its greatest in some span that ends now, about ln(rows in the
    window / 2^lg_k) + 1 of them, at 12 bytes each in the image. The latest values, which are counted by their
    hash, also take 12 bytes each. `window` is a timedelta or seconds, times are timestamps or int64
    microseconds since 1970. A merged sketch has the smaller lg_k; sketches of other windows are refused with
    `SketchError`.

    Source: Chabchoub and Hébrail, Sliding HyperLogLog (2010), sections III and IV; the estimator is the
    composite one of Apache DataSketches.

    >>> import streamgauge as sg
    >>> visits = sg.SlidingHLL(window=3600.0)
    >>> visits = visits.update([f"user-{i}" for i in range(1000)], time=[i * 1_000_000 for i in range(1000)])
    >>> abs(visits.estimate() - 1000) < 50, abs(visits.estimate(window=100.0) - 100) < 10
    (True, True)
    """

    family: ClassVar[str] = "SlidingHLL"

    def __init__(self, lg_k: int = 12, window: Span = 3600.0) -> None:
        self._one: SlidingHLLGroups = SlidingHLLGroups(1, lg_k, window)

    @property
    def lg_k(self) -> int:
        """The base-2 logarithm of the number of registers; merging a smaller sketch lowers it."""
        return self._one.lg_k

    @property
    def window(self) -> float:
        """The longest span that can be queried, in seconds."""
        return self._one.window

    def update(self, values: Any, time: Any = None) -> Self:
        """Count a column with its event times, one per row or one for all. Returns the sketch itself."""
        values = as_items(values, self.item_kind, self.family)
        self._one.update(np.zeros(values.length, np.int64), values, time=time)
        self.item_kind = kind_with(self.item_kind, values)
        return self

    def merge(self, other: Self) -> Self:
        """Merge `other` into this sketch; the result has the smaller lg_k. Returns the sketch itself."""
        if not isinstance(other, SlidingHLL):
            raise SketchError(f"SlidingHLL: can't merge with {type(other).__name__}")
        if other.window != self.window:
            raise SketchError(
                f"SlidingHLL: windows of {self.window:g} s and {other.window:g} s can't be merged"
            )
        self.item_kind = joint_kind(self.item_kind, other.item_kind, self.family)
        if other._saw_nothing():
            return self
        if other.lg_k < self.lg_k:
            smaller: SlidingHLLGroups = SlidingHLLGroups(1, other.lg_k, self.window)
            smaller.fold(0, self.to_bytes())
            self._one = smaller
        self._one.fold(0, other.to_bytes())
        return self

    def _saw_nothing(self) -> bool:
        return not self._one._store.sketches["count"][0]

    def to_bytes(self) -> bytes:
        """The sketch in its own format, described in `images`; no other library has a format for it."""
        return self._one.image(0)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a sketch from its bytes. Raises `SketchError` for anything else."""
        image = read_image(data)
        sketch = cls(image.lg_k, image.window / 1e6)
        sketch._one.fold(0, data)
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
