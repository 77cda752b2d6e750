"""A fixed share of the rows, each row on its own."""

from .groups import BernoulliSampleGroups
from .sketch import BernoulliSample

__all__ = ["BernoulliSample", "BernoulliSampleGroups"]
