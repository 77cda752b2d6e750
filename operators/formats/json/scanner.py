"""JSON's grammar (RFC 8259) over bytes at addresses: strings, numbers, and values to skip.

A text is the bytes from an address to `end`; the byte at `end` can be read and is a newline, which terminates
strings, numbers and words. Several bytes at a time are examined below `limit`, where the buffer ends.
Functions return the address after what they read, or minus the address of the wrong byte.
"""

from __future__ import annotations

import numpy as np

from ....sketches.core.compilation.jit import inner
from ..address_intrinsics import load8, load_word, store8, string_marks, trailing_zeros

ESCAPED, NOT_ASCII, LONE_SURROGATE = 1, 2, 4
"""Bits for what a string contains besides plain characters."""

WHOLE, BROKEN = 1, 2
"""Numbers without and with a fraction or exponent."""

DEEPEST = 512
"""The deepest nesting that is accepted."""

_LOWER = np.uint64(0xFFFFFFFF)
_HIGHS = np.uint64(0x8080808080808080)
_ZEROS = np.uint64(0x3030303030303030)
_TO_HIGH = np.uint64(0x7676767676767676)
_NIBBLES = np.uint64(0x0F0F0F0F0F0F0F0F)
_PAIRS = np.uint64(0x00FF00FF00FF00FF)
_FOURS = np.uint64(0x0000FFFF0000FFFF)
_TENS = np.array([10**i for i in range(9)], np.uint64)
_EXACT = np.array([10.0**i for i in range(23)])
"""The powers of ten that a double represents exactly."""


@inner
def skip_space(at, end):
    """The address of the first byte that isn't white space."""
    while at < end:
        c = load8(at)
        if c != 32 and c != 10 and c != 13 and c != 9:
            break
        at += 1
    return at


@inner
def string_end(at, limit):
    """From the byte after a quote: (the address of the closing quote, what the string contains)."""
    holds = 0
    while True:
        while at + 32 <= limit:
            marks = string_marks(at)
            ends = marks & _LOWER
            if ends == 0:
                if marks != 0:
                    holds |= NOT_ASCII
                at += 32
                continue
            before = trailing_zeros(ends)
            if (marks >> np.uint64(32)) & ((np.uint64(1) << np.uint64(before)) - np.uint64(1)) != 0:
                holds |= NOT_ASCII
            at += before
            break
        c = load8(at)
        if c == 34:
            return at, holds
        if c == 92:
            length = escape_length(at)
            if length < 0:
                return -at, holds
            holds |= ESCAPED
            if length == 6 and 0xD800 <= hex4(at + 2) < 0xE000:
                holds |= LONE_SURROGATE
            at += length
        elif c < 32:
            return -at, holds
        else:
            if c >= 128:
                holds |= NOT_ASCII
            at += 1


@inner
def hex4(at):
    """The value of four hexadecimal digits, or −1."""
    number = np.int64(0)
    for i in range(4):
        c = load8(at + i)
        if 48 <= c <= 57:
            digit = c - 48
        elif 65 <= c <= 70:
            digit = c - 55
        elif 97 <= c <= 102:
            digit = c - 87
        else:
            return -1
        number = number * 16 + np.int64(digit)
    return number


@inner
def escape_length(at):
    """The length of the escape at a backslash, a surrogate pair counted as one, or −1."""
    c = load8(at + 1)
    if c == 117:
        high = hex4(at + 2)
        if high < 0:
            return -1
        paired = 0xD800 <= high < 0xDC00 and load8(at + 6) == 92 and load8(at + 7) == 117
        return 12 if paired and 0xDC00 <= hex4(at + 8) < 0xE000 else 6
    if c == 34 or c == 92 or c == 47 or c == 98 or c == 102 or c == 110 or c == 114 or c == 116:
        return 2
    return -1


@inner
def unescape(at, end, to):
    """Write a valid string to the address `to`, without its escapes; returns the address after it."""
    while at < end:
        c = np.int64(load8(at))
        if c != 92:
            store8(to, c)
            to += 1
            at += 1
            continue
        length = escape_length(at)
        if length == 2:
            store8(to, _plain(np.int64(load8(at + 1))))
            to += 1
        else:
            point = hex4(at + 2)
            if length == 12:
                point = 0x10000 + ((point - 0xD800) << 10) + (hex4(at + 8) - 0xDC00)
            to = _encode(point, to)
        at += length
    return to


