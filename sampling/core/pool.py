"""The samples of many groups: heaps of priorities and the items they refer to, both growing as needed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...sketches.core.group_numbers import grown
from ...sketches.core.random import base_state, group_states
from . import heaps as kernels
from .images import SAMPLE, Parts, samples_of
from .items import Items

_SPARE_ITEMS = 1024
"""Items no longer referred to that are put up with, beside as many as are."""


def new_heaps(base: np.uint64, start: int, end: int, k: int, seeded: bool) -> np.ndarray:
    """Empty groups `start` to `end`, each with a random state of its own that follows from `base`."""
    heaps = np.zeros(max(end - start, 0), kernels.HEAP)
    heaps["k"], heaps["left"], heaps["seeded"] = k, kernels.UNDRAWN, seeded
    heaps["state"] = group_states(base, start, end)
    return heaps


class Pool:
    """Bottom-k samples by group number; every class of this floor that keeps k items keeps them here."""

    def __init__(self, n: int, k: int, seed: int | None) -> None:
        self.k = k
        self.items = Items()
        self.slots = np.empty(0, np.float64), np.empty(0, np.int64)
        """Priorities and item numbers."""
        self._seeded = seed is not None
        self._base = base_state("a sample", seed)
        self.heaps = new_heaps(self._base, 0, 0, k, self._seeded)
        self._end = 0
        self.resize(n)

    def __len__(self) -> int:
        return len(self.heaps)

    def resize(self, n: int) -> None:
        """Grow to `n` groups, the new ones empty, each with a random state of its own."""
        new = new_heaps(self._base, len(self), n, self.k, self._seeded)
        self.heaps = np.concatenate([self.heaps, new])

    def reserve(self, coming: np.ndarray) -> None:
        """Make room for `coming[g]` more items in each group g, as far as its k allows."""
        wanted = np.empty(len(self), np.int64)
        total = kernels.rooms_wanted(self.heaps, coming, wanted)
        if not total:
            return
        if self._end + total > len(self.slots[0]):
            kept = int(self.heaps["size"].sum())
            if 2 * kept < self._end:
                packed = np.empty(kept, np.float64), np.empty(kept, np.int64)
                self._end = kernels.pack(self.heaps, *self.slots, *packed)
                self.slots = packed
                total = kernels.rooms_wanted(self.heaps, coming, wanted)
            room = max(self._end + total, 3 * self._end // 2)
            self.slots = grown(self.slots[0], room), grown(self.slots[1], room)
        self._end = kernels.move(self.heaps, *self.slots, wanted, self._end)

    def add(self, groups: np.ndarray, priorities: np.ndarray, items: pa.Array) -> None:
        """Items with priorities of their own, of an accepted type; the caller counts what was seen."""
        self.reserve(np.bincount(groups, minlength=len(self)))
        taken = np.empty(len(groups), np.int64)
        first = len(self.items)
        count = kernels.offer_all(self.heaps, *self.slots, groups, priorities, first, taken)
        self.keep(items.take(pa.array(taken[:count])))

    def shrink(self, k: np.ndarray) -> None:
        """Lower each group's k to ``k[g]``; its lesser items go."""
        kernels.shrink(self.heaps, *self.slots, k)

    def select(self, groups: np.ndarray) -> None:
        """Keep only these groups, numbered in this order."""
        self.heaps = self.heaps[groups]
        self._forget()

    def keep(self, taken: pa.Array) -> None:
        """Store the items that a kernel numbered from `len(items)` on, and forget those it replaced."""
        self.items.append(taken)
        self._forget()

    def _forget(self) -> None:
        if len(self.items) > _SPARE_ITEMS:
            kept = int(self.heaps["size"].sum())
            if len(self.items) > 2 * kept + _SPARE_ITEMS:
                numbers = np.empty(kept, np.int64)
                kernels.renumber(self.heaps, self.slots[1], numbers)
                self.items.keep(numbers)

    def merge(self, groups: np.ndarray, parts: Parts, family: str) -> None:
        """Fold whole samples into their groups."""
        if len(parts.priority):
            self.items.accept(parts.items.type, family)
        coming = np.bincount(groups, parts.samples["size"], len(self)).astype(np.int64)
        self.reserve(coming)
        kernels.merge(self.heaps, *self.slots, groups, parts.samples, parts.priority, len(self.items))
        self.keep(parts.items)

    def parts(self, groups: np.ndarray) -> Parts:
        """The samples of those groups, each one's greatest priority first."""
        chosen = self.heaps[groups]
        samples = samples_of(len(chosen))
        for name in SAMPLE.names or ():
            samples[name] = chosen[name]
        where = np.empty(int(chosen["size"].sum()), np.int64)
        priorities, items = self.slots
        kernels.sorted_slots(self.heaps, priorities, groups, where)
        return Parts(samples, priorities[where], self.items.take(items[where]))
