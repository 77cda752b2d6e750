"""Exact aggregates beside the approximate ones."""

from .groups import (
    CountGroups,
    FirstGroups,
    LastGroups,
    MaxGroups,
    MeanGroups,
    MinGroups,
    SumGroups,
    VarianceGroups,
)

__all__ = [
    "CountGroups",
    "FirstGroups",
    "LastGroups",
    "MaxGroups",
    "MeanGroups",
    "MinGroups",
    "SumGroups",
    "VarianceGroups",
]
