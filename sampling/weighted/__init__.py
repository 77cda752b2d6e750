"""A sample without replacement, in proportion to weights."""

from .groups import WeightedReservoirGroups
from .sketch import WeightedReservoir

__all__ = ["WeightedReservoir", "WeightedReservoirGroups"]
