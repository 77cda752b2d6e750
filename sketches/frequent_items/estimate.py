"""The most frequent items of many groups at once, as `FrequentItems.top` finds those of one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..core.columns import Values
from ..core.jit import kernel
from .images import dense
from .store import ACTIVE, BYTES, LONG, Tables
from .update_strings import SHORT, copy_strings

_AT_ONCE = 1 << 20
"""Counters that are ordered at a time, or one group's."""
_NO_NUMBERS = np.empty(0, np.int64)


def top(tables: Tables, arena: np.ndarray, groups: int, width: int, k: int) -> pa.ListArray:
    """Each group's `k` items of the largest counters, the largest first, equal ones by item, with bounds."""
    kept = np.zeros(groups, np.int64)
    _count_kept((*tables,), width, k, kept)
    parts, sizes = [], []
    for first, end in _blocks(kept):
        owners, counts, items = _block(tables, arena, first, end, width, kept[first:end])
        order = _order(owners, counts, items)
        owners = owners[order]
        starts = np.searchsorted(owners, np.arange(end - first))
        chosen = np.arange(len(owners)) - starts[owners] < k
        rows = order[chosen]
        lower = counts[rows]
        upper = lower + tables.offset[first:end][owners[chosen]]
        columns = [items.take(pa.array(rows)), upper, lower, upper]
        parts.append(pa.StructArray.from_arrays(columns, ["item", "estimate", "lower", "upper"]))
        sizes.append(np.bincount(owners[chosen], minlength=end - first))
    ends = np.zeros(groups + 1, np.int32)
    np.cumsum(np.concatenate([np.empty(0, np.int64), *sizes]), out=ends[1:])
    return pa.ListArray.from_arrays(ends, pa.concat_arrays(parts or [_none(width)]))


def _none(width: int) -> pa.StructArray:
    items = pa.array([], pa.int64() if width == LONG else pa.string())
    return pa.StructArray.from_arrays([items, *[_NO_NUMBERS] * 3], ["item", "estimate", "lower", "upper"])


def _blocks(kept: np.ndarray) -> Iterator[tuple[int, int]]:
    """Stretches of groups that keep `_AT_ONCE` counters together, or are one group."""
    ends, first = np.cumsum(kept), 0
    while first < len(kept):
        before = int(ends[first - 1]) if first else 0
        end = max(int(np.searchsorted(ends, before + _AT_ONCE, "right")), first + 1)
        yield first, end
        first = end


def _block(
    tables: Tables, arena: np.ndarray, first: int, end: int, width: int, kept: np.ndarray
) -> tuple[np.ndarray, np.ndarray, pa.Array]:
    """Of each counter kept its group, from 0 on, its count and its item."""
    size = int(kept.sum())
    keys, counts, mores, places = np.empty((4, size), np.int64)
    _fill((*tables,), first, end, width, kept, keys, counts, mores, places)
    owners = np.repeat(np.arange(end - first), kept)
    if width == LONG:
        return owners, counts, pa.array(keys)
    offsets = np.zeros(size + 1, np.int64)
    data = np.empty(SHORT * size + int(tables.heap[BYTES]), np.uint8)
    copy_strings(keys, mores, places, arena, offsets, data)
    texts = Values("string", _NO_NUMBERS, offsets, data, None).to_arrow()
    return owners, counts, texts.cast(pa.string())


def _order(owners: np.ndarray, counts: np.ndarray, items: pa.Array) -> np.ndarray:
    """The rows by group, the largest count first, equal ones by item."""
    table = pa.table({"owner": owners, "count": counts, "item": items})
    keys = [("owner", "ascending"), ("count", "descending"), ("item", "ascending")]
    return pc.sort_indices(table, sort_keys=keys).to_numpy()


@kernel
def _count_kept(tables, width, k, kept):
    """How many counters of each group are among its `k` largest or equal to the least of those."""
    most = np.int64(0)
    for g in range(len(kept)):
        most = max(most, tables[ACTIVE][g])
    keys, counts = np.empty(most, np.int64), np.empty(most, np.int64)
    mores, places = np.empty(most, np.int64), np.empty(most, np.int64)
    for g in range(len(kept)):
        n = np.int64(tables[ACTIVE][g])
        found = min(n, np.int64(k))
        if 0 < found < n:
            dense(tables, g, width, keys, counts, mores, places)
            while found < n and counts[found] == counts[found - 1]:
                found += 1
        kept[g] = found


@kernel
def _fill(tables, first, end, width, kept, keys, counts, mores, places):
    """The counters kept of the groups from `first` to `end`, group after group."""
    most = np.int64(0)
    for g in range(first, end):
        most = max(most, tables[ACTIVE][g])
    k, c = np.empty(most, np.int64), np.empty(most, np.int64)
    s, t = np.empty(most, np.int64), np.empty(most, np.int64)
    at = np.int64(0)
    for g in range(first, end):
        n = kept[g - first]
        if n == 0:
            continue
        dense(tables, g, width, k, c, s, t)
        for i in range(n):
            keys[at] = k[i]
            counts[at] = c[i]
            mores[at] = s[i]
            places[at] = t[i]
            at += 1
