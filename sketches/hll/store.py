"""Many HLL sketches in a few arrays: coupons in a shared arena while small, then registers.

A sketch starts as a list of up to 7 coupons, becomes an open-addressing set of 32, 64 … 2^(lg_k − 3) places,
and past three quarters of the largest, an array of 2^lg_k registers with the HIP estimator's sums (below
lg_k 8 the eighth coupon leads straight to registers). Tables are laid out and probed exactly as the reference
does, since its images hold them as they are.

Kernels that find too little room stop before they change anything and say so; Python enlarges the arrays
(`with_room`), and the same call goes on.

Source: datasketches-java 6.2.0 `hll.CouponList`, `hll.CouponHashSet`, `hll.HllArray`, `hll.Hll8Array`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.group_numbers import grown
from ..core.jit import inlined, lean
from .coupons import ADDRESS_MASK
from .estimate import coupon_estimate

EMPTY = np.uint8(0)
LIST = np.uint8(3)
FIRST_SET = np.uint8(5)
DENSE = np.uint8(255)

OUT_OF_ORDER = np.int32(1)
"""The HIP sum means nothing any more; the composite estimator answers."""
LEAST_KNOWN = np.int32(2)
"""The image tells the least register, not only the count of zeros (as the reference does after a union)."""
STALE = np.int32(4)
"""Registers were merged and the sums are not rebuilt yet."""

FROM_ZERO = np.int32(8)
"""The HIP sum began with registers, not with coupons, as C++ makes a sketch when it is told to."""

SKETCH = np.dtype(
    [("where", np.int64), ("coupons", np.uint32), ("form", np.uint8), ("lg_k", np.uint8)], align=True
)
"""What there is of each sketch, in 16 bytes, so that looking a group up costs one cache line.

`form` is EMPTY, DENSE or the lg of the coupon table's places (3: a list), `coupons` how many are in it,
`where` the first word of the table in `Store.words`, or the first register in `Store.registers`.
"""

_ARENA_END = 31


class Store(NamedTuple):
    """The arrays; a kernel's one argument.

    `free[b]` heads the chain of free blocks of 2^b words (−1: none), `free[31]` is the end of the used part
    of `words`. Row r of `sums` (hip, kxq0, kxq1, number of registers) and of `least` (least register, how
    many hold it, flags) goes with `registers` from ``r << lg_stride[0]`` on; row 0 is nobody's and stays
    zero, so that a sketch that has only coupons can be looked up like any other. `lg_stride[1]` counts used
    rows.
    """

    sketches: np.ndarray
    words: np.ndarray
    free: np.ndarray
    lg_stride: np.ndarray
    registers: np.ndarray
    sums: np.ndarray
    least: np.ndarray


def new_store(n: int, lg_k: int) -> Store:
    """`n` empty sketches."""
    free = np.full(32, -1, np.int64)
    free[_ARENA_END] = 0
    sketches = np.zeros(n, SKETCH)
    sketches["lg_k"] = lg_k
    return Store(
        sketches=sketches,
        words=np.zeros(8, np.uint32),
        free=free,
        lg_stride=np.array([lg_k, 1], np.int64),
        registers=np.zeros(1 << lg_k, np.uint8),
        sums=np.zeros((1, 4), np.float64),
        least=np.zeros((1, 4), np.int32),
    )


def with_sketches(store: Store, n: int, lg_k: int) -> Store:
    """The same store with `n` sketches, the new ones empty."""
    sketches = grown(store.sketches, n)
    sketches["lg_k"][len(store.sketches) :] = lg_k
    return store._replace(sketches=sketches)


def with_room(store: Store) -> Store:
    """The same store with room for any one step: two coupon tables of the largest size, one register row."""
    k = 1 << int(store.lg_stride[0])
    used = int(store.free[_ARENA_END])
    needed = used + max(64, k // 4)
    if needed > len(store.words):
        words = np.zeros(max(needed, len(store.words) * 2), np.uint32)  # pages not yet used cost no memory
        words[:used] = store.words[:used]
        store = store._replace(words=words)
    rows = int(store.lg_stride[1])
    if rows == len(store.sums):
        registers = np.zeros(2 * rows * k, np.uint8)
        registers[: rows * k] = store.registers
        sums, least = grown(store.sums, 2 * rows), grown(store.least, 2 * rows)
        store = store._replace(registers=registers, sums=sums, least=least)
    return store


@lean
def has_room(store):
    """Whether any one step would find room, as `with_room` leaves it."""
    needed = store.free[_ARENA_END] + max(64, (np.int64(1) << store.lg_stride[0]) // 4)
    return needed <= len(store.words) and store.lg_stride[1] < len(store.sums)


@lean
def _allocate(store, lg):
    """The first of 2^lg zeroed words, or −1 if the arena is full."""
    words = store.words
    size = np.int64(1) << lg
    at = store.free[lg]
    if at >= 0:
        store.free[lg] = np.int64(np.uint64(words[at]) | (np.uint64(words[at + 1]) << np.uint64(32)))
    else:
        at = store.free[_ARENA_END]
        if at + size > len(words):
            return np.int64(-1)
        store.free[_ARENA_END] = at + size
    words[at : at + size] = 0
    return at


@lean
def _release(store, at, lg):
    """Chain a block into its free list; its first two words hold the place of the next."""
    following = np.uint64(store.free[lg])
    store.words[at] = np.uint32(following & np.uint64(0xFFFFFFFF))
    store.words[at + 1] = np.uint32(following >> np.uint64(32))
    store.free[lg] = at


@lean
def place_of(words, at, lg, coupon):
    """Where a coupon is in the set of 2^lg places at `at`, or the one's complement of where it belongs."""
    mask = (np.int64(1) << lg) - 1
    probe = np.int64(coupon) & mask
    stride = (np.int64(coupon & ADDRESS_MASK) >> lg) | 1
    while True:  # ends: at most three quarters are used, and an odd stride visits every place
        found = words[np.uint64(at + probe)]
        if found == 0:
            return ~probe
        if found == coupon:
            return probe
        probe = (probe + stride) & mask


