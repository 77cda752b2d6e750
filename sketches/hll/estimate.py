"""The estimators of HLL sketches (HIP, composite and coupon) and their error bounds.

The HIP estimator (Historical Inverse Probability; Ting 2014, Cohen 2015) needs the order of the stream, so a
sketch with merged registers uses the composite estimator: Flajolet's raw estimate corrected by measured
curves (`hll_composite_x.csv`, row lg_k − 4), and linear counting below the crossover. Coupons are 26 bits of
hash, practically exact. All constants and orders of operations are the reference's: answers are bit-identical
if the logarithm is.

Source: datasketches-java 6.2.0 `hll.HllEstimators`, `hll.RelativeErrorTables`, `hll.CouponMapping`,
`hll.CubicInterpolation`, `hll.HarmonicNumbers`.
"""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import numpy as np

from ..core.compilation.jit import inner, lean

# The inverse of the number of coupons that n distinct values leave among 2^26.
_COUPONS = np.array(
    [0, 1, 20, 400, 8000, 160000, 300000, 600000, *range(900000, 3300000, 300000)],
    np.float64,
)
_DISTINCT = np.array(
    [
        0.0000000000000000, 1.0000000000000000, 20.0000009437402611, 400.0003963713384110,
        8000.1589294602090376, 160063.6067763759638183, 300223.7071597663452849, 600895.5933856170158833,
        902016.8065120954997838, 1203588.4983199508860707, 1505611.8245524743106216,
        1808087.9449319066479802, 2111018.0231759352609515, 2414403.2270142501220107,
        2718244.7282051891088486, 3022543.7025524540804327,
    ]
)  # fmt: skip

_HARMONIC = np.array(
    [
        0.0, 1.0, 1.5, 11 / 6, 25 / 12, 137 / 60, 49 / 20, 363 / 140, 761 / 280, 7129 / 2520, 7381 / 2520,
        83711 / 27720, 86021 / 27720, 1145993 / 360360, 1171733 / 360360, 1195757 / 360360, 2436559 / 720720,
        42142223 / 12252240, 14274301 / 4084080, 275295799 / 77597520, 55835135 / 15519504,
        18858053 / 5173168, 19093197 / 5173168, 444316699 / 118982864, 1347822955 / 356948592,
    ]
)  # fmt: skip

# Quantiles of the relative error at 1, 2 and 3 standard deviations, one row per lg_k from 4 to 12, measured
# by the reference's authors. Above lg_k 12 the error is normal, and a formula is used.
_HIP_LOWER = np.array(
    [
        [0.207316195, 0.502865572, 0.882303765], [0.146981579, 0.335426881, 0.557052],
        [0.104026721, 0.227683872, 0.365888317], [0.073614601, 0.156781585, 0.245740374],
        [0.05205248, 0.108783763, 0.168030442], [0.036770852, 0.075727545, 0.11593785],
        [0.025990219, 0.053145536, 0.080772263], [0.018373987, 0.037266176, 0.056271814],
        [0.012936253, 0.02613829, 0.039387631],
    ]
)  # fmt: skip
_HIP_UPPER = np.array(
    [
        [0.207805347, 0.355574279, 0.475535095], [0.146988328, 0.262390832, 0.360864026],
        [0.103877775, 0.191503663, 0.269311582], [0.073452978, 0.138513438, 0.198487447],
        [0.051982806, 0.099703123, 0.144128618], [0.036768609, 0.07138158, 0.104430324],
        [0.025991325, 0.050854296, 0.0748143], [0.01834533, 0.036121138, 0.05327616],
        [0.012920332, 0.025572893, 0.037896952],
    ]
)  # fmt: skip
_COMPOSITE_LOWER = np.array(
    [
        [0.254409839, 0.682266712, 1.304022158], [0.181817353, 0.443389054, 0.778776219],
        [0.129432281, 0.295782195, 0.49252279], [0.091640655, 0.201175925, 0.323664385],
        [0.064858051, 0.138523393, 0.218805328], [0.045851855, 0.095925072, 0.148635751],
        [0.032454144, 0.067009668, 0.102660669], [0.022921382, 0.046868565, 0.071307398],
        [0.016155679, 0.032825719, 0.049677541],
    ]
)  # fmt: skip
_COMPOSITE_UPPER = np.array(
    [
        [0.256980172, 0.411905944, 0.52651057], [0.182332109, 0.310275547, 0.412660505],
        [0.129314228, 0.230142294, 0.315636197], [0.091584836, 0.16834013, 0.236346847],
        [0.06487411, 0.122045231, 0.174112107], [0.04591465, 0.08784505, 0.126917615],
        [0.032433119, 0.062897613, 0.091862929], [0.022960633, 0.044875401, 0.065736049],
        [0.016186662, 0.031827816, 0.046973459],
    ]
)  # fmt: skip


@cache
def composite_table() -> np.ndarray:
    """Return the composite estimator's correction: raw estimates at 257 evenly spaced counts, a row per
    lg_k."""
    return np.loadtxt(Path(__file__).with_name("hll_composite_x.csv"), delimiter=",")


