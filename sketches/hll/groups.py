"""Many HyperLogLogs in one set of arrays, by group number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from ..core.aggregated import Aggregated
from ..core.column_kinds import hashable
from ..core.columns import as_values
from ..core.group_numbers import as_groups
from ..core.group_order import by_group
from ..core.image_columns import image_column
from ..core.parameters import whole
from ..core.protocol import Groups, SketchError
from .bounds import collisions, hip_shares
from .coupons import CHUNK, coupon_chunks, read_only
from .estimate import composite_table, estimates, relative_errors
from .images import sizes, write_images
from .images_read import REASONS
from .merge import fold_images, new_scratch, rebuild_stale
from .ordered import ORDERED, update_ordered
from .store import DENSE, FROM_ZERO, OUT_OF_ORDER, Store, new_store, with_room, with_sketches
from .update import NO_GROUP, NO_ROOM, new_update_scratch, update_groups, update_groups_int64

if TYPE_CHECKING:
    from .sketch import HLL


_ROWS = 1 << 20  # group numbers of other types are made int64 so many at a time


_ROWS_A_GROUP = 32
"""Rows a group of a chunk from which on it pays to bring them together first."""


class HLLGroups(Groups):
    """One `HLL` a group, in one set of arrays: see there for the error promised.

    A group that has seen up to 7 distinct values takes 46 bytes, up to 24 takes 142; from about 2^lg_k × 0.09
    on it takes 2^lg_k bytes. All groups start with `lg_k`; folding in a sketch of a smaller one lowers the
    group's own, as it does for `HLL`.

    >>> groups = HLLGroups(2)
    >>> groups.update([0, 1, 0, 0], ["ann", "bob", "cat", "ann"])
    >>> [round(float(x)) for x in groups.estimates()]
    [2, 1]
    """

    aggregate: ClassVar = Aggregated({"lg_k": 12}, of_column=hashable, spark_merge="hll_union_agg")

    def __init__(self, n: int = 0, lg_k: int = 12) -> None:
        self.lg_k = whole("HLL", "lg_k", lg_k, 4, 21)
        self._n = n
        self._store: Store = new_store(n, self.lg_k)

    def __len__(self) -> int:
        return self._n

    def resize(self, n: int) -> None:
        """Grow to `n` groups; the new ones are empty. Never shrinks."""
        if n > len(self._store.sketches):
            self._store = with_sketches(self._store, max(n, len(self._store.sketches) * 3 // 2), self.lg_k)
        self._n = max(n, self._n)

    def update(self, groups: np.ndarray, values: Any, **inputs: Any) -> None:
        """Count values in their groups: row i in group `groups[i]`, nulls and empty strings skipped."""
        if inputs:
            raise TypeError(f"HLL takes no further inputs, got {', '.join(inputs)}")
        values = as_values(values)
        if type(groups) is not np.ndarray or len(groups) != values.length or groups.dtype.kind not in "iu":
            groups = as_groups(groups, values.length, self._n)
        numbers = values.per_value(groups)
        ordered = len(values) >= _ROWS_A_GROUP * self._n
        if values.kind == "int64" and not ordered:
            for start in range(0, len(values), _ROWS):
                rows = slice(start, start + _ROWS)
                self._update(update_groups_int64, numbers[rows], read_only(values.numbers[rows]))
            return
        for start, coupons in coupon_chunks(values, ORDERED if ordered else CHUNK):
            some = numbers[start : start + len(coupons)]
            if len(coupons) >= _ROWS_A_GROUP * self._n:
                self._update_ordered(some, coupons)
            else:
                self._update(update_groups, some, coupons)

    def _update_ordered(self, groups: np.ndarray, coupons: np.ndarray) -> None:
        """Count a chunk that has many rows a group."""
        ends, ordered = by_group(np.ascontiguousarray(groups, np.int64), coupons, self._n)
        candidates = np.empty(512, np.uint32)
        done = update_ordered(self._store, ends, ordered, 0, candidates)
        while done < len(ordered):
            self._store = with_room(self._store)
            done = update_ordered(self._store, ends, ordered, done, candidates)

    def _update(self, update: Any, groups: np.ndarray, values: np.ndarray) -> None:
        """Run one of the two kernels over a chunk, making room as it asks for it."""
        numbers = read_only(np.ascontiguousarray(groups, np.int64))
        scratch = new_update_scratch()
        done, stopped = 0, NO_ROOM
        while stopped:
            done, stopped = update(self._store, self._n, numbers, values, done, scratch)
            if stopped == NO_GROUP:
                as_groups(groups, len(values), self._n)
            if stopped:
                self._store = with_room(self._store)

    def merge(self, groups: np.ndarray, column: pa.Array) -> None:
        """Fold serialised sketches in: `column[i]` into group `groups[i]`, nulls skipped.

        Images of any form and type that DataSketches or Spark writes. Raises `SketchError`, naming the row,
        for bytes that are none; the rows before it are folded in by then.
        """
        values = as_values(column)
        if values.kind not in ("binary", "string") and len(values):
            raise SketchError(f"HLL: expected a binary column of sketches, got one of {values.kind}")
        numbers = as_groups(values.per_value(np.asarray(groups)), len(values), self._n)
        try:
            done, status = self._fold(numbers, values.offsets, values.data)
        finally:
            rebuild_stale(self._store, self._n)
        if status:
            row = done if values.rows is None else int(values.rows[done])
            size = int(values.offsets[done + 1] - values.offsets[done])
            raise SketchError(
                f"HLL: row {row} is no HLL sketch of DataSketches ({size} bytes): {REASONS[status]}"
            )

    def _fold(self, groups: np.ndarray, offsets: np.ndarray, data: np.ndarray) -> tuple[int, int]:
        heads = offsets[:-1].astype(np.int64) + 3
        lg_ks = data[heads[heads < offsets[1:]]]
        groups, offsets, data = read_only(groups), read_only(offsets), read_only(data)
        scratch = new_scratch(max(self.lg_k, min(int(lg_ks.max(initial=0)), 21)))
        done, status = 0, -1
        while status == -1:
            done, status = fold_images(self._store, groups, offsets, data, done, scratch)
            if status == -1:
                self._store = with_room(self._store)
        return done, status

    def to_arrow(self) -> pa.Array:
        """The HLL_8 updatable images that Spark's `hll_sketch_agg` writes, in group order."""
        ends = np.zeros(self._n + 1, np.int64)
        sizes(self._store, ends[1:])
        np.cumsum(ends, out=ends)
        data = np.empty(int(ends[-1]), np.uint8)
        write_images(self._store, ends, data)
        return image_column(data, ends)

    def __getitem__(self, group: int) -> HLL:
        from .sketch import HLL

        if not -self._n <= group < self._n:
            raise IndexError(f"group {group} of {self._n}")
        return HLL.from_bytes(self.image(group % self._n))

    def image(self, group: int) -> bytes:
        """One group's image."""
        store = self._store
        one = store._replace(sketches=store.sketches[group : group + 1])
        ends = np.zeros(2, np.int64)
        sizes(one, ends[1:])
        data = np.empty(int(ends[1]), np.uint8)
        write_images(one, ends, data)
        return data.tobytes()

    def estimates(self) -> np.ndarray:
        """Distinct values in each group (float64)."""
        return self._estimates()[0]

    def bounds(self, std_devs: int = 2) -> tuple[np.ndarray, np.ndarray]:
        """(lower, upper) of each group at 1, 2 or 3 standard deviations (68.3, 95.4, 99.7 % confidence)."""
        if std_devs not in (1, 2, 3):
            raise ValueError(f"bounds are known at 1, 2 or 3 standard deviations, not {std_devs}")
        estimate, seen = self._estimates()
        store = self._store
        sketches = store.sketches[: self._n]
        dense = sketches["form"] == DENSE
        rows = np.where(dense, sketches["where"] >> store.lg_stride[0], 0)
        flags = store.least[rows, 2]
        out_of_order = flags & OUT_OF_ORDER
        errors = relative_errors()[sketches["lg_k"], out_of_order, std_devs - 1]
        in_order = dense & (out_of_order == 0)
        lg_k, from_zero = sketches["lg_k"][in_order], flags[in_order] & FROM_ZERO > 0
        errors[in_order] *= hip_shares(estimate[in_order], lg_k, from_zero, std_devs)
        lower, upper = estimate / (1 + errors[:, 0]), estimate / (1 - errors[:, 1])
        lower[in_order], upper[in_order] = np.floor(lower[in_order]), np.ceil(upper[in_order])
        fewest, most = collisions(estimate[~dense] - seen[~dense], std_devs)
        lower[~dense] = seen[~dense] + fewest
        upper[~dense] = np.maximum(seen[~dense] + most, estimate[~dense])
        return np.maximum(lower, seen), np.maximum(upper, seen)

    def answers(self, **question: Any) -> pa.Array:
        """Each group's estimate with its bounds at 95.4 % confidence, a struct of three doubles."""
        columns = [pa.array(column) for column in (self.estimates(), *self.bounds())]
        return pa.StructArray.from_arrays(columns, ["estimate", "lower", "upper"])

    def _estimates(self) -> tuple[np.ndarray, np.ndarray]:
        estimate = np.empty(self._n, np.float64)
        seen = np.empty(self._n, np.float64)
        estimates(self._store, composite_table(), estimate, seen)
        return estimate, seen
