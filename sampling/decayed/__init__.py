"""A sample in which a row's chance halves with every half-life: mostly recent rows, and some old ones."""

from .groups import DecayedReservoirGroups
from .sketch import DecayedReservoir

__all__ = ["DecayedReservoir", "DecayedReservoirGroups"]
