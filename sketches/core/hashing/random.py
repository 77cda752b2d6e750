"""Seeded random numbers by SplitMix64, so that runs are reproducible and each group has its own numbers.

A state is one uint64 that a kernel receives and returns; nothing uses a global generator. `mix` turns a state
into 64 random bits, `step` advances to the next state. A sketch that must draw the same numbers as Java uses
`java_random` instead.

Source: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.
"""

from __future__ import annotations

import secrets

import numpy as np

from ..compilation.jit import inner
from ..parameters import seeded

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""The increment of a state: 2^64 divided by the golden ratio, odd."""
_ODD = 0xD1342543DE82EF95
_UNIT = 2.0**-64
_ALMOST_ONE = 1.0 - 2.0**-53


def mixed(z):
    """SplitMix64's finaliser: a bijection from 64 bits to 64 well-mixed bits; also for uint64 arrays."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


mix = inner(mixed)
"""`mixed` for kernels."""


@inner
def step(state):
    """Return the state after drawing one number."""
    return state + GOLDEN


@inner
def uniform(state):
    """Return a uniform number in (0, 1) from a state, with 64-bit resolution near 0."""
    return min((np.float64(mix(state)) + 0.5) * _UNIT, _ALMOST_ONE)


def base_state(family: str, seed: int | None) -> np.uint64:
    """Return the state from which all groups' states derive: from a seed, or random without one."""
    given = seeded(family, seed)
    return np.uint64(secrets.randbits(64) if given is None else (given * _ODD + 1) % 2**64)


def group_states(base: np.uint64, start: int, end: int) -> np.ndarray:
    """Return a separate state (uint64) for each group from `start` to `end`, all derived from `base`.

    >>> base = base_state("Reservoir", 1)
    >>> bool((group_states(base, 2, 4) == group_states(base, 0, 4)[2:]).all())
    True
    """
    numbers = np.arange(start, max(start, end), dtype=np.uint64)
    return np.asarray(mixed(base ^ mixed(numbers + GOLDEN)))
