"""Answers as JSON can hold them, and how quantiles are described."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

from .lazy import np
from .protocol import SketchError

USUAL_QUANTILES = (0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999)
"""The shares of an answer by default."""


def exact_point(family: str, x: Any) -> Any:
    """What a rank is that of, as Python's own exact number: the rule of all quantile sketches.

    Raises `SketchError` for NaN, which none counts, and for all that is no number.

    >>> exact_point("KLL", np.int64(2**53 + 1))
    9007199254740993
    """
    point = x.item() if isinstance(x, np.generic) else x
    if not isinstance(point, (Real, Decimal)) or point != point:
        raise SketchError(f"{family}: a rank is that of a number, got {x!r}")
    return point


def double_point(family: str, x: Any) -> float:
    """`exact_point` for sketches of doubles: the largest double that is at most it, so none lies between.

    >>> double_point("REQ", 2**53 + 3) == 2**53 + 2, double_point("REQ", 10**400)
    (True, 1.7976931348623157e+308)
    """
    point = exact_point(family, x)
    try:
        near = float(point)
    except OverflowError:
        near = math.inf if point > 0 else -math.inf
    return math.nextafter(near, -math.inf) if near > point else near


def as_shares(family: str, qs: Any) -> np.ndarray:
    """The shares of quantiles, as doubles. Raises `SketchError` for all but numbers from 0 to 1."""
    given = np.asarray(qs)
    try:
        shares = np.asarray(given, np.float64) if given.dtype.kind in "iufbO" else np.array([math.nan])
    except (TypeError, ValueError):
        shares = np.array([math.nan])
    if not ((shares >= 0) & (shares <= 1)).all():
        shown = given.tolist()
        raise SketchError(f"{family}: a quantile's share must be a number from 0 to 1, got {shown}")
    return shares


def quantile_rows(sketch: Any, shares: Sequence[float] = USUAL_QUANTILES) -> list[tuple[Any, ...]]:
    """Each share with the value there and its bounds (None where none are promised); nothing while empty.

    >>> from ..ddsketch import DDSketch
    >>> quantile_rows(DDSketch().update([4.0] * 9), [0.5])[0][0]
    0.5
    """
    if not sketch.n:
        return []
    if hasattr(sketch, "quantiles_within"):
        return list(zip(shares, *sketch.quantiles_within(list(shares))))
    bounded = hasattr(sketch, "quantile_bounds")
    values = sketch.quantiles(list(shares))
    bounds = [sketch.quantile_bounds(q) if bounded else (None, None) for q in shares]
    return [(q, value, *pair) for q, value, pair in zip(shares, values, bounds)]


def quantile_answer(sketch: Any) -> dict[str, Any]:
    """n and the usual quantiles with their bounds, as JSON can hold them."""
    names = ("q", "value", "lower", "upper")
    return finite({"n": sketch.n, "quantiles": [dict(zip(names, row)) for row in quantile_rows(sketch)]})


def finite(answer: Any) -> Any:
    """The same answer with None for what is infinite or no number, which JSON has no word for.

    >>> finite({"n": 2, "quantiles": [{"value": math.inf, "lower": 1.0}]})
    {'n': 2, 'quantiles': [{'value': None, 'lower': 1.0}]}
    """
    if isinstance(answer, dict):
        return {key: finite(value) for key, value in answer.items()}
    if isinstance(answer, list):
        return [finite(value) for value in answer]
    return None if isinstance(answer, float) and not math.isfinite(answer) else answer
