"""The capacity of each level of a KLL sketch, and the resulting rank error.

The level at depth d below the top holds max(8, k (2/3)^d) items of weight 2^level, in the integer arithmetic
of Apache DataSketches, so that both sides compact the same level at the same item.

Source: Karnin, Lang, Liberty, "Optimal Quantile Approximation in Streams", FOCS 2016; datasketches-java
`kll.KllHelper` (capacities, and the error constants fitted there to the 99th percentile of the largest error
of thousands of trials).
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from ..core.parameters import whole

MIN_ITEMS = 8
"""The smallest capacity of a level, called m in DataSketches; every known image has 8."""
MIN_K, MAX_K = 8, 65535
LEAPING_K = 128
"""Sketches with a smaller k don't gather blocks, which would be larger than all other items."""
MAX_DEPTH = 61
"""The most levels of an image: weights up to 2^60."""


class Capacities(NamedTuple):
    """`below_top[d]`: items of the level d below the top; `total[depth]`: items of a sketch of that depth;
    `deepest`: stored levels, with a sampler in place of lower ones; `leaps[depth]`: by how many levels a
    block of level 0 leaps (`block_thinning`), 0 for no leap.

    A sampler of weight 2^s has a variance of n 2^s / 4, and all levels above it together about
    1.5 n 2^(levels − 1 + s) / k; with 2^(levels − 1) ≥ 1.25 k, the sampler adds at most an eighth. A leap of
    j levels has a variance of about n 4^j / 2048, and leaps as far as this adds a quarter: the room that it
    leaves to the levels above compensates for that.
    """

    below_top: np.ndarray
    total: np.ndarray
    deepest: int
    leaps: np.ndarray


@cache
def capacities(k: int) -> Capacities:
    """Return the tables for one k, int64. Raises `SketchError` for a k that an image can't represent.

    >>> capacities(200).below_top[:9].tolist(), int(capacities(200).total[9])
    ([200, 133, 89, 59, 40, 26, 18, 12, 8], 585)
    >>> capacities(200).leaps[:10].tolist()
    [0, 0, 0, 1, 2, 2, 3, 3, 4, 4]
    """
    k = whole("KLL", "k", k, MIN_K, MAX_K)
    # Two levels more than in an image, because merging allocates two more than its result has.
    depths = range(MAX_DEPTH + 4)
    below = np.array([max(MIN_ITEMS, _share(k, depth)) for depth in depths], np.int64)
    total = np.concatenate([np.zeros(1, np.int64), np.cumsum(below)])
    leaps = np.array([_leap(k, depth) for depth in depths], np.int64)
    for table in (below, total, leaps):
        table.flags.writeable = False
    return Capacities(below, total, 1 + math.ceil(math.log2(1.25 * k)), leaps)


def normalized_rank_error(k: int, pmf: bool = False) -> float:
    """Return the rank error, as a share of n, that 99 of 100 sketches satisfy at all points (`pmf`:
    intervals).

    >>> round(normalized_rank_error(200), 5), round(normalized_rank_error(200, pmf=True), 5)
    (0.01329, 0.01652)
    """
    return 2.446 / k**0.9433 if pmf else 2.296 / k**0.9723


def _leap(k: int, depth: int) -> int:
    if k < LEAPING_K or depth < 3:
        return 0
    return max(0, min(4, depth - 2, math.floor(1 + math.log(192 * 2.0 ** (depth - 1) / k, 4))))


def _share(k: int, depth: int) -> int:
    if depth <= 30:
        return _share_near_top(k, depth)
    return _share_near_top(_share_near_top(k, depth // 2), depth - depth // 2)


def _share_near_top(k: int, depth: int) -> int:
    return (((k << 1) << depth) // 3**depth + 1) >> 1
