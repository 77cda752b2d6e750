"""Many Theta sketches in one set of arrays, by group number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from ..core.aggregated import Aggregated
from ..core.column_kinds import hashable
from ..core.columns import as_values
from ..core.group_numbers import as_groups
from ..core.image_columns import image_column
from ..core.parameters import whole
from ..core.protocol import Groups, SketchError
from ..hll.coupons import CHUNK, read_only
from .bounds import answers, equivalents, tails
from .images import REASONS, fold_images, sizes, write_images
from .store import Store, new_store, trim_all, with_room, with_sketches
from .update import (
    NO_GROUP,
    NO_ROOM,
    hash_chunks,
    new_update_scratch,
    update_groups,
)

if TYPE_CHECKING:
    from .sketch import Theta


_USUAL_LG_K = 12


class ThetaGroups(Groups):
    """One `Theta` a group, in one set of arrays: see there for the error promised.

    A group of up to 6 distinct values takes 88 bytes, a full one 16 × 2^lg_k. Serialised sketches of any lg_k
    are folded in, and cut to the groups' own.

    >>> groups = ThetaGroups(2)
    >>> groups.update([0, 1, 0, 0], ["ann", "bob", "cat", "ann"])
    >>> groups.estimates().tolist()
    [2.0, 1.0]
    """

    aggregate: ClassVar = Aggregated({"lg_k": 12}, of_column=hashable, spark_merge="theta_union_agg")

    def __init__(self, n: int = 0, lg_k: int = _USUAL_LG_K) -> None:
        self._n = n
        self._store: Store = new_store(n, whole("Theta", "lg_k", lg_k, 4, 26))

    def __len__(self) -> int:
        return self._n

    @property
    def lg_k(self) -> int:
        """The base-2 logarithm of how many hashes a group keeps."""
        return int(self._store.lg_k[0])

    def resize(self, n: int) -> None:
        """Grow to `n` groups; the new ones are empty. Never shrinks."""
        if n > len(self._store.sketches):
            self._store = with_sketches(self._store, max(n, len(self._store.sketches) * 3 // 2))
        self._n = max(n, self._n)

    def update(self, groups: np.ndarray, values: Any, **inputs: Any) -> None:
        """Count values in their groups: row i in group `groups[i]`, nulls and empty strings skipped."""
        if inputs:
            raise TypeError(f"Theta takes no further inputs, got {', '.join(inputs)}")
        values = as_values(values)
        if type(groups) is not np.ndarray or len(groups) != values.length or groups.dtype.kind not in "iu":
            groups = as_groups(groups, values.length, self._n)
        numbers = values.per_value(groups)
        scratch = new_update_scratch()
        for start, hashes in hash_chunks(values):
            mine = read_only(np.ascontiguousarray(numbers[start : start + CHUNK], np.int64))
            done, stopped = 0, NO_ROOM
            while stopped:
                done, stopped = update_groups(self._store, self._n, mine, hashes, done, scratch)
                if stopped == NO_GROUP:
                    as_groups(mine, len(hashes), self._n)
                if stopped:
                    self._store = with_room(self._store)

    def merge(self, groups: np.ndarray, column: pa.Array) -> None:
        """Unite serialised sketches: `column[i]` with group `groups[i]`, nulls skipped.

        Images of every version that DataSketches or Spark writes. Raises `SketchError`, naming the row, for
        bytes that are none; the rows before it are folded in by then.
        """
        values = as_values(column)
        if values.kind not in ("binary", "string") and len(values):
            raise SketchError(f"Theta: expected a binary column of sketches, got one of {values.kind}")
        numbers = as_groups(values.per_value(np.asarray(groups)), len(values), self._n)
        done, status = self._fold(numbers, values.offsets, values.data)
        if status:
            row = done if values.rows is None else int(values.rows[done])
            size = int(values.offsets[done + 1] - values.offsets[done])
            raise SketchError(f"Theta: row {row} is no Theta sketch ({size} bytes): {REASONS[status]}")

    def _fold(self, groups: np.ndarray, offsets: np.ndarray, data: np.ndarray) -> tuple[int, int]:
        groups, offsets, data = read_only(groups), read_only(offsets), read_only(data)
        head = np.empty(6, np.int64)
        done, status = 0, -1
        while status == -1:
            done, status = fold_images(self._store, groups, offsets, data, done, head)
            if status == -1:
                self._store = with_room(self._store)
        return done, status

    def to_arrow(self) -> pa.Array:
        """Compact ordered images, version 3, which Spark's `theta_union_agg` takes, in group order."""
        ends = np.zeros(self._n + 1, np.int64)
        sizes(self._store, ends[1:])
        np.cumsum(ends, out=ends)
        data = np.empty(int(ends[-1]), np.uint64)
        write_images(self._store, ends, data)
        return image_column(data.view(np.uint8), 8 * ends)

    def __getitem__(self, group: int) -> Theta:
        from .sketch import Theta

        if not -self._n <= group < self._n:
            raise IndexError(f"group {group} of {self._n}")
        return Theta.from_bytes(self._image(group % self._n), self.lg_k)

    def _image(self, group: int) -> bytes:
        one = self._store._replace(sketches=self._store.sketches[group : group + 1])
        ends = np.zeros(2, np.int64)
        sizes(one, ends[1:])
        data = np.empty(int(ends[1]), np.uint64)
        write_images(one, ends, data)
        return data.tobytes()

    def estimates(self) -> np.ndarray:
        """Distinct values in each group (float64)."""
        return self._answers(1)[:, 0]

    def bounds(self, std_devs: int = 2) -> tuple[np.ndarray, np.ndarray]:
        """(lower, upper) of each group at 1, 2 or 3 standard deviations (68.3, 95.4, 99.7 % confidence)."""
        if std_devs not in (1, 2, 3):
            raise ValueError(f"bounds are known at 1, 2 or 3 standard deviations, not {std_devs}")
        found = self._answers(std_devs)
        return found[:, 1], found[:, 2]

    def answers(self, **question: Any) -> pa.Array:
        """Each group's estimate with its bounds at 95.4 % confidence, a struct of three doubles."""
        columns = [pa.array(column) for column in (self.estimates(), *self.bounds())]
        return pa.StructArray.from_arrays(columns, ["estimate", "lower", "upper"])

    def _answers(self, std_devs: int) -> np.ndarray:
        trim_all(self._store, self._n)
        out = np.empty((self._n, 3), np.float64)
        answers(self._store, std_devs, equivalents(), tails(), out)
        return out
