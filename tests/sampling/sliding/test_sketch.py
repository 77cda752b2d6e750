"""Sliding samples: uniform over any span up to now, in any order of rows, merges exact."""

from __future__ import annotations

import itertools
import math
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from streamgauge.sampling.sliding import SlidingWindowSample, SlidingWindowSampleGroups
from streamgauge.sketches.core.protocol import SketchError

from ...cases import each
from ..chance import deviation, merged, repeat

RUNS = 2500
SECOND = 1_000_000


def best(groups: Any, times: np.ndarray, span: float, k: int) -> np.ndarray:
    """In how many samples of the last `span` each item is, by the priorities kept."""
    parts = groups._pool.parts(np.arange(len(groups)))
    inside = parts.times > times.max() - span * SECOND
    group = np.repeat(np.arange(len(groups)), parts.samples["size"])[inside]
    first = np.searchsorted(group, group)
    chosen = parts.items.to_numpy()[inside][np.arange(len(group)) - first < k]
    return np.bincount(chosen, minlength=len(times))


@pytest.mark.slow
@each("order", ["rising", "falling", "mixed", "ties"])
@each("span", [60.0, 25.0, 7.5])
def test_any_span_up_to_now_is_sampled_uniformly(order: str, span: float) -> None:
    times = np.arange(120) * SECOND
    if order == "ties":
        times = times // (5 * SECOND) * (5 * SECOND)
    rows = {"falling": np.arange(119, -1, -1), "mixed": np.random.default_rng(1).permutation(120)}.get(
        order, np.arange(120)
    )
    groups = SlidingWindowSampleGroups(RUNS, 4, 60.0, seed=1)
    counts = best(repeat(groups, rows, time=times[rows]), times, span, 4)
    inside = times > times.max() - span * SECOND
    assert counts[~inside].sum() == 0
    assert abs(deviation(counts[inside], RUNS * 4 / inside.sum(), RUNS)) < 4


def test_it_is_the_k_greatest_priorities_of_the_span() -> None:
    rng = np.random.default_rng(2)
    times = rng.integers(0, 500, 4000) * SECOND
    everything = SlidingWindowSample(4000, 1e6, seed=1).update(np.arange(4000), times)
    small = SlidingWindowSample(7, 300.0, seed=1).update(np.arange(4000), times)
    table = everything.to_columns().to_pydict()
    for span in (300.0, 100.0, 10.0, 1.0):
        inside = [
            item for item, time in zip(table["item"], table["time"]) if time > times.max() - span * SECOND
        ]
        assert small.values(span).to_pylist() == inside[:7]


def test_merging_and_cutting_are_exact() -> None:
    rng = np.random.default_rng(1)
    times = np.sort(rng.integers(0, 1000, 3000)) * SECOND + rng.integers(0, 50, 3000) * SECOND
    rows = np.arange(3000)
    whole = SlidingWindowSample(12, 200.0, seed=1).update(rows, times)
    for cuts in ([5, 12, 13, 900], range(0, 3000, 40)):
        parts = SlidingWindowSample(12, 200.0, seed=1)
        for batch in np.split(rows, list(cuts)):
            parts.update(batch, times[batch])
        assert parts == whole
    samples = [
        SlidingWindowSample(k, 200.0, seed=k).update(rows[i::4], times[i::4])
        for i, k in enumerate([9, 10, 11, 12])
    ]
    images = {
        ((samples[a] | samples[b]) | (samples[c] | samples[d])).to_bytes()
        for a, b, c, d in itertools.permutations(range(4))
    } | {(samples[0] | (samples[1] | (samples[2] | samples[3]))).to_bytes()}
    assert len(images) == 1


def test_merged_parts_are_distributed_as_the_whole() -> None:
    times, rows = np.arange(60) * SECOND, np.arange(60)
    parts = [
        repeat(SlidingWindowSampleGroups(RUNS, 3, 30.0, seed=i), rows[i::3], time=times[i::3])
        for i in range(3)
    ]
    counts = best(merged(*parts), times, 30.0, 3)
    assert counts[:30].sum() == 0 and abs(deviation(counts[30:], RUNS / 10, RUNS)) < 4


def test_groups_have_windows_of_their_own() -> None:
    rng = np.random.default_rng(4)
    groups, times = rng.integers(0, 5, 2000), rng.integers(0, 1000, 2000) * SECOND
    times[groups == 3] -= 5000 * SECOND
    many = SlidingWindowSampleGroups(5, k=6, window=100.0, seed=7)
    for cut in np.array_split(np.arange(2000), 9):
        many.update(groups[cut], cut, time=times[cut])
    merged = SlidingWindowSampleGroups(5, k=6, window=100.0, seed=8)
    merged.merge(np.arange(5), many.to_arrow())
    for group in range(5):
        latest = times[groups == group].max()
        kept = many[group].values().to_numpy()
        assert len(kept) == 6 and (groups[kept] == group).all()
        assert (times[kept] > latest - 100 * SECOND).all()
        assert merged[group] == many[group]


def test_memory_follows_the_logarithm() -> None:
    n, k = 200_000, 50
    sample = SlidingWindowSample(k, 1e6, seed=3).update(np.arange(n), np.arange(n) * SECOND)
    expected = k * (1 + math.log(n / k))
    assert 0.85 * expected < len(sample) < 1.15 * expected


def test_time_moves_on_without_rows() -> None:
    sample = SlidingWindowSample(5, 60.0).update(range(10), [second * SECOND for second in range(10)])
    assert sorted(sample.values(now=65 * SECOND).to_pylist()) == [6, 7, 8, 9]
    assert len(sample.values(timedelta(seconds=3), now=20 * SECOND)) == 0
    assert len(SlidingWindowSample(5).values()) == 0
    with pytest.raises(ValueError, match="can't be now"):
        sample.values(now=8 * SECOND)
    with pytest.raises(ValueError, match="too long"):
        sample.values(61.0)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(SketchError, match="window must be"):
        SlidingWindowSample(3, 0)
    with pytest.raises(SketchError, match="parameters differ"):
        SlidingWindowSample(3, 60.0).merge(SlidingWindowSample(3, 61.0))
    with pytest.raises(TypeError, match="event time"):
        SlidingWindowSampleGroups(1).update([0], [1])


def test_a_share_of_the_last_window_lies_inside_its_error() -> None:
    inside = 0
    for seed in range(200):
        sample = SlidingWindowSample(100, window=60.0, seed=seed)
        seconds = np.arange(6000) // 50
        sample.update((np.arange(6000) % 10 < 3) & (seconds >= 60), time=seconds * 1_000_000)
        share = np.mean(sample.values().to_numpy(zero_copy_only=False))
        inside += abs(share - 0.3) <= sample.error(0.9)
    assert inside >= 180 - 3.5 * np.sqrt(20)
    assert SlidingWindowSample(5, window=1.0).update([1, 2, 3], time=[0, 0, 9_000_000]).error() == 0.0
