"""The kernel that makes columns of JSON objects, a row an object, each judged by itself.

Strings become Arrow's string views (16 bytes: a length, then the string itself up to 12 bytes, or its first
four, a buffer's number and an offset): views point into the messages as they were read, so that a string is
neither copied nor made an object; strings with escapes are written out to a second buffer.

Functions here take addresses, not arrays: an array that is passed on costs its reference count each time.
"""

from __future__ import annotations

import numpy as np

from ...sketches.jit import kernel
from .json_schema import (
    BOOL,
    CHILDREN,
    COUNT,
    DOUBLE,
    ENDS,
    HIGH,
    IS_LIST,
    KIND,
    LAST,
    LOW,
    NAME,
    NAME_LENGTH,
    POOL,
    POOL_PRESENT,
    PRESENT,
    RAW,
    SAVED_TOP,
    STARTS,
    STRING,
    STRUCT,
    TOP,
    UINT,
    VALUES,
    WORD,
    WORDS,
)
from .json_text import (
    BROKEN,
    ESCAPED,
    LONE_SURROGATE,
    NOT_ASCII,
    as_double,
    member,
    not_utf8,
    number,
    skip_space,
    skip_value,
    string_end,
    unescape,
    word_end,
)
from .memory import bits_of, load8, load64, load_word, store8, store64

GOOD, TOMBSTONE, EMPTY, NOT_JSON, NO_OBJECT, NOT_UNICODE, OTHER_TYPE, OUT_OF_RANGE, FRACTION = range(9)
"""Why a message is no row."""

ABSENT, THERE, LATER = 0, 1, 2
"""A cell: null, there, or a double that the caller is to read from the text whose place is in the cell."""

BASE, LIMIT, TEXT, TEXT_TOP, STACK, OPEN = range(6)
"""The words of a call's state: where the lines begin and end, the buffer of strings that had escapes and the
address up to which it is full, and scratch for `skip_value` and for the open objects (a word each)."""
STATE_WORDS = 6


@kernel
def parse(starts, is_null, nodes, table, state, row, refused):  # type: ignore[no-untyped-def]
    """Parse a batch of messages; returns (good rows, refused messages).

    `table` and `state` are addresses of `nodes` × `WORDS` and of `STATE_WORDS` words. `row` gets the message
    of each good row; `refused` message, reason, place of the fault and node.
    """
    base = load64(state + 8 * BASE)
    good = 0
    bad = 0
    for i in range(len(is_null)):
        at = base + starts[i]
        end = base + starts[i + 1] - 1
        if is_null[i]:
            why, where, node = TOMBSTONE, at, 0
        elif at == end:
            why, where, node = EMPTY, at, 0
        else:
            for n in range(nodes):
                store64(_word(table, n, SAVED_TOP), _get(table, n, TOP))
            why, where, node = _row(at, end, good, table, state)
        if why == GOOD:
            row[good] = i
            good += 1
            continue
        refused[bad, 0] = i
        refused[bad, 1] = why
        refused[bad, 2] = where - at
        refused[bad, 3] = node
        bad += 1
        if why > EMPTY:
            _clear(table, 0, nodes - 1, good)
            for n in range(nodes):
                store64(_word(table, n, TOP), _get(table, n, SAVED_TOP))
    return good, bad


@kernel
def _word(table, node, word):  # type: ignore[no-untyped-def]
    return table + 8 * (node * WORDS + word)


@kernel
def _get(table, node, word):  # type: ignore[no-untyped-def]
    return load64(table + 8 * (node * WORDS + word))


