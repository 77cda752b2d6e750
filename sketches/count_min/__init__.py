"""How often a value occurred, for any value chosen at query time: a count-min sketch."""

from .groups import CountMinGroups
from .heavy_hitters import HeavyHitters
from .sketch import CountMin

__all__ = ["CountMin", "CountMinGroups", "HeavyHitters"]
