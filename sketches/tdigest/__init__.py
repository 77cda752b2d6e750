"""Quantiles by clusters of values: t-digests."""

from .groups import TDigestGroups
from .sketch import TDigest

__all__ = ["TDigest", "TDigestGroups"]
