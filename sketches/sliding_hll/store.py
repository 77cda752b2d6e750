"""Many sliding HyperLogLogs in a few arrays: the latest time at which each register saw each value.

A plain HLL stores the greatest value of each register. To answer for any span that ends now, a sliding one
stores all values that are the greatest in some such span: values with no value as great or greater at the
same time or later, the paper's "list of future possible maxima". Each sketch has a hash table from register
and value to the latest time; entries that are dominated or have left the window are dropped when the table is
full.

In a span with few values, two values that share a register cause an error that no estimator can correct. So
the most recent values are stored as coupons, 32 bits of hash, and a span with fewer than `most_coupons` is
answered by their number. A sketch's `cutoff` is a time since which it has seen that many coupons: an entry at
or before the cutoff stands for its register and value only, a later one for its coupon. The cutoff advances
with the stream: when enough coupons have come since some time, that time is the new cutoff.

Source: Chabchoub and Hébrail, Sliding HyperLogLog: Estimating Cardinality in a Data Stream over a Sliding
Window (2010); the coupons are those of Apache DataSketches' HLL.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.compilation.jit import inner, lean
from ..core.groups.arena import allocate, new_extent, packed
from ..core.groups.group_numbers import grown
from ..core.hashing.bits import prefetch
from ..core.resume import DONE, NO_ROOM
from ..hll.coupons import ADDRESS_BITS, ADDRESS_MASK
from .heap import replace_least

NEVER = -(1 << 63)
VALUE_MASK = np.uint32(63)

SKETCH = np.dtype(
    [
        ("where", np.int64),
        ("latest", np.int64),
        ("cutoff", np.int64),
        ("since", np.int64),
        ("fresh", np.uint32),
        ("count", np.uint32),
        ("lg", np.uint8),
        ("greatest", np.uint8),
    ],
    align=True,
)
"""The fields of each sketch: the first place and the lg size of its table (0: none yet), the latest time
seen,
the cutoff, a candidate for the next cutoff with the number of coupons seen since, the number of entries, and
the greatest value among them."""

PARAMS = np.dtype([("lg_k", np.int64), ("window", np.int64), ("most", np.int64)])
"""The parameters of all sketches in a store: the lg of the number of registers, the window in microseconds,
and the number of coupons from which on estimates use registers."""

_TIMES = ("latest", "cutoff", "since")
_LG_SMALLEST = 3
_VALUE_BITS = 6
_AHEAD = 16
"""Rows between prefetching a table and using it."""
_LG_NEAR = 11
"""The lg size up to which a single sketch's table stays in the first-level cache."""
_LATEST_FIRST = 8
"""The number of rows, in units of `most`, from which on a batch's later half is processed first."""


class Store(NamedTuple):
    """The arrays, passed to kernels as one argument.

    A place of a table has a key, ``address << 6 | value`` (0: free), and a time in microseconds; `keys` and
    `times` are an arena with `extent`. The low lg_k of an address's 26 bits are the register. Among the
    entries of one register and value, a look-up finds the latest first.

    `highest` (uint8, one per register) and `recent` (`most` times) are scratch of the running kernel.
    """

    sketches: np.ndarray
    keys: np.ndarray
    times: np.ndarray
    extent: np.ndarray
    params: np.ndarray
    highest: np.ndarray
    recent: np.ndarray


