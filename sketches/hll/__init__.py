"""HyperLogLog: how many distinct values, in 4 KB and ±1.6 %, in DataSketches' and Spark's bytes."""

from .groups import HLLGroups
from .sketch import HLL

__all__ = ["HLL", "HLLGroups"]
