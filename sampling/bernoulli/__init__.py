"""A fixed share of the rows, each chosen independently."""

from .groups import BernoulliSampleGroups
from .sketch import BernoulliSample

__all__ = ["BernoulliSample", "BernoulliSampleGroups"]
