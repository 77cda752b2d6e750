"""Jumps over unequal weights, computed in blocks, with bit-identical results for any batching.

Sums of floats depend on their grouping, so each weight is first rounded to a multiple of a unit that is
negligibly small, 2^−45 of the mean jump, but large enough that all sums below a jump's length are exact. The
unit depends only on the least priority stored, which doesn't change during a jump.
"""

from __future__ import annotations

import math

import numpy as np

from ...sketches.core.compilation.jit import BLOCK, inner, lean, summing
from ..core.heaps import is_full
from ..core.priority import item_bits
from ..core.skip_kernel import draw_jump, fill, land

TOGETHER = 256
"""The number of weights summed at a time."""
_MOST_UNITS = 2.0**51


@inner
def unit_of(least):
    """Return the unit for jumps with this least priority: a power of two such that jumps are below 2^51
    units.

    An exponential random number of 64 bits is below 45, so a jump is below 45 / −least < 2^6 · 2^exponent.
    """
    return math.ldexp(1.0, math.frexp(-1.0 / least)[1] - 45)


@inner
def rounded(weight, unit):
    """Round a weight to a multiple of the unit, at most 2^51, by adding and subtracting 1.5 · 2^52 units."""
    all_bits = 1.5 * 2.0**52 * unit
    return (min(weight, _MOST_UNITS * unit) + all_bits) - all_bits


@summing
def _total(block):
    """Sum in the fastest order: the sum of multiples of one unit is exact."""
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
    """Return the row where a jump of `left` ends, one past the last if none, and the rest of the jump."""
    while row + TOGETHER <= len(weights):
        _round_block(weights[row : row + TOGETHER], unit, scratch)
        # Exact, because all are multiples of one unit: the jump ends at the same row for any division into
        # blocks.
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
    """Like `draw_jump`, in whole units."""
    if heap.left < 0.0:
        draw_jump(heap, slots)
        heap.left = rounded(heap.left, unit)


@lean
def update_one(heaps, slots, weights, items, first_item, entered, scratch):
    """Add rows with these weights to group 0; a row of weight 0 is never sampled.

    `scratch` has room for `TOGETHER` doubles.
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
    """Add rows with these weights to their groups."""
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
    """Return the least and greatest bits of the weights as int64; these have the order of numbers from 0.0
    up."""
    bits = weights.view(np.int64)
    least = np.int64(2**63 - 1)
    most = np.int64(-(2**63))
    for first in range(0, len(bits), BLOCK):
        block = bits[first : first + BLOCK]
        for i in range(len(block)):
            least = min(least, block[i])
            most = max(most, block[i])
    return least, most
