"""Stored weighted samples: VarOpt sketches, through the `datasketches` package."""

from .groups import VarOptGroups
from .sketch import VarOpt

__all__ = ["VarOpt", "VarOptGroups"]
