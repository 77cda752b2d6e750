"""Values that stand for many: a weight of w does what w equal values do, to the same error."""

from __future__ import annotations

from collections.abc import Callable

import datasketches
import numpy as np
import pyarrow as pa
import pytest

from streamgauge.sketches.core.protocol import SketchError
from streamgauge.sketches.kll import KLL, KLLGroups
from streamgauge.sketches.kll.levels import normalized_rank_error

Weights = Callable[[np.random.Generator, int], np.ndarray]
WEIGHTS: dict[str, Weights] = {
    "ones": lambda rng, n: np.ones(n, np.int64),
    "few": lambda rng, n: rng.integers(1, 10, n),
    "zeros among them": lambda rng, n: rng.integers(0, 3, n),
    "heavy tails": lambda rng, n: (1 + rng.pareto(1.1, n) * 10).astype(np.int64),
    "heavy first": lambda rng, n: np.where(np.arange(n) < 5, 1 << 30, 1 << 18),
    "heavy last": lambda rng, n: np.where(np.arange(n) > n - 5, 1 << 40, 1 << 28),
    "powers": lambda rng, n: np.int64(1) << rng.integers(0, 40, n),
}


def rank_error(sketch: KLL, values: np.ndarray, weights: np.ndarray) -> float:
    """The largest rank error at any value, naively."""
    order = np.argsort(values, kind="stable")
    points, first = np.unique(values[order], return_index=True)
    up_to = np.cumsum(weights[order].astype(float))[np.append(first[1:], len(values)) - 1]
    return float(np.abs(sketch.cdf(points)[:-1] - up_to / up_to[-1]).max())


def trials(few: int, many: int) -> pytest.MarkDecorator:
    """How many trials a test makes; the many are for `make soak`."""
    return pytest.mark.parametrize("trials", [few, pytest.param(many, marks=pytest.mark.soak)])


