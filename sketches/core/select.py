"""The k-th smallest of some numbers, without sorting them."""

from __future__ import annotations

import numpy as np

from .jit import inner


@inner
def select(values, k):
    """The k-th smallest of an array (from 0), found by quick-select, which moves the values about."""
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
