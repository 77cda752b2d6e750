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

from .group_numbers import grown
from .hll_coupons import ADDRESS_MASK
from .hll_estimate import coupon_estimate
from .jit import inlined, kernel

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

_ARENA_END = 31


class Store(NamedTuple):
    """The arrays; a kernel's one argument.

    `form` is EMPTY, DENSE or the lg of the coupon table's places (3: a list), `coupons` how many are in it.
    `where` is the first word of the table in `words`, or the row of `registers`. `free[b]` heads the chain of
    free blocks of 2^b words (−1: none), `free[31]` is the end of the used part of `words`; `taken[0]` counts
    used register rows. A row of `sums` is (hip, kxq0, kxq1), of `least` (least register, how many hold it,
    flags).
    """

    form: np.ndarray
    lg_k: np.ndarray
    coupons: np.ndarray
    where: np.ndarray
    words: np.ndarray
    free: np.ndarray
    taken: np.ndarray
    registers: np.ndarray
    sums: np.ndarray
    least: np.ndarray


def new_store(n: int, lg_k: int) -> Store:
    """`n` empty sketches."""
    free = np.full(32, -1, np.int64)
    free[_ARENA_END] = 0
    return Store(
        form=np.zeros(n, np.uint8),
        lg_k=np.full(n, lg_k, np.uint8),
        coupons=np.zeros(n, np.uint32),
        where=np.zeros(n, np.int64),
        words=np.zeros(8, np.uint32),
        free=free,
        taken=np.zeros(1, np.int64),
        registers=np.zeros((0, 1 << lg_k), np.uint8),
        sums=np.zeros((0, 3), np.float64),
        least=np.zeros((0, 3), np.int32),
    )


def with_groups(store: Store, n: int, lg_k: int) -> Store:
    """The same store with room for `n` sketches."""
    return store._replace(
        form=grown(store.form, n),
        lg_k=grown(store.lg_k, n, lg_k),
        coupons=grown(store.coupons, n),
        where=grown(store.where, n),
    )


