"""Random priorities: what decides which rows stand for all.

An item of weight w gets the priority −E / w, E an exponential number of mean 1. A sample is the k items of
greatest priority, so samples merge by taking the greatest of both. Equal weights give a uniform sample,
others one without replacement in proportion to them (Efraimidis and Spirakis, *Weighted random sampling with
a reservoir*, 2006: the logarithm of their key u^(1/w)). Weights that grow without end, as those of forward
decay, are taken by their logarithms: the priority is then ln w − ln E, the same order on another scale.

The generator is SplitMix64 (Steele, Lea and Flood 2014), its state one uint64 that a kernel is handed and
gives back. Each item taken is absorbed into the state, so two samples that were given the same seed by
mistake part ways with their first different item.
"""

from __future__ import annotations

import math
import secrets

import numpy as np

from ...sketches.core.jit import inlined, kernel
from ...sketches.core.parameters import seeded

_ODD = 0xD1342543DE82EF95
_UNIT = 2.0**-64
_ALMOST_ONE = 1.0 - 2.0**-53


@inlined
def mix(z):
    """SplitMix64's finaliser: 64 bits in, 64 well-mixed bits out, one to one."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inlined
def absorb(state, bits):
    """The state after an item of those bits."""
    return mix((state ^ bits) + np.uint64(0x9E3779B97F4A7C15))


@inlined
def step(state):
    """The state after one number was drawn; the number is `uniform` of it."""
    return state + np.uint64(0x9E3779B97F4A7C15)


@inlined
def uniform(state):
    """A number in (0, 1) from a state, to 64 bits near 0, where priorities are decided."""
    return min((np.float64(mix(state)) + 0.5) * _UNIT, _ALMOST_ONE)


@inlined
def exponential(state):
    """An exponential number of mean 1 from a state, exact near 0."""
    return -math.log1p(-uniform(state))


@inlined
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


@inlined
def item_bits(numbers, offsets, data, row):
    """64 bits of a row's item to absorb: the number itself, or where there are none FNV-1a of the string."""
    if len(numbers):
        return np.uint64(numbers[row])
    bits = np.uint64(0xCBF29CE484222325)
    for at in range(offsets[row], offsets[row + 1]):
        bits = (bits ^ np.uint64(data[at])) * np.uint64(0x100000001B3)
    return bits


@kernel
def group_states(base, start, out):
    """Fill `out` with a state of its own for each group from `start` on, all following from `base`."""
    for i in range(len(out)):
        out[i] = mix(base ^ mix(np.uint64(start + i) + np.uint64(0x9E3779B97F4A7C15)))


def base_state(seed: int | None) -> int:
    """The state a seed stands for; without one 64 bits of the system's entropy, other ones at every call.

    >>> base_state(1) == base_state(1), base_state(None) == base_state(None)
    (True, False)
    """
    given = seeded("a sample", seed)
    return secrets.randbits(64) if given is None else (given * _ODD + 1) % 2**64