@inner
def _plain(escape):
    """The character for a letter after a backslash."""
    if escape == 98:
        return 8
    if escape == 102:
        return 12
    if escape == 110:
        return 10
    if escape == 114:
        return 13
    return 9 if escape == 116 else escape


@inner
def _encode(point, to):
    """A code point as UTF-8."""
    if point < 0x80:
        store8(to, point)
        return to + 1
    if point < 0x800:
        store8(to, 0xC0 | point >> 6)
        store8(to + 1, 0x80 | point & 0x3F)
        return to + 2
    if point < 0x10000:
        store8(to, 0xE0 | point >> 12)
        store8(to + 1, 0x80 | point >> 6 & 0x3F)
        store8(to + 2, 0x80 | point & 0x3F)
        return to + 3
    store8(to, 0xF0 | point >> 18)
    store8(to + 1, 0x80 | point >> 12 & 0x3F)
    store8(to + 2, 0x80 | point >> 6 & 0x3F)
    store8(to + 3, 0x80 | point & 0x3F)
    return to + 4


@inner
def not_utf8(at, end):
    """The address of the first byte that is not UTF-8 (RFC 3629), or 0."""
    while at < end:
        c = load8(at)
        if c < 0x80:
            at += 1
            while at + 8 <= end and load_word(at) & _HIGHS == 0:
                at += 8
            continue
        if 0xC2 <= c < 0xE0:
            more = 1
        elif 0xE0 <= c < 0xF0:
            more = 2
        elif 0xF0 <= c < 0xF5:
            more = 3
        else:
            return at
        if at + more >= end:
            return at
        second = load8(at + 1)
        low = 0xA0 if c == 0xE0 else 0x90 if c == 0xF0 else 0x80
        high = 0x9F if c == 0xED else 0x8F if c == 0xF4 else 0xBF
        if second < low or second > high:
            return at
        for i in range(2, more + 1):
            if load8(at + i) & 0xC0 != 0x80:
                return at
        at += more + 1
    return 0


@inner
def _digits_of(word):
    """The number of leading digits among eight bytes, and their value."""
    values = word ^ _ZEROS
    # The lowest byte that isn't a digit; the carry may mark others above it wrongly.
    count = trailing_zeros((values + _TO_HIGH | values) & _HIGHS) >> 3
    if count == 0:
        return 0, np.uint64(0)
    values <<= np.uint64(64 - 8 * count)
    # Neighbours are combined: tens and ones, then hundreds, then ten thousands.
    values = ((values & _NIBBLES) * np.uint64(10 << 8 | 1)) >> np.uint64(8)
    values = ((values & _PAIRS) * np.uint64(100 << 16 | 1)) >> np.uint64(16)
    values = ((values & _FOURS) * np.uint64(10_000 << 32 | 1)) >> np.uint64(32)
    return count, values


@inner
def number(at, limit):
    """Parse a number: (address after it, WHOLE or BROKEN, whether negative, digits, power, whether exact).

    Its absolute value is digits (uint64) × 10^power; not exact if the digits don't fit into 64 bits.
    """
    negative = load8(at) == 45
    if negative:
        at += 1
    digits = np.uint64(0)
    power = 0
    exact = True
    form = WHOLE
    first = at
    if at + 16 <= limit:
        count, digits = _digits_of(load_word(at))
        at += count
        if count == 8:
            count, more = _digits_of(load_word(at))
            digits = digits * _TENS[count] + more
            at += count
    while 48 <= load8(at) <= 57:
        digit = np.uint64(load8(at) - 48)
        if digits > np.uint64(1844674407370955160) and (
            digits > np.uint64(1844674407370955161) or digit > np.uint64(5)
        ):
            exact = False
        digits = digits * np.uint64(10) + digit
        at += 1
    if at == first or (load8(first) == 48 and at > first + 1):
        return -first, form, negative, digits, power, exact
    if load8(at) == 46:
        form = BROKEN
        at += 1
        first = at
        if digits < _TENS[8] and at + 8 <= limit:
            count, more = _digits_of(load_word(at))
            digits = digits * _TENS[count] + more
            power -= count
            at += count
        while 48 <= load8(at) <= 57:
            if digits > np.uint64(1844674407370955160):
                exact = False
            digits = digits * np.uint64(10) + np.uint64(load8(at) - 48)
            power -= 1
            at += 1
        if at == first:
            return -at, form, negative, digits, power, exact
    if load8(at) == 101 or load8(at) == 69:
        form = BROKEN
        at += 1
        down = load8(at) == 45
        if down or load8(at) == 43:
            at += 1
        first = at
        exponent = 0
        while 48 <= load8(at) <= 57:
            exponent = exponent * 10 + np.int64(load8(at) - 48) if exponent < 100_000 else exponent  # type: ignore[assignment]
            at += 1
        if at == first:
            return -at, form, negative, digits, power, exact
        power += -exponent if down else exponent
    return at, form, negative, digits, power, exact


