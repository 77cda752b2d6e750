"""Coupons to many HLL sketches at once: a block's groups are looked up together, then changed one by one.

What makes this slow is not arithmetic but waiting for memory, a cache line a row and more. So a block's
registers are all loaded first, in a loop without branches whose loads overlap; the rows that can't change
anything, sooner or later nearly all, are dropped; and the coupon tables of groups that have no registers yet
are fetched ahead of the loop that changes them.
"""

from __future__ import annotations

import numpy as np

from .bits import prefetch
from .hll_store import DENSE, EMPTY, add_coupon, add_to_table, raise_register
from .jit import lean

BLOCK = 1024
"""Rows looked up together; their registers' cache lines should not push each other out."""


@lean
def _look_up(store, groups, coupons, places, found):  # type: ignore[no-untyped-def]
    """Where each row's register is and what it holds; of a coupon table, nobody's register, which is zero."""
    sketches = store.sketches
    for i in range(len(groups)):
        sketch = sketches[np.uint64(groups[i])]
        where = np.uint64(sketch.where)
        mask = (np.uint64(1) << np.uint64(sketch.lg_k)) - np.uint64(1)
        at = (where if sketch.form == DENSE else np.uint64(0)) + (np.uint64(coupons[i]) & mask)
        places[i] = at
        found[i] = store.registers[at]


@lean
def _may_change(coupons, found):  # type: ignore[no-untyped-def]
    """Turn the registers found into 1 where the coupon's value is higher, else 0."""
    for i in range(len(found)):
        found[i] = found[i] < np.uint8(coupons[i] >> np.uint32(26))


@lean
def _gather(flags, out):  # type: ignore[no-untyped-def]
    """The places of the ones, without a branch; how many there are."""
    n = np.int64(0)
    for i in range(len(flags)):
        out[n] = i
        n += np.int64(flags[i])
    return n


@lean
def _fetch_tables(store, groups, coupons, candidates, places):  # type: ignore[no-untyped-def]
    """Have the coupon tables' cache lines fetched; 0 registers at `places` mark rows that have one."""
    sketches = store.sketches
    k = np.uint64(1) << np.uint64(store.lg_stride[0])
    for j in range(len(candidates)):
        i = np.uint64(candidates[j])
        if places[i] < k:
            sketch = sketches[np.uint64(groups[i])]
            mask = (np.uint64(1) << np.uint64(sketch.form)) - np.uint64(1)
            prefetch(store.words, np.uint64(sketch.where) + (np.uint64(coupons[i]) & mask))


@lean
def _count(store, groups, coupons, candidates, places):  # type: ignore[no-untyped-def]
    """Count the candidates, in order; the number of the first that found no room, or −1."""
    sketches, words = store.sketches, store.words
    registers, sums, least = store.registers, store.sums, store.least
    lg_stride = store.lg_stride[0]
    k = np.uint64(1) << np.uint64(lg_stride)
    for j in range(len(candidates)):
        i = np.uint64(candidates[j])
        g = np.uint64(groups[i])
        if places[i] >= k:
            value = np.uint8(coupons[i] >> np.uint32(26))
            raise_register(registers, sums, least, lg_stride, sketches[g].lg_k, places[i], value)
            continue
        form = sketches[g].form
        if form != EMPTY and form != DENSE:
            done, _ = add_to_table(sketches, words, g, coupons[i])
            if done:
                continue
        if not add_coupon(store, g, coupons[i]):
            return np.int64(i)
    return np.int64(-1)


@lean
def update_groups(store, groups, coupons, start, scratch):  # type: ignore[no-untyped-def]
    """Count each coupon in its group, from number `start`; returns how far there was room."""
    places, found, candidates = scratch
    for first in range(start, len(coupons), len(places)):
        block = coupons[first : first + len(places)]
        mine = groups[first : first + len(places)]
        at, flags = places[: len(block)], found[: len(block)]
        _look_up(store, mine, block, at, flags)
        _may_change(block, flags)
        n = _gather(flags, candidates)
        _fetch_tables(store, mine, block, candidates[:n], at)
        stopped = _count(store, mine, block, candidates[:n], at)
        if stopped >= 0:
            return first + stopped
    return len(coupons)


def new_scratch() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What `update_groups` works in."""
    return np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.uint8), np.empty(BLOCK, np.int64)
