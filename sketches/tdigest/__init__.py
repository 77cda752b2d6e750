"""Quantiles by clusters: t-digests, for stores that keep them."""

from .groups import TDigestGroups
from .sketch import TDigest

__all__ = ["TDigest", "TDigestGroups"]
