"""Quantiles as Druid stored them for years: classic quantiles, through the `datasketches` package."""

from .groups import ClassicQuantilesGroups
from .sketch import ClassicQuantiles

__all__ = ["ClassicQuantiles", "ClassicQuantilesGroups"]
