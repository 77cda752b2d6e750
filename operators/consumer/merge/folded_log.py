"""A table topic folded once to its end, as by a merger that takes it over, for readers that don't merge."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from confluent_kafka import Message

from ...definition.described_stream import DescribedStream, described_stream
from ...kafka.chunked_records import ChunkAssembler
from ...kafka.topics import TopicError
from ...watermarks.position import Input
from ..log.log_scan import Tail, read_through
from ..log.snapshots import Snapshot
from .log_folding import merge_message
from .merger import Merger


def first_snapshot(topic: str, tails: Mapping[int, Tail]) -> Snapshot:
    """A snapshot of a table topic. Raises `TopicError` if there is none yet."""
    snapshots = [tail.snapshot for tail in tails.values() if tail.snapshot is not None]
    if not snapshots:
        raise TopicError(
            f"the table topic {topic!r} doesn't record its stream yet; try again once its run has started"
        )
    return snapshots[0]


def folded_stream(topic: str, tails: Mapping[int, Tail]) -> DescribedStream:
    """The stream of a table topic, as its snapshots describe it, with the group's first fingerprint."""
    snapshot = first_snapshot(topic, tails)
    return replace(described_stream(snapshot.definition), began_as=snapshot.fingerprint)


def folded_log(
    config: Mapping[str, Any],
    stream: DescribedStream,
    topic: str,
    tails: Mapping[int, Tail],
    inputs: Collection[Input],
) -> dict[int, Merger]:
    """Mergers for all partitions of a table topic, into which everything in `tails` is folded.

    Raises `KafkaException` if the brokers don't answer, `DeltaError` for damaged deltas.
    """
    snapshots = [tail.snapshot for tail in tails.values() if tail.snapshot is not None]
    delivery: Any = next((one.delivery for one in snapshots if one.delivery), "exactly_once")
    mergers, gathers, starts = {}, {}, {}
    for partition, tail in tails.items():
        mergers[partition], gathers[partition] = Merger(stream, inputs, delivery), ChunkAssembler()
        starts[partition] = tail.begin
        if tail.snapshot is not None and tail.snapshot.next_offset >= tail.begin:
            mergers[partition].restore(tail.snapshot.next_offset, tail.snapshot.state)
            starts[partition] = tail.snapshot.next_offset

    def fold(message: Message) -> None:
        partition = message.partition() or 0
        merge_message(
            mergers[partition],
            gathers[partition],
            message.offset() or 0,
            message.value(),
            message.headers(),
        )

    read_through(config, topic, starts, {p: tail.end for p, tail in tails.items()}, fold)
    return mergers
