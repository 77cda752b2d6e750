"""No union of HLL sketches answers more than the limit that is known without merging them."""

from __future__ import annotations

import datasketches
import numpy as np
import pyarrow as pa
import pytest

from streamgauge.sketches.hll import HLLGroups
from streamgauge.sketches.hll.estimate import composite_estimates, composite_limits, composite_table

from ...cases import each

UNIONS = 40


def limits(lg_k: int, groups: np.ndarray, images: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Of each group the union's estimate, and its limit."""
    each = HLLGroups(len(images), lg_k)
    each.merge(np.arange(len(images)), images)
    sums = {part: np.bincount(groups, result, UNIONS) for part, result in each.shares().items()}
    unions = HLLGroups(UNIONS, lg_k)
    unions.merge(groups, images)
    return unions.estimates(), unions.union_limits(sums)


@pytest.mark.slow
@each("lg_k", [4, 7, 8, 12])
@each("most", [3, 40, 700, 30_000])
@each("shared", [0.0, 0.9])
def test_limits_hold(lg_k: int, most: int, shared: float) -> None:
    """Of few values and of many, of the same ones and of others, some sketches merged before."""
    rng = np.random.default_rng([lg_k, most])
    parts = 12 * UNIONS
    sketches = HLLGroups(parts, lg_k)
    for part in range(parts):
        n = int(rng.integers(0, most))
        same = rng.random(n) < shared
        values = np.where(same, rng.integers(0, most, n), rng.integers(0, 1 << 62, n))
        sketches.update(np.full(n, part), values)
    images, groups = sketches.to_arrow(), rng.integers(0, UNIONS, parts)
    estimates, result = limits(lg_k, groups, images)
    assert (estimates <= result).all()
    # Halves merged before the others: their sums, not the order of the merges, decide.
    halves = HLLGroups(2 * UNIONS, lg_k)
    halves.merge(groups * 2 + (np.arange(parts) & 1), images)
    estimates, _ = limits(lg_k, np.arange(2 * UNIONS) // 2, halves.to_arrow())
    assert (estimates <= result).all()


def test_limits_are_near_where_sketches_have_little_in_common() -> None:
    rng = np.random.default_rng(5)
    n, parts = 20, 60
    sketches = HLLGroups(parts * UNIONS, 12)
    sketches.update(np.repeat(np.arange(parts * UNIONS), n), rng.integers(0, 1 << 62, n * parts * UNIONS))
    estimates, result = limits(12, np.arange(parts * UNIONS) // parts, sketches.to_arrow())
    assert (result / estimates).max() < 1.5


def test_nothing_is_known_of_sketches_of_another_size() -> None:
    peer = datasketches.hll_sketch(10)
    for value in range(2_000):
        peer.update(value)
    groups = HLLGroups(2, 12)
    groups.merge(np.array([0]), pa.array([peer.serialize_compact()]))
    limit, empty = groups.union_limits(groups.shares())
    assert limit == np.inf and empty < 1e-3


@pytest.mark.parametrize("lg_k", [4, 5, 6, 7, 11, 12, 16, 21])
def test_the_composite_estimators_limit_rises_with_the_registers(lg_k: int) -> None:
    """What the limits stand on: less left of the sum of inverse powers never lets it fall."""
    k = 1 << lg_k
    left = np.concatenate([np.linspace(k, k / 50, 60_000), k * np.geomspace(1 / 50, 1e-12, 2_000)])
    lg_ks, none = np.full(len(left), lg_k), np.full(len(left), k)
    result = np.empty(len(left))
    composite_limits(lg_k, left, none, composite_table(), result)
    assert (np.diff(result) >= -1e-9 * result[1:]).all()
    for zeros in (0, 1, k // 4, k // 2, k):
        some, most = np.empty(len(left)), np.empty(len(left))
        composite_estimates(lg_ks, left, np.full(len(left), zeros), composite_table(), some)
        composite_limits(lg_k, left, np.full(len(left), zeros), composite_table(), most)
        assert (some <= most).all()