def with_room(store: Store) -> Store:
    """The same store with room for any one step: two coupon tables of the largest size, one register row."""
    k = store.registers.shape[1]
    used = int(store.free[_ARENA_END])
    needed = used + max(64, k // 4)
    if needed > len(store.words):
        words = np.zeros(max(needed, len(store.words) * 2), np.uint32)  # pages not yet used cost no memory
        words[:used] = store.words[:used]
        store = store._replace(words=words)
    rows = int(store.taken[0])
    if rows == len(store.registers):
        n = max(1, rows * 2)
        registers = np.zeros((n, k), np.uint8)
        registers[:rows] = store.registers
        store = store._replace(registers=registers, sums=grown(store.sums, n), least=grown(store.least, n))
    return store


@kernel
def has_room(store):  # type: ignore[no-untyped-def]
    """Whether any one step would find room, as `with_room` leaves it."""
    needed = store.free[_ARENA_END] + max(64, store.registers.shape[1] // 4)
    return needed <= len(store.words) and store.taken[0] < len(store.registers)


@kernel
def _allocate(store, lg):  # type: ignore[no-untyped-def]
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


@kernel
def _release(store, at, lg):  # type: ignore[no-untyped-def]
    """Chain a block into its free list; its first two words hold the place of the next."""
    following = np.uint64(store.free[lg])
    store.words[at] = np.uint32(following & np.uint64(0xFFFFFFFF))
    store.words[at + 1] = np.uint32(following >> np.uint64(32))
    store.free[lg] = at


@kernel
def place_of(words, at, lg, coupon):  # type: ignore[no-untyped-def]
    """Where a coupon is in the set of 2^lg places at `at`, or the one's complement of where it belongs."""
    mask = (np.int64(1) << lg) - 1
    probe = np.int64(coupon) & mask
    stride = (np.int64(coupon & ADDRESS_MASK) >> lg) | 1
    while True:  # ends: at most three quarters are used, and an odd stride visits every place
        found = words[at + probe]
        if found == 0:
            return ~probe
        if found == coupon:
            return probe
        probe = (probe + stride) & mask


@inlined
def inverse_power(v):  # type: ignore[no-untyped-def]
    """2^−v, exactly."""
    return np.float64(1.0) / np.float64(np.uint64(1) << np.uint64(v))


@kernel
def count_least(registers, least):  # type: ignore[no-untyped-def]
    """Find the least register and how many hold it."""
    lowest = np.uint8(255)
    for v in registers:
        lowest = min(lowest, v)
    n = 0
    for v in registers:
        n += v == lowest
    least[0] = lowest
    least[1] = n


@kernel
def raise_register(registers, sums, least, slot, value):  # type: ignore[no-untyped-def]
    """Raise one of 2^lg_k registers: the HIP sum first, then the sums of inverse powers, as the reference."""
    old = registers[slot]
    if value <= old:
        return
    registers[slot] = value
    if least[2] & STALE:
        return
    sums[0] += np.float64(len(registers)) / (sums[1] + sums[2])
    if old < 32:
        sums[1] -= inverse_power(old)
    else:
        sums[2] -= inverse_power(old)
    if value < 32:
        sums[1] += inverse_power(value)
    else:
        sums[2] += inverse_power(value)
    if old == least[0]:
        least[1] -= 1
        if least[1] == 0:
            count_least(registers, least)


@kernel
def raise_coupon(store, g, coupon):  # type: ignore[no-untyped-def]
    """Count a coupon in a sketch that has registers."""
    row = store.where[g]
    k = np.int64(1) << store.lg_k[g]
    slot = np.int64(coupon) & (k - 1)
    registers = store.registers[row, :k]
    raise_register(registers, store.sums[row], store.least[row], slot, np.uint8(coupon >> np.uint32(26)))


@kernel
def take_row(store, g):  # type: ignore[no-untyped-def]
    """Give a sketch an array of registers, all zero. Room is the caller's care."""
    row = store.taken[0]
    store.taken[0] = row + 1
    k = np.int64(1) << store.lg_k[g]
    store.sums[row, 0] = 0.0
    store.sums[row, 1] = np.float64(k)
    store.sums[row, 2] = 0.0
    store.least[row, 0] = 0
    store.least[row, 1] = k
    store.least[row, 2] = 0
    store.form[g] = DENSE
    store.where[g] = row
    return row


@kernel
def _promote(store, g):  # type: ignore[no-untyped-def]
    """Turn a full coupon table into registers."""
    lg = store.form[g]
    at = store.where[g]
    row = take_row(store, g)
    for i in range(at, at + (np.int64(1) << lg)):
        if store.words[i]:
            raise_coupon(store, g, store.words[i])
    store.sums[row, 0] = coupon_estimate(np.float64(store.coupons[g]))
    store.coupons[g] = 0
    _release(store, at, lg)


@kernel
def _move(store, g, to, lg):  # type: ignore[no-untyped-def]
    """Rehash a coupon table into the set of 2^lg empty places at `to`."""
    old = store.form[g]
    at = store.where[g]
    for i in range(at, at + (np.int64(1) << old)):
        coupon = store.words[i]
        if coupon:
            store.words[to + ~place_of(store.words, to, lg, coupon)] = coupon
    store.form[g] = lg
    store.where[g] = to
    _release(store, at, old)


@kernel
def add_coupon(store, g, coupon):  # type: ignore[no-untyped-def]
    """Count a coupon in a sketch of any form. False, and nothing done, if there is no room."""
    lg = store.form[g]
    if lg == DENSE:
        raise_coupon(store, g, coupon)
        return True
    lg_k = store.lg_k[g]
    if lg == EMPTY:
        at = _allocate(store, np.int64(LIST))
        if at < 0:
            return False
        store.form[g] = LIST
        store.where[g] = at
        place = np.int64(0)
        full = False
        lg = LIST
    elif lg == LIST:
        at = store.where[g]
        place = np.int64(store.coupons[g])
        for i in range(place):
            if store.words[at + i] == coupon:
                return True
        full = place == 7
    else:
        at = store.where[g]
        place = place_of(store.words, at, np.int64(lg), coupon)
        if place >= 0:
            return True
        place = ~place
        full = 4 * (np.int64(store.coupons[g]) + 1) > 3 * (np.int64(1) << lg)
    if not full:
        store.words[at + place] = coupon
        store.coupons[g] += 1
        return True
    if lg_k < 8 or lg == lg_k - 3:
        if store.taken[0] == len(store.registers):
            return False
        store.words[at + place] = coupon
        store.coupons[g] += 1
        _promote(store, g)
        return True
    larger = FIRST_SET if lg == LIST else np.uint8(lg + 1)
    to = _allocate(store, np.int64(larger))
    if to < 0:
        return False
    store.words[at + place] = coupon
    store.coupons[g] += 1
    _move(store, g, to, larger)
    return True


@kernel
def clear(store, g):  # type: ignore[no-untyped-def]
    """Empty a sketch that has coupons."""
    if store.form[g] != EMPTY:
        _release(store, store.where[g], store.form[g])
    store.form[g] = EMPTY
    store.coupons[g] = 0


@kernel
def take_table(store, g, table, count, lg):  # type: ignore[no-untyped-def]
    """Give an empty sketch a set as it is, of 2^lg places. Room is the caller's care."""
    at = _allocate(store, lg)
    size = np.int64(1) << lg
    store.words[at : at + size] = table[:size]
    store.form[g] = lg
    store.where[g] = at
    store.coupons[g] = count


@kernel
def update_groups(store, groups, coupons, start):  # type: ignore[no-untyped-def]
    """Count each coupon in its group, from number `start`; returns how far there was room."""
    for i in range(start, len(coupons)):
        if coupons[i] and not add_coupon(store, groups[i], coupons[i]):
            return i
    return len(coupons)
