"""Co-partitioning of joined streams: both topics need equally many partitions, read by the same worker.

Workers get the same partition numbers of both topics only if partitions are assigned by range and every
member gives up all of its partitions in a rebalance. The positions of both must be committed together.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import combinations
from typing import Any

from ...definition.stream import Stream
from ...kafka.topics import TopicError
from ...watermarks.position import Input

_STRATEGY = "partition.assignment.strategy"
RANGES = {_STRATEGY: "range"}
"""The setting that assigns a member the same partition numbers of two topics of equal size."""


def check_joined(stream: Stream, delivery: str, settings: Mapping[str, Any]) -> None:
    """Raise `ValueError` for a run that can't keep the two sides of a join together."""
    if stream.reading.joined is None:
        return
    if delivery != "exactly_once":
        raise ValueError(
            f"delivery is {delivery!r}, and the stream joins two streams: the results of one side depend on "
            'the position of the other, and only "exactly_once" commits both together; leave delivery= out'
        )
    if str(settings.get("group.protocol", "classic")).lower() == "consumer":
        raise ValueError(
            'config has "group.protocol": "consumer", and the stream joins two streams: assignment by '
            "brokers doesn't guarantee partitions of the same number; leave the setting out"
        )
    if settings.get(_STRATEGY, "range") != "range":
        raise ValueError(
            f'config has "{_STRATEGY}": {settings[_STRATEGY]!r}, and the stream joins two streams: only '
            '"range" gives a worker partitions of the same number of both; leave the setting out'
        )


def check_alike(stream: Stream, partitions: Mapping[str, int]) -> None:
    """Raise `TopicError` for joined topics that don't have the same number of partitions."""
    if stream.reading.joined is None:
        return
    if stream.reading.joined.of_itself:
        return
    one, two = (part.topics[0] for part in stream.reading.joined.parts)
    if partitions[one] != partitions[two]:
        raise TopicError(
            f"join: the topic {one!r} has {partitions[one]} partitions and {two!r} has {partitions[two]}; "
            "rows are matched only between partitions with the same number, so both topics need equally "
            "many, with the same keys"
        )


def check_joins(streams: Mapping[str, Stream]) -> None:
    """Raise `ValueError` for streams whose joins can't share a consumer.

    One side of a join waits while the other is behind. Joins of the same two topics agree on who waits; with
    other topics, several could deadlock waiting for one another.
    """
    topics = {name: _topics(stream) for name, stream in streams.items()}
    # A stream joined with itself waits for no other topic.
    joins = {name: joined for name, joined in topics.items() if len(joined) > 1}
    for (one, ours), (two, theirs) in combinations(joins.items(), 2):
        if ours & theirs and ours != theirs:
            raise ValueError(
                f"the streams {one!r} and {two!r} both join {min(ours & theirs)!r}, but each with another "
                "topic; of streams that run together, joins have both topics in common or none: run one apart"
            )


def partners_of(stream: Stream, where: Input) -> set[Input]:
    """The partition that a joined stream's partition is matched with; empty if that is itself."""
    return {Input(topic, where.partition) for topic in _topics(stream)} - {where}


def check_partners(stream: Stream, inputs: Collection[Input], others: Collection[Input]) -> None:
    """Raise `TopicError` if a worker is assigned partitions without the partitions they are joined with.

    `inputs` are newly assigned; the worker already has `others`.
    """
    if stream.reading.joined is None:
        return
    for where in inputs:
        partners = partners_of(stream, where)
        if not partners <= set(inputs) or (partners | {where}) & set(others):
            raise TopicError(
                f"join: the group gave this worker {where} without its partner in the other topic; both "
                f"topics must have equally many partitions, and all members of the group "
                f'"{_STRATEGY}": "range"'
            )


def _topics(stream: Stream) -> set[str]:
    """The topics that a stream joins; empty for other streams."""
    return (
        set() if stream.reading.joined is None else {part.topics[0] for part in stream.reading.joined.parts}
    )
