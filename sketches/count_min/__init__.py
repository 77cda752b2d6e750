"""How often did this value occur? Counters by hash, for any value, queried after the fact."""

from .groups import CountMinGroups
from .heavy_hitters import HeavyHitters
from .sketch import CountMin

__all__ = ["CountMin", "CountMinGroups", "HeavyHitters"]
