"""Merge serialised HLL sketches into a store, with the same result as the reference.

Coupons are counted one by one; registers merged with registers become their maximum, out of order; registers
merged with coupons count the coupons and stay in order. The result has the smaller lg_k of the two; merging
an empty sketch changes nothing. The sums of merged registers are rebuilt once, after the last merge
(`rebuild_stale`).

Source: datasketches-java 6.2.0 `hll.Union`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.compilation.jit import inner, lean
from ..core.hashing.bits import prefetch_image
from ..core.hashing.words import load32
from ..core.resume import DONE, NO_ROOM
from .coupon_tables import add_coupon, add_to_table, clear, set_table
from .images import FULL_SIZE_FLAG, OUT_OF_ORDER_FLAG
from .images_read import (
    HLL_FORM,
    LIST_FORM,
    check_preamble,
    check_registers,
    read_coupons,
    take_coupons,
    take_registers,
)
from .registers import (
    claim_row,
    count_least,
    greatest,
    inverse_power,
    power_sums,
    raise_coupon,
    raise_coupons,
)
from .store import DENSE, EMPTY, FROM_ZERO, LEAST_KNOWN, OUT_OF_ORDER, STALE, has_room, row_of, span_of

FULL = -2
"""The gathered coupons must be counted before there is room for more."""


class Scratch(NamedTuple):
    """Space to unpack one image, registers or coupons, and spare space for as many coupons."""

    registers: np.ndarray
    coupons: np.ndarray
    spare: np.ndarray


def new_scratch(lg_k: int) -> Scratch:
    """Return scratch for images and sketches of up to 2^lg_k registers."""
    places = max(64, (1 << lg_k) // 8)
    return Scratch(
        np.empty(1 << lg_k, np.uint8),
        np.empty(places, np.uint32),
        np.empty(places, np.uint32),
    )


@inner
def _spare_coupons(store, g, spare):
    """Copy a sketch's coupons to `spare`, in the order of their table; return their number."""
    n = 0
    if store.sketches[g].form != EMPTY:
        first = store.sketches[g].where
        for i in range(first, first + (np.int64(1) << store.sketches[g].form)):
            if store.words[i]:
                spare[n] = store.words[i]
                n += 1
    return n


@inner
def _fold_coupons(store, g, coupons, count, lg):
    """Count the coupons of a list or set. Returns False if there was no room; the same call then
    continues."""
    places = np.int64(1) << lg if lg else count
    i = np.int64(0)
    # Counting a coupon twice changes nothing, so after running out of room a call restarts the image.
    while i < places and store.sketches[g].form != DENSE:
        if coupons[i]:
            done = False
            if store.sketches[g].form != EMPTY:  # this short path handles nearly all
                done, _ = add_to_table(store.sketches, store.words, g, coupons[i])
            if not done and not add_coupon(store, g, coupons[i]):
                return False
        i += 1
    raise_coupons(store, g, coupons[i:places])
    return True


@inner
def _lower_lg_k(store, g, lg_k, spare):
    """Reduce a sketch to fewer registers; `spare` holds its coupons meanwhile."""
    if store.sketches[g].form == DENSE:
        row = row_of(store, g)
        k = np.int64(1) << lg_k
        begin, end = span_of(store, g)
        own = store.registers[begin:end]
        for i in range(k, len(own)):
            # Since k is a power of two, i mod k are the low bits that a smaller sketch would have used.
            own[i & (k - 1)] = max(own[i & (k - 1)], own[i])
            own[i] = 0
        store.sums[row].low, store.sums[row].high = power_sums(own[:k], greatest(own[:k]))
        store.sums[row].k = np.float64(k)
        store.sums[row].flags &= ~LEAST_KNOWN
        count_least(own[:k], store.sums, row)
        store.sketches[g].lg_k = lg_k
        return
    n = _spare_coupons(store, g, spare)
    clear(store, g)
    store.sketches[g].lg_k = lg_k
    _fold_coupons(store, g, spare, n, 0)


@inner
def _merge_registers(store, g, registers, sums, flags, least_known):
    """Fill an empty sketch with an image's registers, folded to its own lg_k if there are more."""
    row = claim_row(store, g)
    begin, end = span_of(store, g)
    own = store.registers[begin:end]
    k = len(own)
    for i in range(k):
        own[i] = registers[i]
    for i in range(k, len(registers)):
        own[i & (k - 1)] = max(own[i & (k - 1)], registers[i])
    store.sums[row].hip = sums[0].hip
    store.sums[row].low = sums[0].low
    store.sums[row].high = sums[0].high
    if flags & OUT_OF_ORDER_FLAG:
        store.sums[row].flags |= OUT_OF_ORDER
    if flags & FULL_SIZE_FLAG:
        store.sums[row].flags |= FROM_ZERO
    if len(registers) > k:
        store.sums[row].low, store.sums[row].high = power_sums(own, greatest(own))
    elif least_known:
        store.sums[row].flags |= LEAST_KNOWN
    count_least(own, store.sums, row)


