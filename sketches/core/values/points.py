"""The arguments of queries to quantile sketches: shares of their values, and points to rank."""

from __future__ import annotations

import math
from decimal import Decimal
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np

from ..arguments import plain, shown
from ..columns.arrays import as_array, is_scalar
from ..protocol import SketchError


def exact_point(family: str, x: Any) -> Any:
    """Convert the point of a rank query to an exact Python number, for all quantile sketches.

    Raises `SketchError` for NaN, which no sketch counts, and for anything but numbers.

    >>> exact_point("KLL", np.int64(2**53 + 1))
    9007199254740993
    """
    point = plain(x)
    if not isinstance(point, (Real, Decimal)) or point != point:
        raise SketchError(f"{family}: a rank needs a number, got {shown(x)}")
    return point


def double_point(family: str, x: Any) -> float:
    """Like `exact_point`, for sketches of doubles: the largest double that is at most the point.

    >>> double_point("REQ", 2**53 + 3) == 2**53 + 2, double_point("REQ", 10**400)
    (True, 1.7976931348623157e+308)
    """
    point = exact_point(family, x)
    try:
        near = float(point)
    except OverflowError:
        near = math.inf if point > 0 else -math.inf
    return math.nextafter(near, -math.inf) if near > point else near


def ascending_points(family: str, points: Any) -> list[Any]:
    """Convert one point between intervals, or a column of them, to exact numbers.

    Raises `SketchError` for anything but strictly ascending numbers.

    >>> ascending_points("KLL", np.array([1, 2])), ascending_points("KLL", 7.5)
    ([1, 2], [7.5])
    """
    exact = _numbers(family, points)
    if exact is None or any(a >= b for a, b in pairwise(exact)):
        message = "points must be ascending numbers, each once"
        raise SketchError(f"{family}: {message}, got {shown(points)}")
    return exact


def as_shares(family: str, qs: Any) -> np.ndarray:
    """Convert one share of a quantile query, or a column of them, to doubles.

    Raises `SketchError` for anything but numbers from 0 to 1.

    >>> as_shares("KLL", [0, 0.5]).tolist(), as_shares("KLL", 0.5).tolist()
    ([0.0, 0.5], [0.5])
    """
    if (
        type(qs) is np.ndarray
        and qs.dtype.kind in "iuf"
        and qs.ndim == 1
        and bool(((qs >= 0) & (qs <= 1)).all())
    ):
        return qs.astype(np.float64)
    numbers = _numbers(family, qs)
    if numbers is None or not all(0 <= number <= 1 and not isinstance(number, bool) for number in numbers):
        raise SketchError(f"{family}: a quantile's share must be a number from 0 to 1, got {shown(qs)}")
    return np.array(numbers, np.float64)


def as_share(family: str, q: Any) -> float:
    """Convert one share. Raises `SketchError` for anything but a number from 0 to 1."""
    shares = as_shares(family, q)
    if not is_scalar(q):
        raise SketchError(f"{family}: a quantile's share must be one number, got {shown(q)}")
    return float(shares[0])


def _numbers(family: str, given: Any) -> list[Any] | None:
    """Convert a scalar or a column to exact numbers; None if it contains anything else."""
    try:
        if isinstance(given, (list, tuple)) or is_scalar(given):
            values = given if isinstance(given, (list, tuple)) else [given]
        else:
            values = as_array(given).to_pylist()
        return [exact_point(family, value) for value in values]
    except (TypeError, ValueError):
        return None
