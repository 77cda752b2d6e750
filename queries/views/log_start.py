"""Where a server begins to read a group's table topic, found without joining the group.

Mergers delete messages behind their oldest open window, and store in the topic itself their state at the
offset from which they would resume. Resuming from the earliest such snapshot that still exists gives the most
windows: all that were not emitted before it, complete.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as KafkaPartition

from ...operators.consumer.log.log_scan import log_ends
from ...operators.consumer.log.messages import decode
from ...operators.consumer.log.snapshots import Snapshot, is_snapshot
from ...operators.consumer.options import DeliveryName
from ...operators.definition.described_stream import DescribedStream, described_stream
from ...operators.kafka.chunked_records import ChunkAssembler
from ...operators.kafka.log_faults import DeltaError
from ...operators.kafka.topics import Admin, TopicError, id_of
from ...operators.watermarks.position import Input, inputs_of
from .topic_reading import ANSWER_SECONDS, no_answer, reader, whole
from .view import NotReady

Place = tuple[int, str]
"""An offset of the table topic to resume from, and a merger's state there."""


@dataclass(slots=True)
class _PartitionScan:
    """What was found in one partition of the table topic."""

    begin: int
    end: int
    gather: ChunkAssembler = field(default_factory=ChunkAssembler)
    snapshots: list[Snapshot] = field(default_factory=list)

    def start(self, name: str, last: int) -> Place | None:
        """Where to begin, None for the first message; there were messages up to `last` when reading began.

        Raises `DeltaError` if that is no longer known, `NotReady` if it isn't visible yet.
        """
        if self.begin == 0:
            return None
        usable = [snapshot for snapshot in self.snapshots if snapshot.next_offset >= self.begin]
        if not usable and self.end < last:
            raise NotReady(f"a transaction on {name} is still open, and a merger's state may lie behind it")
        if not usable:
            raise DeltaError(
                f"{name} begins at offset {self.begin}, and holds no merger's state from there on: messages "
                "were deleted by the topic's retention or by hand; begin a new group, and leave "
                "retention.ms=-1 and retention.bytes=-1 on table topics"
            )
        first = min(usable, key=lambda snapshot: snapshot.progress)
        return first.next_offset, first.state


@dataclass(frozen=True)
class LogStart:
    """A group's table topic, its id, and its stream.

    For each of its partitions, `begins` has its first offset and `places` where to begin (None: there).
    `inputs` are the input partitions of its deltas, `delivery` is the run's delivery guarantee.
    """

    topic: str
    topic_id: str
    stream: DescribedStream
    begins: Mapping[int, int]
    places: Mapping[int, Place | None]
    inputs: frozenset[Input]
    delivery: DeliveryName = "exactly_once"


def table_topic_of(client: Admin, group_id: str) -> str:
    """The name of a group's table topic. Raises `NotReady` if there is none yet, `TopicError` for several."""
    pattern = re.compile(re.escape(f"{group_id}.table.") + "[0-9a-f]{16}")
    names = sorted(
        topic for topic in client.list_topics(timeout=ANSWER_SECONDS).topics if pattern.fullmatch(topic)
    )
    if not names:
        raise NotReady(
            f"there is no table topic {group_id}.table.* at {client.address}; it is created when a run with "
            f'group_id="{group_id}" begins, or this user may not see it'
        )
    if len(names) > 1:
        raise TopicError(
            f"the group {group_id!r} has several table topics, of different definitions: {', '.join(names)}; "
            "delete those that are no longer used"
        )
    return names[0]


def find_start(client: Admin, config: Mapping[str, Any], group_id: str) -> LogStart:
    """Find a group's table topic and where to begin in it; reads the whole topic once.

    Raises `NotReady` while it is empty, `KafkaException` if brokers don't answer or refuse, `DeltaError` for
    damaged messages, and `ValueError` for a definition that can't be read.
    """
    topic = table_topic_of(client, group_id)
    topic_id = id_of(client, topic)
    consumer = reader(config, group_id)
    try:
        partitions = sorted(client.list_topics(topic, timeout=ANSWER_SECONDS).topics[topic].partitions)
        ends = log_ends(client, topic, partitions)
        logs, inputs = _read(consumer, topic, partitions)
    finally:
        consumer.close()
    snapshots = [snapshot for log in logs.values() for snapshot in log.snapshots]
    places = {p: log.start(f"the table topic {topic!r}[{p}]", ends[p]) for p, log in logs.items()}
    if not snapshots:
        raise NotReady(f"the table topic {topic!r} doesn't record its stream yet")
    latest = max(snapshots, key=lambda snapshot: snapshot.progress)
    stream = described_stream(latest.definition)
    if stream.fingerprint() != (latest.described or latest.fingerprint):
        raise ValueError(
            f"the table topic {topic!r} was written by another version of streamgauge, which describes "
            "streams differently; use that version to serve it"
        )
    stream = replace(stream, began_as=latest.fingerprint)
    if stream.window is not None and not stream.window.of_time:
        raise ValueError(
            f"the stream of {topic!r} has windows by count, which have no span of time to query; send "
            "them to a sink, such as AnswersToKafka or SketchesToParquet"
        )
    for snapshot in snapshots:
        inputs |= snapshot.marks.keys()
    inputs |= _partitions(client, stream, inputs)
    begins = {p: log.begin for p, log in logs.items()}
    deliveries = {snapshot.progress: snapshot.delivery for snapshot in snapshots if snapshot.delivery}
    # A run that never merged wrote no snapshot; everything in its log was sent once.
    delivery: Any = deliveries[max(deliveries)] if deliveries else "exactly_once"
    return LogStart(topic, topic_id, stream, begins, places, frozenset(inputs), delivery)


def _partitions(client: Admin, stream: DescribedStream, known: set[Input]) -> set[Input]:
    """The input topics' partitions that this user may see; not all may have deltas yet."""
    topics = client.list_topics(timeout=ANSWER_SECONDS).topics
    heard = {one.topic for one in known}
    read = [name for name in topics if name in heard or stream.reading.reads_topic(name)]
    return set(inputs_of({name: len(topics[name].partitions) for name in read}))


def _read(
    consumer: Consumer, topic: str, partitions: list[int]
) -> tuple[dict[int, _PartitionScan], set[Input]]:
    """The snapshots in all partitions of the table topic, and the input partitions of its deltas."""
    logs: dict[int, _PartitionScan] = {}
    inputs: set[Input] = set()
    for partition in partitions:
        edges = consumer.get_watermark_offsets(KafkaPartition(topic, partition), timeout=ANSWER_SECONDS)
        if edges is None:
            raise no_answer(topic)
        logs[partition] = _PartitionScan(*edges)
    spans = {p: (log.begin, log.end) for p, log in logs.items()}
    for number, offset, message in whole(consumer, topic, spans, "read the table topic"):
        log = logs[number]
        _, record = log.gather.add(message.value(), message.headers(), offset)
        if record is not None and is_snapshot(record.headers):
            log.snapshots.append(Snapshot.of(record))
        elif record is not None:
            inputs.add(decode(record, rows=False).input)
    return logs, inputs