@inner
def _fold_registers(store, g, registers, sums, flags, least_known, spare):
    """Merge an image's registers into a sketch with as many or fewer."""
    if store.sketches[g].form == DENSE:
        begin, end = span_of(store, g)
        own = store.registers[begin:end]
        # An address is the low bits of a hash, and a value doesn't depend on k: register i of a larger sketch
        # is register i mod k here. A maximum doesn't depend on order, so merges don't either; HIP's sum does,
        # and is abandoned (`OUT_OF_ORDER`).
        for part in range(0, len(registers), len(own)):
            theirs = registers[part : part + len(own)]
            for i in range(len(own)):
                own[i] = max(own[i], theirs[i])
        store.sums[row_of(store, g)].flags |= OUT_OF_ORDER | LEAST_KNOWN | STALE
        return
    n = _spare_coupons(store, g, spare)
    clear(store, g)
    _merge_registers(store, g, registers, sums, flags, least_known)
    for i in range(n):
        raise_coupon(store, g, spare[i])


@lean
def rebuild_stale(store, n):
    """Rebuild the sums of merged registers, with the reference's own split between the two."""
    for g in range(n):
        if store.sketches[g].form != DENSE:
            continue
        row = row_of(store, g)
        if not store.sums[row].flags & STALE:
            continue
        begin, end = span_of(store, g)
        own = store.registers[begin:end]
        low, high = power_sums(own, greatest(own))
        if high > 0.0:
            # For registers above 31 the reference subtracts the 1 of a zero register from kxq1, not kxq0.
            high = 0.0
            for v in own:
                if v > 31:
                    low += 1.0
                    high += inverse_power(v) - 1.0
        store.sums[row].hip = 0.0
        store.sums[row].low = low
        store.sums[row].high = high
        store.sums[row].flags &= ~STALE
        count_least(own, store.sums, row)


@lean
def check_images(store, groups, offsets, data, scratch, sums, one_by_one, start, end):
    """Return the first invalid image in `start` … `end` and a key of `images_read.REASONS`; or `end` and 0.

    ``sums[i]`` gets the sums of the registers of image i, ``data[offsets[i]:offsets[i + 1]]``, if it has any.
    ``one_by_one[g]`` is set for a group g whose images must be merged one after the other: registers, and
    coupons that lower its lg_k. Calls for other images may run at the same time.
    """
    for i in range(start, end):
        prefetch_image(data, offsets, i + 1)
        first = offsets[i]
        last = offsets[i + 1]
        status = check_preamble(data, first, last)
        if status:
            return i, status
        lg_k = data[first + 3]
        if data[first + 7] & 3 == HLL_FORM:
            registers = scratch.registers[: np.int64(1) << lg_k]
            status = check_registers(data, first, last, registers, sums[i])
            one_by_one[groups[i]] = True
        else:
            status = read_coupons(data, first, last, scratch.coupons, scratch.spare)[0]
            if lg_k < store.sketches[groups[i]].lg_k:
                one_by_one[groups[i]] = True
        if status:
            return i, status
    return end, DONE


@lean
def check_runs(groups, offsets, data, scratch, sums, starts, folded, start, end):
    """Like `check_images`, for images of registers of one lg_k, which are merged while they are checked.

    A run of images of one group begins at the image ``starts[r]``, and ``folded[r]`` gets their registers. So
    each image is read from memory only once, which takes as long as everything else.
    """
    r = np.int64(0)
    starts[0] = start
    for i in range(start, end):
        prefetch_image(data, offsets, i + 1)
        if i > start and groups[i] != groups[i - 1]:
            r += 1
            starts[r] = i
        first, last = offsets[i], offsets[i + 1]
        status = check_preamble(data, first, last)
        if not status:
            status = check_registers(data, first, last, scratch.registers, sums[i])
        if status:
            return i, status
        if data[first + 7] >> 2 == 2:  # HLL_8 are bytes as they are kept
            _raise_to(folded[r], data[first + 40 : last])
        else:
            _raise_to(folded[r], scratch.registers)
    return end, DONE


@inner
def _raise_to(own, registers):
    for i in range(len(own)):
        own[i] = max(own[i], registers[i])


