"""Heavy hitters against exact counts, in one stream and merged."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.sketches.core.protocol import SketchError
from streamgauge.sketches.count_min.heavy_hitters import HeavyHitters

from ...cases import each


def zipf(n: int, seed: int, exponent: float = 1.2) -> list[str]:
    ranks = np.arange(1, 1001) ** -exponent
    return [f"v{x}" for x in np.random.default_rng(seed).choice(1000, n, p=ranks / ranks.sum())]


def check(heavy: HeavyHitters, truth: Counter[str]) -> None:
    top = heavy.top()
    reported = {item.item for item in top}
    assert len(top) == heavy.k and [i.upper for i in top] == sorted((i.upper for i in top), reverse=True)
    assert all(item.lower <= truth[item.item] <= item.upper for item in top)
    assert {value for value, n in truth.items() if n > heavy.missed} <= set(heavy._held)
    if heavy.complete:
        assert {value for value, n in truth.items() if n > top[-1].estimate} <= reported


def test_one_stream_and_halves() -> None:
    values = zipf(20_000, 9)
    heavy = HeavyHitters(k=8, eps=0.01)
    halves = [HeavyHitters(k=8, eps=0.01), HeavyHitters(k=8, eps=0.01)]
    for i, part in enumerate(np.array_split(np.arange(20_000), 10)):
        heavy.update([values[j] for j in part])
        halves[i % 2].update([values[j] for j in part])
    for whole in (heavy, halves[0].merge(halves[1])):
        assert whole.complete
        check(whole, Counter(values))


def test_what_no_part_held_is_said_to_be_missed() -> None:
    """Each of two streams has its own frequent values; one that both have just below them is the largest."""
    parts, truth = [], Counter[str]()
    for side in ("a", "b"):
        values = [f"{side}{i}" for i in range(40) for _ in range(100)] + ["both"] * 90
        parts.append(HeavyHitters(k=8, eps=0.001).update(values))
        truth.update(values)
    merged = parts[0].merge(parts[1])
    assert not merged.complete and merged.missed >= truth["both"]
    check(merged, truth)
    assert "both" in {item.item for item in merged.update(["both"]).top()}  # comes back when it comes again


@each("seed", range(20))
def test_trees_of_merges(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = zipf(6_000, seed, exponent=float(rng.uniform(0.2, 1.5)))
    sketches = [HeavyHitters(4, eps=0.003).update(list(part)) for part in np.array_split(values, 12)]
    while len(sketches) > 1:
        one = sketches.pop(int(rng.integers(len(sketches))))
        sketches[int(rng.integers(len(sketches)))].merge(one)
    check(sketches[0], Counter(values))


def test_none_are_refused() -> None:
    with pytest.raises(ValueError, match="k must be"):
        HeavyHitters(0)


def test_unsigned_numbers_beyond_int64_are_refused_and_not_reported_as_others() -> None:
    heavy = HeavyHitters(2).update(np.array([2**63 - 1, 7, 7], np.uint64))
    reported, image = heavy.top(), heavy.counts.to_bytes()
    assert {item.item: item.estimate for item in reported} == {2**63 - 1: 1, 7: 2}
    lists = pa.array([[2**64 - 1], None], pa.list_(pa.uint64()))
    for values in (np.array([2**63 + 5], np.uint64), [2**63 + 5, 3], lists):
        for sketch in (heavy, HeavyHitters(2)):
            with pytest.raises(SketchError, match="int64 only"):
                sketch.update(values)
    assert heavy.top() == reported and heavy.counts.to_bytes() == image
