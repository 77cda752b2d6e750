"""The samples of many groups: heaps of priorities and the items they refer to, both enlarged as needed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...sketches.core.hashing.random import base_state, group_states
from . import heaps as kernels
from .heaps import Slots, new_slots
from .images import SAMPLE, Parts, samples_of
from .items import Fitted, Items

_SPARE_ITEMS = 1024
"""Unreferenced items that are tolerated, in addition to as many as are referenced."""


def new_heaps(base: np.uint64, start: int, end: int, k: int, seeded: bool) -> np.ndarray:
    """Return empty groups `start` to `end`, each with its own random state derived from `base`."""
    heaps = np.zeros(max(end - start, 0), kernels.HEAP)
    heaps["k"], heaps["left"], heaps["seeded"] = k, kernels.UNDRAWN, seeded
    heaps["state"] = group_states(base, start, end)
    return heaps


def places(starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the places of all regions, concatenated, each from its start on (int64).

    >>> places(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = np.cumsum(sizes)
    return np.repeat(starts - ends + sizes, sizes) + np.arange(ends[-1] if len(ends) else 0)


class Pool:
    """Bottom-k samples by group number, used by all samples that store k items."""

    def __init__(self, n: int, k: int, seed: int | None) -> None:
        self.k = k
        self.items = Items()
        self.slots = new_slots(0)
        self._seeded = seed is not None
        self._base = base_state("a sample", seed)
        self.heaps = new_heaps(self._base, 0, 0, k, self._seeded)
        self._end = 0
        self.resize(n)

    def __len__(self) -> int:
        return len(self.heaps)

    def resize(self, n: int) -> None:
        """Grow to `n` groups; the new ones are empty, each with its own random state."""
        new = new_heaps(self._base, len(self), n, self.k, self._seeded)
        self.heaps = np.concatenate([self.heaps, new])

    def reserve(self, coming: np.ndarray) -> None:
        """Make room for `coming[g]` more items in each group g, up to its k."""
        groups = np.flatnonzero(coming)
        heaps = self.heaps[groups]
        needed = np.minimum(heaps["k"], heaps["size"] + coming[groups])
        short = needed > heaps["room"]
        if not short.any():
            return
        groups, heaps, needed = groups[short], heaps[short], needed[short]
        rooms = np.minimum(heaps["k"], np.maximum(needed, 2 * heaps["room"]))
        total = int(rooms.sum())
        if self._end + total > len(self.slots.items):
            self._enlarge(total)
            self.reserve(coming)  # start over: after packing, no group has spare room
            return
        starts = self._end + np.cumsum(rooms) - rooms
        self._end += total
        self._move(self.slots, places(heaps["start"], heaps["size"]), places(starts, heaps["size"]))
        self.heaps["start"][groups], self.heaps["room"][groups] = starts, rooms

    def _enlarge(self, more: int) -> None:
        """Make room for `more` slots; abandoned slots are removed if that is worthwhile."""
        old, sizes = self.slots, self.heaps["size"]
        kept = int(sizes.sum())
        if 2 * kept < self._end:
            starts = np.cumsum(sizes) - sizes
            occupied = places(self.heaps["start"], sizes)
            self.heaps["start"], self.heaps["room"], self._end = starts, sizes, kept
        else:
            occupied = np.arange(self._end)
        self.slots = new_slots(max(self._end + more, 3 * self._end // 2))
        self._move(old, occupied, np.arange(self._end))

    def _move(self, old: Slots, occupied: np.ndarray, to: np.ndarray) -> None:
        for source, target in zip(old, self.slots):
            target[to] = source[occupied]

    def add(self, groups: np.ndarray, priorities: np.ndarray, items: pa.Array) -> None:
        """Add accepted items with their priorities; the caller counts the rows seen."""
        self.reserve(np.bincount(groups, minlength=len(self)))
        entered = np.empty(len(groups), np.int64)
        count = kernels.offer_all(self.heaps, self.slots, groups, priorities, len(self.items), entered)
        self.keep(items.take(pa.array(entered[:count])))

    def shrink(self, k: np.ndarray) -> None:
        """Lower each group's k to ``k[g]``, dropping its least items."""
        kernels.shrink(self.heaps, self.slots, k)

    def select(self, groups: np.ndarray) -> None:
        """Keep only these groups, renumbered in this order."""
        self.heaps = self.heaps[groups]
        self._forget()

    def keep(self, items: pa.Array) -> None:
        """Store the items that a kernel numbered from `len(items)` on, and drop the items it replaced."""
        self.items.append(items)
        self._forget()

    def accept(self, items: pa.Array, family: str) -> pa.Array:
        """Convert items for storage. Raises `SketchError`, with nothing changed, if they don't fit."""
        return self.items.accept(self.fit(items, family))

    def fit(self, items: pa.Array, family: str) -> Fitted:
        """See `Items.fit`; items that the samples no longer hold don't influence it."""
        if self.items.widened_by(items.type):
            self._pack()
        return self.items.fit(items, family)

    def _forget(self) -> None:
        if len(self.items) > _SPARE_ITEMS:
            kept = int(self.heaps["size"].sum())
            if len(self.items) > 2 * kept + _SPARE_ITEMS:
                self._pack()

    def _pack(self) -> None:
        """Drop the items that no sample holds."""
        used = places(self.heaps["start"], self.heaps["size"])
        self.items.keep(self.slots.items[used])
        self.slots.items[used] = np.arange(len(used))

    def merge(self, groups: np.ndarray, parts: Parts, family: str) -> None:
        """Merge whole samples into their groups."""
        items = self.accept(parts.items, family) if len(parts.priority) else parts.items
        coming = np.bincount(groups, parts.samples["size"], len(self)).astype(np.int64)
        self.reserve(coming)
        kernels.merge(self.heaps, self.slots, groups, parts.samples, parts.priority, len(self.items))
        self.keep(items)

    def parts(self, groups: np.ndarray) -> Parts:
        """Return the samples of these groups, greatest priority first."""
        chosen = self.heaps[groups]
        samples = samples_of(len(chosen))
        for name in SAMPLE.names or ():
            samples[name] = chosen[name]
        sizes = samples["size"]
        used = places(chosen["start"], sizes)
        copied = Slots(self.slots.priorities[used], self.slots.items[used])
        chosen["start"] = np.cumsum(sizes) - sizes
        kernels.drain(chosen, copied)
        return Parts(samples, copied.priorities, self.items.take(copied.items))
