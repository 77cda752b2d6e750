"""A uniform sample of each key's rows, so that rare keys are represented beside frequent ones."""

from .groups import StratifiedReservoirGroups
from .sketch import StratifiedReservoir

__all__ = ["StratifiedReservoir", "StratifiedReservoirGroups"]
