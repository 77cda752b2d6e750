"""The coupon tables of one sketch in a store: a list, then sets of 32 or more places, then registers.

Source: datasketches-java 6.2.0 `hll.CouponList`, `hll.CouponHashSet`.
"""

from __future__ import annotations

import numpy as np

from ..core.compilation.jit import inner
from ..core.groups.arena import allocate
from .coupons import ADDRESS_MASK, value_of
from .estimate import coupon_estimates
from .registers import claim_row, count_least, greatest, power_sums
from .store import EMPTY, FIRST_SET, LIST, span_of

MOST_LISTED = 7
"""Coupons in a list; the next one needs a set."""
LG_LARGEST = 3
"""The largest set has 2^(lg_k − 3) places."""

# The estimate from which HIP continues when a coupon fills a list or the largest set, by lg_k.
_PROMOTED = coupon_estimates(
    np.array([MOST_LISTED + 1.0 if lg_k < 8 else 3.0 * 2 ** (lg_k - 5) + 1.0 for lg_k in range(22)])
)


@inner
def _table(store, lg):
    """Allocate 2^lg zeroed words; return the first, or −1 if the arena is full."""
    size = np.int64(1) << lg
    at = allocate(store.extent, size, len(store.words))
    if at >= 0:
        store.words[at : at + size] = 0
    return at


@inner
def place_of(words, at, lg, coupon):
    """Return a coupon's place in the set of 2^lg places at `at`, or the one's complement of its free
    place."""
    mask = (np.int64(1) << lg) - 1
    probe = np.int64(coupon) & mask
    stride = (np.int64(coupon & ADDRESS_MASK) >> lg) | 1
    while True:  # terminates: at most three quarters are used, and an odd stride visits every place
        stored = words[np.uint64(at + probe)]
        if stored == 0:
            return ~probe
        if stored == coupon:
            return probe
        probe = (probe + stride) & mask


@inner
def add_to_table(sketches, words, g, coupon):
    """Count a coupon in a sketch with a coupon table, unless that requires a larger one; whether it was done.

    Otherwise, the second result is the coupon's free place, which would fill the table.
    """
    form = sketches[g].form
    at = sketches[g].where
    n = np.int64(sketches[g].coupons)
    if form == LIST:
        for i in range(n):
            if words[np.uint64(at + i)] == coupon:
                return True, n
        place = n
        full = n == MOST_LISTED
    else:
        place = place_of(words, at, np.int64(form), coupon)
        if place >= 0:
            return True, place
        place = ~place
        full = 4 * (n + 1) > 3 * (np.int64(1) << form)
    if full:
        return False, place
    words[np.uint64(at + place)] = coupon
    sketches[g].coupons = n + 1
    return True, place


@inner
def _promote(store, g):
    """Turn a full coupon table into registers; HIP continues from the coupons' estimate."""
    at, lg = store.sketches[g].where, store.sketches[g].form
    row = claim_row(store, g)
    begin, end = span_of(store, g)
    own = store.registers[begin:end]
    for coupon in store.words[at : at + (np.int64(1) << lg)]:
        slot = np.uint64(coupon) & np.uint64(len(own) - 1)
        own[slot] = max(own[slot], value_of(coupon))
    # HIP continues from an unbiased estimate of the values so far, and its later increments are unbiased.
    store.sums[row].hip = _PROMOTED[store.sketches[g].lg_k]
    store.sums[row].low, store.sums[row].high = power_sums(own, greatest(own))
    count_least(own, store.sums, row)


@inner
def _move(store, g, to, lg):
    """Rehash a coupon table into the set of 2^lg empty places at `to`."""
    at = store.sketches[g].where
    for i in range(at, at + (np.int64(1) << store.sketches[g].form)):
        coupon = store.words[i]
        if coupon:
            store.words[to + ~place_of(store.words, to, lg, coupon)] = coupon
    store.sketches[g].form = lg
    store.sketches[g].where = to


@inner
def add_coupon(store, g, coupon):
    """Count a coupon in a sketch without registers. Returns False, with nothing done, if there is no room."""
    form = store.sketches[g].form
    if form == EMPTY:
        at = _table(store, np.int64(LIST))
        if at < 0:
            return False
        store.words[at] = coupon
        store.sketches[g].form = LIST
        store.sketches[g].where = at
        store.sketches[g].coupons = 1
        return True
    done, place = add_to_table(store.sketches, store.words, g, coupon)
    if done:
        return True
    lg_k = store.sketches[g].lg_k
    promoted = lg_k < 8 or form == lg_k - LG_LARGEST
    larger = np.int64(FIRST_SET) if form == LIST else np.int64(form) + 1
    to = np.int64(0)
    if promoted:
        if store.rows[0].used == len(store.sums):
            return False
    else:
        to = _table(store, larger)
        if to < 0:
            return False
    # All room is allocated above, before anything changes, so that the call can be repeated. The table
    # exceeds its limit by this one coupon until it is moved or promoted.
    store.words[store.sketches[g].where + place] = coupon
    store.sketches[g].coupons += 1
    if promoted:
        _promote(store, g)
    else:
        _move(store, g, to, larger)
    return True


@inner
def clear(store, g):
    """Empty a sketch that is empty or has coupons."""
    store.sketches[g].form = EMPTY
    store.sketches[g].coupons = 0


@inner
def set_table(store, g, table, count, lg):
    """Give an empty sketch an existing set of 2^lg places. The caller ensures that there is room."""
    at = _table(store, lg)
    for i in range(np.int64(1) << lg):
        store.words[at + i] = table[i]
    store.sketches[g].form = lg
    store.sketches[g].where = at
    store.sketches[g].coupons = count
