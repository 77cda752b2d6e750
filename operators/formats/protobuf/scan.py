"""The kernel that reads Protobuf messages whose chosen fields are numbers, strings, bytes and enums.

It accepts a message only if all its bytes are well formed and it has no nested or repeated field of the
description. Any other message is doubtful: Protobuf's library reads or refuses it.
"""

from __future__ import annotations

import numpy as np

from ....sketches.core.compilation.jit import fused, inner, kernel
from ..address_intrinsics import load8, load32, load64, store8, store64
from ..json.scanner import not_utf8
from ..varints import varint, zigzag
from ..view_cells import put_view

INT64, SINT64, INT32, UINT32, SINT32, BOOLEAN, FIXED64, FIXED32, TEXT, BYTES, NESTED = range(11)
"""The kinds of fields. Cells of `TEXT` and `BYTES` have 16 bytes, the others 8."""

WORDS = 5
NUMBER, KIND, DEFAULT, CELLS, PRESENT = range(WORDS)
"""The words of a field in a table: its number and kind; whether it has its default, not null, where it is
absent; and the addresses of its column's cells and of a byte for each row, or 0 if it isn't chosen."""

_VARINT, _EIGHT, _LENGTH, _FOUR = 0, 1, 2, 5
"""The wire types."""


@kernel
def scan(starts, ends, numbers, begin, fields, table, base, limit, row, doubtful):
    """Read messages of some `numbers` from byte `begin` on; returns how many are good, and doubtful.

    `table` is the address of `fields` × `WORDS` words. The lines lie between the addresses `base` and
    `limit`. `row` gets the number of each good row's message, and `doubtful` the numbers of the others.
    """
    good = 0
    bad = 0
    for i in numbers:
        for number in range(fields):
            field = table + 8 * WORDS * number
            cells = load64(field + 8 * CELLS)
            if cells != 0:
                store8(load64(field + 8 * PRESENT) + good, load64(field + 8 * DEFAULT))
                wide = load64(field + 8 * KIND) >= TEXT
                store64(cells + (16 * good if wide else 8 * good), 0)
                if wide:
                    store64(cells + 16 * good + 8, 0)
        end = base + ends[i]
        if _message(base + starts[i] + begin, end, good, fields, table, base, limit):
            row[good] = i
            good += 1
        else:
            doubtful[bad] = i
            bad += 1
    return good, bad


@fused
def _message(at, end, row, fields, table, base, limit):
    """Read one message into a row; returns whether it is well formed."""
    guess = 0
    while at < end:
        tag, at = short(at, end)
        if at == 0 or tag < 8:
            return False
        wire = tag & 7
        # Fields are mostly written in the order of the description.
        field = np.int64(0)
        for number in range(fields):
            place = guess + number
            if place >= fields:
                place -= fields
            if load64(table + 8 * (WORDS * place + NUMBER)) == tag >> 3:
                field = table + 8 * WORDS * place
                guess = place + 1
                break
        kind = np.int64(-1)
        cells = np.int64(0)
        if field != 0:
            kind = load64(field + 8 * KIND)
            cells = load64(field + 8 * CELLS)
            if kind == NESTED or wire != _wire(kind):
                return False
        value = np.int64(0)
        if wire == _VARINT:
            word, at = varint(at, end)
            if at == 0:
                return False
            value = np.int64(word)
            if kind in (SINT64, SINT32):
                if kind == SINT32 and word >> np.uint64(32) != 0:
                    return False
                value = zigzag(word)
            elif (
                (kind == INT32 and value != np.int64(np.int32(value)))
                or (kind == UINT32 and word >> np.uint64(32) != 0)
                or (kind == BOOLEAN and word > np.uint64(1))
            ):
                return False
        elif wire == _LENGTH:
            length, at = short(at, end)
            if at == 0 or length > end - at:
                return False
            if kind == TEXT and not_utf8(at, at + length) != 0:
                return False
            if cells != 0:
                put_view(cells + 16 * row, base, at, at + length, 0, limit)
            at += length
        elif wire in (_EIGHT, _FOUR):
            size = 8 if wire == _EIGHT else 4
            if size > end - at:
                return False
            value = load64(at) if wire == _EIGHT else np.int64(load32(at))
            at += size
        else:
            return False
        if cells != 0:
            store8(load64(field + 8 * PRESENT) + row, 1)
            if wire != _LENGTH:
                store64(cells + 8 * row, value)
    return at == end


@inner
def _wire(kind):
    """The wire type of a kind's values."""
    if kind <= BOOLEAN:
        return _VARINT
    if kind >= TEXT:
        return _LENGTH
    return _EIGHT if kind == FIXED64 else _FOUR


@inner
def short(at, end):
    """A tag or length of up to four bytes, in its shortest form, and the address after it; 0 for another."""
    value = np.int64(0)
    for shift in range(0, 28, 7):
        if at >= end:
            break
        byte = np.int64(load8(at))
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if byte == 0 and shift > 0:
                break
            return value, at
    return np.int64(0), np.int64(0)
