"""The kernel that parses JSON objects into rows of columns, each message independently.

Functions here take addresses, not arrays, because passing an array costs a change of its reference count.
"""

from __future__ import annotations

import numpy as np

from ....sketches.core.compilation.jit import fused, inner, kernel
from ..address_intrinsics import load8, load64, load_word, store8, store64
from .scanner import (
    ESCAPED,
    LONE_SURROGATE,
    NOT_ASCII,
    member,
    not_utf8,
    skip_space,
    skip_value,
    string_end,
    unescape,
    word_end,
)
from .schema import (
    CHILDREN,
    COUNT,
    EMPTY,
    GOOD,
    IS_LIST,
    KIND,
    LAST,
    MASK_0,
    MASK_1,
    NAME,
    NAME_LENGTH,
    NO_OBJECT,
    NOT_JSON,
    NOT_UNICODE,
    OTHER_TYPE,
    PRESENT,
    RAW,
    SAVED_TOP,
    STRUCT,
    TEXT_0,
    TEXT_1,
    TEXT_LENGTH,
    TOMBSTONE,
    TOP,
    VALUES,
    WORD,
)
from .values import (
    ABSENT,
    BASE,
    LIMIT,
    OPEN,
    SKIPS,
    STACK,
    TEXT_TOP,
    THERE,
    clear,
    get,
    place,
    put_list,
    put_number,
    put_text,
    refuse,
)

SKIPS_KEPT = 16
"""How many of an object's members without a field have their beginning remembered."""
SKIP_WORDS = 5
SKIP_LENGTH, SKIP_TEXT_0, SKIP_TEXT_1, SKIP_MASK_0, SKIP_MASK_1 = range(SKIP_WORDS)
"""The beginning of a member, ``"name":``, of up to 16 bytes, stored like a field's (`json.schema`); the
length is 0 before one was seen."""


@kernel
def parse(starts, ends, is_null, nodes, listed, table, state, row, refused):
    """Parse a batch of messages; returns (good rows, refused messages).

    `table` and `state` are addresses of `nodes` × `WORDS` and of `STATE_WORDS` words; `listed` is `nodes` if
    a field is a list, whose pool a refused message must leave unchanged, else 0. `row` gets the message of
    each good row; `refused` gets the message, reason, position of the fault and node.
    """
    base = load64(state + 8 * BASE)
    good = 0
    bad = 0
    for i in range(len(is_null)):
        at = base + starts[i]
        end = base + ends[i]
        if is_null[i]:
            why, where, node = TOMBSTONE, at, 0
        elif at == end:
            why, where, node = EMPTY, at, 0
        else:
            for n in range(listed):
                store64(place(table, n, SAVED_TOP), get(table, n, TOP))
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
            clear(table, 0, nodes - 1, good)
            for n in range(listed):
                store64(place(table, n, TOP), get(table, n, SAVED_TOP))
    return good, bad


@fused
def _row(at, end, row, table, state):
    """Parse one message: (why it is refused or GOOD, the address of the fault, the node it concerns)."""
    start = at
    limit = load64(state + 8 * LIMIT)
    stack = load64(state + 8 * STACK)
    open_objects = load64(state + 8 * OPEN)
    skips = load64(state + 8 * SKIPS)
    at = skip_space(at, end)
    if at >= end or load8(at) != 123:
        at, _ = skip_value(start, end, limit, stack)
        if at > 0 and skip_space(at, end) == end:
            return NO_OBJECT, start, 0
        return NOT_JSON, abs(at), 0
    depth = 0
    here = 0
    guess = 0
    number = 0
    holds = 0
    at += 1
    inner = skip_space(at, end)
    closed = inner < end and load8(inner) == 125
    if closed:
        at = inner
    while True:
        if not closed:
            at = skip_space(at, end)
            # Messages mostly have the same members in the same places, including those that no field reads.
            skip = skips + 8 * SKIP_WORDS * number if depth == 0 and number < SKIPS_KEPT else np.int64(0)
            number += depth == 0
            node, after = -1, 0
            if skip != 0:
                after = _after_skip(at, skip, limit)
            if after != 0:
                at = skip_space(after, end)
            else:
                node, after = _expected(at, table, here, guess, limit)
                if node >= 0:
                    at = skip_space(after, end)
                    guess += 1
                else:
                    begin = at
                    at, name, name_end, inside = member(at, end, limit)
                    holds |= inside
                    if at >= 0:
                        node, guess = _child(table, state, here, guess, name, name_end, inside)
                        if node < 0 and inside == 0 and skip != 0:
                            _keep_skip(begin, name_end, skip, limit)
            if at < 0 or at >= end:
                return NOT_JSON, min(abs(at), end), 0
            if node >= 0 and get(table, node, KIND) == STRUCT and load8(at) == 123:
                clear(table, node, get(table, node, LAST), row)
                store8(get(table, node, PRESENT) + row, THERE)
                store64(open_objects + 8 * depth, here)
                depth += 1
                here = node
                guess = 0
                inner = skip_space(at + 1, end)
                closed = inner < end and load8(inner) == 125
                at = inner if closed else at + 1
                continue
            if node < 0 and load8(at) == 34:
                at, inside = string_end(at + 1, limit)
                at += at > 0  # a wrong byte's address is negative
            elif node < 0:
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
        # After an object's end the enclosing object continues, with a comma or its own end.
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


