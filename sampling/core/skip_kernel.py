"""Which rows enter a full sample: not one draw a row, but one draw for how far to jump.

With −t the least priority kept, a row of weight w enters with probability 1 − exp(−w·t), so the weight
passed by before the next one enters is exponential of mean 1/t: draw it once, then only subtract (algorithm
A-ExpJ of Efraimidis and Spirakis 2006). With equal weights subtracting is arithmetic and the rows between
are not even read. What is left of a jump is kept between batches, so that any cut into batches takes the same
rows.
"""

from __future__ import annotations

import numpy as np

from ...sketches.core.jit import inner, lean
from ...sketches.core.random import step
from .heaps import UNDRAWN, is_full, push, replace
from .priority import absorb, exponential, exponential_below, item_bits


@inner
def fill(heap, slots, weight, bits, item):
    """An item into a group that isn't full, its priority drawn freely."""
    state = absorb(heap.state, bits)
    push(heap, slots, -exponential(state) / weight, item)
    heap.state = step(state)
    heap.left = UNDRAWN


@inner
def land(heap, slots, weight, item):
    """The item a jump ended at into a full group, its priority drawn above the least kept.

    Its bits are not absorbed: reading them would make the next jump wait for memory.
    """
    most = -slots.priorities[heap.start] * weight
    replace(heap, slots, -exponential_below(most, heap.state) / weight, item)
    heap.state = step(heap.state)
    heap.left = UNDRAWN


@inner
def draw_jump(heap, slots):
    """Draw how far to jump, if that is not yet drawn."""
    if heap.left < 0.0:
        heap.left = exponential(heap.state) / -slots.priorities[heap.start]
        heap.state = step(heap.state)


@lean
def update_one(heaps, slots, bits, first_item, entered):
    """Rows of weight 1 into group 0. Fills `entered` with those sampled, numbered from `first_item` on."""
    heap = heaps[0]
    rows = np.int64(len(entered))
    heap.seen += rows
    count = np.int64(0)
    row = np.int64(0)
    while row < rows:
        if is_full(heap):
            draw_jump(heap, slots)
            if heap.left >= rows - row:
                heap.left -= rows - row
                break
            # Whole rows of weight 1 that fit the jump are passed by; the row within which it ends enters.
            row += np.int64(heap.left)
            land(heap, slots, 1.0, first_item + count)
        else:
            fill(heap, slots, 1.0, item_bits(bits, row), first_item + count)
        entered[count] = row
        count += 1
        row += 1
    return count


@lean
def update_many(heaps, slots, groups, bits, first_item, entered):
    """Rows of weight 1 into their groups."""
    count = np.int64(0)
    for row in range(len(groups)):
        heap = heaps[groups[row]]
        heap.seen += 1
        if is_full(heap):
            draw_jump(heap, slots)
            if heap.left >= 1.0:
                heap.left -= 1.0
                continue
            land(heap, slots, 1.0, first_item + count)
        else:
            fill(heap, slots, 1.0, item_bits(bits, row), first_item + count)
        entered[count] = row
        count += 1
    return count