@lean
def fold_runs(store, groups, offsets, data, scratch, sums, starts, folded, at):
    """Merge runs of images into their groups, from run number `at` on: the first image, then the whole run.

    Returns how far it came and why it stopped. `check_runs` has seen all of them.
    """
    for r in range(at, len(starts)):
        i = starts[r]
        if not has_room(store):
            return r, NO_ROOM
        first, last = offsets[i], offsets[i + 1]
        flags = data[first + 5]
        if data[first + 7] >> 2 == 2:
            own, least_known = data[first + 40 : last], data[first + 6] > 0
            _fold_registers(store, groups[i], own, sums[i : i + 1], flags, least_known, scratch.spare)
        else:
            take_registers(data, first, last, scratch.registers)
            _fold_registers(store, groups[i], scratch.registers, sums[i : i + 1], flags, False, scratch.spare)
        if i + 1 < len(groups) and groups[i + 1] == groups[i]:
            # It has registers by now, and its first image's registers change nothing.
            _fold_registers(store, groups[i], folded[r], sums[i : i + 1], flags, least_known, scratch.spare)
    return len(starts), DONE


@lean
def gather_coupons(store, groups, offsets, data, scratch, one_by_one, begun, out, owners, start):
    """Write the coupons of checked lists and sets to `out`, in order, and each coupon's group to `owners`.

    Returns how many images are done, from `start` on, the number of coupons, and why it stopped: `FULL` if
    `out` must be emptied first. ``begun[g]`` says that group g has coupons, here or in the store: a set that
    comes before any coupons becomes the group's table unchanged, because the same coupons counted one by one
    might give a different table.
    """
    n = np.int64(0)
    for i in range(start, len(groups)):
        g = groups[i]
        if one_by_one[g]:
            continue
        first = offsets[i]
        if data[first + 7] & 3 == LIST_FORM:
            count = np.int64(data[first + 6])
            if n + count > len(out):
                return i, n, FULL
            for j in range(count):
                out[np.uint64(n)] = load32(data, first + 8 + 4 * j)
                owners[np.uint64(n)] = g
                n += 1
            begun[g] |= count > 0
            continue
        count, lg = take_coupons(data, first, offsets[i + 1], scratch.coupons, scratch.spare)
        if count == 0:
            continue
        if lg and not begun[g] and data[first + 3] == store.sketches[g].lg_k:
            if not has_room(store):
                return i, n, NO_ROOM
            set_table(store, g, scratch.coupons, count, lg)
            begun[g] = True
            continue
        if n + count > len(out):
            return i, n, FULL
        coupons = scratch.spare if lg else scratch.coupons
        for j in range(count):
            out[n + j] = coupons[j]
            owners[n + j] = g
        n += count
        begun[g] = True
    return len(groups), n, DONE


@lean
def fold_images(store, groups, offsets, data, scratch, sums, one_by_one, start):
    """Merge checked image i, ``data[offsets[i]:offsets[i + 1]]``, into sketch groups[i], from `start` on.

    It only merges into groups of `one_by_one`. Returns how far it came and why it stopped.
    """
    for i in range(start, len(groups)):
        g = groups[i]
        if not one_by_one[g]:
            continue
        first = offsets[i]
        end = offsets[i + 1]
        if not has_room(store):
            return i, NO_ROOM
        lg_k = data[first + 3]
        if data[first + 7] & 3 == HLL_FORM:
            if lg_k < store.sketches[g].lg_k:
                _lower_lg_k(store, g, lg_k, scratch.spare)
            flags = data[first + 5]
            if data[first + 7] >> 2 == 2:  # HLL_8 are bytes as they are kept
                own = data[first + 40 : end]
                least_known = data[first + 6] > 0
                _fold_registers(store, g, own, sums[i : i + 1], flags, least_known, scratch.spare)
            else:
                unpacked = scratch.registers[: np.int64(1) << lg_k]
                take_registers(data, first, end, unpacked)
                _fold_registers(store, g, unpacked, sums[i : i + 1], flags, False, scratch.spare)
        else:
            count, lg = take_coupons(data, first, end, scratch.coupons, scratch.spare)
            if count == 0:
                continue
            coupons, places = scratch.coupons, lg
            if lg_k < store.sketches[g].lg_k:
                _lower_lg_k(store, g, lg_k, scratch.spare)
            elif lg:
                coupons, places = scratch.spare, np.int64(0)
            if lg and store.sketches[g].form == EMPTY and lg_k == store.sketches[g].lg_k:
                set_table(store, g, scratch.coupons, count, lg)
            elif not _fold_coupons(store, g, coupons, count, places):
                return i, NO_ROOM
    return len(groups), DONE
