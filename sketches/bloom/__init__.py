"""Whether a value occurred before: a Bloom filter, which answers certainly no or probably yes."""

from .groups import BloomGroups
from .sketch import Bloom

__all__ = ["Bloom", "BloomGroups"]
