"""Many HyperLogLogs in one set of arrays, by group number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ..core.aggregated import Aggregated
from ..core.columns.column_kinds import hashable
from ..core.distinct_counter import StoredAsImages
from ..core.groups.group_numbers import checked_groups, frozen
from ..core.groups.group_order import by_group
from ..core.parallel import each_slice
from ..core.parameters import whole
from ..core.resume import DONE, NO_ROOM, resume
from ..core.values.item_kinds import as_items, kind_with
from . import batch_answers
from .coupons import CHUNK, coupon_chunks
from .images import sizes, write_images
from .images_read import HLL_FORM, REASONS
from .limits import limits, shares
from .merge import (
    FULL,
    Scratch,
    check_images,
    check_runs,
    fold_images,
    fold_runs,
    gather_coupons,
    new_scratch,
    rebuild_stale,
)
from .sorted_update import ORDERED, new_candidates, update_ordered
from .store import EMPTY, SUMS, Store, new_store, with_room, with_sketches
from .update import new_update_scratch, update_groups

_ROWS_A_GROUP = 32
"""Rows per group in a chunk from which on it pays to sort them by group first."""
_IMAGES_A_GROUP = 4
"""The same for images to merge."""
_Images = tuple[np.ndarray, np.ndarray, np.ndarray]
"""The group of each image, the images' n + 1 offsets, and all their bytes."""
_HEADER = 40
"""Bytes before the registers of an image."""
_A_RUN = 8
"""The average number of successive images of one group from which on they are merged as runs."""
_MANY = 1_000
"""From this many sketches on, checking each size takes longer than allocating room for the largest."""


