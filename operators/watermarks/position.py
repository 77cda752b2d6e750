"""The position of a partition, the common measure of workers, mergers and Spark's checkpoints."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from .partition_watermark import PartitionTime


class Input(NamedTuple):
    """A partition of an input topic. As a mapping key it equals the pair of topic and number."""

    topic: str
    partition: int

    @property
    def rank(self) -> int:
        """A number below 2³¹ for each partition of several topics, to order rows with the same event time."""
        return (zlib.crc32(self.topic.encode()) & 0x7FFF) << 16 | self.partition & 0xFFFF

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]"


def inputs_of(partitions: Mapping[str, int]) -> list[Input]:
    """All partitions of topics, given their numbers of partitions.

    >>> [str(one) for one in inputs_of({"posts": 2, "likes": 1})]
    ['posts[0]', 'posts[1]', 'likes[0]']
    """
    return [Input(topic, number) for topic, count in partitions.items() for number in range(count)]


@dataclass(frozen=True, slots=True)
class Position:
    """The position in an input partition: the next offset to read, and the event time before it.

    `replay` is the offset from which a worker that resumes there must reread earlier rows, for remembered ids
    (`steps.id_index`) or buffered rows of a join (`steps.join_state`); None if unknown. `replay_time` is the
    event time there, from which reread rows are checked again. `leader_epoch` is that of the leader whose log
    had all messages before the offset, or a later one; −1 if unknown. It is ignored in comparisons, because
    readers learn it batch by batch.

    Everything else follows only from the messages before `offset`, so every reader computes the same.
    """

    offset: int = 0
    time: PartitionTime = field(default_factory=PartitionTime)
    replay: int | None = None
    replay_time: PartitionTime | None = None
    leader_epoch: int = field(default=-1, compare=False)
