"""Select the rows that enter a full sample with one random draw per jump, not one per row.

With −t the least priority stored, a row of weight w enters with probability 1 − exp(−w·t), so the weight
skipped before the next row enters is exponential with mean 1/t: draw it once, then only subtract (algorithm
A-ExpJ of Efraimidis and Spirakis 2006). With equal weights, subtraction is arithmetic, and the rows in
between are not even read. The rest of a jump is stored between batches, so any batching selects the same
rows.
"""

from __future__ import annotations

import numpy as np

from ...sketches.core.compilation.jit import inner, lean
from ...sketches.core.hashing.random import step
from .heaps import UNDRAWN, is_full, push, replace
from .priority import absorb, exponential, exponential_below, item_bits


@inner
def fill(heap, slots, weight, bits, item):
    """Add an item to a group that isn't full, with an unconditional random priority."""
    state = absorb(heap.state, bits)
    push(heap, slots, -exponential(state) / weight, item)
    heap.state = step(state)
    heap.left = UNDRAWN


@inner
def land(heap, slots, weight, item):
    """Add the item where a jump ended to a full group, with a random priority above the least stored.

    Its bits are not absorbed, because reading them would make the next jump wait for memory.
    """
    most = -slots.priorities[heap.start] * weight
    replace(heap, slots, -exponential_below(most, heap.state) / weight, item)
    heap.state = step(heap.state)
    heap.left = UNDRAWN


@inner
def draw_jump(heap, slots):
    """Draw the length of the jump, if not yet drawn."""
    if heap.left < 0.0:
        heap.left = exponential(heap.state) / -slots.priorities[heap.start]
        heap.state = step(heap.state)


@lean
def update_one(heaps, slots, bits, first_item, entered):
    """Add rows of weight 1 to group 0. Fills `entered` with sampled rows, numbered from `first_item` on."""
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
            # Rows of weight 1 that fit completely into the jump are skipped; the row in which it ends enters.
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
    """Add rows of weight 1 to their groups."""
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
