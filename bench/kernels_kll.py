"""KLL's kernels on one core over 20 M values in memory, beside `numpy.sum` and the `datasketches` package."""

from __future__ import annotations

from typing import Any

import datasketches
import numpy as np

from bench.measure import medians
from streamgauge.sketches.kll import KLL, KLLGroups

ROWS, PEER_ROWS = 20_000_000, 2_000_000


def row(claim: str, seconds: float, rows: int, peer: str, ratio: float, target: str) -> dict[str, Any]:
    """One line of the table, speeds in millions of rows a second."""
    return {
        "claim": claim,
        "ours": f"{rows / seconds / 1e6:,.0f} M/s",
        "peer": peer,
        "ratio": f"{ratio:.2f} ×",
        "target": target,
    }


def merged(images: Any) -> KLLGroups:
    groups = KLLGroups(1, k=200, seed=1)
    groups.merge(np.zeros(len(images), np.int64), images)
    return groups


def main() -> list[dict[str, Any]]:
    """Times of `numpy.sum`, times of the peer, by groups, and merging."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=ROWS)
    numbers, keys = (values * 1e6).astype(np.int64), rng.integers(0, 1000, ROWS)
    few = values[:PEER_ROWS]
    parts = KLLGroups(10_000, seed=1)
    parts.update(rng.integers(0, 10_000, ROWS // 10), values[: ROWS // 10])
    images = parts.to_arrow()
    total, double, long, groups, merge, ours, theirs = medians(
        lambda: np.sum(values),
        lambda: KLL(200, seed=1).update(values),
        lambda: KLL(200, "long", seed=1).update(numbers),
        lambda: KLLGroups(1000, seed=1).update(keys, values),
        lambda: merged(images),
        lambda: KLL(200, seed=1).update(few),
        lambda: datasketches.kll_doubles_sketch(200).update(few),
    )
    speed = f"numpy.sum {ROWS / total / 1e6:,.0f} M/s"
    peer = f"datasketches {PEER_ROWS / theirs / 1e6:,.0f} M/s"
    per_row = PEER_ROWS / ROWS
    return [
        row("KLL float64, k = 200, times of numpy.sum", double, ROWS, speed, double / total, "≤ 5"),
        row("KLL int64, k = 200, times of numpy.sum", long, ROWS, speed, long / total, ""),
        row("KLL float64, 20 M rows, faster than", double, ROWS, peer, theirs / per_row / double, "≥ 15"),
        row("KLL float64, 2 M rows, faster than", ours, PEER_ROWS, peer, theirs / ours, ""),
        row("KLL by 1,000 groups, times of numpy.sum", groups, ROWS, speed, groups / total, ""),
        row("merging 10,000 images of 200 values", merge, 10_000, "", merge / total, ""),
    ]


if __name__ == "__main__":
    for line in main():
        print(line)