_INVERSE_POWERS = 0.5 ** np.arange(64)


@inlined
def inverse_power(v):
    """2^−v, exactly."""
    return _INVERSE_POWERS[v]


@lean
def greatest(registers):
    """The highest register."""
    highest = np.uint8(0)
    for v in registers:
        highest = max(highest, v)
    return highest


@lean
def power_sums(registers, highest):
    """Σ 2^−v over registers below 32, and over those above; `highest` is the highest."""
    low = np.uint64(0)
    for v in registers:
        low += np.uint64(1 << 31) >> np.uint64(v)  # exact, and no table look-up, so it vectorises
    high = 0.0
    if highest > 31:
        for v in registers:
            if v > 31:
                high += inverse_power(v)
    return np.float64(low) / 2147483648.0, high


@lean
def count_least(own, least):
    """Find the least of a sketch's registers and how many hold it."""
    lowest = np.uint8(255)
    for v in own:
        lowest = min(lowest, v)
    n = 0
    for v in own:
        n += v == lowest
    least[0] = lowest
    least[1] = n


@inlined
def raise_register(registers, sums, least, row, at, value):
    """Raise register `at` of a row: first the HIP sum, then those of inverse powers, as the reference.

    `row` and `at` are uint64, as signed indices would be checked for being negative. The caller has seen that
    `value` is higher, and calls `count_least` if this says that the last of the least registers is gone.
    """
    old = registers[at]
    registers[at] = value
    sums[row, 0] += sums[row, 3] / (sums[row, 1] + sums[row, 2])
    if old < 32:
        sums[row, 1] -= inverse_power(old)
    else:
        sums[row, 2] -= inverse_power(old)
    if value < 32:
        sums[row, 1] += inverse_power(value)
    else:
        sums[row, 2] += inverse_power(value)
    least[row, 1] -= np.int32(old == least[row, 0])  # no branch: it would go either way
    return least[row, 1] == 0


@lean
def raise_coupon(store, g, coupon):
    """Count a coupon in a sketch that has registers."""
    k = np.uint64(1) << np.uint64(store.sketches[g].lg_k)
    first = np.uint64(store.sketches[g].where)
    at = first + (np.uint64(coupon) & (k - np.uint64(1)))
    row = first >> np.uint64(store.lg_stride[0])
    value = np.uint8(coupon >> np.uint32(26))
    if value <= store.registers[at]:
        return
    if store.least[row, 2] & STALE:
        store.registers[at] = value
    elif raise_register(store.registers, store.sums, store.least, row, at, value):
        count_least(store.registers[first : first + k], store.least[row])


