"""Answers in a form that JSON can represent, and the description of quantiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

USUAL_QUANTILES = (0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999)
"""The default shares of an answer."""


def quantile_rows(sketch: Any, shares: Sequence[float] = USUAL_QUANTILES) -> list[tuple[Any, ...]]:
    """Return each share with its value and bounds (None if none are promised); nothing for an empty sketch.

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
    """Return n and the usual quantiles with their bounds, in a form that JSON can represent."""
    names = ("q", "value", "lower", "upper")
    return finite({"n": sketch.n, "quantiles": [dict(zip(names, row)) for row in quantile_rows(sketch)]})


def finite(answer: Any) -> Any:
    """Replace infinities and NaN in an answer by None, since JSON can't represent them.

    >>> finite({"n": 2, "quantiles": [{"value": math.inf, "lower": 1.0}]})
    {'n': 2, 'quantiles': [{'value': None, 'lower': 1.0}]}
    """
    if isinstance(answer, dict):
        return {key: finite(value) for key, value in answer.items()}
    if isinstance(answer, list):
        return [finite(value) for value in answer]
    return None if isinstance(answer, float) and not math.isfinite(answer) else answer
