"""The kernel that reads flat Avro records: their fields are numbers, strings and other single values.

It accepts a message only if all its bytes are well formed. Any other message is doubtful: fastavro reads or
refuses it, so this module refuses none.
"""

from __future__ import annotations

import numpy as np

from ....sketches.core.compilation.jit import fused, kernel
from ..address_intrinsics import load8, load32, load64, store8, store64
from ..json.scanner import not_utf8
from ..varints import varint, zigzag
from ..view_cells import put_view

INT, LONG, BOOLEAN, ENUM, FLOAT, DOUBLE, STRING, BYTES, FIXED, NULL = range(10)
"""The kinds of fields. Values of the kinds from `STRING` on have 16 bytes, the others 8."""

WORDS = 6
KIND, BRANCHES, NULL_BRANCH, SIZE, CELLS, PRESENT = range(WORDS)
"""The words of a field in a table: its kind; the number of its union's branches, or 0, and which of them is
null, or −1; the size of a fixed, or the number of an enum's symbols; and the addresses of its column's cells
and of a byte for each row, or 0 if the field is skipped."""


@kernel
def scan(starts, ends, numbers, begin, fields, table, base, limit, row, doubtful):
    """Read messages of some `numbers` from byte `begin` on; returns how many are good, and doubtful.

    `table` is the address of `fields` × `WORDS` words. The lines lie between the addresses `base` and
    `limit`. `row` gets the number of each good row's message, and `doubtful` the numbers of the others.
    """
    good = 0
    bad = 0
    for i in numbers:
        end = base + ends[i]
        if _record(base + starts[i] + begin, end, good, fields, table, base, limit):
            row[good] = i
            good += 1
        else:
            doubtful[bad] = i
            bad += 1
    return good, bad


@fused
def _record(at, end, row, fields, table, base, limit):
    """Read one message into a row; returns whether it is well formed and ends where its fields do."""
    for number in range(fields):
        field = table + 8 * WORDS * number
        kind = load64(field + 8 * KIND)
        cells = load64(field + 8 * CELLS)
        present = load64(field + 8 * PRESENT) + row
        branches = load64(field + 8 * BRANCHES)
        is_null = kind == NULL
        if branches > 0:
            word, at = varint(at, end)
            branch = zigzag(word)
            if at == 0 or branch < 0 or branch >= branches:
                return False
            is_null |= branch == load64(field + 8 * NULL_BRANCH)
        if cells != 0:
            store8(present, not is_null)
        if is_null:
            if cells != 0 and kind >= STRING:
                store64(cells + 16 * row, 0)
                store64(cells + 16 * row + 8, 0)
            continue
        if kind >= STRING:
            length = load64(field + 8 * SIZE)
            if kind != FIXED:
                word, at = varint(at, end)
                length = zigzag(word)
                if at == 0:
                    return False
            if length < 0 or length > end - at:
                return False
            if kind == STRING and not_utf8(at, at + length) != 0:
                return False
            if cells != 0:
                put_view(cells + 16 * row, base, at, at + length, 0, limit)
            at += length
            continue
        value = np.int64(0)
        if kind <= LONG or kind == ENUM:
            word, at = varint(at, end)
            value = zigzag(word)
            if at == 0:
                return False
            if kind == INT and value != np.int64(np.int32(value)):
                return False
            if kind == ENUM and (value < 0 or value >= load64(field + 8 * SIZE)):
                return False
        elif kind == BOOLEAN:
            if at >= end:
                return False
            value = np.int64(load8(at))
            if value > 1:
                return False
            at += 1
        else:
            size = 4 if kind == FLOAT else 8
            if size > end - at:
                return False
            value = np.int64(load32(at)) if kind == FLOAT else load64(at)
            at += size
        if cells != 0:
            store64(cells + 8 * row, value)
    return at == end
