"""A heap of times: the latest of many, with the least at hand."""

from __future__ import annotations

import numpy as np

from ..core.jit import inner


@inner
def replace_least(heap, time):
    """Put a time into a heap in place of the least, which is its first."""
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
