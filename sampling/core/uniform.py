"""Samples of rows that all had the same chance, and how far a share read off one may be from the stream's."""

from __future__ import annotations

import math
from typing import Any, Self

from .bottom_k import BottomK, check_confidence


def share_error(items: int, confidence: float = 0.95) -> float:
    """The error of a share counted among so many items, at most, at that confidence.

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
    """One such sample."""

    def update(self, values: Any) -> Self:
        """Add a scalar, a list, a NumPy or Arrow column, or records; nulls are skipped."""
        return self._update(values)

    def error(self, confidence: float = 0.95) -> float:
        """How far a share read off the sample is from the stream's, at most, at that confidence.

        Hoeffding's bound sqrt(ln(2 / (1 − confidence)) / 2m) for m items; 0 while the sample is the stream.
        Raises `SketchError` for a confidence outside 0 to 1.

        Source: Hoeffding, "Probability Inequalities for Sums of Bounded Random Variables", JASA 1963.

        >>> import streamgauge as sg
        >>> round(sg.Reservoir(1000, seed=1).update(range(5000)).error(0.95), 3)
        0.043
        """
        error = share_error(len(self), confidence)
        return error if len(self) < self.n else 0.0
