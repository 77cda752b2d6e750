"""A uniform sample of a stream: every set of k rows is equally likely, however the stream was split."""

from .groups import ReservoirGroups
from .sketch import Reservoir

__all__ = ["Reservoir", "ReservoirGroups"]
