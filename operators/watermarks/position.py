"""How far a partition is: the one measure that workers, mergers and Spark's checkpoints all go by."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from .partition_watermark import PartitionTime


class Input(NamedTuple):
    """A partition of an input topic. A pair of a topic and a number is the same key in a mapping."""

    topic: str
    partition: int

    @property
    def rank(self) -> int:
        """A number below 2³¹ for each partition of several topics, to tell rows of one event time apart."""
        return (zlib.crc32(self.topic.encode()) & 0x7FFF) << 16 | self.partition & 0xFFFF

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]"


def inputs_of(partitions: Mapping[str, int]) -> list[Input]:
    """All partitions of topics that have so many each.

    >>> [str(one) for one in inputs_of({"posts": 2, "likes": 1})]
    ['posts[0]', 'posts[1]', 'likes[0]']
    """
    return [Input(topic, number) for topic, count in partitions.items() for number in range(count)]


@dataclass(frozen=True, slots=True)
class Position:
    """How far an input partition is: the next offset to read, and its event time after all before that.

    `replay` is the offset from which the rows before must be read once more, by who goes on there, to know
    the ids that were seen (`joins.id_index`), or the rows that wait for partners (`joins.join_state`); None
    where that isn't known. `replay_time` is the event time there, where rows that are read again are judged
    again. `leader_epoch` is that of the leader whose log had all messages before, or a later one; −1 where it
    isn't known, and of no account in comparisons: readers learn it by the batch.

    All else follows from the messages before `offset` alone, so every reader of them computes the same.
    """

    offset: int = 0
    time: PartitionTime = field(default_factory=PartitionTime)
    replay: int | None = None
    replay_time: PartitionTime | None = None
    leader_epoch: int = field(default=-1, compare=False)