@kernel
def _row(at, end, row, table, state):  # type: ignore[no-untyped-def]
    """One message: (why it is refused or GOOD, the address of the fault, the node it concerns)."""
    start = at
    limit = load64(state + 8 * LIMIT)
    stack = load64(state + 8 * STACK)
    open_objects = load64(state + 8 * OPEN)
    at = skip_space(at, end)
    if at >= end or load8(at) != 123:
        at, _ = skip_value(start, end, limit, stack)
        if at > 0 and skip_space(at, end) == end:
            return NO_OBJECT, start, 0
        return NOT_JSON, abs(at), 0
    depth = 0
    here = 0
    guess = 0
    holds = 0
    at += 1
    inner = skip_space(at, end)
    closed = inner < end and load8(inner) == 125
    if closed:
        at = inner
    while True:
        if not closed:
            at, name, name_end, inside = member(at, end, limit)
            holds |= inside
            if at < 0 or at >= end:
                return NOT_JSON, min(abs(at), end), 0
            node, guess = _child(table, state, here, guess, name, name_end, inside)
            if node >= 0 and _get(table, node, KIND) == STRUCT and load8(at) == 123:
                _clear(table, node, _get(table, node, LAST), row)
                store8(_get(table, node, PRESENT) + row, THERE)
                store64(open_objects + 8 * depth, here)
                depth += 1
                here = node
                guess = 0
                inner = skip_space(at + 1, end)
                closed = inner < end and load8(inner) == 125
                at = inner if closed else at + 1
                continue
            if node < 0:
                at, inside = skip_value(at, end, limit, stack)
            else:
                value = at
                why, at, inside = _field(at, end, row, node, table, state)
                if why != GOOD:
                    return why, (abs(at) if why == NOT_JSON else value), node
            holds |= inside
            if at < 0:
                return NOT_JSON, -at, 0
            at = skip_space(at, end)
            if at < end and load8(at) == 44:
                at += 1
                continue
        if at >= end or load8(at) != 125:
            return NOT_JSON, at, 0
        # An object's end: the one around it goes on, with a comma or its own end.
        at = skip_space(at + 1, end)
        if depth == 0:
            break
        depth -= 1
        here = load64(open_objects + 8 * depth)
        guess = 0
        closed = at >= end or load8(at) != 44
        if not closed:
            at += 1
    if at != end:
        return NOT_JSON, at, 0
    if holds & LONE_SURROGATE:
        return NOT_UNICODE, start, 0
    if holds & NOT_ASCII:
        wrong = not_utf8(start, end)
        if wrong:
            return NOT_UNICODE, wrong, 0
    return GOOD, at, 0


@kernel
def _child(table, state, parent, guess, name, name_end, holds):  # type: ignore[no-untyped-def]
    """The field of an object by its name, or −1; and a guess at the next one's place: fields keep order."""
    count = _get(table, parent, COUNT)
    children = _get(table, parent, CHILDREN)
    length = name_end - name
    limit = load64(state + 8 * LIMIT)
    if holds & ESCAPED:
        # Beyond the strings kept so far: the next one overwrites it.
        text = load64(state + 8 * TEXT_TOP)
        length = unescape(name, name_end, text) - text
        name = text
        limit = text + length
    word = np.uint64(0)
    if name + 8 <= limit:
        word = load_word(name)
        if length < 8:
            word &= (np.uint64(1) << np.uint64(8 * length)) - np.uint64(1)
    else:
        for i in range(min(length, 8)):
            word |= np.uint64(load8(name + i)) << np.uint64(8 * i)
    for k in range(count):
        place = guess + k
        if place >= count:
            place -= count
        node = load64(children + 8 * place)
        if _get(table, node, NAME_LENGTH) != length or np.uint64(_get(table, node, WORD)) != word:
            continue
        other = _get(table, node, NAME)
        same = True
        for i in range(8, length):
            if load8(other + i) != load8(name + i):
                same = False
                break
        if same:
            return node, place + 1
    return -1, guess


@kernel
def _field(at, end, row, node, table, state):  # type: ignore[no-untyped-def]
    """A scalar or list into its column: (GOOD or why not, the address after it, what its strings hold)."""
    present = _get(table, node, PRESENT) + row
    if load8(present) != ABSENT:
        # A name that comes twice: the last one counts, as it does in most languages.
        _clear(table, node, _get(table, node, LAST), row)
    if load8(at) == 110:
        after = word_end(at)
        return (GOOD if after > 0 else NOT_JSON), after, 0
    kind = _get(table, node, KIND)
    if kind == STRUCT:
        return _refuse(OTHER_TYPE, at, end, state)
    if _get(table, node, IS_LIST):
        return _list(at, end, row, node, table, state)
    if kind <= RAW:
        why, after, holds = _text(at, end, kind, _get(table, node, VALUES) + 16 * row, state)
        if why == GOOD:
            store8(present, THERE)
        return why, after, holds
    why, after, cell, value = _number(at, kind, node, table, state)
    if why != GOOD:
        return _refuse(why, at, end, state)
    store64(_get(table, node, VALUES) + 8 * row, value)
    store8(present, cell)
    return GOOD, after, 0


