"""Taking rows back from the tables of `store`.

A counter is lowered by what is deleted; deletions of an item that has none are passed over. Since no more of
an item is deleted than was added, counters stay lower bounds, and counters plus offset upper ones.

Source: Zhao, Maiyya, Wiener, Agrawal and El Abbadi, "SpaceSaving±: An Optimal Algorithm for Frequency
Estimation and Frequent Items in the Bounded-Deletion Model", VLDB 2021 (the lazy variant).
"""

from __future__ import annotations

import numpy as np

from ..core.jit import inlined, kernel
from .store import BASE, CELLS, LG, LONG, home, mixed
from .update_strings import same_string


@inlined
def _home(cells, at, lg, width):
    key = np.uint64(cells[at])
    return home(mixed(key, cells[at + 2]) if width > LONG else key, lg)


@kernel
def _free(cells, base, lg, width, p):
    """Empty cell `p`, and close the gap so that every search still ends at a free cell."""
    mask = (np.int64(1) << np.int64(lg)) - 1
    gap = p
    q = (p + 1) & mask
    while cells[base + width * q + 1] != 0:
        if ((q - _home(cells, base + width * q, lg, width)) & mask) >= ((q - gap) & mask):
            for w in range(width):
                cells[base + width * gap + w] = cells[base + width * q + w]
            gap = q
        q = (q + 1) & mask
    for w in range(width):
        cells[base + width * gap + w] = 0


@kernel
def delete(tables, arena, data, groups, keys, mores, begins, weights):
    """Take rows back, one after the other; `mores` and `begins` are empty for longs."""
    cells, base, lgs, active, offset, weight, _ = tables
    width = np.int64(4 if len(mores) > 0 else 2)
    for i in range(len(keys)):
        g = np.int64(0) if len(groups) == 0 else groups[i]
        each = weights[i] if len(weights) > 0 else np.int64(1)
        weight[g] -= each
        lg = np.int64(lgs[g])
        if lg > 0:
            mask = (np.int64(1) << lg) - 1
            more = mores[i] if width > LONG else np.int64(0)
            begin = begins[i] if width > LONG else np.int64(0)
            key = np.uint64(keys[i])
            p = home(mixed(key, more) if width > LONG else key, lg)
            at = base[g] + width * p
            while cells[at + 1] != 0 and not (
                cells[at] == keys[i] and (width == LONG or same_string(cells, at, arena, more, data, begin))
            ):
                p = (p + 1) & mask
                at = base[g] + width * p
            if cells[at + 1] > each:
                cells[at + 1] -= each
            elif cells[at + 1] > 0:
                _free(cells, base[g], lg, width, p)
                active[g] -= 1
        if weight[g] == 0 and active[g] == 0:
            offset[g] = 0  # nothing is left, so that is known of every item


@kernel
def overdrawn(tables, groups, width):
    """The first group whose counters exceed its weight, −1 if none: what was deleted was not all added."""
    cells, base, lgs, _, _, weight, _ = tables
    for g in groups:
        counted = np.int64(0)
        if lgs[g] > 0:
            for at in range(base[g], base[g] + (np.int64(width) << np.int64(lgs[g])), width):
                counted += cells[at + 1]
        if counted > weight[g]:
            return g
    return np.int64(-1)


@kernel
def cells_of(tables, groups, width):
    """A copy of the cells of some groups, one after the other, for `put_back`."""
    cells, base, lgs = tables[CELLS], tables[BASE], tables[LG]
    size = np.int64(0)
    for g in groups:
        size += (np.int64(width) << np.int64(lgs[g])) if lgs[g] > 0 else np.int64(0)
    saved = np.empty(size, np.int64)
    at = np.int64(0)
    for g in groups:
        own = (np.int64(width) << np.int64(lgs[g])) if lgs[g] > 0 else np.int64(0)
        saved[at : at + own] = cells[base[g] : base[g] + own]
        at += own
    return saved


@kernel
def put_back(tables, groups, width, saved):
    """Undo what deleting did to the cells that `cells_of` saved; it moves no table."""
    cells, base, lgs = tables[CELLS], tables[BASE], tables[LG]
    at = np.int64(0)
    for g in groups:
        own = (np.int64(width) << np.int64(lgs[g])) if lgs[g] > 0 else np.int64(0)
        cells[base[g] : base[g] + own] = saved[at : at + own]
        at += own
