"""Random priorities, which decide which rows represent all rows.

An item of weight w gets the priority −E / w, where E is exponential with mean 1. A sample is the k items with
the greatest priorities, so samples are merged by selecting the greatest of both. Equal weights give a uniform
sample, other weights a sample without replacement in proportion to them (Efraimidis and Spirakis, *Weighted
random sampling with a reservoir*, 2006: the logarithm of their key u^(1/w)). Weights that grow without bound,
as in forward decay, are used by their logarithms: the priority is then ln w − ln E, the same order on another
scale.

Random numbers come from `hashing.random`. Each sampled item is absorbed into the state, so two samples with
the same seed by mistake diverge at their first different item.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...sketches.core.compilation.jit import inner
from ...sketches.core.hashing.random import GOLDEN, mix, uniform


@inner
def absorb(state, bits):
    """Return the state after absorbing an item with these bits."""
    return mix((state ^ bits) + GOLDEN)


@inner
def exponential(state):
    """Return an exponential number with mean 1 from a state, exact near 0."""
    return -math.log1p(-uniform(state))


@inner
def exponential_below(x, state):
    """Return an exponential number from a state, conditioned to be below `x`, as needed after a jump.

    It inverts the truncated distribution: for small x, which a long stream reaches, by the first terms of the
    series, which are exact there.
    """
    u = uniform(state)
    if x < 1e-4:
        y = u * x * (1.0 - x * (0.5 - x * (1.0 / 6.0 - x * (1.0 / 24.0))))
        return y * (1.0 + y * (0.5 + y * (1.0 / 3.0 + y * 0.25)))
    return -math.log1p(u * math.expm1(-x))


class Bits(NamedTuple):
    """The bits of a column of items for kernels: numbers as int64, or the offsets and bytes of strings."""

    numbers: np.ndarray
    offsets: np.ndarray
    data: np.ndarray


@inner
def item_bits(items, row):
    """Return 64 bits of a row's item to absorb: the number itself, or a string's FNV-1a hash."""
    if len(items.numbers):
        return np.uint64(items.numbers[row])
    bits = np.uint64(0xCBF29CE484222325)
    for at in range(items.offsets[row], items.offsets[row + 1]):
        bits = (bits ^ np.uint64(items.data[at])) * np.uint64(0x100000001B3)
    return bits
