"""Samples by key within groups: assign rows to strata, and limit the total size of a group.

The stored rows depend only on the set of rows: for each key, the k rows with the greatest priorities, with
the largest k (up to the requested one) that keeps the group within its capacity; and if there are more keys
than the capacity, one row for each of the keys with the smallest hashes. Each of these sets only shrinks as
rows are added, so a part never drops a row that the whole would keep, and merging is exact.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...sketches.core.compilation.jit import lean
from ...sketches.core.hashing.random import base_state, mixed, step, uniform
from ...sketches.core.protocol import SketchError
from ..core import heaps as heap_kernels
from ..core.images import SAMPLE, Format, Parts, samples_of
from ..core.items import Items, equal_as, hash_items
from ..core.pool import Pool, new_heaps
from ..core.priority import Bits, absorb, item_bits

_BLOCK = 1 << 16
_STRATUM = Format("StratifiedReservoir", 8)


@lean
def _place(keys, table, start):
    """Insert the strata from `start` on into the hash table."""
    mask = len(table) - 1
    for i in range(start, len(keys)):
        at = np.int64(keys[i]) & mask
        while table[at] >= 0:
            at = (at + 1) & mask
        table[at] = i


@lean
def _number(keys, n, table, wanted, numbers, first_rows):
    """Find each row's stratum by its key in `wanted`; append new keys to `keys` from `n` on; return their
    total."""
    mask = len(table) - 1
    n_strata = n
    for row in range(len(wanted)):
        at = np.int64(wanted[row]) & mask
        while table[at] >= 0 and keys[table[at]] != wanted[row]:
            at = (at + 1) & mask
        if table[at] < 0:
            table[at] = n_strata
            keys[n_strata] = wanted[row]
            first_rows[n_strata - n] = row
            n_strata += 1
        numbers[row] = table[at]
    return n_strata


@lean
def _draw(heaps, groups, hashes, items, priorities):
    """Draw a priority for each row."""
    for row in range(len(groups)):
        heap = heaps[groups[row]]
        heap.seen += 1
        state = absorb(absorb(heap.state, hashes[row]), item_bits(items, row))
        priorities[row] = -uniform(state)
        heap.state = step(heap.state)


class Strata:
    """Stratified samples by group number, with the interface of `pool.Pool`."""

    def __init__(self, n: int, k: int, seed: int | None, capacity: int) -> None:
        self.k = k
        self._capacity = capacity
        self._seeded = seed is not None
        self._base = base_state("a sample", seed)
        self.heaps = new_heaps(self._base, 0, 0, k, self._seeded)
        self._pool = Pool(0, k, None)
        self._keys = Items()
        self._ids = np.empty(0, np.uint64)
        self._hashes = np.empty(0, np.uint64)
        self._groups = np.empty(0, np.int64)
        self._table = np.full(16, -1, np.int64)
        self.resize(n)

    def __len__(self) -> int:
        return len(self.heaps)

    @property
    def sizes(self) -> np.ndarray:
        """The number of items per group."""
        return np.bincount(self._groups, self._pool.heaps["size"], len(self)).astype(np.int64)

    def resize(self, n: int) -> None:
        """Grow to `n` groups; the new ones are empty, each with its own random state."""
        new = new_heaps(self._base, len(self), n, self.k, self._seeded)
        self.heaps = np.concatenate([self.heaps, new])

    def add(
        self,
        groups: np.ndarray,
        items: pa.Array,
        bits: Bits,
        keys: pa.Array,
        hashes: np.ndarray,
    ) -> None:
        """Add rows to the strata of their groups and keys, in blocks, so that memory stays bounded."""
        priorities = np.empty(len(groups), np.float64)
        _draw(self.heaps, groups, hashes, bits, priorities)
        for start in range(0, len(groups), _BLOCK):
            rows = slice(start, start + _BLOCK)
            strata = self._strata(groups[rows], hashes[rows], keys[rows])
            self._pool.heaps["seen"] += np.bincount(strata, minlength=len(self._pool))
            self._pool.add(strata, priorities[rows], items[rows])
            self._bound()

    def _strata(self, groups: np.ndarray, hashes: np.ndarray, keys: pa.Array) -> np.ndarray:
        """Return the stratum of each row, creating new strata."""
        ids = mixed(hashes + mixed(groups.astype(np.uint64)))
        n = len(self._ids)
        if 2 * (n + len(ids)) > len(self._table):
            self._table = np.full(1 << int(4 * (n + len(ids))).bit_length(), -1, np.int64)
            _place(self._ids, self._table, 0)
        room = np.concatenate([self._ids, np.empty(len(ids), np.uint64)])
        strata, first = np.empty(len(ids), np.int64), np.empty(len(ids), np.int64)
        n_strata = _number(room, n, self._table, ids, strata, first)
        first = first[: n_strata - n]
        self._ids = room[:n_strata]
        self._groups = np.concatenate([self._groups, groups[first]])
        self._hashes = np.concatenate([self._hashes, hashes[first]])
        self._keys.append(keys.take(pa.array(first)))
        self._pool.resize(n_strata)
        self._pool.heaps["k"][n:] = self.heaps["k"][self._groups[n:]]
        return strata

    def _bound(self) -> None:
        """Reduce all groups to their capacity, and their strata to the group's k."""
        dropped = np.empty(0, np.int64)
        for group in np.flatnonzero(self.sizes > self._capacity):
            own = np.flatnonzero(self._groups == group)
            if len(own) > self._capacity:
                last = np.partition(self._hashes[own], self._capacity - 1)[self._capacity - 1]
                dropped = np.concatenate([dropped, own[self._hashes[own] > last]])
            self.heaps["k"][group] = _largest_k(self._pool.heaps["size"][own], self._capacity)
            self._pool.shrink(self.heaps["k"][self._groups])
        if len(dropped):
            kept = np.delete(np.arange(len(self._ids)), dropped)
            self._pool.select(kept)
            self._ids, self._groups = self._ids[kept], self._groups[kept]
            self._hashes = self._hashes[kept]
            self._keys.keep(kept)
            self._table = np.full(1 << int(4 * len(kept) + 16).bit_length(), -1, np.int64)
            _place(self._ids, self._table, 0)

    def accept(self, keys: pa.Array, items: pa.Array, family: str) -> tuple[pa.Array, pa.Array]:
        """Convert keys and items for storage. Raises `SketchError`, with nothing changed, if they don't
        fit."""
        keys = equal_as(keys, self._keys.type)
        fitted = self._keys.fit(keys, f"{family}, keys"), self._pool.fit(items, family)
        return self._keys.accept(fitted[0]), self._pool.items.accept(fitted[1])

    def merge(self, groups: np.ndarray, parts: Parts, family: str) -> None:
        """Merge whole samples into their groups."""
        strata_groups = np.repeat(groups, parts.samples["size"])
        samples = parts.samples.copy()
        samples["size"] = 0
        if len(strata_groups):
            keys, inner = _unfold(parts.items, family)
            hashes = hash_items(keys)
            keys, _ = self.accept(keys, inner.items, family)
        heap_kernels.merge(self.heaps, heap_kernels.new_slots(0), groups, samples, np.empty(0), 0)
        if len(strata_groups):
            self._pool.merge(self._strata(strata_groups, hashes, keys), inner, family)
        self._pool.shrink(self.heaps["k"][self._groups])
        self._bound()

    def parts(self, groups: np.ndarray) -> Parts:
        """Return the samples of these groups; items are keys with their samples, smallest hash first."""
        order = np.lexsort((self._hashes, self._groups))
        counts = np.bincount(self._groups, minlength=len(self))
        starts = np.cumsum(counts) - counts
        size = counts[groups]
        where = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
        strata = order[where + np.repeat(starts[groups], size)]
        samples = samples_of(len(groups))
        for name in SAMPLE.names or ():
            samples[name] = self.heaps[name][groups]
        samples["size"] = size
        inner = self._pool.parts(strata)
        inner.samples["state"], inner.samples["seeded"] = 0, 0
        images = _STRATUM.write(inner).cast(pa.large_binary())
        items = pa.StructArray.from_arrays([self._keys.take(strata), images], ["key", "sample"])
        priority = -(self._hashes[strata].astype(np.float64) + 1.0) * 2.0**-64
        return Parts(samples, priority, items)

    def table(self) -> pa.Table:
        """Return all strata: `group`, `key`, `n` rows seen, and `items`, the list of stored items."""
        order = np.lexsort((self._hashes, self._groups))
        inner = self._pool.parts(order)
        ends = np.concatenate([[0], np.cumsum(inner.samples["size"])])
        lists = pa.LargeListArray.from_arrays(pa.array(ends), inner.items)
        keys = self._keys.take(order)
        return pa.table(
            {"group": self._groups[order], "key": keys, "n": inner.samples["seen"], "items": lists}
        )


def _largest_k(sizes: np.ndarray, capacity: int) -> int:
    """Return the largest k, at least 1, with which samples of these sizes have at most `capacity` items."""
    low, high = 1, int(sizes.max())
    while low < high:
        middle = (low + high + 1) // 2
        if int(np.minimum(sizes, middle).sum()) <= capacity:
            low = middle
        else:
            high = middle - 1
    return low


def _unfold(items: pa.Array, family: str) -> tuple[pa.Array, Parts]:
    """Split the items from `Strata.parts` into keys and their samples."""
    names = [field.name for field in items.type] if pa.types.is_struct(items.type) else []
    if names != ["key", "sample"] or not pa.types.is_large_binary(items.type.field("sample").type):
        raise SketchError(f"{family}: the image's items are not keys with their samples")
    keys, images = pc.struct_field(items, "key"), pc.struct_field(items, "sample")
    if images.null_count:
        raise SketchError(f"{family}: a key of the image has no sample")
    _, offsets, data = images.buffers()
    bounds = np.frombuffer(offsets, np.int64, len(images) + 1, 8 * images.offset)
    return keys, _STRATUM.read(bounds, np.frombuffer(data, np.uint8))
