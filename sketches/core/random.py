"""The one seeded random stream: SplitMix64, so that a run can be repeated and a group has numbers of its own.

A state is one uint64 that a kernel is handed and gives back; nothing is drawn from a global generator. `mix`
turns a state into 64 random bits, `step` goes on to the next state. A sketch that must draw as Java does
takes `java_random` instead.

Source: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.
"""

from __future__ import annotations

import secrets

import numpy as np

from .jit import inner
from .parameters import seeded

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""What a state grows by: 2^64 over the golden ratio, odd."""
_ODD = 0xD1342543DE82EF95
_UNIT = 2.0**-64
_ALMOST_ONE = 1.0 - 2.0**-53


def mixed(z):
    """SplitMix64's finaliser: 64 bits in, 64 well-mixed bits out, one to one; of uint64 arrays too."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


mix = inner(mixed)
"""`mixed` for kernels."""


@inner
def step(state):
    """The state after one number was drawn."""
    return state + GOLDEN


@inner
def uniform(state):
    """A number in (0, 1) from a state: evenly spread, to 64 bits near 0."""
    return min((np.float64(mix(state)) + 0.5) * _UNIT, _ALMOST_ONE)


def base_state(family: str, seed: int | None) -> np.uint64:
    """The state from which those of all groups follow: a seed's, or a random one without a seed."""
    given = seeded(family, seed)
    return np.uint64(secrets.randbits(64) if given is None else (given * _ODD + 1) % 2**64)


def group_states(base: np.uint64, start: int, end: int) -> np.ndarray:
    """A state of its own (uint64) for each group from `start` up to `end`, all following from `base`.

    >>> base = base_state("Reservoir", 1)
    >>> bool((group_states(base, 2, 4) == group_states(base, 0, 4)[2:]).all())
    True
    """
    numbers = np.arange(start, max(start, end), dtype=np.uint64)
    return np.asarray(mixed(base ^ mixed(numbers + GOLDEN)))