def most_coupons(lg_k: int) -> int:
    """Return the number of coupons in a span from which on registers answer, where their measured errors
    hold."""
    return max(8, 2 << lg_k // 2)


def new_store(n: int, lg_k: int, window: int) -> Store:
    """Return a store of `n` empty sketches."""
    sketches = np.zeros(n, SKETCH)
    for time in _TIMES:
        sketches[time] = NEVER
    params = np.array([(lg_k, window, most_coupons(lg_k))], PARAMS)
    arena = np.zeros(8, np.uint32), np.zeros(8, np.int64), new_extent()
    return Store(sketches, *arena, params, *new_scratch(lg_k))


def new_scratch(lg_k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return scratch to find the entries that count: `highest` and `recent`."""
    return np.empty(1 << lg_k, np.uint8), np.empty(most_coupons(lg_k), np.int64)


def with_sketches(store: Store, n: int) -> Store:
    """Return the store grown to `n` sketches; the new ones are empty."""
    sketches = grown(store.sketches, n)
    for time in _TIMES:
        sketches[time][len(store.sketches) :] = NEVER
    return store._replace(sketches=sketches)


def with_room(store: Store) -> Store:
    """Return the store with room for the requested table."""
    sketches = store.sketches
    where = sketches["where"].copy()
    sizes = np.where(sketches["lg"] > 0, np.int64(1) << sketches["lg"].astype(np.int64), 0)
    keys, times = packed((store.keys, store.times), store.extent, where, sizes)
    sketches["where"] = where
    return store._replace(keys=keys, times=times)


@inner
def register_bits(store):
    """Return the mask of a key's register and value."""
    return (np.uint32(64) << np.uint32(store.params[0].lg_k)) - np.uint32(1)


@inner
def _home(key, bits, lg):
    """Return a key's home in a table of 2^lg places; all keys of one register and value share a home."""
    return (np.uint64(key & bits) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - lg)


@inner
def _first(keys, at, lg, key, bits):
    """Find the first place of a key's register and value in the table of 2^lg places at `at`, or a free
    one."""
    mask = (np.uint64(1) << np.uint64(lg)) - np.uint64(1)
    place = _home(key, bits, lg)
    while True:  # terminates: at most three quarters are used
        stored = keys[np.uint64(at) + place]
        if stored == 0 or (stored ^ key) & bits == 0:
            return np.uint64(at) + place
        place = (place + np.uint64(1)) & mask


@inner
def _find(keys, times, at, lg, first, key, bits, cutoff):
    """Find the place of a coupon, from `first` on; or of an entry of its register and value up to the cutoff,
    which is no longer needed; or a free one."""
    mask = (np.uint64(1) << np.uint64(lg)) - np.uint64(1)
    # An unneeded entry may be overwritten, but only after the end of the run: the coupon may come after it.
    place, needless = first, np.int64(-1)
    while keys[place]:
        if (keys[place] ^ key) & bits == 0 and times[place] <= cutoff:
            needless = np.int64(place)
        elif keys[place] == key:
            return place
        place = np.uint64(at) + ((place - np.uint64(at) + np.uint64(1)) & mask)
    return np.uint64(needless) if needless >= 0 else place


@inner
def _put(keys, times, place, first, key, time):
    """Put an entry into a permitted place; the latest entry of its register and value goes first."""
    if place != first and time > times[first]:
        keys[place], times[place] = keys[first], times[first]
        place = first
    keys[place] = key
    times[place] = time


@inner
def places(store, g):
    """Return where a sketch's table begins and ends."""
    sketch = store.sketches[g]
    return sketch.where, sketch.where + ((np.int64(1) << sketch.lg) if sketch.lg else 0)


@inner
def has_left(store, g, time):
    """Whether a time has left the window."""
    return time <= store.sketches[g].latest - store.params[0].window


@inner
def register_of(key, bits):
    """Return the register of a key."""
    return np.uint64((key & bits) >> np.uint32(_VALUE_BITS))


@inner
def measure_registers(store, g):
    """Find the greatest value in each register; return False, without doing so, if there are more registers
    than places."""
    first, end = places(store, g)
    if end - first < len(store.highest):
        return False
    keys, highest, bits = store.keys[first:end], store.highest, register_bits(store)
    highest[:] = 0
    for i in range(len(keys)):
        register = register_of(keys[i], bits)
        highest[register] = max(highest[register], np.uint8(keys[i] & VALUE_MASK))
    return True


@inner
def _may_win(store, g, i, measured):
    """Whether no other entry of the register is as late and as great as the entry of a place; among entries
    with equal register, value and time, the first may win."""
    sketch, keys, times, bits = store.sketches[g], store.keys, store.times, register_bits(store)
    at, lg, key, time = sketch.where, np.int64(sketch.lg), keys[i], times[i]
    last = np.int64(store.highest[register_of(key, bits)] if measured else sketch.greatest)
    # Only entries that no entry at the same time or later dominates can be the maximum of some span: the list
    # of possible future maxima (Chabchoub and Hébrail, Sliding HyperLogLog, 2010).
    for greater in range(np.int64(key & VALUE_MASK) + 1, last + 1):
        place = _first(keys, at, lg, (key & ~VALUE_MASK) | np.uint32(greater), bits)
        if keys[place] and times[place] >= time:
            return False
    return _first(keys, at, lg, key, bits) == np.uint64(i)


@inner
def number_after(store, g, time):
    """Count the entries later than a time."""
    first, end = places(store, g)
    keys, times = store.keys[first:end], store.times[first:end]
    n = np.int64(0)
    for i in range(len(keys)):
        n += np.int64(keys[i] != 0) & np.int64(times[i] > time)  # no branch, so it vectorises
    return n


@inner
def latest_cutoff(store, g):
    """Return the latest time since which enough coupons were seen for registers to answer, or `NEVER`."""
    sketch, heap, window = store.sketches[g], store.recent, store.params[0].window
    cutoff = sketch.cutoff
    if has_left(store, g, cutoff):
        cutoff = np.int64(NEVER)
    after = max(cutoff, max(sketch.latest, NEVER + window) - window)
    if number_after(store, g, after) < len(heap):
        return cutoff
    first, end = places(store, g)
    keys, times = store.keys[first:end], store.times[first:end]
    # The least of the latest `most` times: the coupons since then are enough for registers to answer.
    heap[:] = after
    for i in range(len(keys)):
        if times[i] > heap[0] and keys[i]:
            replace_least(heap, times[i])
    return heap[0]


@inner
def is_kept(store, g, i, cutoff, measured):
    """Whether the entry of a place counts: it is a coupon in the window, or may be a maximum."""
    if store.keys[i] == 0 or has_left(store, g, store.times[i]):
        return False
    return store.times[i] > cutoff or _may_win(store, g, i, measured)


@inner
def _rebuild(store, g):
    """Move the entries that count to a table at most half full. Returns False, with nothing done, without
    room."""
    at, end = places(store, g)
    keys, times = store.keys, store.times
    if store.sketches[g].count >= 2 * store.params[0].most:  # unordered rows have not advanced the cutoff
        store.sketches[g].cutoff = max(store.sketches[g].cutoff, latest_cutoff(store, g))
    cutoff, measured = store.sketches[g].cutoff, measure_registers(store, g)
    kept = np.int64(0)
    for i in range(at, end):
        if keys[i]:
            if is_kept(store, g, i, cutoff, measured):
                kept += 1
            else:  # it doesn't count, and whatever it dominated is dominated by what dominates it
                times[i] = NEVER
    lg = np.int64(_LG_SMALLEST)
    while (np.int64(1) << lg) < 2 * (kept + 1):
        lg += 1
    size = np.int64(1) << lg
    to = allocate(store.extent, size, len(keys))
    if to < 0:
        return False
    keys[to : to + size] = 0
    greatest, bits = np.uint32(0), register_bits(store)
    for i in range(at, end):
        if keys[i] and times[i] > NEVER:
            first = _first(keys, to, lg, keys[i], bits)
            place = _find(keys, times, to, lg, first, keys[i], bits, NEVER)
            _put(keys, times, place, first, keys[i], times[i])
            greatest = max(greatest, keys[i] & VALUE_MASK)
    store.sketches[g].where = to
    store.sketches[g].lg = lg
    store.sketches[g].count = kept
    store.sketches[g].greatest = greatest
    return True


@inner
def _count_fresh(store, g):
    """Count a coupon that was not seen since `since`; enough of them advance the cutoff to that time."""
    store.sketches[g].fresh += 1
    if store.sketches[g].fresh >= store.params[0].most:
        store.sketches[g].cutoff = max(store.sketches[g].cutoff, store.sketches[g].since)
        store.sketches[g].since = store.sketches[g].latest
        store.sketches[g].fresh = 0


@inner
def _insert(store, g, key, time, first):
    """Add a value at a time that is new to its register, or another coupon beside entries whose first place
    is
    `first`. Returns False, with nothing done, if there is no room."""
    sketch, keys, times, bits = store.sketches[g], store.keys, store.times, register_bits(store)
    place, fresh = first, True
    if sketch.lg and keys[first] and times[first] > sketch.cutoff:
        place = _find(keys, times, sketch.where, np.int64(sketch.lg), first, key, bits, sketch.cutoff)
    if sketch.lg and keys[place]:
        if times[place] >= time:
            return True
        fresh = keys[place] != key or times[place] < sketch.since
    else:
        if 4 * (np.int64(sketch.count) + 1) > (3 * (np.int64(1) << sketch.lg) if sketch.lg else 0):
            if not _rebuild(store, g):
                return False
            first = _first(keys, sketch.where, np.int64(sketch.lg), key, bits)
            place = _find(keys, times, sketch.where, np.int64(sketch.lg), first, key, bits, NEVER)
        store.sketches[g].count += 1
        store.sketches[g].greatest = max(sketch.greatest, np.uint8(key & VALUE_MASK))
    _put(keys, times, place, first, key, time)
    if fresh and time >= sketch.since:
        _count_fresh(store, g)
    return True


@inner
def add_entry(store, g, key, time, bits, window):
    """Add a value at a time. Returns False, with nothing done, if there is no room."""
    sketch = store.sketches[g]
    if time > sketch.latest:
        store.sketches[g].latest = time
    elif time <= sketch.latest - window:
        return True
    first = np.uint64(0)
    if sketch.lg:
        keys, times = store.keys, store.times
        first = _first(keys, sketch.where, np.int64(sketch.lg), key, bits)
        known = keys[first]
        if known == key or (known and time <= sketch.cutoff):  # only its register and value count
            then = times[first]
            if then < time:
                times[first] = time
                if then < sketch.since and sketch.since <= time:
                    _count_fresh(store, g)
            return True
    return _insert(store, g, key, time, first)


@inner
def _key(coupon):
    """Convert an HLL coupon to the key of an entry."""
    return (coupon & ADDRESS_MASK) << np.uint32(_VALUE_BITS) | coupon >> np.uint32(ADDRESS_BITS)


@lean
def update_groups(store, groups, coupons, times, at):
    """Add each HLL coupon to its group at its time, from number `at` on.

    Returns how far it came, and why it stopped.
    """
    bits, most, window = register_bits(store), store.params[0].most, store.params[0].window
    n, begin, near = len(coupons), at, np.uint8(0)
    if len(store.sketches) == 1:
        near = np.uint8(_LG_NEAR)
    if len(store.sketches) == 1 and n - at > _LATEST_FIRST * most:
        # The last rows first: the cutoff will be among them, and earlier rows need no coupons.
        begin = n - _LATEST_FIRST // 2 * most
    while True:
        part, part_groups, part_times = coupons[begin:n], groups[begin:n], times[begin:n]
        for i in range(len(part)):  # from 0 on, so no index is checked for being negative
            if i + _AHEAD < len(part):  # prefetch an upcoming table
                sketch = store.sketches[np.uint64(part_groups[i + _AHEAD])]
                if sketch.lg > near:
                    home = _home(_key(part[i + _AHEAD]), bits, np.int64(sketch.lg))
                    prefetch(store.keys, np.uint64(sketch.where) + home)
            g = np.uint64(part_groups[i])
            if part[i] and not add_entry(store, g, _key(part[i]), part_times[i], bits, window):
                return (begin + i if begin == at else at), NO_ROOM
        if begin == at:
            return len(coupons), DONE
        n, begin = begin, at


@lean
def update_entries(store, groups, keys, times, at):
    """Add each key to its group at its time, from number `at` on; return how far it came, and why it
    stopped."""
    bits, window = register_bits(store), store.params[0].window
    for i in range(at, len(keys)):
        if not add_entry(store, np.uint64(groups[i]), keys[i], times[i], bits, window):
            return i, NO_ROOM
    return len(keys), DONE
