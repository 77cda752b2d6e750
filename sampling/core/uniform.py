"""Samples of rows with equal probability, and the error of shares estimated from them."""

from __future__ import annotations

import math
from typing import Any, Self

from .bottom_k import BottomK, check_confidence


def share_error(items: int, confidence: float = 0.95) -> float:
    """Return the largest error of a share estimated from this many items, at that confidence.

    Hoeffding's bound sqrt(ln(2 / (1 − confidence)) / 2m), which holds for draws without replacement too.
    Raises `SketchError` for a confidence outside 0 to 1.

    Source: Hoeffding, "Probability Inequalities for Sums of Bounded Random Variables", JASA 1963, sections 2,
    6.

    >>> round(share_error(1000), 3)
    0.043
    """
    confidence = check_confidence(confidence)
    return min(math.sqrt(math.log(2.0 / (1.0 - confidence)) / (2.0 * items)), 1.0) if items else 1.0


class Uniform(BottomK):
    """A single such sample."""

    def update(self, values: Any) -> Self:
        """Add a scalar, a list, a NumPy or Arrow column, or records; nulls are skipped."""
        return self._update(values)

    def error(self, confidence: float = 0.95) -> float:
        """The largest error of a share estimated from the sample, at that confidence.

        Hoeffding's bound sqrt(ln(2 / (1 − confidence)) / 2m) for m items; 0 while the sample has all rows.
        Raises `SketchError` for a confidence outside 0 to 1.

        Source: Hoeffding, "Probability Inequalities for Sums of Bounded Random Variables", JASA 1963.

        >>> import streamgauge as sg
        >>> round(sg.Reservoir(1000, seed=1).update(range(5000)).error(0.95), 3)
        0.043
        """
        error = share_error(len(self), confidence)
        return error if len(self) < self.n else 0.0
