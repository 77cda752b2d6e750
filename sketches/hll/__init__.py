"""HyperLogLog: the number of distinct values in 4 KB to ±1.6 %, in DataSketches' and Spark's bytes."""

from .groups import HLLGroups
from .sketch import HLL

__all__ = ["HLL", "HLLGroups"]
