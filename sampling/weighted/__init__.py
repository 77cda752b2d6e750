"""A sample in proportion to weights: the heavier a row, the likelier it is sampled, none twice."""

from .groups import WeightedReservoirGroups
from .sketch import WeightedReservoir

__all__ = ["WeightedReservoir", "WeightedReservoirGroups"]
