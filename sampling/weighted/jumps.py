"""Jumps over unequal weights, a block at a time and yet to the bit the same for any cut into batches.

Sums of floats depend on their grouping, so each weight is first rounded to a multiple of a unit so small that
it doesn't matter, 2^−45 of the mean jump, and so large that all sums below a jump's length are exact. The
unit follows from the least priority kept, which stays the same for the whole jump.
"""

from __future__ import annotations

import math

import numpy as np

from ...sketches.core.jit import BLOCK, inner, lean, summing
from ..core.heaps import is_full
from ..core.priority import item_bits
from ..core.skip_kernel import draw_jump, fill, land

TOGETHER = 256
"""Weights that are added up at a time."""
_MOST_UNITS = 2.0**51


@inner
def unit_of(least):
    """The unit for jumps over a least priority: a power of two, jumps being shorter than 2^51 of it.

    An exponential number of 64 bits is below 45, so a jump is below 45 / −least < 2^6 · 2^exponent.
    """
    return math.ldexp(1.0, math.frexp(-1.0 / least)[1] - 45)


@inner
def rounded(weight, unit):
    """A weight as a multiple of the unit, 2^51 at most: to 1.5 · 2^52 units no smaller part can be added."""
    all_bits = 1.5 * 2.0**52 * unit
    return (min(weight, _MOST_UNITS * unit) + all_bits) - all_bits


@summing
def _total(block):
    """The sum in whatever order is fastest: of multiples of one unit it is exact."""
    total = 0.0
    for i in range(len(block)):
        total += block[i]
    return total


@inner
def _round_block(block, unit, out):
    for i in range(len(block)):
        out[i] = rounded(block[i], unit)


@inner
def pass_by(weights, row, left, unit, scratch):
    """The row at which a jump of `left` ends, one past the last if none, and what is left of it then."""
    while row + TOGETHER <= len(weights):
        _round_block(weights[row : row + TOGETHER], unit, scratch)
        # Exact, as all are multiples of one unit: the jump ends at the same row for any cut into blocks.
        total = _total(scratch)
        if total > left:
            break
        left -= total
        row += TOGETHER
    while row < len(weights):
        weight = rounded(weights[row], unit)
        if weight > left:
            break
        left -= weight
        row += 1
    return row, left


@inner
def draw_rounded_jump(heap, slots, unit):
    """As `draw_jump`, in whole units."""
    if heap.left < 0.0:
        draw_jump(heap, slots)
        heap.left = rounded(heap.left, unit)


@lean
def update_one(heaps, slots, weights, items, first_item, entered, scratch):
    """Rows of those weights into group 0; a row of weight 0 is never sampled.

    `scratch` holds `TOGETHER` doubles.
    """
    heap = heaps[0]
    heap.seen += len(weights)
    count = np.int64(0)
    row = np.int64(0)
    while row < len(weights):
        if is_full(heap):
            unit = unit_of(slots.priorities[heap.start])
            draw_rounded_jump(heap, slots, unit)
            row, heap.left = pass_by(weights, row, heap.left, unit, scratch)
            if row == len(weights):
                break
            land(heap, slots, weights[row], first_item + count)
        elif weights[row] > 0.0:
            bits = item_bits(items, row)
            fill(heap, slots, weights[row], bits, first_item + count)
        else:
            row += 1
            continue
        entered[count] = row
        count += 1
        row += 1
    return count


@lean
def update_many(heaps, slots, groups, weights, items, first_item, entered):
    """Rows of those weights into their groups."""
    count = np.int64(0)
    for row in range(len(groups)):
        heap = heaps[groups[row]]
        heap.seen += 1
        if is_full(heap):
            unit = unit_of(slots.priorities[heap.start])
            draw_rounded_jump(heap, slots, unit)
            weight = rounded(weights[row], unit)
            if weight <= heap.left:
                heap.left -= weight
                continue
            land(heap, slots, weights[row], first_item + count)
        elif weights[row] > 0.0:
            bits = item_bits(items, row)
            fill(heap, slots, weights[row], bits, first_item + count)
        else:
            continue
        entered[count] = row
        count += 1
    return count


@lean
def bit_range(weights):
    """Least and greatest of the weights' bits as int64: numbers from 0.0 to infinity are in their order."""
    bits = weights.view(np.int64)
    least = np.int64(2**63 - 1)
    most = np.int64(-(2**63))
    for first in range(0, len(bits), BLOCK):
        block = bits[first : first + BLOCK]
        for i in range(len(block)):
            least = min(least, block[i])
            most = max(most, block[i])
    return least, most
