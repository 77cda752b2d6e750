"""Select the k-th smallest number without sorting."""

from __future__ import annotations

import numpy as np

from ..compilation.jit import inner


@inner
def select(values, k):
    """Return the k-th smallest of an array (from 0) by quick-select, which reorders the values."""
    left = np.int64(0)
    right = np.int64(len(values) - 1)
    while left < right:
        pivot = values[(left + right) >> 1]
        i, j = left, right
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if k <= j:
            right = j
        elif k >= i:
            left = i
        else:
            break
    return values[k]
