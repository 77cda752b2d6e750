"""Many sliding HyperLogLogs in one set of arrays, by group number."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from ..core.aggregated import Aggregated
from ..core.column_kinds import hashable
from ..core.columns import as_array, as_values
from ..core.group_numbers import as_groups
from ..core.parameters import seconds, whole
from ..core.protocol import Groups, SketchError
from ..core.times import as_times
from ..hll.coupons import CHUNK, coupon_chunks, read_only
from ..hll.estimate import composite_table, relative_errors
from .images import read_image, write_image
from .store import (
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

if TYPE_CHECKING:
    from .sketch import SlidingHLL


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

    aggregate: ClassVar = Aggregated({"lg_k": 12, "window": 3600.0}, inputs=("time",), of_column=hashable)

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
        from .sketch import SlidingHLL

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


def _microseconds(span: Span) -> int:
    return round(seconds("SlidingHLL", "window", span) * 1e6)
