"""A uniform sample of each key's rows, so that small keys are seen beside large ones."""

from .groups import StratifiedReservoirGroups
from .sketch import StratifiedReservoir

__all__ = ["StratifiedReservoir", "StratifiedReservoirGroups"]
