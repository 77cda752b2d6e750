"""Counting longs and looking them up in the tables of `store`.

Rows are taken strictly in order, so that any cut into batches gives the same counters. Within a stretch that
can't overfill a table order doesn't matter: there the hits on a first probe are counted without a branch
before the others are looked up.
"""

from __future__ import annotations

import numpy as np

from ..core.jit import inlined, kernel
from .store import BASE, CELLS, LG, capacity, home, limit, roomy, settle

_STRETCH = 1024
_SHORT = 24


@kernel
def _homes(block, lg, out):
    shift = np.uint64(64 - lg)
    for i in range(len(block)):
        k = np.uint64(block[i])
        k ^= k >> np.uint64(32)
        k *= np.uint64(0x9E3779B97F4A7C15)
        k ^= k >> np.uint64(29)
        k *= np.uint64(0xBF58476D1CE4E5B9)
        out[i] = np.int64(k >> shift)


@inlined
def insert_long(cells, base, lg, key, weight):
    """Count one long in a table with room; 1 if it is new there, else 0."""
    mask = (np.int64(1) << np.int64(lg)) - 1
    at = base + 2 * home(key, lg)
    while cells[at + 1] != 0 and cells[at] != key:
        at = base + ((at - base + 2) & (2 * mask + 1))
    new = np.int64(cells[at + 1] == 0)
    cells[at] = key
    cells[at + 1] += weight
    return new


@kernel
def _add_stretch(cells, lg, keys, weights, homes, missed):
    """Count a block in a table that can't overfill by it; `cells` begins with the table. Returns new keys."""
    weighted = len(weights) > 0
    _homes(keys, lg, homes)
    misses = np.int64(0)
    for i in range(len(keys)):
        p = homes[i]
        hit = np.int64((cells[2 * p] == keys[i]) & (cells[2 * p + 1] > 0))
        cells[2 * p + 1] += hit * (weights[i] if weighted else 1)
        missed[misses] = i
        misses += 1 - hit
    mask = (np.int64(1) << np.int64(lg)) - 1
    new = np.int64(0)
    for j in range(misses):
        i = missed[j]
        p = homes[i]
        key = keys[i]
        while cells[2 * p + 1] != 0 and cells[2 * p] != key:
            p = (p + 1) & mask
        new += cells[2 * p + 1] == 0
        cells[2 * p] = key
        cells[2 * p + 1] += weights[i] if weighted else 1
    return new


@kernel
def add_longs(tables, groups, keys, weights, start, lg_max):
    """Count rows from `start` on; `groups` empty is all group 0, `weights` empty all 1.

    Returns the first row not taken: less than the rows there are where the arena must grow first.
    """
    cells, base, lgs, active, _, weight, _ = tables
    homes = np.empty(_STRETCH, np.int64)
    missed = np.empty(_STRETCH + 1, np.int64)
    n = len(keys)
    single = len(groups) == 0
    weighted = len(weights) > 0
    i = start
    while i < n:
        g = np.int64(0) if single else groups[i]
        if active[g] > limit(lgs[g], lg_max) and not roomy(tables, g, 2, lg_max):
            return i
        last = min(n, i + _STRETCH)
        end = last if single else i + 1
        while end < last and groups[end] == g:
            end += 1
        lg = np.int64(lgs[g])
        size = max(min(end - i, limit(lg, lg_max) - active[g]), 1)
        if size < _SHORT:
            for j in range(i, i + size):
                each = weights[j] if weighted else 1
                active[g] += insert_long(cells, base[g], lg, keys[j], each)
                weight[g] += each
        else:
            some = weights[i : i + size] if weighted else weights
            table = cells[base[g] : base[g] + (np.int64(2) << lg)]
            active[g] += _add_stretch(table, lg, keys[i : i + size], some, homes, missed)
            weight[g] += some.sum() if weighted else size
        if active[g] > capacity(lg_max):
            settle(tables, g, 2, lg_max)
        i += size
    return n


@kernel
def find_long(tables, g, key):
    """The counter of a long, 0 if it has none."""
    lg = np.int64(tables[LG][g])
    if lg == 0:
        return np.int64(0)
    p = home(key, lg)
    base = tables[BASE][g]
    while tables[CELLS][base + 2 * p + 1] != 0 and tables[CELLS][base + 2 * p] != key:
        p = (p + 1) & ((np.int64(1) << lg) - 1)
    return tables[CELLS][base + 2 * p + 1]
