"""Decode CPC images completely before any other code reads them.

8 bytes: preamble ints, serial version (1), family (16), lg_k, first column that isn't full, flags (2
compressed, 4 with HIP, 8 with a table, 16 with a window), seed hash. Unless empty, as uint32: coupons,
entries of the table if there is a window as well, words of the table, words of the window; kxp and the HIP
estimate as doubles, before the numbers of words if there are a table and a window, else after; the words of
the window, then of the table.

A sketch is a matrix of bits with k rows and 64 columns, one bit per coupon. Up to 3k/32 coupons (sparse), and
k/2 (hybrid), the table lists all of them. Beyond that, a window of 8 columns holds a byte per row, in a
prefix code, and the table holds the surprises: coupons right of the window and, once it has moved, missing
coupons left of it. A surprise is encoded as the gap to the last column in the row, in a prefix code, and to
the last row, in a Golomb code.

Source: datasketches-cpp `cpc_sketch_impl.hpp`, `cpc_compressor_impl.hpp`; Lang, "Back to the Future: an Even
More Nearly Optimal Cardinality Estimation Algorithm", 2017.
"""

from __future__ import annotations

import struct

import numpy as np

from ...core.compilation.jit import kernel
from .codes import bytes_decoder, columns_outside, gaps_decoder

_COMPRESSED, _HIP, _TABLE, _WINDOW = 2, 4, 8, 16
_SEED_HASH = 0x93CC
_ALL = np.arange(64)


@kernel
def _peek(words, at):
    """Return at least twelve bits from bit `at` on; `words` must have two more words than are in use."""
    word = at >> 5
    both = np.uint64(words[word]) | np.uint64(words[word + 1]) << np.uint64(32)
    return both >> np.uint64(at & 31)


@kernel
def _rest_is_padding(words, at, padding):
    """Whether the words after bit `at` are the writer's padding, all zeros."""
    used = len(words) - 2
    if (at + padding + 31) >> 5 != used:
        return False
    while at < 32 * used:
        if (words[at >> 5] >> np.uint32(at & 31)) & np.uint32(1):
            return False
        at += 1
    return True


@kernel
def _read_window(words, decoder, k, offset, sums):
    """Add a window's coupons to sums[0], their shares of the matrix to sums[1]. Returns False if invalid."""
    at, end = np.int64(0), 32 * (len(words) - 2)
    for _ in range(k):
        code = decoder[_peek(words, at) & np.uint64(4095)]
        at += np.int64(code >> 8)
        if at > end:
            return False
        byte = np.int64(code & 255)
        share = 0.5 ** (offset + 1)
        while byte:
            if byte & 1:
                sums[0] += 1.0
                sums[1] += share
            share *= 0.5
            byte >>= 1
    return _rest_is_padding(words, at, 11)


@kernel
def _read_table(words, decoder, base, entries, k, columns, offset, sums):
    """Add a table's surprises to the sums, and the first column that lacks a coupon to sums[2]."""
    at, end = np.int64(0), 32 * (len(words) - 2)
    row, column = np.int64(0), np.int64(0)
    for _ in range(entries):
        if at >= end:
            return False
        code = decoder[_peek(words, at) & np.uint64(4095)]
        at += np.int64(code >> 8)
        gap = np.int64(code & 255)
        rows = np.int64(0)
        while at < end and not (words[at >> 5] >> np.uint32(at & 31)) & np.uint32(1):
            at += 1
            rows += 1
        at += 1
        if at + base > end:
            return False
        low = np.int64(_peek(words, at) & ((np.uint64(1) << np.uint64(base)) - np.uint64(1)))
        at += base
        rows = rows << base | low
        if rows:
            column = np.int64(0)
        row += rows
        column += gap
        if row >= k or column >= len(columns):
            return False
        place = columns[column]
        # Columns before the window are expected to be full, columns after it empty; the table holds
        # exceptions: missing coupons before it, seen coupons after it.
        sign = -1.0 if place < offset else 1.0
        sums[0] += sign
        sums[1] += sign * 0.5 ** (place + 1)
        if place < offset:
            sums[2] = min(sums[2], place)
        column += 1
    return _rest_is_padding(words, at, max(10 - base, 0))


def image_fault(data: bytes) -> str:
    """Return what is wrong with a CPC image; None if it is valid."""
    if len(data) < 8:
        return "fewer bytes than its header needs"
    ints, version, family, lg_k, full, flags, seed_hash = struct.unpack_from("<BBBBBBH", data)
    if version != 1 or family != 16 or seed_hash != _SEED_HASH:
        return "another version, family or hash seed"
    if not 4 <= lg_k <= 26 or flags & ~(_HIP | _TABLE | _WINDOW) != _COMPRESSED:
        return "lg_k is out of range, or its flags unknown"
    table, window = bool(flags & _TABLE), bool(flags & _WINDOW)
    if not (table or window):
        return "" if (len(data), ints, full) == (8, 2, 0) else "an empty sketch followed by more"
    fields = "I" + "I" * (table and window)
    numbers, hip = "I" * (table + window), "dd" * bool(flags & _HIP)
    header = struct.Struct("<8x" + fields + (hip + numbers if table and window else numbers + hip))
    if ints * 4 != header.size or len(data) < header.size:
        return "another header than its flags make, or an end within it"
    parts = list(header.unpack_from(data))
    coupons = parts.pop(0)
    entries = parts.pop(0) if table and window else coupons if table else 0
    kxp, estimate = 0.0, 0.0
    if hip:
        at = 0 if table and window else len(parts) - 2
        kxp, estimate = parts[at : at + 2]
        del parts[at : at + 2]
    table_words = parts.pop(0) if table else 0
    window_words = parts.pop(0) if window else 0
    if len(data) != header.size + 4 * (table_words + window_words):
        return "a length that isn't its words'"
    k = 1 << lg_k
    offset = max(8 * coupons - 19 * k, 0) >> (lg_k + 3)
    if not 0 < coupons <= 64 * k or offset > 56 or window != (2 * coupons >= k) or (table and not entries):
        return "a number of coupons that its table and window can't hold"
    # The table omits all coupons left of the window.
    sums = np.array([offset * k, k * (1.0 - 0.5**offset), 64.0])
    words = np.zeros(window_words + 2, np.uint32)
    words[:window_words] = np.frombuffer(data, "<u4", window_words, header.size)
    if window and not _read_window(words, bytes_decoder(lg_k, coupons), k, offset, sums):
        return "its window ends early or is too long"
    if table:
        if 32 * table_words < 2 * entries:
            return "its table ends early"
        words = np.zeros(table_words + 2, np.uint32)
        words[:table_words] = np.frombuffer(data, "<u4", table_words, header.size + 4 * window_words)
        columns = _ALL
        if window:
            moved = 8 * coupons >= 27 * k
            columns = columns_outside(lg_k, coupons, offset) if moved else _ALL[8:]
        base = max((k // entries).bit_length() - 1, 0)
        if not _read_table(words, gaps_decoder(), base, entries, k, columns, offset, sums):
            return "its table ends early, is too long or leaves the matrix"
    if sums[0] != coupons or full > min(offset, sums[2]):
        return "its bits aren't as many as its coupons"
    if not hip:
        return ""
    left = k - sums[1]
    # Each new coupon added the k / kxp of its time: 1 for the first, the current value for the last.
    if not (abs(kxp - left) <= 1e-9 * k and kxp > 0.0):
        return "its register kxp isn't what its bits make"
    if not coupons * (1 - 1e-9) <= estimate <= coupons * (k / kxp) * (1 + 1e-9):
        return "an estimate that so many coupons can't have given"
    return ""
