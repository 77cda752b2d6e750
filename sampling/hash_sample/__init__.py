"""All rows of a fixed share of the keys: the same keys in every stream."""

from .groups import HashSampleGroups
from .sketch import HashSample

__all__ = ["HashSample", "HashSampleGroups"]
