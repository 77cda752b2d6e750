"""Error bounds of Theta sketches: for counts, and for ratios between sets.

A sketch that stores n hashes below theta has sampled n of n / theta values. The bounds are binomial tails:
exact if there are few hashes, else Gaussian with a continuity correction, and below 121 hashes with measured
numbers of standard deviations (`theta_bounds.csv`, one row per n: lower at 1, 2, 3, upper at 1, 2, 3). All
constants and the order of operations are the reference's.

Source: datasketches-java 6.2.0 `thetacommon.BinomialBoundsN`, `common.BoundsOnRatiosInSampledSets`,
`common.BoundsOnBinomialProportions` (Abramowitz and Stegun 26.5.22).
"""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import numpy as np

from ..core.compilation.jit import inner, lean
from .store import MAX_THETA

_TAILS = np.array([0.5, 0.1586553191586026479, 0.0227502618904135701, 0.0013498126861731796])
"""The probability beyond 0, 1, 2 and 3 standard deviations, on one side."""


@cache
def equivalents() -> np.ndarray:
    """Return the standard deviations for which the Gaussian bound fits: (n, lower 1, 2, 3 and upper 1, 2,
    3)."""
    return np.loadtxt(Path(__file__).with_name("theta_bounds.csv"), delimiter=",")


@inner
def _gaussian(n, theta, std_devs, sign):
    """Return the classic bound with a continuity correction; `sign` is −1 for the lower, 1 for the upper."""
    n_hat = (n + 0.5 * sign) / theta
    b = std_devs * np.sqrt((1.0 - theta) / theta)
    d = 0.5 * b * np.sqrt(b * b + 4.0 * n_hat)
    return n_hat + 0.5 * (b * b) + sign * d


@inner
def _exact(n, p, until):
    """Return the number of values at which P(n were sampled) exceeds `until`; n / p is at most 500."""
    term = p**n
    total = term
    m = n
    while total <= until:
        term = term * (1.0 - p) * m / ((m + 1) - n)
        total += term
        m += 1
    return m


@inner
def lower_bound(n, theta, std_devs, table, tails):
    """Return the lower bound of the number of values for n stored hashes below theta (0 … 1)."""
    count = np.float64(n)
    if theta >= 1.0 or n == 0:
        return count
    if n == 1:
        bound = np.floor(np.log(1.0 - tails[std_devs]) / np.log(1.0 - theta))
    elif n > 120:
        bound = _gaussian(count, theta, np.float64(std_devs), -1.0) - 0.5
    elif theta > 1.0 - 1e-5:
        bound = count
    elif theta < count / 360.0:
        bound = _gaussian(count, theta, table[n, std_devs - 1], -1.0) - 0.5
    else:
        bound = _exact(count, theta, tails[std_devs]) - 1.0
    return min(count / theta, max(count, bound))


@inner
def upper_bound(n, theta, std_devs, table, tails):
    """Return the upper bound of the number of values for n stored hashes below theta (0 … 1)."""
    count = np.float64(n)
    if theta >= 1.0:
        return count
    if n == 0:
        bound = np.ceil(np.log(tails[std_devs]) / np.log(1.0 - theta))
    elif n > 120:
        bound = _gaussian(count, theta, np.float64(std_devs), 1.0) + 0.5
    elif theta > 1.0 - 1e-5:
        bound = count + 1.0
    elif theta < count / 360.0:
        bound = _gaussian(count, theta, table[n, std_devs + 2], 1.0) + 0.5
    else:
        bound = _exact(count + 1.0, theta, np.nextafter(1.0 - tails[std_devs], 0.0))
    return max(count / theta, bound)


@lean
def _bounds(counts, thetas, std_devs, table, tails, lower, upper):
    for g in range(len(counts)):
        n, theta = np.int64(counts[g]), np.float64(thetas[g]) / np.float64(MAX_THETA)
        lower[g] = lower_bound(n, theta, std_devs, table, tails)
        upper[g] = upper_bound(n, theta, std_devs, table, tails)


def bounds(counts: np.ndarray, thetas: np.ndarray, std_devs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (lower, upper) of the number of values for each count of hashes below theta (1 …
    `MAX_THETA`)."""
    lower, upper = np.empty((2, len(counts)), np.float64)
    _bounds(counts, thetas, std_devs, equivalents(), _TAILS, lower, upper)
    return lower, upper


def ratio_bounds(n: int, k: int, theta: float) -> tuple[float, float]:
    """Return bounds at 95.4 % of a subset's share, if k of the set's n hashes below theta (0 … 1) are in
    it."""
    if n == 0:
        return 0.0, 1.0
    if theta >= 1.0:
        return k / n, k / n
    shrunk = math.sqrt(1.0 - theta)
    std_devs = 2.0 * (shrunk if theta <= 0.5 else shrunk + 0.01 * (theta - 0.5))
    tail = 0.5 * (1.0 - _erf(std_devs / math.sqrt(2.0)))
    if k == 0:
        lower = 0.0
    elif k == 1:
        lower = 1.0 - (1.0 - tail) ** (1.0 / n)
    elif k == n:
        lower = tail ** (1.0 / n)
    else:
        lower = 1.0 - _inverse_beta(n - k + 1, k, -std_devs)
    if k == n:
        upper = 1.0
    elif k == n - 1:
        upper = (1.0 - tail) ** (1.0 / n)
    elif k == 0:
        upper = 1.0 - tail ** (1.0 / n)
    else:
        upper = 1.0 - _inverse_beta(n - k, k + 1, std_devs)
    return lower, upper


def _erf(x: float) -> float:
    """Evaluate Abramowitz and Stegun 7.1.28, to seven digits, as in the reference."""
    weights = (0.0705230784, 0.0422820123, 0.0092705272, 0.0001520143, 0.0002765672, 0.0000430638)
    total = 1.0 + sum(weight * x ** (i + 1) for i, weight in enumerate(weights))
    return 1.0 - 1.0 / total**16


def _inverse_beta(a: float, b: float, y: float) -> float:
    """Evaluate Abramowitz and Stegun 26.5.22: the inverse incomplete beta function at y standard
    deviations."""
    a1, b1 = 2.0 * a - 1.0, 2.0 * b - 1.0
    part = (y * y - 3.0) / 6.0
    h = 2.0 / (1.0 / a1 + 1.0 / b1)
    w = y * math.sqrt(h + part) / h - (1.0 / b1 - 1.0 / a1) * (part + 5.0 / 6.0 - 2.0 / (3.0 * h))
    return a / (a + b * math.exp(2.0 * w))
