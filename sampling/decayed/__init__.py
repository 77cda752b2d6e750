"""A sample in which a row's chance halves with every half-life: the recent, with some of the old."""

from .groups import DecayedReservoirGroups
from .sketch import DecayedReservoir

__all__ = ["DecayedReservoir", "DecayedReservoirGroups"]
