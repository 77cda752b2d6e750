"""Coupons to many HLL sketches at once: a block's groups are looked up together, then changed one by one.

What makes this slow is not arithmetic but waiting for memory, a cache line a row and more. So a block's
registers are all loaded first, in a loop without branches whose loads overlap; the rows that can't change
anything, sooner or later nearly all, are dropped; and the coupon tables of groups that have no registers yet
are fetched ahead of the loop that changes them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.bits import prefetch
from ..core.jit import lean
from .coupons import coupons_of_int64
from .store import DENSE, EMPTY, add_coupon, add_to_table, count_least, raise_register

BLOCK = 512
"""Rows looked up together; all that is known of them fits the first-level cache."""


@lean
def _look_up(store, n, groups, coupons, places, found):
    """Where each row's register is and what it holds; of a coupon table, nobody's register, which is zero.

    False if a group number is not one of `n`; nothing was read outside then.
    """
    sketches = store.sketches
    outside = False
    for i in range(len(groups)):
        g = np.uint64(groups[i])
        inside = g < np.uint64(n)
        outside |= not inside
        sketch = sketches[g if inside else np.uint64(0)]
        mask = (np.uint64(1) << np.uint64(sketch.lg_k)) - np.uint64(1)
        first = np.uint64(sketch.where) if sketch.form == DENSE else np.uint64(0)
        places[i] = first + (np.uint64(coupons[i]) & mask)
        found[i] = store.registers[places[i]]
    return not outside


@lean
def _may_change(coupons, found):
    """Turn the registers found into 1 where the coupon's value is higher, else 0."""
    for i in range(len(found)):
        found[i] = found[i] < np.uint8(coupons[i] >> np.uint32(26))


@lean
def _gather(flags, out):
    """The places of the ones, without a branch; how many there are."""
    n = np.int64(0)
    for i in range(len(flags)):
        out[n] = i
        n += np.int64(flags[i])
    return n


@lean
def _fetch_tables(store, groups, coupons, candidates, places):
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
def _count(store, groups, coupons, candidates, places):
    """Count the candidates, in order; the number of the first that found no room, or −1."""
    sketches, words = store.sketches, store.words
    registers, sums, least = store.registers, store.sums, store.least
    lg_stride = np.uint64(store.lg_stride[0])
    stride = np.uint64(1) << lg_stride
    for j in range(len(candidates)):
        i = np.uint64(candidates[j])
        at = places[i]
        if at >= stride:
            value = np.uint8(coupons[i] >> np.uint32(26))
            row = at >> lg_stride
            if value > registers[at] and raise_register(registers, sums, least, row, at, value):
                first = row << lg_stride
                count_least(registers[first : first + np.uint64(sums[row, 3])], least[row])
            continue
        g = groups[i]
        form = sketches[g].form
        if form != EMPTY and form != DENSE:
            done, _ = add_to_table(sketches, words, g, coupons[i])
            if done:
                continue
        if not add_coupon(store, g, coupons[i]):
            return np.int64(i)
    return np.int64(-1)


NO_ROOM = -2
NO_GROUP = -3


@lean
def _update_block(store, n, groups, coupons, scratch):
    """Count a block: −1 if all is well, NO_GROUP with nothing counted, or the first row without room."""
    at = scratch.places[: len(coupons)]
    flags = scratch.found[: len(coupons)]
    if not _look_up(store, n, groups, coupons, at, flags):
        return np.int64(NO_GROUP)
    _may_change(coupons, flags)
    candidates = scratch.candidates[: _gather(flags, scratch.candidates)]
    if store.lg_stride[1] <= n:  # some have no registers yet
        _fetch_tables(store, groups, coupons, candidates, at)
    return _count(store, groups, coupons, candidates, at)


@lean
def update_groups(store, n, groups, coupons, start, scratch):
    """Count each coupon in its group, of which there are `n`, from number `start` on.

    Returns (how far it came, why it stopped): 0 at the end, NO_ROOM, or NO_GROUP for a block that holds a
    number that is none; what is before is counted.
    """
    for first in range(start, len(coupons), BLOCK):
        block = coupons[first : first + BLOCK]
        stopped = _update_block(store, n, groups[first : first + BLOCK], block, scratch)
        if stopped == NO_GROUP:
            return first, NO_GROUP
        if stopped >= 0:
            return first + stopped, NO_ROOM
    return len(coupons), 0


@lean
def update_groups_int64(store, n, groups, values, start, scratch):
    """`update_groups` of int64 values, hashed on the way: a block never leaves the first-level cache."""
    for first in range(start, len(values), BLOCK):
        block = values[first : first + BLOCK]
        coupons = scratch.coupons[: len(block)]
        coupons_of_int64(block, coupons)
        stopped = _update_block(store, n, groups[first : first + BLOCK], coupons, scratch)
        if stopped == NO_GROUP:
            return first, NO_GROUP
        if stopped >= 0:
            return first + stopped, NO_ROOM
    return len(values), 0


class UpdateScratch(NamedTuple):
    """What a block's rows are worked out in."""

    coupons: np.ndarray
    places: np.ndarray
    found: np.ndarray
    candidates: np.ndarray


def new_update_scratch() -> UpdateScratch:
    """Scratch for one call."""
    return UpdateScratch(
        np.empty(BLOCK, np.uint32),
        np.empty(BLOCK, np.uint64),
        np.empty(BLOCK, np.uint8),
        np.empty(BLOCK, np.int64),
    )
