"""Weighted samples: inclusion by theory, jumps that keep no count of batches, weights of any size."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.sampling.weighted import WeightedReservoir, WeightedReservoirGroups
from streamgauge.sketches.core.protocol import SketchError

from ..chance import deviation, included, merged, poisson_chances, repeat, successive

RUNS = 4000
WEIGHTS = np.array([1.0, 2.0, 3.0, 0.5, 10.0, 1.0, 0.0, 4.0])


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_inclusion_is_that_of_successive_sampling(k: int) -> None:
    groups = repeat(WeightedReservoirGroups(RUNS, k, seed=1), np.arange(8), weight=WEIGHTS)
    assert abs(deviation(included(groups, 8), RUNS * successive(WEIGHTS, k), RUNS)) < 4


@pytest.mark.parametrize("order", [1, -1])
def test_inclusion_does_not_depend_on_the_order_of_rows(order: int) -> None:
    weights = np.geomspace(1.0, 50.0, 400)[::order]
    groups = repeat(WeightedReservoirGroups(2000, 20, seed=1), np.arange(400), weight=weights)
    assert abs(deviation(included(groups, 400), 2000 * poisson_chances(weights, 20), 2000)) < 4


def test_single_samples_jump_the_same_way() -> None:
    counts, weights = np.zeros(900), np.tile([1.0, 2.0, 3.0], 300)
    for seed in range(1000):
        counts[WeightedReservoir(9, seed=seed).update(range(900), weights).values().to_numpy()] += 1
    by_weight = counts.reshape(300, 3).sum(0)
    expected = 1000 * poisson_chances(weights, 9).reshape(300, 3).sum(0)
    assert (abs(by_weight - expected) < 4 * expected**0.5).all()


def test_equal_weights_are_uniform() -> None:
    groups = repeat(WeightedReservoirGroups(RUNS, 9, seed=1), np.arange(90), weight=1e-3)
    assert abs(deviation(included(groups, 90), RUNS / 10, RUNS)) < 4


def test_merged_parts_are_distributed_as_the_whole() -> None:
    parts = [
        repeat(WeightedReservoirGroups(RUNS, 3, seed=i), rows, weight=WEIGHTS[rows])
        for i, rows in enumerate(([0, 1], [2, 3, 4, 5], [6, 7]))
    ]
    counts = included(merged(*parts), 8)
    assert abs(deviation(counts, RUNS * successive(WEIGHTS, 3), RUNS)) < 4


def test_merging_is_exact_in_any_order() -> None:
    rng = np.random.default_rng(3)
    parts = [
        WeightedReservoir(k, seed=k).update(np.arange(n) + 1000 * k, rng.pareto(1.0, n))
        for k, n in [(9, 50), (12, 0), (10, 9), (11, 400)]
    ]
    images = set()
    for first, second, third, fourth in itertools.permutations(parts):
        images.add((first | second | third | fourth).to_bytes())
        images.add((first | (second | (third | fourth))).to_bytes())
    assert len(images) == 1


@pytest.mark.parametrize("spread", [0.0, 3.0, 100.0])
def test_any_cut_into_batches_takes_the_same_rows(spread: float) -> None:
    rng = np.random.default_rng(0)
    weights = np.exp(spread * rng.standard_normal(5000))
    weights[rng.random(5000) < 0.1] = 0.0
    weights = np.where((weights > 0) & ((weights < 1e-280) | (weights > 1e280)), 1.0, weights)
    rows = np.arange(5000)
    whole = WeightedReservoir(16, seed=5).update(rows, weights)
    many = WeightedReservoirGroups(3, k=16, seed=5)
    for cuts in ([1, 2, 15, 16, 17, 900], range(0, 5000, 7), range(5000)):
        parts = WeightedReservoir(16, seed=5)
        for batch in np.split(rows, list(cuts)):
            parts.update(batch, weights[batch])
        assert parts == whole
    many.update(np.zeros(5000, int), rows, weight=weights)
    assert many[0] == whole


def test_rows_of_no_weight_take_up_no_room_while_a_sample_fills() -> None:
    rows = np.arange(1000, dtype=np.int32)
    weights = np.where(rows % 100 == 99, 1.0, 0.0)
    sample = WeightedReservoir(8, seed=1).update(rows, weights)
    assert len(sample) == 8 and all(row % 100 == 99 for row in sample.values().to_pylist())
    # The same run from a fresh copy of the memory: nothing beyond the rows at hand was looked at.
    alone = WeightedReservoir(8, seed=1)
    for row in rows:
        alone.update([int(row)], [float(weights[row])])
    assert alone == sample


def test_the_heaviest_are_taken_first_and_weights_may_be_enormous() -> None:
    weights = np.concatenate([np.full(5000, 1e-280), np.full(3, 1e280)])
    sample = WeightedReservoir(5, seed=2).update(range(5003), weights)
    assert sorted(sample.values().to_pylist()[:3]) == [5000, 5001, 5002]
    assert WeightedReservoir.from_bytes(sample.to_bytes()) == sample
    rising = WeightedReservoir(3, seed=1).update(range(560), np.geomspace(1e-280, 1e279, 560))
    assert min(rising.values().to_pylist()) > 540


def test_nulls_lists_and_groups_keep_their_weights() -> None:
    lists = pa.array([["a", "b"], None, [], ["c", None], ["d"]])
    groups = WeightedReservoirGroups(2, k=9)
    groups.update([1, 0, 0, 1, 0], lists, weight=pa.array([1.0, 5.0, 5.0, 0.0, 2.0]))
    assert sorted(groups[1].values().to_pylist()) == ["a", "b"]
    assert groups[0].values().to_pylist() == ["d"] and groups.n.tolist() == [1, 3]


@pytest.mark.parametrize(
    "weight", [-1.0, float("nan"), float("inf"), 1e-300, 1e300, [1.0, -0.5], [None, 1.0]]
)
def test_impossible_weights_are_refused_and_change_nothing(weight: Any) -> None:
    sample = WeightedReservoir(3, seed=1).update([1, 2], [1.0, 2.0])
    before = sample.to_bytes()
    with pytest.raises(ValueError, match="weights must be 0 or from"):
        sample.update([3, 4], weight)
    assert sample.to_bytes() == before


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="one weight a row, 2 in all"):
        WeightedReservoir(3).update([3, 4], [1.0])
    with pytest.raises(TypeError, match="weight="):
        WeightedReservoirGroups(1).update([0], [1])
    with pytest.raises(SketchError, match="k must be"):
        WeightedReservoir(0)
