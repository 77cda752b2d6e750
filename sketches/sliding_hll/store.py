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

from ..core.arena import new_extent, packed, take
from ..core.bits import prefetch
from ..core.group_numbers import grown
from ..core.jit import inner, lean
from ..core.resume import DONE, NO_ROOM
from ..hll.coupons import ADDRESS_BITS
from ..hll.estimate import composite_estimate
from ..hll.registers import greatest, power_sums

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

PARAMS = np.dtype([("lg_k", np.int64), ("window", np.int64)])
"""What all sketches of a store share: the lg of the number of registers, the window in microseconds."""

_LG_SMALLEST = 3
_VALUE_BITS = 6
_AHEAD = 16
"""Rows between fetching a table and using it."""


class Store(NamedTuple):
    """The arrays; a kernel's one argument.

    A place of a table is a key, ``register << 6 | value`` (0: free), and a time, in microseconds; `keys` and
    `times` are an arena of `extent`.
    """

    sketches: np.ndarray
    keys: np.ndarray
    times: np.ndarray
    extent: np.ndarray
    params: np.ndarray


def new_store(n: int, lg_k: int, window: int) -> Store:
    """`n` empty sketches."""
    sketches = np.zeros(n, SKETCH)
    sketches["latest"] = NEVER
    params = np.array([(lg_k, window)], PARAMS)
    return Store(sketches, np.zeros(8, np.uint32), np.zeros(8, np.int64), new_extent(), params)


def with_sketches(store: Store, n: int) -> Store:
    """The same store with `n` sketches, the new ones empty."""
    sketches = grown(store.sketches, n)
    sketches["latest"][len(store.sketches) :] = NEVER
    return store._replace(sketches=sketches)


def with_room(store: Store) -> Store:
    """The same store with room for the table that was wanted."""
    sketches = store.sketches
    where = sketches["where"].copy()
    sizes = np.where(sketches["lg"] > 0, np.int64(1) << sketches["lg"].astype(np.int64), 0)
    keys, times = packed((store.keys, store.times), store.extent, where, sizes)
    sketches["where"] = where
    return store._replace(keys=keys, times=times)


@inner
def _home(key, lg):
    """Where a key belongs in a table of 2^lg places."""
    return (np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - lg)


@inner
def _place(keys, at, lg, key):
    """The place of a key in the table of 2^lg places at `at`, or the free one where it belongs."""
    mask = (np.uint64(1) << np.uint64(lg)) - np.uint64(1)
    place = _home(key, lg)
    while True:  # ends: at most three quarters are used
        found = keys[np.uint64(at) + place]
        if found == 0 or found == key:
            return np.uint64(at) + place
        place = (place + np.uint64(1)) & mask


@inner
def _may_win(store, g, key, time):
    """Whether an entry is within the window and no greater value of its register is as late or later."""
    sketch = store.sketches[g]
    if time <= sketch.latest - store.params[0].window:
        return False
    lg = np.int64(sketch.lg)
    for greater in range(np.int64(key & VALUE_MASK) + 1, np.int64(sketch.greatest) + 1):
        other = (key & ~VALUE_MASK) | np.uint32(greater)
        place = _place(store.keys, sketch.where, lg, other)
        if store.keys[place] == other and store.times[place] >= time:
            return False
    return True


@inner
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
    size = np.int64(1) << lg
    to = take(store.extent, size, len(store.keys))
    if to < 0:
        return False
    store.keys[to : to + size] = 0
    greatest = np.uint32(0)
    for i in range(at, end):
        if store.keys[i] and _may_win(store, g, store.keys[i], store.times[i]):
            place = _place(store.keys, to, lg, store.keys[i])
            store.keys[place] = store.keys[i]
            store.times[place] = store.times[i]
            greatest = max(greatest, store.keys[i] & VALUE_MASK)
    store.sketches[g].where = to
    store.sketches[g].lg = lg
    store.sketches[g].count = kept
    store.sketches[g].greatest = greatest
    return True


@inner
def add_entry(store, g, key, time):
    """See a value in a register at a time. False, and nothing done, if there is no room."""
    sketch = store.sketches[g]
    if time > sketch.latest:
        store.sketches[g].latest = time
    elif time <= sketch.latest - store.params[0].window:
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


@inner
def _key(coupon, lg_k):
    """An HLL coupon as the key of an entry."""
    slots = (np.uint32(1) << np.uint32(lg_k)) - np.uint32(1)
    return (coupon & slots) << np.uint32(_VALUE_BITS) | coupon >> np.uint32(ADDRESS_BITS)


@lean
def update_groups(store, groups, coupons, times, at):
    """See each HLL coupon in its group at its time, from number `at` on.

    Gives how far it came, and why it stopped.
    """
    lg_k = store.params[0].lg_k
    for i in range(at, len(coupons)):
        if i + _AHEAD < len(coupons):  # have the table that comes up fetched
            sketch = store.sketches[groups[i + _AHEAD]]
            if sketch.lg:
                home = _home(_key(coupons[i + _AHEAD], lg_k), np.int64(sketch.lg))
                prefetch(store.keys, np.uint64(sketch.where) + home)
        if coupons[i] and not add_entry(store, groups[i], _key(coupons[i], lg_k), times[i]):
            return i, NO_ROOM
    return len(coupons), DONE


@lean
def update_entries(store, groups, keys, times, at):
    """See each key in its group at its time, from number `at` on: how far it came, and why it stopped."""
    for i in range(at, len(keys)):
        if not add_entry(store, groups[i], keys[i], times[i]):
            return i, NO_ROOM
    return len(keys), DONE


@lean
def estimates(store, after, table, registers, estimate, seen):
    """What each sketch saw later than `after[g]`: the estimate, and the registers that certainly did."""
    lg_k = store.params[0].lg_k
    k = np.int64(1) << lg_k
    for g in range(len(estimate)):
        sketch = store.sketches[g]
        registers[:] = 0
        if sketch.lg:
            for i in range(sketch.where, sketch.where + (np.int64(1) << sketch.lg)):
                if store.keys[i] and store.times[i] > after[g]:
                    slot = store.keys[i] >> np.uint32(_VALUE_BITS)
                    registers[slot] = max(registers[slot], np.uint8(store.keys[i] & VALUE_MASK))
        zeros = np.int64(0)
        for v in registers:
            zeros += v == 0
        low, high = power_sums(registers, greatest(registers))
        seen[g] = np.float64(k - zeros)
        estimate[g] = composite_estimate(lg_k, low + high, zeros, table)


@lean
def _kept(store, g, keys, times):
    n = np.int64(0)
    sketch = store.sketches[g]
    if sketch.lg:
        for i in range(sketch.where, sketch.where + (np.int64(1) << sketch.lg)):
            if store.keys[i] and _may_win(store, g, store.keys[i], store.times[i]):
                keys[n], times[n] = store.keys[i], store.times[i]
                n += 1
    return n


def kept_entries(store: Store, g: int) -> tuple[np.ndarray, np.ndarray]:
    """(keys, times) of what may still win, in the order of the keys."""
    most = int(store.sketches["count"][g])
    keys, times = np.empty(most, np.uint32), np.empty(most, np.int64)
    n = _kept(store, g, keys, times)
    order = np.argsort(keys[:n])
    return keys[order], times[order]