@kernel
def _list(at, end, row, node, table, state):  # type: ignore[no-untyped-def]
    """A list's elements onto the pool of its column."""
    if load8(at) != 91:
        return _refuse(OTHER_TYPE, at, end, state)
    kind = _get(table, node, KIND)
    pool = _get(table, node, POOL)
    pool_present = _get(table, node, POOL_PRESENT)
    top = _get(table, node, TOP)
    store64(_get(table, node, STARTS) + 8 * row, top)
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
            why, after, inside = _text(at, end, kind, pool + 16 * top, state)
            holds |= inside
            if why != GOOD:
                return why, after, holds
        else:
            why, after, cell, value = _number(at, kind, node, table, state)
            if why != GOOD:
                return _refuse(why, at, end, state)
            store64(pool + 16 * top, value)
        store8(pool_present + top, cell)
        top += 1
        at = skip_space(after, end)
        more = at < end and load8(at) == 44
        if more:
            at += 1
    if at >= end or load8(at) != 93:
        return NOT_JSON, at, holds
    store64(_word(table, node, TOP), top)
    store64(_get(table, node, ENDS) + 8 * row, top)
    store8(_get(table, node, PRESENT) + row, THERE)
    return GOOD, at + 1, holds


@kernel
def _text(at, end, kind, view, state):  # type: ignore[no-untyped-def]
    """A string, or any value's JSON text, as a view at the address `view`."""
    base = load64(state + 8 * BASE)
    limit = load64(state + 8 * LIMIT)
    if kind == RAW:
        after, holds = skip_value(at, end, limit, load64(state + 8 * STACK))
        if after < 0:
            return NOT_JSON, after, holds
        _point(view, base, at, after, 0)
        return GOOD, after, holds
    if load8(at) != 34:
        return _refuse(OTHER_TYPE, at, end, state)
    closing, holds = string_end(at + 1, limit)
    if closing < 0:
        return NOT_JSON, closing, holds
    if holds & ESCAPED:
        text = load64(state + 8 * TEXT)
        top = load64(state + 8 * TEXT_TOP)
        to = unescape(at + 1, closing, top)
        _point(view, text, top, to, 1)
        store64(state + 8 * TEXT_TOP, to)
    else:
        _point(view, base, at + 1, closing, 0)
    return GOOD, closing + 1, holds


@kernel
def _point(view, base, at, end, buffer):  # type: ignore[no-untyped-def]
    """Arrow's view of the bytes from `at` to `end` of the buffer that begins at `base`."""
    length = end - at
    low = np.int64(0)
    high = np.int64(0)
    for i in range(min(length, 4)):
        low |= np.int64(load8(at + i)) << (8 * i)
    if length <= 12:
        for i in range(4, length):
            high |= np.int64(load8(at + i)) << (8 * (i - 4))
    else:
        high = buffer | (at - base) << 32
    store64(view, length | low << 32)
    store64(view + 8, high)


@kernel
def _number(at, kind, node, table, state):  # type: ignore[no-untyped-def]
    """A number or Boolean: (GOOD or why not, the address after it, the cell's state, its 64 bits)."""
    c = load8(at)
    if kind == BOOL:
        if c != 116 and c != 102:
            return OTHER_TYPE, at, ABSENT, np.int64(0)
        after = word_end(at)
        return (GOOD if after > 0 else NOT_JSON), after, THERE, np.int64(c == 116)
    if c != 45 and not 48 <= c <= 57:
        return OTHER_TYPE, at, ABSENT, np.int64(0)
    after, form, negative, digits, power, exact = number(at)
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
    most = np.uint64(_get(table, node, HIGH))
    if negative:
        most = (
            np.uint64(-(_get(table, node, LOW) + 1)) + np.uint64(1)
            if _get(table, node, LOW)
            else np.uint64(0)
        )
    if not exact or digits > most:
        return OUT_OF_RANGE, at, ABSENT, np.int64(0)
    return GOOD, after, THERE, -np.int64(digits) if negative else np.int64(digits)


@kernel
def _refuse(why, at, end, state):  # type: ignore[no-untyped-def]
    """A value of the wrong sort, unless it is no JSON in the first place."""
    after, holds = skip_value(at, end, load64(state + 8 * LIMIT), load64(state + 8 * STACK))
    if after < 0:
        return NOT_JSON, after, holds
    return why, after, holds


@kernel
def _clear(table, first, last, row):  # type: ignore[no-untyped-def]
    """Make some nodes' cells of a row null again."""
    for node in range(first, last + 1):
        present = _get(table, node, PRESENT) + row
        if _get(table, node, IS_LIST):
            if load8(present) != ABSENT:
                store64(_word(table, node, TOP), load64(_get(table, node, STARTS) + 8 * row))
        elif _get(table, node, KIND) in (STRING, RAW):
            view = _get(table, node, VALUES) + 16 * row
            store64(view, 0)
            store64(view + 8, 0)
        store8(present, ABSENT)
