"""How many rows there were, the older the less they count: decayed by the weights of `DecayedReservoir`."""

from .groups import DecayedCountGroups
from .sketch import DecayedCount

__all__ = ["DecayedCount", "DecayedCountGroups"]
