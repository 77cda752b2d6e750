"""The number of rows, weighted by age: decayed with the weights of `DecayedReservoir`."""

from .groups import DecayedCountGroups
from .sketch import DecayedCount

__all__ = ["DecayedCount", "DecayedCountGroups"]