@lean
def row_of(store, g):
    """The row of `sums` and `least` of a sketch that has registers."""
    return store.sketches[g].where >> store.lg_stride[0]


@lean
def take_row(store, g):
    """Give a sketch an array of registers, all zero; the row. Room is the caller's care."""
    row = store.lg_stride[1]
    store.lg_stride[1] = row + 1
    k = np.int64(1) << store.sketches[g].lg_k
    store.sums[row, 0] = 0.0
    store.sums[row, 1] = np.float64(k)
    store.sums[row, 2] = 0.0
    store.sums[row, 3] = np.float64(k)
    store.least[row, 0] = 0
    store.least[row, 1] = k
    store.least[row, 2] = 0
    store.sketches[g].form = DENSE
    store.sketches[g].coupons = 0
    store.sketches[g].where = row << store.lg_stride[0]
    return row


@lean
def _promote(store, g):
    """Turn a full coupon table into registers; HIP goes on from the coupons' estimate."""
    lg = np.int64(store.sketches[g].form)
    at = store.sketches[g].where
    n = np.float64(store.sketches[g].coupons)
    row = take_row(store, g)
    k = np.int64(1) << store.sketches[g].lg_k
    first = store.sketches[g].where
    own = store.registers[first : first + k]
    for coupon in store.words[at : at + (np.int64(1) << lg)]:
        slot = np.uint64(coupon) & np.uint64(k - 1)
        own[slot] = max(own[slot], np.uint8(coupon >> np.uint32(26)))
    store.sums[row, 0] = coupon_estimate(n)
    store.sums[row, 1], store.sums[row, 2] = power_sums(own, greatest(own))
    count_least(own, store.least[row])
    _release(store, at, lg)


@lean
def _move(store, g, to, lg):
    """Rehash a coupon table into the set of 2^lg empty places at `to`."""
    old = np.int64(store.sketches[g].form)
    at = store.sketches[g].where
    for i in range(at, at + (np.int64(1) << old)):
        coupon = store.words[i]
        if coupon:
            store.words[to + ~place_of(store.words, to, lg, coupon)] = coupon
    store.sketches[g].form = lg
    store.sketches[g].where = to
    _release(store, at, old)


@lean
def add_to_table(sketches, words, g, coupon):
    """Count a coupon in a sketch that has a coupon table, if that needs no larger one: whether it is done.

    If not, the coupon's place is free, and the second answer: taking it fills the table.
    """
    form = sketches[g].form
    at = sketches[g].where
    n = np.int64(sketches[g].coupons)
    if form == LIST:
        for i in range(n):
            if words[np.uint64(at + i)] == coupon:
                return True, n
        place = n
        full = n == 7
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


@lean
def add_coupon(store, g, coupon):
    """Count a coupon in a sketch of any form. False, and nothing done, if there is no room."""
    lg = store.sketches[g].form
    if lg == DENSE:
        raise_coupon(store, g, coupon)
        return True
    if lg == EMPTY:
        at = _allocate(store, np.int64(LIST))
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
    promoted = lg_k < 8 or lg == lg_k - 3
    to = np.int64(0)
    larger = FIRST_SET if lg == LIST else np.uint8(lg + 1)
    if promoted:
        if store.lg_stride[1] == len(store.sums):
            return False
    else:
        to = _allocate(store, np.int64(larger))
        if to < 0:
            return False
    store.words[store.sketches[g].where + place] = coupon
    store.sketches[g].coupons += 1
    if promoted:
        _promote(store, g)
    else:
        _move(store, g, to, np.int64(larger))
    return True


@lean
def clear(store, g):
    """Empty a sketch that has coupons or nothing."""
    if store.sketches[g].form != EMPTY:
        _release(store, store.sketches[g].where, np.int64(store.sketches[g].form))
    store.sketches[g].form = EMPTY
    store.sketches[g].coupons = 0


@lean
def take_table(store, g, table, count, lg):
    """Give an empty sketch a set as it is, of 2^lg places. Room is the caller's care."""
    at = _allocate(store, lg)
    size = np.int64(1) << lg
    for i in range(size):
        store.words[at + i] = table[i]
    store.sketches[g].form = lg
    store.sketches[g].where = at
    store.sketches[g].coupons = count
