"""How far a share read off a uniform sample may be from the share of all rows."""

from __future__ import annotations

import math


def share_error(items: int, confidence: float = 0.95) -> float:
    """The error of a share counted among so many items, at most, at that confidence.

    Hoeffding's bound sqrt(ln(2 / (1 − confidence)) / 2m), which holds for draws without replacement too.
    Raises `ValueError` for a confidence outside 0 to 1.

    Source: Hoeffding, "Probability Inequalities for Sums of Bounded Random Variables", JASA 1963, sections 2,
    6.

    >>> round(share_error(1000), 3)
    0.043
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
    return min(math.sqrt(math.log(2.0 / (1.0 - confidence)) / (2.0 * items)), 1.0) if items else 1.0
