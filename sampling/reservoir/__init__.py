"""A uniform sample of a stream: every set of k rows equally likely, however it was split and merged."""

from .groups import ReservoirGroups
from .sketch import Reservoir

__all__ = ["Reservoir", "ReservoirGroups"]
