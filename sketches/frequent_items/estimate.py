"""The most frequent items of many groups at once; `FrequentItems.top` is for one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..core.columns.columns import Values
from ..core.groups.blocks import blocks
from .ranking import rank
from .store import LONG, Tables
from .string_arena import SHORT, copy_texts

_AT_ONCE = 1 << 20
"""Counters that are sorted at a time, unless a single group has more."""
_NO_NUMBERS = np.empty(0, np.int64)


def top(tables: Tables, groups: int, k: int) -> pa.ListArray:
    """Return each group's `k` items with the largest counters and bounds, largest first, ties by item."""
    active = tables.groups["active"][:groups]
    heap = np.empty(int(active.max(initial=0)), np.int64)
    parts, sizes = [], []
    for first, end in blocks(active, _AT_ONCE):
        places, n_listed = np.empty(int(active[first:end].sum()), np.int64), np.empty(end - first, np.int64)
        places = places[: rank(tables, first, k, heap, places, n_listed)]
        owners, counts, items = np.repeat(np.arange(len(n_listed)), n_listed), *counted(tables, places)
        order = _order(owners, counts, items)
        owners = owners[order]
        chosen = np.arange(len(owners)) - np.searchsorted(owners, np.arange(len(n_listed)))[owners] < k
        rows = order[chosen]
        lower = counts[rows]
        upper = lower + tables.groups["offset"][first:end][owners[chosen]]
        top_items = items.take(pa.array(rows))
        columns = [
            top_items if len(tables.cell) == LONG else top_items.cast(pa.string()),
            upper,
            lower,
            upper,
        ]
        parts.append(pa.StructArray.from_arrays(columns, ["item", "estimate", "lower", "upper"]))
        sizes.append(np.bincount(owners[chosen], minlength=len(n_listed)))
    ends = np.zeros(groups + 1, np.int32)
    np.cumsum(np.concatenate([_NO_NUMBERS, *sizes]), out=ends[1:])
    return pa.ListArray.from_arrays(ends, pa.concat_arrays(parts or [_none(len(tables.cell))]))


def counted(tables: Tables, places: np.ndarray) -> tuple[np.ndarray, pa.Array]:
    """Return the counts and the items in these cells."""
    keys, counts = tables.cells[places], tables.cells[places + 1]
    if len(tables.cell) == LONG:
        return counts, pa.array(keys)
    offsets = np.zeros(len(places) + 1, np.int64)
    data = np.empty(SHORT * len(places) + int(tables.spent["used"][0]), np.uint8)
    copy_texts(tables, places, offsets, data)
    return counts, Values("string", _NO_NUMBERS, offsets, data, None).to_arrow()


def _none(width: int) -> pa.StructArray:
    items = pa.array([], pa.int64() if width == LONG else pa.string())
    return pa.StructArray.from_arrays([items, *[_NO_NUMBERS] * 3], ["item", "estimate", "lower", "upper"])


def _order(owners: np.ndarray, counts: np.ndarray, items: pa.Array) -> np.ndarray:
    """Return the rows sorted by group, largest count first, ties by item."""
    table = pa.table({"owner": owners, "count": counts, "item": items})
    keys = [("owner", "ascending"), ("count", "descending"), ("item", "ascending")]
    return pc.sort_indices(table, sort_keys=keys).to_numpy()
