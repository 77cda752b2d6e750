"""Many sliding HyperLogLogs in one set of arrays, by group number."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ..core.aggregated import Aggregated
from ..core.columns.column_kinds import hashable
from ..core.columns.times import as_time, as_times
from ..core.distinct_counter import DistinctGroups
from ..core.groups.group_numbers import as_groups, frozen
from ..core.parameters import deviations, seconds, whole
from ..core.protocol import SketchError
from ..core.resume import resume
from ..core.values.image_columns import as_images, joined_images
from ..core.values.item_kinds import as_items, kind_with
from ..hll.bounds import collisions
from ..hll.coupons import coupon_chunks
from ..hll.estimate import composite_table, coupon_estimates, relative_errors
from .images import Image, read_image, write_image
from .reading import estimates, kept_entries
from .store import NEVER, Store, new_store, update_entries, update_groups, with_room, with_sketches

Span = timedelta | float


class SlidingHLLGroups(DistinctGroups):
    """One `SlidingHLL` per group, in one set of arrays; `SlidingHLL` states the promised error.

    A group takes 12 bytes for each value that may still be a register's maximum in some span, and for each of
    the most recent values, at most 4 √(2^lg_k) of them; and as much again for free places of its hash table.

    >>> groups = SlidingHLLGroups(2, window=60.0)
    >>> groups.update([0, 1, 1], ["ann", "bob", "cat"], time=[0, 0, 90_000_000])
    >>> groups.estimates().round().tolist()
    [1.0, 1.0]
    """

    family: ClassVar[str] = "SlidingHLL"
    aggregate: ClassVar = Aggregated(
        {"lg_k": 12, "window": 3600.0}, inputs=("time",), of_column=hashable, hashes=True, skips_empty=True
    )

    def __init__(self, n: int = 0, lg_k: int = 12, window: Span = 3600.0) -> None:
        self.lg_k = whole("SlidingHLL", "lg_k", lg_k, 4, 21)
        self._n = n
        self._store: Store = new_store(n, self.lg_k, _microseconds(window))

    @property
    def window(self) -> float:
        """The longest span that can be queried, in seconds."""
        return self._window / 1e6

    @property
    def _window(self) -> int:
        """The longest span in microseconds."""
        return int(self._store.params["window"][0])

    def _with_sketches(self, n: int) -> Store:
        return with_sketches(self._store, n)

    def _make_room(self, why: int) -> None:
        self._store = with_room(self._store)

    def update(self, groups: np.ndarray, values: Any, time: Any = None) -> None:
        """Count values at their `time`, one per row, in their groups; nulls and empty strings are skipped."""
        values = as_items(values, self.item_kind, self.family)
        times = values.per_value(as_times(time, values.length, "SlidingHLL"))
        numbers = values.per_value(as_groups(groups, values.length, self._n))
        for start, coupons in coupon_chunks(values):
            chunk = slice(start, start + len(coupons))
            self._run(update_groups, numbers[chunk], coupons, times[chunk])
        self.item_kind = kind_with(self.item_kind, values)

    def add(self, groups: np.ndarray, keys: np.ndarray, times: np.ndarray) -> None:
        """Add entries, each a key at a time (microseconds), to their groups (int64, within range)."""
        self._run(update_entries, groups, keys, times)

    def _run(self, update: Any, groups: np.ndarray, what: np.ndarray, times: np.ndarray) -> None:
        groups, times = frozen(groups), frozen(np.ascontiguousarray(times))
        resume(lambda at: update(self._store, groups, what, times, at), self._make_room)

    def merge(self, groups: np.ndarray, column: pa.Array) -> None:
        """Merge serialised sketches: `column[i]` into group `groups[i]`; nulls are skipped.

        A sketch with a larger lg_k is reduced to the groups' own. Raises `SketchError`, naming the row, for a
        smaller lg_k, another window, and bytes that aren't a sketch: then nothing was merged.
        """
        numbers, images = as_images(groups, column, self._n, self.family)
        read = []
        for at in range(len(numbers)):
            try:
                read.append(self._accepted(images.data[images.offsets[at] : images.offsets[at + 1]]))
            except SketchError as refused:
                raise SketchError(f"row {images.row(at)}: {refused}") from None
        for group, image in zip(numbers.tolist(), read):
            self._fold(group, image)

    def fold(self, group: int, data: Any) -> None:
        """Merge one image. Raises `SketchError` for images that `merge` refuses."""
        self._fold(group, self._accepted(data))

    def _fold(self, group: int, image: Image) -> None:
        sketch = self._store.sketches[group]
        # From the cutoff on, the image saw as many coupons as its lg_k needs, so enough for a smaller lg_k.
        sketch["cutoff"] = max(sketch["cutoff"], image.cutoff)
        self.add(np.full(len(image.keys), group), image.keys, image.times)

    def _accepted(self, data: Any) -> Image:
        """Validate an image that can be merged."""
        image = read_image(data)
        if image.window != self._window:
            theirs = image.window / 1e6
            raise SketchError(f"SlidingHLL: windows of {self.window:g} s and {theirs:g} s can't be merged")
        if image.lg_k < self.lg_k and len(image.keys):
            raise SketchError(f"SlidingHLL: groups of lg_k={self.lg_k} can't take one of lg_k={image.lg_k}")
        return image

    def to_arrow(self) -> pa.Array:
        """Return the sketches' bytes, in group order."""
        return joined_images(self.image(g) for g in range(self._n))

    def image(self, group: int) -> bytes:
        """Return one group's image."""
        return write_image(self.lg_k, self._window, *kept_entries(self._store, group))

    def __getitem__(self, group: int) -> Any:
        return self._kind_to(self._single.from_bytes(self.image(self._place(group))))

    def estimates(self, window: Span | None = None, now: datetime | int | None = None) -> np.ndarray:
        """Estimate the number of distinct values in each group later than `now` − `window` (float64).

        Spans, times and errors are those of `SlidingHLL.estimate`.
        """
        return self._registers_in(window, now)[0]

    def bounds(
        self, std_devs: int = 2, window: Span | None = None, now: datetime | int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """(lower, upper) of each group at 1, 2 or 3 standard deviations: 68.3, 95.4 or 99.7 % confidence.

        Raises `SketchError` for any other number of them, and as `estimates` does.
        """
        std_devs = deviations(self.family, std_devs)
        lower, upper = relative_errors()[self.lg_k, 1, std_devs - 1]
        estimate, seen, few = self._registers_in(window, now)
        least, greatest = estimate / (1 + lower), estimate / (1 - upper)
        if few.any():
            fewest, most = collisions(estimate[few] - seen[few], std_devs)
            least[few], greatest[few] = seen[few] + fewest, np.maximum(seen[few] + most, estimate[few])
        return np.maximum(least, seen), np.maximum(greatest, seen)

    def _estimates(self) -> np.ndarray:
        return self.estimates()

    def _bounds(self, std_devs: int) -> tuple[np.ndarray, np.ndarray]:
        return self.bounds(std_devs)

    def _registers_in(self, window: Span | None, now: datetime | int | None) -> tuple[np.ndarray, ...]:
        """Return each group's estimate for a span, the number of values that it certainly saw in it, and
        whether
        these are few enough to be counted by their coupons."""
        span = self._window if window is None else _microseconds(window)
        if span > self._window:
            raise ValueError(
                f"SlidingHLL: {self.window:g} s are kept, a span of {span / 1e6:g} s is too long"
            )
        latest = self._store.sketches["latest"][: self._n]
        ends = latest if now is None else np.full(self._n, as_time(now, "SlidingHLL"))
        if (ends < latest).any():
            raise ValueError(
                f"SlidingHLL: a row of {latest.max()} µs was seen, so {ends.max()} µs can't be now"
            )
        estimate, seen, few = np.empty(self._n), np.empty(self._n), np.empty(self._n, bool)
        registers = np.empty(1 << self.lg_k, np.uint8)
        after = np.where(ends == NEVER, NEVER, np.maximum(ends, NEVER + span) - span)
        estimates(self._store, after, composite_table(), registers, estimate, seen, few)
        if few.any():
            estimate[few] = coupon_estimates(seen[few])
        return estimate, seen, few


def _microseconds(span: Span) -> int:
    return round(seconds("SlidingHLL", "window", span) * 1e6)