@cache
def relative_errors() -> np.ndarray:
    """Return relative errors of registers, indexed by lg_k, out of order, standard deviations − 1, and
    side."""
    table = np.full((22, 2, 3, 2), np.nan)
    table[4:13, 0, :, 0], table[4:13, 0, :, 1] = _HIP_LOWER, _HIP_UPPER
    table[4:13, 1, :, 0], table[4:13, 1, :, 1] = _COMPOSITE_LOWER, _COMPOSITE_UPPER
    for lg_k in range(13, 22):
        for out_of_order, rse in enumerate((math.sqrt(math.log(2.0)), math.sqrt(3.0 * math.log(2.0) - 1.0))):
            for std_devs in (1, 2, 3):
                table[lg_k, out_of_order, std_devs - 1] = std_devs * rse / math.sqrt(1 << lg_k)
    return table


def _cubic_at(x0, y0, x1, y1, x2, y2, x3, y3, x):
    """Evaluate the cubic through four points at `x` (Lagrange)."""
    l0 = (x - x1) * (x - x2) * (x - x3)
    l1 = (x - x0) * (x - x2) * (x - x3)
    l2 = (x - x0) * (x - x1) * (x - x3)
    l3 = (x - x0) * (x - x1) * (x - x2)
    d0 = (x0 - x1) * (x0 - x2) * (x0 - x3)
    d1 = (x1 - x0) * (x1 - x2) * (x1 - x3)
    d2 = (x2 - x0) * (x2 - x1) * (x2 - x3)
    d3 = (x3 - x0) * (x3 - x1) * (x3 - x2)
    return y0 * l0 / d0 + y1 * l1 / d1 + y2 * l2 / d2 + y3 * l3 / d3


_cubic = inner(_cubic_at)


@inner
def _first_of_four(xs, x):
    """Return the first of the four points for interpolation: two on either side of x, except at the ends."""
    left = 0
    right = len(xs) - 1
    while left + 1 < right:
        middle = left + (right - left) // 2
        if xs[middle] <= x:
            left = middle
        else:
            right = middle
    return min(max(left - 1, 0), len(xs) - 4)


def coupon_estimates(n: np.ndarray) -> np.ndarray:
    """Estimate the distinct values that leave n coupons, for each n (float64)."""
    i = np.clip(np.searchsorted(_COUPONS, n, "right") - 2, 0, len(_COUPONS) - 4)
    xs, ys = ([table[i + j] for j in range(4)] for table in (_COUPONS, _DISTINCT))
    estimate = _cubic_at(xs[0], ys[0], xs[1], ys[1], xs[2], ys[2], xs[3], ys[3], n)
    return np.maximum(estimate, n)


@inner
def _harmonic(n):
    if n < len(_HARMONIC):
        return _HARMONIC[n]
    x = np.float64(n)
    inverse = 1.0 / (x * x)
    total = np.log(x) + 0.577215664901532860606512090082 + 1.0 / (2.0 * x)
    power = inverse
    total -= power * (1.0 / 12.0)
    power *= inverse
    total += power * (1.0 / 120.0)
    power *= inverse
    total -= power * (1.0 / 252.0)
    power *= inverse
    total += power * (1.0 / 240.0)
    return total


@inner
def _adjusted(lg_k, power_sum, table):
    """Correct the raw estimate by the measured curve, −1 below it; monotone in the registers."""
    k = np.float64(np.int64(1) << lg_k)
    if lg_k == 4:
        alpha = 0.673
    elif lg_k == 5:
        alpha = 0.697
    elif lg_k == 6:
        alpha = 0.709
    else:
        alpha = 0.7213 / (1.0 + 1.079 / k)
    raw = alpha * k * k / power_sum
    xs = table[lg_k - 4]
    last = len(xs) - 1
    stride = 5.0 * np.float64(np.int64(1) << (lg_k - 7)) if lg_k >= 7 else np.float64(lg_k - 3)
    if raw < xs[0]:
        return -1.0
    if raw > xs[last]:
        return raw * (stride * last / xs[last])
    if raw == xs[last]:
        return stride * last
    i = _first_of_four(xs, raw)
    return _cubic(
        xs[i], stride * i, xs[i + 1], stride * (i + 1),
        xs[i + 2], stride * (i + 2), xs[i + 3], stride * (i + 3), raw,
    )  # fmt: skip


@inner
def _linear(lg_k, zeros):
    """Estimate by linear counting, from the number of zero registers."""
    k = np.float64(np.int64(1) << lg_k)
    if zeros == 0:
        return k * np.log(k / 0.5)
    return k * (_harmonic(np.int64(k)) - _harmonic(np.int64(zeros)))


@inner
def composite_estimate(lg_k, power_sum, zeros, table):
    """Estimate from the registers alone: their sum of inverse powers and the number of zeros."""
    k = np.float64(np.int64(1) << lg_k)
    adjusted = _adjusted(lg_k, power_sum, table)
    if adjusted == -1.0:
        return 0.0
    if adjusted > 3.0 * k:
        return adjusted
    linear = _linear(lg_k, zeros)
    crossover = 0.718 if lg_k == 4 else (0.672 if lg_k == 5 else 0.64)
    return adjusted if (adjusted + linear) / 2.0 > crossover * k else linear


@lean
def composite_limits(lg_k, power_sums, zeros, table, out):
    """Write upper limits of `composite_estimate` for registers with at least this sum and this many zeros."""
    for i in range(len(out)):
        linear = _linear(np.int64(lg_k), np.int64(zeros[i]))
        out[i] = max(_adjusted(np.int64(lg_k), power_sums[i], table), linear)


@lean
def composite_estimates(lg_k, power_sums, zeros, table, out):
    """Apply `composite_estimate` to many sketches."""
    for i in range(len(out)):
        out[i] = composite_estimate(np.int64(lg_k[i]), power_sums[i], np.int64(zeros[i]), table)
