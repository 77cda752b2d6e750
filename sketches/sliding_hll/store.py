"""Many sliding HyperLogLogs in a few arrays: the latest time at which each register saw each value.

A plain HLL keeps the greatest value of each register. To answer for any later span, a sliding one keeps the
values that are the greatest of some span that ends now: those with no value as great or greater at the same
time or after, the paper's "list of future possible maxima". They lie in a hash table a sketch, from register
and value to the latest time; what has become dominated or has left the window is dropped when the table is
full.

Source: Chabchoub and Hébrail, Sliding HyperLogLog: Estimating Cardinality in a Data Stream over a Sliding
Window (2010).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.bits import prefetch
from ..core.group_numbers import grown
from ..core.jit import kernel, lean
from ..hll.estimate import composite_estimate

NEVER = -(1 << 63)
VALUE_MASK = np.uint32(63)

SKETCH = np.dtype(
    [
        ("where", np.int64),
        ("latest", np.int64),
        ("count", np.uint32),
        ("lg", np.uint8),
        ("greatest", np.uint8),
    ],
    align=True,
)
"""What there is of each sketch: the first place and the lg of the places of its table (0: none yet), the
latest time seen, how many entries there are, and the greatest value among them."""

_LG_SMALLEST = 3
_ARENA_END = 63


class Store(NamedTuple):
    """The arrays; a kernel's one argument.

    A place of a table is a key, ``register << 6 | value`` (0: free), and a time, in microseconds. `free` is
    as in `theta.store`; `params` holds lg_k and the window in microseconds.
    """

    sketches: np.ndarray
    keys: np.ndarray
    times: np.ndarray
    free: np.ndarray
    params: np.ndarray


def new_store(n: int, lg_k: int, window: int) -> Store:
    """`n` empty sketches."""
    free = np.full(64, -1, np.int64)
    free[_ARENA_END] = 0
    sketches = np.zeros(n, SKETCH)
    sketches["latest"] = NEVER
    params = np.array([lg_k, window], np.int64)
    return Store(sketches, np.zeros(8, np.uint32), np.zeros(8, np.int64), free, params)


def with_sketches(store: Store, n: int) -> Store:
    """The same store with `n` sketches, the new ones empty."""
    sketches = grown(store.sketches, n)
    sketches["latest"][len(store.sketches) :] = NEVER
    return store._replace(sketches=sketches)


def with_room(store: Store) -> Store:
    """The same store with twice the places."""
    used = int(store.free[_ARENA_END])
    keys = np.zeros(max(64, 2 * len(store.keys)), np.uint32)  # pages not yet used cost no memory
    times = np.zeros(len(keys), np.int64)
    keys[:used], times[:used] = store.keys[:used], store.times[:used]
    return store._replace(keys=keys, times=times)


@lean
def _allocate(store, lg):
    """The first of 2^lg free places, or −1 if the arena is full."""
    size = np.int64(1) << lg
    at = store.free[lg]
    if at >= 0:
        store.free[lg] = store.times[at]
    else:
        at = store.free[_ARENA_END]
        if at + size > len(store.keys):
            return np.int64(-1)
        store.free[_ARENA_END] = at + size
    store.keys[at : at + size] = 0
    return at


@lean
def _place(keys, at, lg, key):
    """The place of a key in the table of 2^lg places at `at`, or the free one where it belongs."""
    mask = (np.uint64(1) << np.uint64(lg)) - np.uint64(1)
    place = (np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - lg)
    while True:  # ends: at most three quarters are used
        found = keys[np.uint64(at) + place]
        if found == 0 or found == key:
            return np.uint64(at) + place
        place = (place + np.uint64(1)) & mask


@lean
def _may_win(store, g, key, time):
    """Whether an entry is within the window and no greater value of its register is as late or later."""
    sketch = store.sketches[g]
    if time <= sketch.latest - store.params[1]:
        return False
    lg = np.int64(sketch.lg)
    for greater in range(np.int64(key & VALUE_MASK) + 1, np.int64(sketch.greatest) + 1):
        other = (key & ~VALUE_MASK) | np.uint32(greater)
        place = _place(store.keys, sketch.where, lg, other)
        if store.keys[place] == other and store.times[place] >= time:
            return False
    return True


@lean
def _rebuild(store, g):
    """Move what may still win to a table at most half full. False, and nothing done, if there is no room."""
    sketch = store.sketches[g]
    at, old = sketch.where, np.int64(sketch.lg)
    end = at + (np.int64(1) << old) if old else at
    kept = np.int64(0)
    for i in range(at, end):
        kept += store.keys[i] != 0 and _may_win(store, g, store.keys[i], store.times[i])
    lg = np.int64(_LG_SMALLEST)
    while (np.int64(1) << lg) < 2 * (kept + 1):
        lg += 1
    to = _allocate(store, lg)
    if to < 0:
        return False
    greatest = np.uint32(0)
    for i in range(at, end):
        if store.keys[i] and _may_win(store, g, store.keys[i], store.times[i]):
            place = _place(store.keys, to, lg, store.keys[i])
            store.keys[place] = store.keys[i]
            store.times[place] = store.times[i]
            greatest = max(greatest, store.keys[i] & VALUE_MASK)
    if old:
        store.times[at] = store.free[old]
        store.free[old] = at
    store.sketches[g].where = to
    store.sketches[g].lg = lg
    store.sketches[g].count = kept
    store.sketches[g].greatest = greatest
    return True


@lean
def add_entry(store, g, key, time):
    """See a value in a register at a time. False, and nothing done, if there is no room."""
    sketch = store.sketches[g]
    if time > sketch.latest:
        store.sketches[g].latest = time
    elif time <= sketch.latest - store.params[1]:
        return True
    place = np.uint64(0)
    if sketch.lg:
        place = _place(store.keys, sketch.where, np.int64(sketch.lg), key)
        if store.keys[place] == key:
            store.times[place] = max(store.times[place], time)
            return True
    if 4 * (np.int64(sketch.count) + 1) > (3 * (np.int64(1) << sketch.lg) if sketch.lg else 0):
        if not _rebuild(store, g):
            return False
        sketch = store.sketches[g]
        place = _place(store.keys, sketch.where, np.int64(sketch.lg), key)
    store.keys[place] = key
    store.times[place] = time
    store.sketches[g].count += 1
    store.sketches[g].greatest = max(store.sketches[g].greatest, np.uint8(key & VALUE_MASK))
    return True


_AHEAD = 16


@lean
def update_groups(store, groups, coupons, times, start):
    """See each HLL coupon in its group at its time, from number `start`; how far there was room."""
    slots = (np.uint32(1) << np.uint32(store.params[0])) - np.uint32(1)
    for i in range(start, len(coupons)):
        if i + _AHEAD < len(coupons):  # have the table that comes up fetched
            sketch = store.sketches[groups[i + _AHEAD]]
            if sketch.lg:
                coming = coupons[i + _AHEAD]
                key = (coming & slots) << np.uint32(6) | coming >> np.uint32(26)
                hashed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
                prefetch(
                    store.keys, np.uint64(sketch.where) + (hashed >> np.uint64(64 - np.int64(sketch.lg)))
                )
        if coupons[i]:
            key = (coupons[i] & slots) << np.uint32(6) | coupons[i] >> np.uint32(26)
            if not add_entry(store, groups[i], key, times[i]):
                return i
    return len(coupons)


@lean
def estimates(store, after, table, registers, estimate, seen):
    """What each sketch saw later than `after[g]`: the estimate, and the registers that certainly did."""
    lg_k = store.params[0]
    k = np.int64(1) << lg_k
    for g in range(len(estimate)):
        sketch = store.sketches[g]
        registers[:] = 0
        if sketch.lg:
            for i in range(sketch.where, sketch.where + (np.int64(1) << sketch.lg)):
                if store.keys[i] and store.times[i] > after[g]:
                    slot = store.keys[i] >> np.uint32(6)
                    registers[slot] = max(registers[slot], np.uint8(store.keys[i] & VALUE_MASK))
        zeros = np.int64(0)
        power_sum = 0.0
        for v in registers:
            zeros += v == 0
            power_sum += 0.5 ** np.float64(v)
        seen[g] = np.float64(k - zeros)
        estimate[g] = composite_estimate(lg_k, power_sum, zeros, table)


@kernel
def kept_entries(store, g):
    """(keys, times) of what may still win, in the order of the keys."""
    sketch = store.sketches[g]
    keys = np.empty(np.int64(sketch.count), np.uint32)
    times = np.empty(np.int64(sketch.count), np.int64)
    n = 0
    if sketch.lg:
        for i in range(sketch.where, sketch.where + (np.int64(1) << sketch.lg)):
            if store.keys[i] and _may_win(store, g, store.keys[i], store.times[i]):
                keys[n] = store.keys[i]
                times[n] = store.times[i]
                n += 1
    order = np.argsort(keys[:n])
    return keys[order], times[order]


@lean
def update_entries(store, groups, keys, times, start):
    """See each key in its group at its time, from number `start`; how far there was room."""
    for i in range(start, len(keys)):
        if not add_entry(store, groups[i], keys[i], times[i]):
            return i
    return len(keys)
