"""Answers as JSON can hold them."""

from __future__ import annotations

import math
from typing import Any


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
