"""DDSketch's kernels on one core over 20 M values, beside `numpy.sum` and the `ddsketch` package."""

from __future__ import annotations

from typing import Any

import ddsketch
import numpy as np

from bench.kernels_kll import row
from bench.measure import medians
from streamgauge.sketches.ddsketch import DDSketch, DDSketchGroups

ROWS, PEER_ROWS = 20_000_000, 50_000


def peer(values: list[float]) -> ddsketch.DDSketch:
    sketch = ddsketch.DDSketch(0.01)
    for value in values:
        sketch.add(value)
    return sketch


def main() -> list[dict[str, Any]]:
    """Times of `numpy.sum`, times of the peer, and by groups."""
    rng = np.random.default_rng(0)
    normal = rng.normal(size=ROWS)
    lognormal, keys = np.exp(normal), rng.integers(0, 1000, ROWS)
    few = lognormal[:PEER_ROWS].tolist()
    total, signed, positive, groups, theirs = medians(
        lambda: np.sum(normal),
        lambda: DDSketch(0.01).update(normal),
        lambda: DDSketch(0.01).update(lognormal),
        lambda: DDSketchGroups(1000, 0.01).update(keys, lognormal),
        lambda: peer(few),
    )
    speed = f"numpy.sum {ROWS / total / 1e6:,.0f} M/s"
    slow = f"ddsketch {PEER_ROWS / theirs / 1e6:,.2f} M/s"
    gain = theirs / PEER_ROWS * ROWS / positive
    return [
        row("DDSketch 1 %, normal, times of numpy.sum", signed, ROWS, speed, signed / total, "≤ 8"),
        row("DDSketch 1 %, lognormal, times of numpy.sum", positive, ROWS, speed, positive / total, "≤ 8"),
        row("DDSketch 1 %, lognormal, faster than", positive, ROWS, slow, gain, ""),
        row("DDSketch by 1,000 groups, times of numpy.sum", groups, ROWS, speed, groups / total, ""),
    ]


if __name__ == "__main__":
    for line in main():
        print(line)
