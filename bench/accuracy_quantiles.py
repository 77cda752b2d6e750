"""Which sketch gives p50, p99 and p99.9 of usual data well enough, and in how many bytes.

Well enough: within 2 % of the true value, or within 0.05 % of its rank. Of each sketch the worst quantile of
the worst distribution over several seeds is reported, with the size of its bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from streamgauge import KLL, DDSketch

QUANTILES = (0.5, 0.99, 0.999)
VALUE, RANK = 0.02, 0.0005
ROWS, SEEDS = 1_000_000, 10
STREAMS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "normal": lambda rng: rng.normal(size=ROWS),
    "lognormal": lambda rng: rng.lognormal(0, 1, ROWS),
    "Pareto": lambda rng: rng.pareto(1.5, ROWS) + 1,
}
SKETCHES: dict[str, Callable[[int], Any]] = {
    "KLL k=200": lambda seed: KLL(200, seed=seed),
    "KLL k=1000": lambda seed: KLL(1000, seed=seed),
    "KLL k=4000": lambda seed: KLL(4000, seed=seed),
    "KLL k=8000": lambda seed: KLL(8000, seed=seed),
    "DDSketch 1 %, the default": lambda seed: DDSketch(0.01),
}


def misses(sketch: Any, ordered: np.ndarray) -> list[tuple[float, float]]:
    """The error of value and of rank of each quantile."""
    n = len(ordered)
    errors = []
    for q, aggregates in zip(QUANTILES, sketch.quantiles(QUANTILES), strict=True):
        true = ordered[int(np.ceil(q * n)) - 1]
        below, upto = (np.searchsorted(ordered, aggregates, side) / n for side in ("left", "right"))
        errors.append((abs(aggregates / true - 1), max(0.0, below - q, q - upto)))
    return errors


def main() -> list[dict[str, Any]]:
    """A row a sketch: the share of answers good enough, the worst ones, the bytes."""
    answers: dict[str, list[tuple[float, float]]] = {name: [] for name in SKETCHES}
    sizes = dict.fromkeys(SKETCHES, 0)
    for seed in range(SEEDS):
        for draw in STREAMS.values():
            values = draw(np.random.default_rng(seed))
            ordered = np.sort(values)
            for name, make in SKETCHES.items():
                sketch = make(seed).update(values)
                answers[name] += misses(sketch, ordered)
                sizes[name] = max(sizes[name], len(sketch.to_bytes()))
    rows = []
    for name, errors in answers.items():
        good = np.mean([value <= VALUE or rank <= RANK for value, rank in errors])
        value, rank = np.max(errors, axis=0)
        tail = max(min(value / VALUE, rank / RANK) for value, rank in errors)
        rows.append(
            {
                "claim": f"{name}, {sizes[name]:,} bytes: p50, p99, p99.9 to 2 % of value or 0.05 % of rank",
                "ours": f"{good:.1%} of answers",
                "peer": f"worst: value {value:.2%}, rank {rank:.3%}",
                "ratio": f"{tail:.2f} × the bound",
                "target": "≤ 1 ×",
            }
        )
    return rows


if __name__ == "__main__":
    for row in main():
        print(row)
