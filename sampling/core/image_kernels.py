"""Moving slices between one long buffer and many images, and their checksums."""

from __future__ import annotations

import numpy as np

from ...sketches.core.hash import murmur3
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


@lean
def checksums(data, bounds, seed, out):
    """The first half of the MurmurHash3 of each image ``data[bounds[i]:bounds[i + 1]]``.

    One after another, as images are long; `hash_bytes`, which takes many short strings in step, costs two
    seconds to compile.
    """
    for i in range(len(out)):
        out[i] = murmur3(data, bounds[i], bounds[i + 1], seed)[0]
