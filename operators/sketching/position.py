"""How far a partition is: the one measure that workers, mergers and Spark's checkpoints all go by."""

from __future__ import annotations

from dataclasses import dataclass, field

from .lateness import PartitionTime


@dataclass(frozen=True, slots=True)
class Position:
    """How far an input partition is: the next offset to read, and its event time after all before that.

    It follows from the messages before `offset` alone, so whoever reads them finds the same.
    """

    offset: int = 0
    time: PartitionTime = field(default_factory=PartitionTime)