@inner
def number_end(at, limit):
    """The address after a number, or minus that of a wrong byte: the first result of `number`."""
    if load8(at) == 45:
        at += 1
    first = at
    at = _digits_end(at, limit)
    if at == first or (load8(first) == 48 and at > first + 1):
        return -first
    if load8(at) == 46:
        first = at + 1
        at = _digits_end(first, limit)
        if at == first:
            return -at
    if load8(at) == 101 or load8(at) == 69:
        at += 1
        if load8(at) == 45 or load8(at) == 43:
            at += 1
        first = at
        at = _digits_end(first, limit)
        if at == first:
            return -at
    return at


@inner
def _digits_end(at, limit):
    """The address of the first byte that isn't a digit."""
    while at + 8 <= limit:
        values = load_word(at) ^ _ZEROS
        count = trailing_zeros((values + _TO_HIGH | values) & _HIGHS) >> 3
        at += count
        if count < 8:
            return at
    while 48 <= load8(at) <= 57:
        at += 1
    return at


@inner
def as_double(negative, digits, power):
    """(a number's double, whether it is surely the nearest): exact operands are rounded once (Clinger)."""
    value = np.float64(digits)
    sure = digits <= np.uint64(1 << 53) and -22 <= power <= 22
    if sure:
        value = value * _EXACT[power] if power >= 0 else value / _EXACT[-power]
    if digits == 0:
        sure = True
    return (-value if negative else value), sure


@inner
def word_end(at):
    """The address after ``true``, ``false`` or ``null``."""
    c = load8(at)
    if c == 116 and load8(at + 1) == 114 and load8(at + 2) == 117 and load8(at + 3) == 101:
        return at + 4
    if c == 110 and load8(at + 1) == 117 and load8(at + 2) == 108 and load8(at + 3) == 108:
        return at + 4
    fals = c == 102 and load8(at + 1) == 97 and load8(at + 2) == 108 and load8(at + 3) == 115
    return at + 5 if fals and load8(at + 4) == 101 else -at


@inner
def member(at, end, limit):
    """Parse a member's name and colon: (the value's address, the name's start and end, what it contains)."""
    at = skip_space(at, end)
    if at >= end or load8(at) != 34:
        return -at, at, at, 0
    closing, holds = string_end(at + 1, limit)
    if closing < 0:
        return closing, at, at, holds
    colon = skip_space(closing + 1, end)
    if colon >= end or load8(colon) != 58:
        return -colon, at, at, holds
    return skip_space(colon + 1, end), at + 1, closing, holds


@inner
def skip_value(at, end, limit, stack):
    """Skip a value of any kind: (the address after it, what its strings contain).

    At `stack`, `DEEPEST` bytes are scratch space for the brackets that opened the containers.
    """
    depth = 0
    holds = 0
    while True:
        at = skip_space(at, end)
        if at >= end:
            return -at, holds
        c = load8(at)
        if c == 123 or c == 91:
            if depth == DEEPEST:
                return -at, holds
            store8(stack + depth, np.int64(c))
            inner = skip_space(at + 1, end)
            if inner < end and load8(inner) == c + 2:
                at = inner + 1
            else:
                depth += 1
                if c == 123:
                    at, _, _, inside = member(inner, end, limit)
                    holds |= inside
                    if at < 0:
                        return at, holds
                else:
                    at = inner
                continue
        elif c == 34:
            at, inside = string_end(at + 1, limit)
            holds |= inside
            if at < 0:
                return at, holds
            at += 1
        elif c == 45 or 48 <= c <= 57:
            at = number_end(at, limit)
        else:
            at = word_end(at)
        if at < 0:
            return at, holds
        while True:
            if depth == 0:
                return at, holds
            at = skip_space(at, end)
            if at >= end:
                return -at, holds
            c = load8(at)
            if c == 44:
                at += 1
                if load8(stack + depth - 1) == 123:
                    at, _, _, inside = member(at, end, limit)
                    holds |= inside
                    if at < 0:
                        return at, holds
                break
            if c != load8(stack + depth - 1) + 2:
                return -at, holds
            depth -= 1
            at += 1
