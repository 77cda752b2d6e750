"""Many Theta sketches in one set of arrays, by group number."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..core.aggregated import Aggregated
from ..core.columns.column_kinds import hashable
from ..core.distinct_counter import StoredAsImages
from ..core.groups.group_numbers import checked_groups, frozen
from ..core.hashing.hash import hashed_chunks
from ..core.parameters import whole
from ..core.resume import resume
from ..core.values.item_kinds import as_items, kind_with
from .bounds import bounds
from .images import HEAD, REASONS, fold_images, sizes, write_images
from .store import MAX_THETA, Store, new_store, tidy_all, with_room, with_sketches
from .update import new_update_scratch, update_groups

USUAL_LG_K = 12


class ThetaGroups(StoredAsImages):
    """One `Theta` per group, in one set of arrays; `Theta` states the promised error.

    A group with up to 8 distinct values takes 96 bytes, a full one 16 × 2^lg_k, and as much again may be free
    for groups to grow. Serialised sketches of any lg_k can be merged, and are cut to the groups' own.

    >>> groups = ThetaGroups(2)
    >>> groups.update([0, 1, 0, 0], ["ann", "bob", "cat", "ann"])
    >>> groups.estimates().tolist()
    [2.0, 1.0]
    """

    family: ClassVar[str] = "Theta"
    aggregate: ClassVar = Aggregated(
        {"lg_k": 12}, of_column=hashable, hashes=True, skips_empty=True, spark_merge="theta_union_agg"
    )
    _reasons: ClassVar = REASONS

    def __init__(self, n: int = 0, lg_k: int = USUAL_LG_K) -> None:
        self._n = n
        self._store: Store = new_store(n, whole("Theta", "lg_k", lg_k, 4, 26))

    @property
    def lg_k(self) -> int:
        """The base-2 logarithm of the number of hashes that a group stores."""
        return int(self._store.lg_k[0])

    def _with_sketches(self, n: int) -> Store:
        return with_sketches(self._store, n)

    def make_room(self, why: int) -> None:
        """Enlarge the arrays by the room that a kernel requested."""
        self._store = with_room(self._store)

    def update(self, groups: np.ndarray, values: Any) -> None:
        """Count values in their groups: row i in group `groups[i]`, nulls and empty strings skipped.

        Raises `ValueError` unless there is one group number per row, and `IndexError` for unknown groups.
        """
        values = as_items(values, self.item_kind, self.family)
        numbers = values.per_value(checked_groups(groups, values.length, self._n))
        scratch = new_update_scratch()
        for hashes in hashed_chunks(values):
            h1 = hashes.h1
            if hashes.empty is not None:
                h1[hashes.empty] = 0
            mine = frozen(np.ascontiguousarray(numbers[hashes.first : hashes.first + len(h1)], np.int64))
            self._update(mine, h1, scratch)
        self.item_kind = kind_with(self.item_kind, values)

    def _update(self, groups: np.ndarray, h1: np.ndarray, scratch: Any) -> None:
        """Count each hash in its group."""
        resume(lambda at: update_groups(self._store, self._n, groups, h1, scratch, at), self.make_room)[1]

    def _fold(self, groups: np.ndarray, offsets: np.ndarray, data: np.ndarray) -> tuple[int, int]:
        heads = np.empty(len(groups), HEAD)

        def step(at: int) -> tuple[int, int]:
            return fold_images(self._store, groups, offsets, data, heads, at)

        return resume(step, self.make_room, -1)

    def _images(self, store: Store, n: int) -> tuple[np.ndarray, np.ndarray]:
        ends = np.zeros(n + 1, np.int64)
        sizes(store, ends[1:])
        np.cumsum(ends, out=ends)
        data = np.empty(int(ends[-1]), np.uint64)
        write_images(store, ends, data)
        return data.view(np.uint8), 8 * ends

    def __getitem__(self, group: int) -> Any:
        return self._kind_to(self._single.from_bytes(self.image(self._place(group)), self.lg_k))

    def _kept(self) -> tuple[np.ndarray, np.ndarray]:
        """Return each group's number of stored hashes and its theta."""
        tidy_all(self._store, self._n)
        sketches = self._store.sketches[: self._n]
        return sketches["count"], sketches["theta"]

    def _estimates(self) -> np.ndarray:
        counts, thetas = self._kept()
        return counts * (np.float64(MAX_THETA) / thetas)

    def _bounds(self, std_devs: int) -> tuple[np.ndarray, np.ndarray]:
        counts, thetas = (frozen(np.ascontiguousarray(column)) for column in self._kept())
        return bounds(counts, thetas, std_devs)
