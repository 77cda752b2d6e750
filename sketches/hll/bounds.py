"""Bounds of the true count, given the estimate of an HLL sketch.

For merged registers, the composite estimator's measured errors hold at any count. The HIP estimator
accumulates errors from its start: a sketch that converts its coupons to registers knows its count exactly,
and only later values add to the variance, each 1/q − 1 if it changes a register with probability q. `_growth`
integrates this over the stream; far beyond 2^lg_k values it approaches the stationary error of the
reference's tables. Just after the coupons, the reference's own bounds are 4 to 14 times as wide.

For n coupons, the estimate is n plus the expected number of collisions, which is Poisson distributed: bounds
are whole numbers of collisions. (The reference uses a normal distribution, whose bounds exclude a single
collision.)

Source: Ting, "Streamed Approximate Counting of Distinct Elements", KDD 2014, for HIP's variance.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

TAILS = (0.15865525393145705, 0.022750131948179207, 0.0013498980316300933)
"""The probability beyond 1, 2 and 3 standard deviations, on one side."""
_STATIONARY = math.log(2.0)
"""HIP's relative variance times the number of registers, after many values."""
_SWITCH = 3 / 32
"""Coupons per register at which a sketch of lg_k ≥ 8 changes to registers; smaller ones do at 8 coupons."""


@cache
def _growth() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the table of: values per register, the variance that one more value adds to HIP, and HIP's
    accumulated variance per register from the first value on."""
    values = np.concatenate([[0.0], np.geomspace(1e-3, 256.0, 4000)])
    least = np.arange(80.0)
    below = np.exp(-values[:, None] * 2.0**-least)  # the probability that a register is at most this high
    changes = below[:, 0] + np.diff(below, axis=1) @ 2.0 ** -least[1:]
    each = 1.0 / changes - 1.0
    steps = np.diff(values) * (each[1:] + each[:-1]) / 2
    return values, each, np.concatenate([[0.0], np.cumsum(steps)])


def hip_shares(estimate: np.ndarray, lg_k: np.ndarray, from_zero: np.ndarray, std_devs: int) -> np.ndarray:
    """Return a HIP estimate's error, below and above, as shares of the stationary error: 1 far beyond 2^lg_k.

    The lower share starts at 0 with the first registers. The upper share is computed at the upper bound
    itself, because a sketch that did not change since then may still have missed values. `from_zero` marks
    sketches that had registers from their first value on.

    >>> one = np.zeros(1, bool)
    >>> for n in (384.0, 400.0, 4096.0, 1e8):
    ...     print(hip_shares(np.array([n]), np.array([12]), one, 2).round(2).tolist())
    [[0.0, 0.03]]
    [[0.2, 0.21]]
    [[0.74, 0.76]]
    [[1.0, 1.0]]
    """
    k = np.exp2(lg_k.astype(np.float64))
    began = np.where(from_zero, 0.0, np.where(lg_k < 8, 8.0 / k, _SWITCH))
    values, each, variance = _growth()
    now = np.maximum(estimate / k, 1e-9)
    since = np.maximum(np.interp(now, values, variance) - np.interp(began, values, variance), 0.0) / k
    half = std_devs * np.interp(now, values, each) / 2 / k
    errors = np.stack([np.sqrt(since), half + np.sqrt(half**2 + since)], axis=1)
    shares = errors / (now * np.sqrt(_STATIONARY / k))[:, None]
    return np.where((now < values[-1])[:, None], np.minimum(shares, 1.0), 1.0)


def collisions(expected: np.ndarray, std_devs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the fewest and the most collisions at 1, 2 or 3 standard deviations, given the expected number.

    >>> [bound.tolist() for bound in collisions(np.array([0.0001, 0.05, 60.0]), 2)]
    [[0.0, 0.0, 45.0], [0.0, 1.0, 76.0]]
    """
    tail = TAILS[std_devs - 1]
    fewest, most = np.zeros(len(expected)), np.zeros(len(expected))
    some = np.flatnonzero(-np.expm1(-expected) > tail)
    mean = expected[some]
    chance, up_to, n = np.exp(-mean), np.exp(-mean), 0
    while len(some) and (up_to < 1.0 - tail).any():
        n += 1
        fewest[some[up_to <= tail]] = n
        most[some[up_to < 1.0 - tail]] = n
        chance = chance * mean / n
        up_to = up_to + chance
    return fewest, most
