"""Move slices between one long buffer and many images."""

from __future__ import annotations

import numpy as np

from ...sketches.core.compilation.jit import lean


@lean
def gather(data, starts, lengths, out):
    """Copy the slices ``data[starts[i]:starts[i] + lengths[i]]``, concatenated, to `out`."""
    at = np.int64(0)
    for i in range(len(starts)):
        for b in range(lengths[i]):
            out[at + b] = data[starts[i] + b]
        at += lengths[i]


@lean
def scatter(data, starts, lengths, out):
    """Copy `data`, split into slices of these lengths, to the places ``out[starts[i]:]``."""
    at = np.int64(0)
    for i in range(len(starts)):
        for b in range(lengths[i]):
            out[starts[i] + b] = data[at + b]
        at += lengths[i]
