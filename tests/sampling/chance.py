"""How far observed counts lie from what chance would do."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamgauge.sampling.core.bottom_k import BottomKGroups


def repeat(groups: BottomKGroups, rows: Any, **inputs: Any) -> BottomKGroups:
    """The same rows into every group: as many samples of them as there are groups."""
    runs, rows = len(groups), np.asarray(rows)
    tiled = {name: np.tile(np.broadcast_to(column, len(rows)), runs) for name, column in inputs.items()}
    groups.update(np.repeat(np.arange(runs), len(rows)), np.tile(rows, runs), **tiled)
    return groups


def merged(*parts: BottomKGroups) -> BottomKGroups:
    """Each group's samples merged."""
    for part in parts[1:]:
        parts[0].merge(np.arange(len(part)), part.to_arrow())
    return parts[0]


def included(groups: Any, n: int) -> np.ndarray:
    """In how many of the groups' samples each of the items 0 … n − 1 is."""
    return np.bincount(groups.to_columns()["item"].to_numpy(), minlength=n)


def deviation(counts: np.ndarray, expected: np.ndarray | float, runs: int) -> float:
    """Standard deviations of the chi-square of inclusion counts from its mean (Wilson and Hilferty 1931).

    The counts of one run are 0 or 1 each and their sum is fixed, so their variance is that of a share p,
    brought to n − 1 degrees of freedom.
    """
    n = len(counts)
    shares = np.broadcast_to(np.asarray(expected, float), n) / runs
    inside = (shares > 0) & (shares < 1)
    terms = (counts - shares * runs)[inside] ** 2 / (runs * shares * (1 - shares))[inside]
    assert (counts[~inside] == (shares * runs)[~inside]).all()
    degrees = int(inside.sum()) - 1
    statistic = terms.sum() * degrees / inside.sum()
    spread = 2 / (9 * degrees)
    return float(((statistic / degrees) ** (1 / 3) - (1 - spread)) / spread**0.5)


def successive(weights: np.ndarray, k: int) -> np.ndarray:
    """The exact chance of each item to be among k draws without replacement in proportion to weights."""
    n = len(weights)
    chances = np.zeros(n)

    def draw(left: tuple[int, ...], chance: float, still: int) -> None:
        if still == 0:
            return
        total = sum(weights[i] for i in left)
        for i in left:
            here = chance * weights[i] / total
            chances[i] += here
            draw(tuple(j for j in left if j != i), here, still - 1)

    draw(tuple(range(n)), 1.0, k)
    return chances


def poisson_chances(weights: np.ndarray, k: int) -> np.ndarray:
    """Nearly the same for many items: those of exponential arrivals stopped when k are expected."""
    low, high = 0.0, 1e6 / weights.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if (1 - np.exp(-weights * middle)).sum() < k else (low, middle)
    return 1 - np.exp(-weights * low)
