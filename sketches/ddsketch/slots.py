"""Find a double's bucket in a DDSketch by two look-ups and a comparison, without a logarithm.

The doubles of each sign, by their bits, are divided into slots: 0 for doubles that count as zero, then one
for each key ⌈log_γ |x|⌉, one for infinity and one for NaN; the slots of negative doubles follow those of
positive ones. The upper bits divide the range into cells, so small that a cell contains at most one slot's
end: a cell stores its first slot and that end. For accuracies that would need a table of many megabytes, the
logarithm is computed.
"""

from __future__ import annotations

import math
import sys
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..core.compilation.jit import inner, lean

_MAGNITUDE = np.int64(0x7FFFFFFFFFFFFFFF)
_MANTISSA = np.int64(0x000FFFFFFFFFFFFF)
_ONE = np.int64(0x3FF0000000000000)
_ROOT_TWO = np.int64(0x3FF6A09E667F3BCD)
_INFINITY = np.int64(0x7FF0000000000000)
_TWO_OVER_LN2 = 2.0 / np.log(2.0)
_FINEST_CELLS = 9
_AT_ONCE = 1 << 14
"""Doubles whose logarithms are computed at a time: they stay in the second-level cache."""
_ULPS = 2048
"""The largest distance, in units in the last place, of a bucket's end from 2^(key / multiplier)."""


class Slots(NamedTuple):
    """The tables for a look-up.

    `multiplier` is 1 / log2 γ, `least` the bits of the smallest magnitude that doesn't count as zero, `first`
    the key of slot 1, `spread` the number of slots per sign. Cell c, with the bits ``x >> shift`` = c, begins
    in slot ``bases[c]``, and doubles above ``ends[c]`` (uint64) are in the next slot; without cells there is
    no table.
    """

    multiplier: float
    least: int
    first: int
    spread: int
    shift: int
    ends: np.ndarray
    bases: np.ndarray


def keys_of(bits: np.ndarray, multiplier: float) -> np.ndarray:
    """Return the key ⌈log_γ |x|⌉ (int64) of each double, given by its bits (int64).

    `multiplier` is 1 / log2 γ. log2 is the exponent plus 2 atanh((m − 1) / (m + 1)) for a mantissa in
    [√½, √2): eight terms, error 2e-14. Infinity gets the exponent 1027, so that no finite number has its key.
    """
    bits = bits & _MAGNITUDE
    mantissas = (bits & _MANTISSA) | _ONE
    over = (mantissas > _ROOT_TWO).astype(np.int64)
    exponents = (bits >> 52) - 1023 + over + 3 * (bits == _INFINITY)
    numbers = (mantissas - (over << 52)).view(np.float64)
    s = (numbers - 1.0) / (numbers + 1.0)
    t = s * s
    p = 1 / 13 + t * (1 / 15)
    p = 1 / 9 + t * (1 / 11 + t * p)
    p = 1 / 5 + t * (1 / 7 + t * p)
    p = 1.0 + t * (1 / 3 + t * p)
    return np.asarray(np.ceil((exponents + _TWO_OVER_LN2 * s * p) * multiplier).astype(np.int64))


@inner
def look_up(bits, shift, ends, bases, out):
    """Look up the slot of each double, given by its bits (uint64), in the table."""
    for i in range(len(bits)):
        b = bits[i]
        cell = b >> np.uint64(shift)
        out[i] = bases[cell] + np.int32(b > ends[cell])


@lean
def tally(bits, shift, ends, bases, counts):
    """Count each double, given by its bits (uint64), in its slot."""
    for i in range(len(bits)):
        b = bits[i]
        cell = b >> np.uint64(shift)
        counts[np.uint64(bases[cell] + np.int32(b > ends[cell]))] += np.int32(1)


@lean
def tally_weights(bits, weights, shift, ends, bases, counts):
    """Add the weight of each double, given by its bits (uint64), to its slot."""
    for i in range(len(bits)):
        b = bits[i]
        cell = b >> np.uint64(shift)
        counts[np.uint64(bases[cell] + np.int32(b > ends[cell]))] += weights[i]


def work_out(numbers: np.ndarray, slots: Slots) -> np.ndarray:
    """Compute the slot of each double (int32) by its logarithm, for accuracies without a table."""
    numbers_out = np.empty(len(numbers), np.int32)
    for at in range(0, len(numbers), _AT_ONCE):
        bits = numbers[at : at + _AT_ONCE].view(np.int64)
        magnitude = bits & _MAGNITUDE
        own = keys_of(bits, slots.multiplier) - slots.first + 1
        own[magnitude < slots.least] = 0
        own[magnitude > _INFINITY] = slots.spread - 1
        numbers_out[at : at + len(bits)] = own + np.where(bits < 0, slots.spread, 0)
    return numbers_out


@lru_cache(maxsize=16)
def slots_of(gamma: float) -> Slots:
    """Return the slots for buckets with the ratio `gamma`.

    >>> slots = slots_of(1.02 / 0.98)
    >>> slots.first, slots.spread, len(slots.ends)
    (-17706, 35504, 262144)
    """
    multiplier = math.log(2) / math.log(gamma)
    extremes = np.array([sys.float_info.min * gamma, sys.float_info.max, math.inf]).view(np.int64)
    least, largest, infinity = (int(x) for x in extremes)
    first, last, infinite = (int(key) for key in keys_of(extremes, multiplier))
    spread = infinite - first + 3
    nothing = Slots(multiplier, least, first, spread, 0, np.empty(0, np.uint64), np.empty(0, np.int32))
    if (last - first) / 2046 > 1 << _FINEST_CELLS:
        return nothing
    slot_ends = np.concatenate([[least - 1], _ends(first, last, multiplier), [largest, infinity]])
    for fineness in range(3, _FINEST_CELLS + 1):
        shift = 52 - fineness
        if (np.diff(slot_ends >> shift) > 0)[:-1].all():
            break
    else:
        return nothing
    starts = np.arange(1 << (63 - shift), dtype=np.int64) << shift
    slot = np.searchsorted(slot_ends, starts)
    ends = np.append(slot_ends, np.iinfo(np.int64).max)[slot].view(np.uint64)
    bases = slot + np.where(slot > last - first + 1, infinite - last - 1, 0)
    return nothing._replace(
        shift=shift,
        ends=np.concatenate([ends, ends | np.uint64(1 << 63)]),
        bases=np.concatenate([bases, bases + spread]).astype(np.int32),
    )


def _ends(first: int, last: int, multiplier: float) -> np.ndarray:
    """Return the bits of the largest double of each key from `first` on, before `last`."""
    wanted = np.arange(first, last)
    whole, rest = np.divmod(wanted / multiplier, 1.0)
    ends = np.ldexp(np.exp2(rest), whole.astype(np.int64)).view(np.int64) - _ULPS
    # By bisection over bits: keys are monotone in doubles, and ends are within ±`_ULPS` of the guess.
    step = _ULPS
    while step:
        ends += step * (keys_of(ends + step, multiplier) <= wanted)
        step //= 2
    return ends
