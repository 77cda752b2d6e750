"""Samples, counts and quantiles in which a row counts less the older it is."""

from .counts import DecayedCount, DecayedCountGroups
from .quantiles import DecayedQuantiles, DecayedQuantilesGroups
from .sketch import DecayedReservoir, DecayedReservoirGroups

__all__ = [
    "DecayedCount",
    "DecayedCountGroups",
    "DecayedQuantiles",
    "DecayedQuantilesGroups",
    "DecayedReservoir",
    "DecayedReservoirGroups",
]
