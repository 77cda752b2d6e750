"""Quantiles by DDSketch: every answer within a fixed share of the true value, tails included."""

from .groups import DDSketchGroups
from .sketch import DDSketch

__all__ = ["DDSketch", "DDSketchGroups"]
