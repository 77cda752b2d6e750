"""The distribution of values, weighted by age: decayed with the weights of `DecayedReservoir`."""

from .groups import DecayedQuantilesGroups
from .sketch import DecayedQuantiles

__all__ = ["DecayedQuantiles", "DecayedQuantilesGroups"]
