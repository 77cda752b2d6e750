"""Random priorities: what decides which rows stand for all.

An item of weight w gets the priority −E / w, E an exponential number of mean 1. A sample is the k items of
greatest priority, so samples merge by taking the greatest of both. Equal weights give a uniform sample,
others one without replacement in proportion to them (Efraimidis and Spirakis, *Weighted random sampling with
a reservoir*, 2006: the logarithm of their key u^(1/w)). Weights that grow without end, as those of forward
decay, are used by their logarithms: the priority is then ln w − ln E, the same order on another scale.

Random numbers come from `sketches.core.random`. Each sampled item is absorbed into the state, so two samples
that were given the same seed by mistake part ways with their first different item.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...sketches.core.jit import inner
from ...sketches.core.random import GOLDEN, mix, uniform


@inner
def absorb(state, bits):
    """The state after an item of those bits."""
    return mix((state ^ bits) + GOLDEN)


@inner
def exponential(state):
    """An exponential number of mean 1 from a state, exact near 0."""
    return -math.log1p(-uniform(state))


@inner
def exponential_below(x, state):
    """An exponential number from a state, given that it is below `x`: what a jump leaves to draw.

    By inverting the distribution cut off there: by the first terms of the series where x is small, which is
    where a long stream gets to, and exact there.
    """
    u = uniform(state)
    if x < 1e-4:
        y = u * x * (1.0 - x * (0.5 - x * (1.0 / 6.0 - x * (1.0 / 24.0))))
        return y * (1.0 + y * (0.5 + y * (1.0 / 3.0 + y * 0.25)))
    return -math.log1p(u * math.expm1(-x))


class Bits(NamedTuple):
    """A column of items as kernels read its bits: numbers as int64, or the offsets and bytes of strings."""

    numbers: np.ndarray
    offsets: np.ndarray
    data: np.ndarray


@inner
def item_bits(items, row):
    """64 bits of a row's item to absorb: the number itself, or of a string its FNV-1a hash."""
    if len(items.numbers):
        return np.uint64(items.numbers[row])
    bits = np.uint64(0xCBF29CE484222325)
    for at in range(items.offsets[row], items.offsets[row + 1]):
        bits = (bits ^ np.uint64(items.data[at])) * np.uint64(0x100000001B3)
    return bits
