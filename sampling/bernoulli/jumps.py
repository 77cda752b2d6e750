"""Jumps over rows with equal sampling probability: a geometric number of rows at a time."""

from __future__ import annotations

import numpy as np

from ...sketches.core.compilation.jit import inner, lean
from ...sketches.core.hashing.random import step
from ..core.heaps import UNDRAWN
from ..core.priority import exponential


@inner
def _draw_jump(heap, mean):
    if heap.left < 0.0:
        heap.left = exponential(heap.state) * mean
        heap.state = step(heap.state)


@inner
def _land(heap):
    """Return the random state of the row where a jump ended."""
    state = heap.state
    heap.state = step(state)
    heap.left = UNDRAWN
    return state


@lean
def pick_one(heaps, rows, mean, chosen, states):
    """Jump over rows of group 0, `mean` on average between two sampled rows; return how many are sampled."""
    heap = heaps[0]
    count = np.int64(0)
    row = np.int64(0)
    while row < rows:
        _draw_jump(heap, mean)
        if heap.left >= rows - row:
            heap.left -= rows - row
            break
        row += np.int64(heap.left)
        chosen[count] = row
        states[count] = _land(heap)
        count += 1
        row += 1
    return count


@lean
def pick_many(heaps, groups, mean, chosen, states):
    """Jump over the rows of each group."""
    count = np.int64(0)
    for row in range(len(groups)):
        heap = heaps[groups[row]]
        _draw_jump(heap, mean)
        if heap.left >= 1.0:
            heap.left -= 1.0
            continue
        chosen[count] = row
        states[count] = _land(heap)
        count += 1
    return count
