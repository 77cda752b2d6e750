"""Parsing single cells: store a JSON value in its column, or report why it doesn't fit.

A cell's place is an address in the schema's table (`json.schema`). Functions return GOOD or another reason,
the address after the value or minus that of a wrong byte, and what the value's strings contain
(`json.scanner`).

Strings become Arrow's string views (`view_cells`) into the messages as they were read; strings with escapes
are written to a second buffer.
"""

from __future__ import annotations

import numpy as np

from ....sketches.core.compilation.jit import inner
from ..address_intrinsics import bits_of, load8, load64, store8, store64
from ..view_cells import put_view
from .scanner import (
    BROKEN,
    ESCAPED,
    as_double,
    number,
    skip_space,
    skip_value,
    string_end,
    unescape,
    word_end,
)
from .schema import (
    BOOL,
    DOUBLE,
    ENDS,
    FRACTION,
    GOOD,
    HIGH,
    IS_LIST,
    KIND,
    LOW,
    NOT_JSON,
    OTHER_TYPE,
    OUT_OF_RANGE,
    POOL,
    POOL_PRESENT,
    PRESENT,
    RAW,
    STARTS,
    STRING,
    TOP,
    UINT,
    VALUES,
    WORDS,
)

ABSENT, THERE, LATER = 0, 1, 2
"""The states of a cell: null, filled, or a double that the caller must parse from the text it points to."""

BASE, LIMIT, TEXT, TEXT_TOP, STACK, OPEN, SKIPS = range(7)
"""The words of a call's state: the beginning and end of the lines, the buffer of unescaped strings and the
address up to which it is full, and scratch space for `skip_value`, for the open objects (a word each) and for
members to skip (`json.rows`)."""
STATE_WORDS = 7


@inner
def place(table, node, word):
    """The address of a node's word."""
    return table + 8 * (node * WORDS + word)


@inner
def get(table, node, word):
    """A node's word."""
    return load64(table + 8 * (node * WORDS + word))


@inner
def clear(table, first, last, row):
    """Set the cells of some nodes in a row back to null."""
    for node in range(first, last + 1):
        present = get(table, node, PRESENT) + row
        if get(table, node, IS_LIST):
            if load8(present) != ABSENT:
                store64(place(table, node, TOP), load64(get(table, node, STARTS) + 8 * row))
        elif get(table, node, KIND) in (STRING, RAW):
            view = get(table, node, VALUES) + 16 * row
            store64(view, 0)
            store64(view + 8, 0)
        store8(present, ABSENT)


@inner
def refuse(why, at, end, state):
    """The reason for a value of the wrong type, which may not even be JSON."""
    after, holds = skip_value(at, end, load64(state + 8 * LIMIT), load64(state + 8 * STACK))
    if after < 0:
        return NOT_JSON, after, holds
    return why, after, holds


@inner
def put_list(at, end, row, node, table, state):
    """Append a list's elements to the pool of its column."""
    if load8(at) != 91:
        return refuse(OTHER_TYPE, at, end, state)
    kind = get(table, node, KIND)
    pool = get(table, node, POOL)
    pool_present = get(table, node, POOL_PRESENT)
    top = get(table, node, TOP)
    store64(get(table, node, STARTS) + 8 * row, top)
    holds = 0
    at = skip_space(at + 1, end)
    more = at >= end or load8(at) != 93
    while more:
        at = skip_space(at, end)
        if at >= end:
            return NOT_JSON, end, holds
        cell = THERE
        if load8(at) == 110:
            after = word_end(at)
            cell = ABSENT
            store64(pool + 16 * top, 0)
            store64(pool + 16 * top + 8, 0)
            if after < 0:
                return NOT_JSON, after, holds
        elif kind <= RAW:
            why, after, inside = put_text(at, end, kind, pool + 16 * top, state)
            holds |= inside
            if why != GOOD:
                return why, after, holds
        else:
            why, after, cell, value = put_number(at, kind, node, table, state)
            if why != GOOD:
                return refuse(why, at, end, state)
            store64(pool + 16 * top, value)
        store8(pool_present + top, cell)
        top += 1
        at = skip_space(after, end)
        more = at < end and load8(at) == 44
        if more:
            at += 1
    if at >= end or load8(at) != 93:
        return NOT_JSON, at, holds
    store64(place(table, node, TOP), top)
    store64(get(table, node, ENDS) + 8 * row, top)
    store8(get(table, node, PRESENT) + row, THERE)
    return GOOD, at + 1, holds


@inner
def put_text(at, end, kind, view, state):
    """Write a string, or any value's JSON text, as a view at the address `view`."""
    base = load64(state + 8 * BASE)
    limit = load64(state + 8 * LIMIT)
    if kind == RAW:
        after, holds = skip_value(at, end, limit, load64(state + 8 * STACK))
        if after < 0:
            return NOT_JSON, after, holds
        put_view(view, base, at, after, 0, limit)
        return GOOD, after, holds
    if load8(at) != 34:
        return refuse(OTHER_TYPE, at, end, state)
    closing, holds = string_end(at + 1, limit)
    if closing < 0:
        return NOT_JSON, closing, holds
    if holds & ESCAPED:
        text = load64(state + 8 * TEXT)
        top = load64(state + 8 * TEXT_TOP)
        to = unescape(at + 1, closing, top)
        put_view(view, text, top, to, 1, to)
        store64(state + 8 * TEXT_TOP, to)
    else:
        put_view(view, base, at + 1, closing, 0, limit)
    return GOOD, closing + 1, holds


@inner
def put_number(at, kind, node, table, state):
    """Parse a number or Boolean: (GOOD or why not, the address after it, the cell's state, its 64 bits)."""
    c = load8(at)
    if kind == BOOL:
        if c != 116 and c != 102:
            return OTHER_TYPE, at, ABSENT, np.int64(0)
        after = word_end(at)
        return (GOOD if after > 0 else NOT_JSON), after, THERE, np.int64(c == 116)
    if c != 45 and not 48 <= c <= 57:
        return OTHER_TYPE, at, ABSENT, np.int64(0)
    after, form, negative, digits, power, exact = number(at, load64(state + 8 * LIMIT))
    if after < 0:
        return NOT_JSON, after, ABSENT, np.int64(0)
    if kind == DOUBLE:
        value, sure = as_double(negative, digits, power)
        if sure and exact:
            return GOOD, after, THERE, bits_of(value)
        return GOOD, after, LATER, at - load64(state + 8 * BASE)
    if form == BROKEN:
        return FRACTION, at, ABSENT, np.int64(0)
    if kind == UINT:
        if not exact or (negative and digits != 0):
            return OUT_OF_RANGE, at, ABSENT, np.int64(0)
        return GOOD, after, THERE, np.int64(digits)
    most = np.uint64(get(table, node, HIGH))
    if negative:
        most = (
            np.uint64(-(get(table, node, LOW) + 1)) + np.uint64(1) if get(table, node, LOW) else np.uint64(0)
        )
    if not exact or digits > most:
        return OUT_OF_RANGE, at, ABSENT, np.int64(0)
    return GOOD, after, THERE, -np.int64(digits) if negative else np.int64(digits)
