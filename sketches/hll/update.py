"""Count coupons in many HLL sketches: a block's groups are looked up together, then changed one by one.

The bottleneck is not arithmetic but memory latency, at least one cache line per row. So all registers of a
block are loaded first, in a loop without branches whose loads overlap; rows that can't change anything, which
in time are nearly all, are dropped; and the coupon tables of groups without registers are prefetched before
the loop that changes them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.compilation.jit import inner, lean
from ..core.hashing.bits import prefetch
from ..core.resume import DONE, NO_ROOM
from .coupon_tables import add_coupon, add_to_table
from .coupons import value_of
from .registers import count_least, raise_coupon, raise_register
from .store import DENSE, EMPTY

BLOCK = 512
"""Rows looked up together; all their data fits the first-level cache."""

NO_GROUP = 1
"""Why the kernel stopped: a block has an unknown group number, and none of its rows were counted."""


class UpdateScratch(NamedTuple):
    """Scratch for a block's rows: where their registers are, whether they may change them, and which rows
    may."""

    places: np.ndarray
    flags: np.ndarray
    candidates: np.ndarray


def new_update_scratch() -> UpdateScratch:
    """Return scratch for one call."""
    return UpdateScratch(np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.uint8), np.empty(BLOCK, np.int64))


@inner
def _look_up(store, n, groups, coupons, scratch):
    """Find each row's register, and whether the coupon's value exceeds the register.

    A row whose group still has coupons finds a register of row 0, which belongs to no sketch and is zero.
    Returns False if a group number is not below `n`, without having read outside the arrays.
    """
    sketches = store.sketches
    outside = False
    for i in range(len(groups)):
        g = np.uint64(groups[i])
        inside = g < np.uint64(n)
        outside |= not inside
        # An invalid number reads group 0 instead: this needs no branch and never reads outside the arrays.
        sketch = sketches[g if inside else np.uint64(0)]
        mask = (np.uint64(1) << np.uint64(sketch.lg_k)) - np.uint64(1)
        first = np.uint64(sketch.where) if sketch.form == DENSE else np.uint64(0)
        scratch.places[i] = first + (np.uint64(coupons[i]) & mask)
        scratch.flags[i] = store.registers[scratch.places[i]]
    for i in range(len(groups)):  # a separate loop, so that it vectorises
        scratch.flags[i] = scratch.flags[i] < value_of(coupons[i])
    return not outside


@inner
def _gather(flags, rows, out):
    """Write the indexes of the ones among the first `rows` flags, without a branch; return their number."""
    n = np.int64(0)
    for i in range(rows):
        out[n] = i
        n += np.int64(flags[i])
    return n


@inner
def _fetch_tables(store, groups, coupons, candidates, places):
    """Prefetch the cache lines of the coupon tables of rows that found a register of row 0."""
    k = np.uint64(1) << np.uint64(store.rows[0].lg_stride)
    for place in candidates:
        i = np.uint64(place)
        if places[i] < k:
            sketch = store.sketches[np.uint64(groups[i])]
            mask = (np.uint64(1) << np.uint64(sketch.form)) - np.uint64(1)
            prefetch(store.words, np.uint64(sketch.where) + (np.uint64(coupons[i]) & mask))


@inner
def _count(store, groups, coupons, candidates, places):
    """Count the candidates in order; return the first that found no room, or −1."""
    registers, sums = store.registers, store.sums
    lg_stride = np.uint64(store.rows[0].lg_stride)
    # In stream order, because the HIP sum depends on it, and a call without room continues from this row.
    for place in candidates:
        i = np.uint64(place)
        at = places[i]
        # Row 0 belongs to no sketch: an index in it means that the group had coupons at the look-up.
        row = at >> lg_stride
        if row:
            value = value_of(coupons[i])
            # Compare again: an earlier row of the block may have raised it meanwhile.
            if value > registers[at] and raise_register(registers, sums, row, at, value):
                first = row << lg_stride
                count_least(registers[first : first + np.uint64(sums[row].k)], sums, row)
            continue
        g = groups[i]
        if store.sketches[g].form == DENSE:  # changed by an earlier row of this block
            raise_coupon(store, g, coupons[i])
            continue
        if store.sketches[g].form != EMPTY:  # the usual case, and short enough to be inlined
            done, _ = add_to_table(store.sketches, store.words, g, coupons[i])
            if done:
                continue
        if not add_coupon(store, g, coupons[i]):
            return place
    return np.int64(-1)


@lean
def update_groups(store, n, groups, coupons, scratch, at):
    """Count each coupon in its group (there are `n` groups), from number `at` on.

    Returns how far it came, and why it stopped.
    """
    for first in range(at, len(coupons), BLOCK):
        some, mine = coupons[first : first + BLOCK], groups[first : first + BLOCK]
        if not _look_up(store, n, mine, some, scratch):
            return first, NO_GROUP
        candidates = scratch.candidates[: _gather(scratch.flags, len(some), scratch.candidates)]
        if store.rows[0].used <= n:  # some groups have no registers yet
            _fetch_tables(store, mine, some, candidates, scratch.places)
        stopped = _count(store, mine, some, candidates, scratch.places)
        if stopped >= 0:
            return first + stopped, NO_ROOM
    return len(coupons), DONE
