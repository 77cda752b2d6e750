"""Write HLL sketches in the layout of Apache DataSketches.

    byte 0         1       2         3     4       5      6                7
    preamble ints  serial  family 7  lg_k  lg_arr  flags  list count or    mode: 0 list, 1 set, 2 HLL
    (2, 3 or 10)   ver. 1                                 least register   + 0 HLL_4, 4 HLL_6, 8 HLL_8

    list:  coupons from byte 8
    set:   count (int32) at 8, coupons from 12
    HLL:   hip at 8, kxq0 at 16, kxq1 at 24 (doubles), registers at the least value at 32, exceptions at 36
           (int32), registers from 40, then HLL_4's exceptions as coupons

Updatable images contain whole hash tables, compact ones only their entries. HLL_8 has a byte per register;
HLL_4 has a nibble above the least register, where 15 means "see the exceptions".

Source: datasketches-java 6.2.0 `hll.PreambleUtil`, `hll.ToByteArrayImpl`, `hll.Conversions`.
"""

from __future__ import annotations

import numpy as np

from ..core.compilation.jit import inner, kernel, lean
from ..core.hashing.words import store32, store64
from .store import DENSE, EMPTY, FROM_ZERO, LEAST_KNOWN, LIST, OUT_OF_ORDER, row_of, span_of

COMPACT = np.uint8(8)
EMPTY_FLAG = np.uint8(4)
OUT_OF_ORDER_FLAG = np.uint8(16)
FULL_SIZE_FLAG = np.uint8(32)
"""C++: the sketch had registers from its first value on. Java: its sums have to be rebuilt."""
EXCEPTION = np.uint8(15)

# The initial lg size of the table of HLL_4's exceptions, by lg_k.
LG_EXCEPTIONS = np.array([0, 2, 2, 2, 2, 2, 2, 3, 3, 3, 4, 4, 5, 5, 6, 7, 8, 9, 10, 11, 12, 13], np.int64)


@inner
def _preamble(out, at, ints, lg_k, lg_arr, flags, count, mode):
    out[at] = ints
    out[at + 1] = 1
    out[at + 2] = 7
    out[at + 3] = lg_k
    out[at + 4] = lg_arr
    out[at + 5] = flags
    out[at + 6] = count
    out[at + 7] = mode


@lean
def sizes(store, out):
    """Compute the size in bytes of each sketch's HLL_8 updatable image."""
    for g in range(len(out)):
        form = store.sketches[g].form
        if form == DENSE:
            out[g] = 40 + (np.int64(1) << store.sketches[g].lg_k)
        elif form <= LIST:
            out[g] = 40
        else:
            out[g] = 12 + (np.int64(4) << form)


@inner
def _write_registers_head(store, g, out, at, flags, mode):
    """Write the 40 bytes before the registers, except the least register, its count and the exceptions'
    count."""
    sums = store.sums[row_of(store, g)]
    hip = sums.hip
    if sums.flags & OUT_OF_ORDER:
        flags |= OUT_OF_ORDER_FLAG
        hip = 0.0
    elif sums.flags & FROM_ZERO:
        flags |= FULL_SIZE_FLAG
    _preamble(out, at, 10, store.sketches[g].lg_k, 0, flags, 0, mode)
    store64(out, at + 8, np.float64(hip).view(np.uint64))
    store64(out, at + 16, np.float64(sums.low).view(np.uint64))
    store64(out, at + 24, np.float64(sums.high).view(np.uint64))


@lean
def write_images(store, offsets, out):
    """Write each sketch's HLL_8 updatable image, sketch g's from offsets[g] on."""
    for g in range(len(offsets) - 1):
        at = offsets[g]
        form = store.sketches[g].form
        if form == DENSE:
            sums = store.sums[row_of(store, g)]
            begin, end = span_of(store, g)
            own = store.registers[begin:end]
            _write_registers_head(store, g, out, at, np.uint8(0), np.uint8(10))
            known = sums.flags & LEAST_KNOWN
            out[at + 6] = sums.least if known else 0
            store32(out, at + 32, sums.left if known or sums.least == 0 else 0)
            store32(out, at + 36, 0)
            image = out[at + 40 : at + 40 + len(own)]
            for i in range(len(own)):
                image[i] = own[i]
        else:
            _write_coupons(store, g, out, at, np.uint8(8))


