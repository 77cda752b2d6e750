"""Answers as JSON can hold them, and how quantiles are described."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

USUAL_QUANTILES = (0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999)
"""The shares of an answer by default."""


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
