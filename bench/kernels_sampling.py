"""Each sampling kernel on one core over 20 M values in memory, in times of `numpy.sum` over them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bench.measure import medians
from streamgauge.sampling.bernoulli import BernoulliSample
from streamgauge.sampling.decayed import DecayedReservoir
from streamgauge.sampling.hash_sample import HashSample
from streamgauge.sampling.reservoir import Reservoir, ReservoirGroups
from streamgauge.sampling.sliding import SlidingWindowSample
from streamgauge.sampling.stratified import StratifiedReservoir
from streamgauge.sampling.weighted import WeightedReservoir

ROWS = 20_000_000
RUNS = 9


def merged(images: Any) -> ReservoirGroups:
    groups = ReservoirGroups(1, k=1000)
    groups.merge(np.zeros(len(images), np.int64), images)
    return groups


def main() -> list[dict[str, str]]:
    rng = np.random.default_rng(0)
    longs = rng.integers(0, 2**62, ROWS)
    weights = rng.exponential(size=ROWS)
    times = 1_785_000_000_000_000 + 100 * np.arange(ROWS)
    groups, keys = rng.integers(0, 1000, ROWS), rng.zipf(1.2, ROWS) % 10_000
    parts = ReservoirGroups(10_000, k=100, seed=1)
    parts.update(rng.integers(0, 10_000, ROWS // 10), longs[: ROWS // 10])
    images = parts.to_arrow()

    claims: list[tuple[str, str, Callable[[], object]]] = [
        ("uniform, k = 1,000", "≤ 0.2", lambda: Reservoir(1000, seed=1).update(longs)),
        ("uniform, k = 100, by 1,000 groups", "", lambda: ReservoirGroups(1000, k=100).update(groups, longs)),
        ("weighted, k = 1,000", "≤ 8", lambda: WeightedReservoir(1000, seed=1).update(longs, weights)),
        ("decayed, k = 1,000", "", lambda: DecayedReservoir(1000, 60.0, seed=1).update(longs, times)),
        ("last 60 s, k = 1,000", "", lambda: SlidingWindowSample(1000, 60.0, seed=1).update(longs, times)),
        ("k = 10 of 10,000 Zipf keys", "", lambda: StratifiedReservoir(10, seed=1).update(longs, keys)),
        ("each row with p = 0.001", "", lambda: BernoulliSample(0.001, seed=1).update(longs)),
        ("all rows of 0.1 % of keys", "", lambda: HashSample(0.001).update(longs, keys)),
        ("merge of 10,000 uniform images, k = 100", "", lambda: merged(images)),
    ]
    rows = []
    for claim, target, call in claims:
        ours, peer = medians(call, longs.sum, runs=RUNS if target else 3)
        rows.append(
            {
                "claim": f"sampling: {claim}",
                "ours": f"{ours * 1e3:.1f} ms",
                "peer": f"numpy.sum {peer * 1e3:.1f} ms",
                "ratio": f"{ours / peer:.2f}",
                "target": target,
            }
        )
    return rows
