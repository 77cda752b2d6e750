"""The one random stream: SplitMix64 as published, evenly spread, a state of its own for every group."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from streamgauge.sketches.core.hashing.random import GOLDEN, base_state, group_states, mixed, uniform
from streamgauge.sketches.core.protocol import SketchError


@numba.njit
def drawn(states):
    out = np.empty(len(states), np.float64)
    for i in range(len(states)):
        out[i] = uniform(states[i])
    return out


def test_it_is_the_published_generator() -> None:
    """The first numbers of Vigna's `splitmix64.c` from the state 1234567."""
    state, numbers = np.array([1234567], np.uint64), []
    for _ in range(4):
        state = state + GOLDEN
        numbers.append(int(mixed(state)[0]))
    wanted = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert numbers == wanted


def test_numbers_are_spread_evenly_and_never_reach_the_ends() -> None:
    every = drawn(group_states(base_state("test", 5), 0, 4000))
    assert every.min() > 0.0 and every.max() < 1.0
    ranks = np.arange(1, 4001) / 4000
    assert np.abs(np.sort(every) - ranks).max() < 1.95 / np.sqrt(4000)  # Kolmogorov-Smirnov at 99.9 %


def test_groups_added_later_get_the_states_they_would_have_had() -> None:
    base = base_state("test", 1)
    whole = group_states(base, 0, 100)
    assert len(np.unique(whole)) == 100
    assert np.array_equal(np.concatenate([group_states(base, 0, 7), group_states(base, 7, 100)]), whole)
    assert len(group_states(base, 5, 5)) == len(group_states(base, 5, 3)) == 0


@pytest.mark.parametrize("seed", ["x", 1.5, 2**64])
def test_other_seeds_are_refused_by_the_familys_name(seed: object) -> None:
    with pytest.raises(SketchError, match="KLL: seed"):
        base_state("KLL", seed)  # type: ignore[arg-type]