@inner
def _expected(at, table, parent, guess, limit):
    """The field that is probably next, if exactly its name and colon are here, and the address after them;
    or −1. Its beginning doesn't depend on bytes just read, so the processor can execute ahead.
    """
    if guess >= get(table, parent, COUNT) or at + 16 > limit:
        return np.int64(-1), at
    node = load64(get(table, parent, CHILDREN) + 8 * guess)
    length = get(table, node, TEXT_LENGTH)
    first = (load64(at) ^ get(table, node, TEXT_0)) & get(table, node, MASK_0)
    second = (load64(at + 8) ^ get(table, node, TEXT_1)) & get(table, node, MASK_1)
    return (node if length != 0 and first | second == 0 else np.int64(-1)), at + length


@inner
def _after_skip(at, skip, limit):
    """The address after the beginning of a member to skip, if exactly that is here, or 0."""
    length = load64(skip + 8 * SKIP_LENGTH)
    if length == 0 or at + 16 > limit:
        return np.int64(0)
    first = (load64(at) ^ load64(skip + 8 * SKIP_TEXT_0)) & load64(skip + 8 * SKIP_MASK_0)
    second = (load64(at + 8) ^ load64(skip + 8 * SKIP_TEXT_1)) & load64(skip + 8 * SKIP_MASK_1)
    return at + length if first | second == 0 else np.int64(0)


@inner
def _keep_skip(at, name_end, skip, limit):
    """Remember the beginning of a member with plain characters and without a field, unless it is too long."""
    length = name_end + 2 - at
    if length > 16 or at + 16 > limit or load8(name_end + 1) != 58:
        return
    first, second = min(length, 8), max(length - 8, 0)
    store64(skip + 8 * SKIP_LENGTH, length)
    store64(skip + 8 * SKIP_TEXT_0, load64(at))
    store64(skip + 8 * SKIP_TEXT_1, load64(at + 8))
    store64(skip + 8 * SKIP_MASK_0, _low_bytes(first))
    store64(skip + 8 * SKIP_MASK_1, _low_bytes(second))


@inner
def _low_bytes(count):
    """A word whose lowest `count` bytes are all ones."""
    return np.int64(-1) if count == 8 else (np.int64(1) << np.int64(8 * count)) - np.int64(1)


@inner
def _child(table, state, parent, guess, name, name_end, holds):
    """An object's field by name, or −1; and a guess at the next one, because fields keep their order."""
    count = get(table, parent, COUNT)
    children = get(table, parent, CHILDREN)
    length = name_end - name
    limit = load64(state + 8 * LIMIT)
    if holds & ESCAPED:
        # Written after the stored strings, so the next one overwrites it.
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
        if get(table, node, NAME_LENGTH) != length or np.uint64(get(table, node, WORD)) != word:
            continue
        other = get(table, node, NAME)
        same = True
        for i in range(8, length):
            if load8(other + i) != load8(name + i):
                same = False
                break
        if same:
            return node, place + 1
    return -1, guess


@inner
def _field(at, end, row, node, table, state):
    """Parse a value into its column: (GOOD or why not, the address after it, what its strings contain)."""
    present = get(table, node, PRESENT) + row
    if load8(present) != ABSENT:
        # If a name occurs twice, the last one counts, as in most languages.
        clear(table, node, get(table, node, LAST), row)
    if load8(at) == 110:
        after = word_end(at)
        return (GOOD if after > 0 else NOT_JSON), after, 0
    kind = get(table, node, KIND)
    if kind == STRUCT:
        return refuse(OTHER_TYPE, at, end, state)
    if get(table, node, IS_LIST):
        return put_list(at, end, row, node, table, state)
    if kind <= RAW:
        why, after, holds = put_text(at, end, kind, get(table, node, VALUES) + 16 * row, state)
        if why == GOOD:
            store8(present, THERE)
        return why, after, holds
    why, after, cell, value = put_number(at, kind, node, table, state)
    if why != GOOD:
        return refuse(why, at, end, state)
    store64(get(table, node, VALUES) + 8 * row, value)
    store8(present, cell)
    return GOOD, after, 0
