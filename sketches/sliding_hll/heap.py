"""A min-heap of times that keeps the latest of many."""

from __future__ import annotations

import numpy as np

from ..core.compilation.jit import inner


@inner
def replace_least(heap, time):
    """Replace the least time of a heap, which is its first, by another."""
    at = np.uint64(0)
    n = np.uint64(len(heap))
    while True:
        child = np.uint64(2) * at + np.uint64(1)
        if child + np.uint64(1) < n and heap[child + np.uint64(1)] < heap[child]:
            child += np.uint64(1)
        if child >= n or heap[child] >= time:
            heap[at] = time
            return
        heap[at] = heap[child]
        at = child
