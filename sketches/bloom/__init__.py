"""Was this value there before? Bits by hash: no, for certain, or probably yes."""

from .groups import BloomGroups
from .sketch import Bloom

__all__ = ["Bloom", "BloomGroups"]
