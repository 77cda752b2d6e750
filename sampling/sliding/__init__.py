"""A uniform sample of the last hour, or of any shorter span, at any time."""

from .groups import SlidingWindowSampleGroups
from .sketch import SlidingWindowSample

__all__ = ["SlidingWindowSample", "SlidingWindowSampleGroups"]
