"""Moving slices between one long buffer and many images."""

from __future__ import annotations

import numpy as np

from ...sketches.core.jit import kernel


@kernel
def gather(data, starts, lengths, out):
    """The slices ``data[starts[i]:starts[i] + lengths[i]]`` one after the other into `out`."""
    at = np.int64(0)
    for i in range(len(starts)):
        for b in range(lengths[i]):
            out[at + b] = data[starts[i] + b]
        at += lengths[i]


@kernel
def scatter(data, starts, lengths, out):
    """`data`, cut into slices of those lengths, to the places ``out[starts[i]:]``."""
    at = np.int64(0)
    for i in range(len(starts)):
        for b in range(lengths[i]):
            out[starts[i] + b] = data[at + b]
        at += lengths[i]


@kernel
def descending(priority, sizes, bound):
    """The first sample whose priorities aren't finite, falling and below `bound`, −1 if all are."""
    at = np.int64(0)
    for i in range(len(sizes)):
        least = bound
        for j in range(at, at + sizes[i]):
            if not np.isfinite(priority[j]) or priority[j] > least or priority[j] >= bound:
                return i
            least = priority[j]
        at += sizes[i]
    return -1
