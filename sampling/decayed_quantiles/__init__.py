"""How values are spread, the older the less they count: decayed by the weights of `DecayedReservoir`."""

from .groups import DecayedQuantilesGroups
from .sketch import DecayedQuantiles

__all__ = ["DecayedQuantiles", "DecayedQuantilesGroups"]
