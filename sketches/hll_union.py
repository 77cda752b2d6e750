"""The union of HLL sketches: serialised ones folded into a store, with the reference's outcome.

Coupons are counted one by one; registers meeting registers become their maximum, out of order; registers
meeting coupons take the coupons in and stay in order. The result has the smaller lg_k of the two. The sums of
merged registers are rebuilt once, after the last fold (`rebuild_stale`).

Source: datasketches-java 6.2.0 `hll.Union`.
"""

from __future__ import annotations

import numpy as np

from .hll_images import OUT_OF_ORDER_FLAG
from .hll_reading import HLL_FORM, check_preamble, power_sums, read_coupons, read_registers
from .hll_store import (
    DENSE,
    EMPTY,
    LEAST_KNOWN,
    OUT_OF_ORDER,
    STALE,
    add_coupon,
    clear,
    count_least,
    has_room,
    inverse_power,
    raise_coupon,
    take_row,
    take_table,
)
from .jit import kernel


@kernel
def new_scratch(lg_k):  # type: ignore[no-untyped-def]
    """Space to unpack one image into, registers or coupons, and spare space for as many coupons again."""
    k = np.int64(1) << lg_k
    places = max(64, k // 8)
    return np.empty(k, np.uint8), np.empty(places, np.uint32), np.empty(places, np.uint32)


@kernel
def _lower_lg_k(store, g, lg_k, spare):  # type: ignore[no-untyped-def]
    """Fold a sketch to fewer registers; `spare` holds its coupons meanwhile."""
    if store.form[g] == DENSE:
        row = store.where[g]
        old = np.int64(1) << store.lg_k[g]
        k = np.int64(1) << lg_k
        registers = store.registers[row]
        for i in range(k, old):
            registers[i & (k - 1)] = max(registers[i & (k - 1)], registers[i])
            registers[i] = 0
        low, high = power_sums(registers[:k])
        store.sums[row, 1] = low
        store.sums[row, 2] = high
        store.least[row, 2] &= ~LEAST_KNOWN
        count_least(registers[:k], store.least[row])
        store.lg_k[g] = lg_k
        return
    n = 0
    if store.form[g] != EMPTY:
        for i in range(store.where[g], store.where[g] + (np.int64(1) << store.form[g])):
            if store.words[i]:
                spare[n] = store.words[i]
                n += 1
    clear(store, g)
    store.lg_k[g] = lg_k
    for i in range(n):
        add_coupon(store, g, spare[i])


@kernel
def _fold_coupons(store, g, coupons, count, lg):  # type: ignore[no-untyped-def]
    """Count a read list or set. False if there was no room; the same call then goes on."""
    for i in range(np.int64(1) << lg if lg else count):
        if coupons[i] and not add_coupon(store, g, coupons[i]):
            return False
    return True


@kernel
def _take_registers(store, g, registers, sums, flags, least_known):  # type: ignore[no-untyped-def]
    """Make an empty sketch of read registers, folded to its own lg_k if they are more."""
    k = np.int64(1) << store.lg_k[g]
    row = take_row(store, g)
    own = store.registers[row, :k]
    own[:] = 0
    for i in range(len(registers)):
        own[i & (k - 1)] = max(own[i & (k - 1)], registers[i])
    store.sums[row, 0] = sums[0]
    store.sums[row, 1] = sums[1]
    store.sums[row, 2] = sums[2]
    store.least[row, 2] = OUT_OF_ORDER if flags & OUT_OF_ORDER_FLAG else 0
    if len(registers) > k:
        store.sums[row, 1], store.sums[row, 2] = power_sums(own)
    elif least_known:
        store.least[row, 2] |= LEAST_KNOWN
    count_least(own, store.least[row])


@kernel
def _fold_registers(store, g, registers, sums, flags, least_known, spare):  # type: ignore[no-untyped-def]
    """Fold read registers into a sketch of as many or fewer."""
    form = store.form[g]
    if form == DENSE:
        row = store.where[g]
        k = np.int64(1) << store.lg_k[g]
        own = store.registers[row, :k]
        for part in range(0, len(registers), k):
            theirs = registers[part : part + k]
            for i in range(k):
                own[i] = max(own[i], theirs[i])
        store.least[row, 2] |= OUT_OF_ORDER | LEAST_KNOWN | STALE
        return
    n = 0
    if form != EMPTY:
        for i in range(store.where[g], store.where[g] + (np.int64(1) << form)):
            if store.words[i]:
                spare[n] = store.words[i]
                n += 1
        clear(store, g)
    _take_registers(store, g, registers, sums, flags, least_known)
    for i in range(n):
        raise_coupon(store, g, spare[i])


@kernel
def rebuild_stale(store, rows):  # type: ignore[no-untyped-def]
    """Rebuild the sums of merged registers, with the reference's own split between the two."""
    for g in range(rows):
        if store.form[g] != DENSE:
            continue
        row = store.where[g]
        if store.least[row, 2] & STALE:
            own = store.registers[row, : np.int64(1) << store.lg_k[g]]
            low, high = power_sums(own)
            if high > 0.0:
                for v in own:  # the reference takes the 1 that a zero register adds off kxq1 there, not kxq0
                    if v > 31:
                        low += 1.0
                high = 0.0
                for v in own:
                    if v > 31:
                        high += inverse_power(v) - 1.0
            store.sums[row, 0] = 0.0
            store.sums[row, 1] = low
            store.sums[row, 2] = high
            store.least[row, 2] &= ~STALE
            count_least(own, store.least[row])


@kernel
def fold_images(store, groups, offsets, data, start, scratch):  # type: ignore[no-untyped-def]
    """Fold image i, ``data[offsets[i]:offsets[i + 1]]``, into sketch groups[i], from image `start` on.

    Returns (how far it came, status): 0 for done, −1 for no room, else a key of `hll_reading.REASONS`.
    """
    registers, coupons, spare = scratch
    sums = np.empty(3, np.float64)
    for i in range(start, len(groups)):
        first = np.int64(offsets[i])
        end = np.int64(offsets[i + 1])
        g = groups[i]
        status = check_preamble(data, first, end)
        if status:
            return i, status
        if not has_room(store):
            return i, -1
        lg_k = data[first + 3]
        flags = data[first + 5]
        if data[first + 7] & 3 == HLL_FORM:
            own = registers[: np.int64(1) << lg_k]
            status = read_registers(data, first, end, own, sums)
            if status:
                return i, status
            if lg_k < store.lg_k[g]:
                _lower_lg_k(store, g, lg_k, spare)
            hll8_least = data[first + 7] == 10 and data[first + 6] > 0
            _fold_registers(store, g, own, sums, flags, hll8_least, spare)
        else:
            status, count, lg = read_coupons(data, first, end, coupons, spare)
            if status:
                return i, status
            if lg_k < store.lg_k[g]:
                _lower_lg_k(store, g, lg_k, spare)
            if lg and store.form[g] == EMPTY and lg_k == store.lg_k[g]:
                take_table(store, g, coupons, count, lg)
            elif not _fold_coupons(store, g, coupons, count, lg):
                return i, -1
    return len(groups), 0
