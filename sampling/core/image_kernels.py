"""Moving slices between one long buffer and many images."""

from __future__ import annotations

import numpy as np

from ...sketches.core.jit import lean


@lean
def gather(data, starts, lengths, out):
    """The slices ``data[starts[i]:starts[i] + lengths[i]]`` one after the other into `out`."""
    at = np.int64(0)
    for i in range(len(starts)):
        for b in range(lengths[i]):
            out[at + b] = data[starts[i] + b]
        at += lengths[i]


@lean
def scatter(data, starts, lengths, out):
    """`data`, cut into slices of those lengths, to the places ``out[starts[i]:]``."""
    at = np.int64(0)
    for i in range(len(starts)):
        for b in range(lengths[i]):
            out[starts[i] + b] = data[at + b]
        at += lengths[i]
