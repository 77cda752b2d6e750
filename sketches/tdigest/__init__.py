"""Quantiles by clusters: t-digests that others stored, through the `datasketches` package."""

from .groups import TDigestGroups
from .sketch import TDigest

__all__ = ["TDigest", "TDigestGroups"]
