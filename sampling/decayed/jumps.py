"""Jumps over weights given by their logarithms, so that none overflows.

With T the least priority stored, ln w − ln E, a row enters with probability 1 − exp(−x), x = exp(ln w − T),
so a jump covers a total of x that is exponential with mean 1.
"""

from __future__ import annotations

import math

import numpy as np

from ...sketches.core.compilation.jit import lean
from ...sketches.core.hashing.random import step
from ..core.heaps import UNDRAWN, is_full, push, replace
from ..core.priority import absorb, exponential, exponential_below, item_bits

_LEAST = 5e-324


@lean
def update(heaps, slots, groups, log_weights, bits, first_item, entered):
    """Add rows to their groups, or all to group 0 if `groups` is empty."""
    count = np.int64(0)
    for row in range(len(log_weights)):
        heap = heaps[groups[row] if len(groups) else 0]
        heap.seen += 1
        log_weight = log_weights[row]
        if is_full(heap):
            if heap.left < 0.0:
                heap.left = exponential(heap.state)
                heap.state = step(heap.state)
            x = math.exp(log_weight - slots.priorities[heap.start])
            if x <= heap.left:
                heap.left -= x
                continue
            # The logarithm of 0 would be an infinite priority.
            least = max(exponential_below(x, heap.state), _LEAST)
            replace(heap, slots, log_weight - math.log(least), first_item + count)
        else:
            heap.state = absorb(heap.state, item_bits(bits, row))
            drawn = log_weight - math.log(exponential(heap.state))
            push(heap, slots, drawn, first_item + count)
        heap.state = step(heap.state)
        heap.left = UNDRAWN
        entered[count] = row
        count += 1
    return count