class HLLGroups(StoredAsImages):
    """One `HLL` per group, in one set of arrays; `HLL` states the promised error.

    A group with up to 7 distinct values takes 48 bytes, up to 24 takes 144, and as much again may be free for
    tables to grow; from about 2^lg_k × 0.09 values on it takes 2^lg_k bytes. All groups start with `lg_k`;
    merging a sketch with a smaller lg_k lowers the group's own, as for `HLL`.

    >>> groups = HLLGroups(2)
    >>> groups.update([0, 1, 0, 0], ["ann", "bob", "cat", "ann"])
    >>> [round(float(x)) for x in groups.estimates()]
    [2, 1]
    """

    family: ClassVar[str] = "HLL"
    aggregate: ClassVar = Aggregated(
        {"lg_k": 12}, of_column=hashable, hashes=True, skips_empty=True, spark_merge="hll_union_agg"
    )
    _reasons: ClassVar = REASONS

    def __init__(self, n: int = 0, lg_k: int = 12) -> None:
        self.lg_k = whole("HLL", "lg_k", lg_k, 4, 21)
        self._n = n
        self._store: Store = new_store(n, self.lg_k)

    def _with_sketches(self, n: int) -> Store:
        return with_sketches(self._store, n, self.lg_k)

    def _make_room(self, why: int) -> None:
        self._store = with_room(self._store)

    def update(self, groups: np.ndarray, values: Any) -> None:
        """Count values in their groups: row i in group `groups[i]`, nulls and empty strings skipped.

        Raises `ValueError` unless there is one group number per row, and `IndexError` for unknown groups.
        """
        values = as_items(values, self.item_kind, self.family)
        numbers = values.per_value(checked_groups(groups, values.length, self._n))
        # One group for all rows, as an array of stride 0: nothing has to be sorted.
        alone = self._n == 1 and numbers.strides == (0,) and len(numbers) > 0 and numbers[0] == 0
        for start, coupons in coupon_chunks(
            values, ORDERED if len(values) >= _ROWS_A_GROUP * self._n else CHUNK
        ):
            if alone:
                self.update_ordered(np.array([len(coupons)], np.int64), coupons)
                continue
            some = np.ascontiguousarray(numbers[start : start + len(coupons)], np.int64)
            if len(coupons) >= _ROWS_A_GROUP * self._n:
                self.update_ordered(*by_group(some, coupons, self._n))
            else:
                self._update(some, coupons)
        self.item_kind = kind_with(self.item_kind, values)

    def update_ordered(self, ends: np.ndarray, coupons: np.ndarray) -> None:
        """Count coupons sorted by group: those of group g end at ``ends[g]``."""
        self._count(ends, coupons, self._make_room)

    def _count(self, ends: np.ndarray, coupons: np.ndarray, make_room: Callable[[int], None]) -> None:
        scratch = new_candidates()
        resume(lambda at: update_ordered(self._store, ends, coupons, scratch, at), make_room)

    def _update(self, groups: np.ndarray, coupons: np.ndarray) -> None:
        """Count each coupon in its group."""
        numbers, scratch = frozen(groups), new_update_scratch()
        resume(lambda at: update_groups(self._store, self._n, numbers, coupons, scratch, at), self._make_room)

    def _fold(self, groups: np.ndarray, offsets: np.ndarray, data: np.ndarray) -> tuple[int, int]:
        lg_k = 21  # enough for any image; memory that isn't written costs nothing
        if len(groups) < _MANY:
            heads = offsets[:-1] + 3
            lg_ks = data[heads[heads < offsets[1:]]]
            lg_k = max(self.lg_k, min(int(lg_ks.max(initial=0)), 21))
        sums = np.empty(len(groups), SUMS)
        if (runs := self._runs(groups, offsets, data)) is not None:
            return self._fold_runs((groups, offsets, data), sums, runs)
        one_by_one = np.full(self._n, len(groups) < _IMAGES_A_GROUP * self._n)
        images = groups, offsets, data

        def check(low: int, high: int) -> tuple[int, int]:
            return check_images(self._store, *images, new_scratch(lg_k), sums, one_by_one, low, high)

        for at, fault in each_slice(len(groups), check):
            if fault:
                return at, fault
        scratch = new_scratch(lg_k)

        def make_room(why: int) -> None:
            dense = int(np.count_nonzero(np.diff(offsets) >= 1 << self.lg_k))
            self._store = with_room(self._store, words=len(data) // 4, rows=dense)

        self._gather(images, scratch, one_by_one)
        try:
            return resume(
                lambda at: fold_images(self._store, *images, scratch, sums, one_by_one, at), make_room
            )
        finally:
            rebuild_stale(self._store, self._n)

    def _runs(self, groups: np.ndarray, offsets: np.ndarray, data: np.ndarray) -> np.ndarray | None:
        """Return where runs of one group's images begin; None if short, or not all registers of one lg_k."""
        least = _HEADER + (1 << self.lg_k) // 2
        if len(groups) < _A_RUN or int(np.diff(offsets).min()) < least:
            return None
        starts = np.flatnonzero(np.diff(groups, prepend=-1))
        if len(starts) * _A_RUN > len(groups):
            return None
        heads = offsets[:-1]
        alike = (data[heads + 3] == self.lg_k).all() and (data[heads + 7] & 3 == HLL_FORM).all()
        return starts if alike else None

    def _fold_runs(self, images: _Images, sums: np.ndarray, runs: np.ndarray) -> tuple[int, int]:
        parts: list[tuple[np.ndarray, np.ndarray]] = []

        def check(low: int, high: int) -> tuple[int, int]:
            starts = np.unique(np.append(low, runs[(runs > low) & (runs < high)]))
            folded = np.zeros((len(starts), 1 << self.lg_k), np.uint8)
            parts.append((starts, folded))
            return check_runs(*images, new_scratch(self.lg_k), sums, starts, folded, low, high)

        for at, fault in each_slice(len(sums), check):
            if fault:
                return at, fault
        scratch = new_scratch(self.lg_k)

        def make_room(why: int) -> None:
            self._store = with_room(self._store, rows=len(runs))

        try:
            for part in sorted(parts, key=lambda part: int(part[0][0])):
                self._fold_part(images, scratch, sums, part, make_room)
        finally:
            rebuild_stale(self._store, self._n)
        return len(sums), DONE

    def _fold_part(
        self, images: _Images, scratch: Scratch, sums: np.ndarray, part: Any, make_room: Callable[[int], None]
    ) -> None:
        kernel: Any = fold_runs
        resume(lambda at: kernel(self._store, *images, scratch, sums, *part, at), make_room)

    def _gather(self, images: _Images, scratch: Scratch, one_by_one: np.ndarray) -> None:
        """Merge the lists and sets of all groups outside `one_by_one`: their coupons are counted like coupons
        of
        rows."""
        if one_by_one.all():
            return
        begun = self._store.sketches["form"][: self._n] != EMPTY
        room = ORDERED + len(scratch.coupons)
        coupons, owners = np.empty(room, np.uint32), np.empty(room, np.int64)

        def make_room(why: int) -> None:
            self._store = with_room(self._store, words=room)

        at, why = 0, FULL
        while why != DONE:
            at, gathered, why = gather_coupons(
                self._store, *images, scratch, one_by_one, begun, coupons, owners, at
            )
            self._count(*by_group(owners[:gathered], coupons[:gathered], self._n), make_room)
            if why == NO_ROOM:
                make_room(why)

    def _images(self, store: Store, n: int) -> tuple[np.ndarray, np.ndarray]:
        ends = np.zeros(n + 1, np.int64)
        sizes(store, ends[1:])
        np.cumsum(ends, out=ends)
        data = np.empty(int(ends[-1]), np.uint8)
        write_images(store, ends, data)
        return data, ends

    def __getitem__(self, group: int) -> Any:
        return self._kind_to(self._single.from_bytes(self.image(self._place(group))))

    def _estimates(self) -> np.ndarray:
        return batch_answers.estimates(self._store, self._n)[0]

    def _bounds(self, std_devs: int) -> tuple[np.ndarray, np.ndarray]:
        return batch_answers.bounds(self._store, self._n, std_devs)

    def shares(self) -> dict[str, np.ndarray]:
        """Return additive upper limits of each sketch's contribution to the estimate of a union."""
        return shares(self._store, self._n, self.lg_k)

    def union_limits(self, sums: dict[str, np.ndarray]) -> np.ndarray:
        """Return upper limits of unions' estimates from their sketches' summed `shares`; infinite if
        unknown."""
        return limits(sums, self.lg_k)
