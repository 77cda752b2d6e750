"""HLL's bounds hold as often as they say, and are not much wider than the errors, at every count."""

from __future__ import annotations

import datasketches
import numpy as np
import pytest

from streamgauge.sketches.hll import HLL, HLLGroups
from streamgauge.sketches.hll.bounds import TAILS

from ...cases import each

SKETCHES = 600


def groups_of(lg_k: int, n: int) -> HLLGroups:
    """So many sketches of n distinct values each."""
    groups = HLLGroups(SKETCHES, lg_k)
    rng = np.random.default_rng([lg_k, n])
    groups.update(np.repeat(np.arange(SKETCHES), n), rng.integers(0, 1 << 62, SKETCHES * n))
    return groups


def check(groups: HLLGroups, n: int) -> None:
    for std_devs in (1, 2, 3):
        lower, upper = groups.bounds(std_devs)
        confidence = 1 - 2 * TAILS[std_devs - 1]
        trials = 3.5 * np.sqrt(confidence * (1 - confidence) / SKETCHES)
        assert np.mean((lower <= n) & (n <= upper)) >= confidence - trials - 0.002


@pytest.mark.parametrize(("lg_k", "n"), [(17, 2_000), (17, 4_900), (17, 8_200), (18, 16_000)])
def test_coupons(lg_k: int, n: int) -> None:
    """One collision is more than two of the standard deviations that the reference gives coupons."""
    groups = groups_of(lg_k, n)
    check(groups, n)
    lower, upper = groups.bounds(2)
    assert (upper - lower).max() <= 8


@each("lg_k", [4, 6, 8, 11])
@each("beyond", [0, 1, 3, 1.1, 1.3, 2.0, 8.0])
def test_the_first_registers(lg_k: int, beyond: float) -> None:
    switch = 8 if lg_k < 8 else 3 * (1 << lg_k) // 32 + 1
    n = switch + beyond if isinstance(beyond, int) else int(switch * beyond) + 1
    groups = groups_of(lg_k, n)
    check(groups, n)
    lower, upper = groups.bounds(2)
    error = 2 * np.sqrt(np.mean((groups.estimates() - n) ** 2))
    assert np.mean(upper - lower) / 2 <= 1.7 * error + 1.5


def test_a_sketch_that_never_had_coupons_has_wider_bounds() -> None:
    n, inside = 110, 0
    for seed in range(200):
        peer = datasketches.hll_sketch(10, datasketches.tgt_hll_type.HLL_8, True)
        for value in np.random.default_rng(seed).integers(0, 1 << 62, n).tolist():
            peer.update(value)
        read = HLL.from_bytes(peer.serialize_compact())
        assert read.estimate() == pytest.approx(peer.get_estimate())
        assert HLL.from_bytes(read.to_bytes()).bounds() == read.bounds()
        lower, upper = read.bounds()
        inside += lower <= n <= upper
    assert inside >= 181  # of 191 expected at least, less three standard deviations
    fresh = HLL(10).update(np.arange(n)).bounds()
    assert upper - lower > 1.5 * (fresh[1] - fresh[0])
