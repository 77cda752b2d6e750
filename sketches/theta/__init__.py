"""Theta: distinct values of unions, intersections and differences, in DataSketches' and Spark's bytes."""

from .groups import ThetaGroups
from .sketch import Theta
from .tuple import Tuple, TupleGroups

__all__ = ["Theta", "ThetaGroups", "Tuple", "TupleGroups"]