@inner
def _write_coupons(store, g, out, at, mode):
    """Write a list or set as an updatable image."""
    form = store.sketches[g].form
    count = store.sketches[g].coupons
    if form <= LIST:
        flags = EMPTY_FLAG if form == EMPTY else np.uint8(0)
        _preamble(out, at, 2, store.sketches[g].lg_k, LIST, flags, count, mode)
        first = at + 8
        places = np.int64(8)
    else:
        _preamble(out, at, 3, store.sketches[g].lg_k, form, np.uint8(0), 0, mode + 1)
        store32(out, at + 8, count)
        first = at + 12
        places = np.int64(1) << form
    if form == EMPTY:
        out[first : first + 32] = 0
    else:
        where = store.sketches[g].where
        for i in range(places):
            store32(out, first + 4 * i, store.words[where + i])


@kernel
def write_compact_coupons(store, g, mode):
    """Write a list or set as a compact image: its coupons in the order of their table."""
    form = store.sketches[g].form
    count = np.int64(store.sketches[g].coupons)
    head = 8 if form <= LIST else 12
    out = np.zeros(head + 4 * count, np.uint8)
    flags = np.uint8(COMPACT | EMPTY_FLAG) if form == EMPTY else COMPACT
    if head == 8:
        _preamble(out, 0, 2, store.sketches[g].lg_k, LIST, flags, count, mode)
    else:
        _preamble(out, 0, 3, store.sketches[g].lg_k, form, flags, 0, mode + 1)
        store32(out, 8, count)
    at = head
    if form != EMPTY:
        for i in range(store.sketches[g].where, store.sketches[g].where + (np.int64(1) << form)):
            if store.words[i]:
                store32(out, at, store.words[i])
                at += 4
    return out


@inner
def _exception_place(table, lg, lg_k, slot):
    """Return the place of a new exception in the table of 2^lg places."""
    mask = (np.int64(1) << lg) - 1
    probe = slot & mask
    while table[probe]:
        probe = (probe + ((slot >> lg) | 1)) & mask
    return probe


@kernel
def write_hll4(store, g):
    """Write registers as an HLL_4 compact image, with exceptions in the order of the reference's hash
    table."""
    sums = store.sums[row_of(store, g)]
    lg_k = np.int64(store.sketches[g].lg_k)
    k = np.int64(1) << lg_k
    begin, end = span_of(store, g)
    registers = store.registers[begin:end]
    least = sums.least
    lg = LG_EXCEPTIONS[lg_k]
    table = np.zeros(np.int64(1) << lg, np.uint32)
    n = 0
    nibbles = np.zeros(k // 2, np.uint8)
    for slot in range(k):
        above = min(registers[slot] - least, EXCEPTION)
        nibbles[slot >> 1] |= np.uint8(above << (4 * (slot & 1)))
        if above == EXCEPTION:
            pair = (np.uint32(registers[slot]) << np.uint32(26)) | np.uint32(slot)
            table[_exception_place(table, lg, lg_k, slot)] = pair
            n += 1
            if 4 * n > 3 * len(table):
                larger = np.zeros(2 * len(table), np.uint32)
                for pair in table:
                    if pair:
                        larger[_exception_place(larger, lg + 1, lg_k, np.int64(pair) & (k - 1))] = pair
                table = larger
                lg += 1
    out = np.zeros(40 + k // 2 + 4 * n, np.uint8)
    _write_registers_head(store, g, out, 0, COMPACT, np.uint8(2))
    out[4] = lg if n else 0
    out[6] = least
    store32(out, 32, sums.left)
    store32(out, 36, n)
    out[40 : 40 + k // 2] = nibbles
    at = 40 + k // 2
    for pair in table:
        if pair:
            store32(out, at, pair)
            at += 4
    return out