@trials(25, 100)
@pytest.mark.parametrize("k", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_ranks_of_weighted_values_stay_within_the_bound_at_its_confidence(k: int, trials: int) -> None:
    broken = {}
    for name, weights_of in WEIGHTS.items():
        rng = np.random.default_rng(k)
        values, weights = rng.normal(size=5_000), weights_of(rng, 5_000)
        errors = []
        for seed in range(trials):
            sketch = KLL(k, seed=seed).update(values, weight=weights)
            assert (sketch.n, sketch.exact) == (weights.sum(), False), name
            errors.append(rank_error(sketch, values, weights))
        broken[name] = sum(error > normalized_rank_error(k) for error in errors)
    assert max(broken.values()) <= 2 + 0.03 * trials, broken  # 1 % promised: one of 100 expected


@pytest.mark.slow
@trials(25, 100)
def test_unweighted_and_weighted_values_and_merges_mix_within_the_bound(trials: int) -> None:
    rng, broken = np.random.default_rng(4), 0
    values, weights = rng.lognormal(size=30_000), np.ones(30_000, np.int64)
    weights[10_000:20_000] = rng.integers(1, 50, 10_000)
    parts = [slice(0, 10_000), slice(10_000, 20_000), slice(20_000, 30_000)]
    for seed in range(trials):
        sketch = KLL(seed=seed).update(values[parts[0]]).update(values[parts[1]], weight=weights[parts[1]])
        other = KLL(seed=seed + 1000)
        for piece in np.array_split(values[parts[2]], 50):
            other.merge(KLL(seed=seed + 2000).update(piece))
        sketch.merge(other)
        broken += rank_error(sketch, values, weights) > sketch.normalized_rank_error()
    assert broken <= 2 + 0.03 * trials


def test_a_weighted_value_is_what_as_many_values_are() -> None:
    few = KLL(seed=1).update([3.0, 1.0, 2.0], weight=[2, 0, 3])
    assert few == KLL(seed=1).update([3.0, 3.0, 2.0, 2.0, 2.0]) and few.exact
    assert (few.low, few.high, few.rank(2)) == (2.0, 3.0, 0.6)
    for kind in ("double", "float", "long"):
        sketch = KLL(kind=kind, seed=1).update([5], weight=1_000_000_007)
        assert (sketch.n, sketch.low, sketch.high, sketch.quantile(0.5)) == (1_000_000_007, 5, 5, 5)
        assert KLL.from_bytes(sketch.to_bytes(), kind) == sketch
        sketch.update(np.arange(100), weight=1_000_000)
        assert (sketch.low, sketch.high, sketch.quantile(0.9)) == (0, 99, 5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["double", "float", "long"])
def test_any_cut_of_weighted_values_gives_the_same_bytes(kind: str) -> None:
    rng = np.random.default_rng(6)
    values = (rng.normal(size=20_000) * 1000).astype({"double": "f8", "float": "f4", "long": "i8"}[kind])
    for name, weights_of in WEIGHTS.items():
        weights = weights_of(rng, len(values))
        whole = KLL(kind=kind, seed=2).update(values, weight=weights)
        for step in (1, 7, 3_000):
            end = 500 if step == 1 else len(values)
            parts = KLL(kind=kind, seed=2)
            for at in range(0, end, step):
                parts.update(values[at : at + step], weight=weights[at : at + step])
            parts.update(values[end:], weight=weights[end:])
            assert parts == whole, (name, step)


def test_groups_take_weights_as_single_sketches_do() -> None:
    rng = np.random.default_rng(7)
    values, weights = rng.normal(size=5_000), rng.integers(0, 100, 5_000)
    numbers = np.minimum(rng.geometric(0.2, 5_000) - 1, 9)
    groups = KLLGroups(10, seed=3)
    groups.update(numbers, values, weight=weights)
    parts = KLLGroups(10, seed=3)
    for at in range(0, 5_000, 33):
        parts.update(numbers[at : at + 33], values[at : at + 33], weight=weights[at : at + 33])
    assert parts.to_arrow() == groups.to_arrow()
    for g in range(10):
        own = numbers == g
        assert groups[g].n == weights[own].sum()
        assert rank_error(groups[g], values[own], weights[own]) <= 2 * groups[g].normalized_rank_error()


def test_weights_past_the_limit_change_nothing() -> None:
    sketch = KLL(seed=1).update([1.0, 2.0], weight=[1 << 61, 5])
    before = sketch.to_bytes()
    with pytest.raises(SketchError, match="counts at most"):
        sketch.update([1.0, 3.0], weight=[1, 1 << 61])
    assert sketch.to_bytes() == before
    assert sketch.update([3.0, np.nan], weight=[(1 << 61) - 5, 1 << 61]).n == 1 << 62
    groups = KLLGroups(2)
    groups.update([0, 1], [1.0, 2.0], weight=[1 << 61, 1 << 61])
    with pytest.raises(SketchError, match="counts at most"):
        groups.update([1, 0, 1], [1.0, 3.0, 4.0], weight=[1 << 60, 5, (1 << 60) + 1])
    assert [groups[g].n for g in range(2)] == [1 << 61, 1 << 61]


def test_cpp_reads_weighted_sketches() -> None:
    rng = np.random.default_rng(8)
    values, weights = rng.normal(size=10_000), rng.integers(1, 1000, 10_000)
    sketch = KLL(seed=4).update(values, weight=weights)
    peer = datasketches.kll_doubles_sketch.deserialize(sketch.to_bytes())
    assert peer.n == sketch.n == weights.sum()
    points = [-1.0, 0.0, 1.5]
    assert peer.get_cdf(points, True)[:-1] == pytest.approx(sketch.cdf(points)[:-1])


@pytest.mark.slow
@trials(10, 40)
def test_many_deep_images_merge_within_the_bound(trials: int) -> None:
    rng, broken = np.random.default_rng(9), 0
    for trial in range(trials):
        values = rng.normal(size=200_000)
        parts = KLLGroups(100, k=200, seed=trial)
        parts.update(np.repeat(np.arange(100), 2_000), values)
        merged = KLLGroups(2, k=200, seed=trial)
        merged.merge(np.arange(100) % 2, parts.to_arrow())
        merged.merge([0], merged.to_arrow().slice(1))
        assert merged[0].n == 200_000 and merged[0].low == values.min() and merged[0].high == values.max()
        broken += rank_error(merged[0], values, np.ones(200_000)) > merged[0].normalized_rank_error()
    assert broken <= 2 + 0.03 * trials


def test_images_that_would_count_too_many_are_refused_whole() -> None:
    heavy = KLL(seed=1).update([1.0], weight=(1 << 61) + 1)
    deep = KLL(seed=1).update(np.arange(10_000.0))
    before = deep.to_bytes()
    groups = KLLGroups(1)
    groups.merge([0], pa.array([before]))
    with pytest.raises(SketchError, match="counts at most"):
        groups.merge([0, 0], pa.array([heavy.to_bytes()] * 2))
    assert groups[0].n == 10_000
