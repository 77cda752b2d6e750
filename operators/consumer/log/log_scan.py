"""Scanning the table topic from an offset, and how far its deltas cover each input partition.

With "at_least_once", deltas are acknowledged before the input's offsets are committed, and a worker may die
in between. Its successor finds these deltas here and continues after them, so no row is counted twice. If
there are several table partitions, a delta may have reached only some of them. Then the successor resumes
where the shortest chain ends, and cuts its own deltas exactly where the longer ones end, so that mergers that
already have a range drop it and the others accept it. Deltas that were trimmed are in a merger's snapshot.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaPartition
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from ...kafka.chunked_records import ChunkAssembler
from ...kafka.client_config import LIBRARY_LOG, member_config
from ...kafka.faults import may_pass, passing, refused
from ...kafka.log_faults import DeltaError
from ...kafka.topics import Admin, TopicError, high_watermarks
from ...sketching.delta import Delta
from ...watermarks.position import Input, Position
from .messages import decode
from .snapshots import Snapshot, is_snapshot

log = logging.getLogger("streamgauge.kafka")

_SECONDS = 10.0
_EDGES_SECONDS = 20.0
_TRY_SECONDS = 4.0
"""For one attempt: the library asks a leader that was killed to the end, and another leads by then."""
_PAUSE_SECONDS = 0.05


@dataclass(slots=True)
class Tail:
    """One partition of the table topic: its first offset, its end, and what is in between.

    `deltas` have no tables; `snapshot` is the most advanced one, `damaged` the offset of a later snapshot
    that can't be read. Incomplete deltas and snapshots are omitted.
    """

    begin: int = 0
    end: int = 0
    deltas: list[Delta] = field(default_factory=list)
    snapshot: Snapshot | None = None
    damaged: int | None = None


@dataclass(slots=True)
class Ends:
    """The offset from which an input partition resumes, and the offsets at which its deltas must be cut.

    The messages from there to `skip_to` are skipped on request.
    """

    position: Position
    cuts: list[int] = field(default_factory=list)
    skip_to: int | None = None


def read_tail(config: Mapping[str, Any], topic: str, starts: Mapping[int, int]) -> dict[int, Tail]:
    """Read the table topic from an offset of each partition on, or from its first message.

    Raises `KafkaException` if the brokers don't answer, `Refused` if this user may not read it, `DeltaError`
    for a damaged delta.
    """
    # A broker holds a fetch at the end of a partition this long, and a worker's recovery waits for it.
    soon = {"enable.partition.eof": True, "fetch.wait.max.ms": 10}
    settings = {**member_config(config, topic), **soon}
    consumer = Consumer(settings, logger=LIBRARY_LOG)
    try:
        while True:
            # A merger writes a snapshot before it trims the messages that the snapshot replaces. A reader
            # that sees the new beginning therefore sees the snapshot, provided that it looks up the end
            # afterwards.
            begins = {partition: _edges(consumer, topic, partition)[0] for partition in starts}
            tails = _read(consumer, topic, starts)
            for partition, tail in tails.items():
                tail.begin = _edges(consumer, topic, partition)[0]
            if all(tail.begin <= max(begins[p], starts[p]) for p, tail in tails.items()):
                return tails
    finally:
        consumer.close()


def log_ends(client: Admin, topic: str, partitions: Iterable[int]) -> dict[int, int]:
    """The end of each partition, messages of open transactions included.

    A later read that stops before these offsets is incomplete: an open transaction hides the rest. Raises
    `KafkaException` without an answer.
    """
    try:
        offsets = high_watermarks(client, [Input(topic, p) for p in partitions], _SECONDS)
    except TopicError as error:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, str(error))) from None
    return {where.partition: end for where, end in offsets.items()}


def _read(consumer: Consumer, topic: str, starts: Mapping[int, int]) -> dict[int, Tail]:
    """Implements `read_tail`, without the first offsets."""
    tails = {partition: Tail() for partition in starts}
    gathers = {partition: ChunkAssembler() for partition in starts}

    def take(message: Message) -> None:
        partition = message.partition() or 0
        _add_message(tails[partition], gathers[partition], message)

    # While a producer keeps writing there is always more, and the end is never reported.
    ends = {partition: _edges(consumer, topic, partition)[1] for partition in starts}
    for partition, end in _through(consumer, topic, starts, ends, take, wait=False).items():
        tails[partition].end = end
    return tails


def read_through(
    config: Mapping[str, Any],
    topic: str,
    starts: Mapping[int, int],
    ends: Mapping[int, int],
    on_message: Callable[[Message], None],
) -> None:
    """Read all messages of the table topic from an offset of each partition up to another one.

    Raises `KafkaException` if the brokers don't answer, if a transaction that began before an end stays open,
    and if the beginning was trimmed meanwhile; `Refused` if this user may not read it.
    """
    settings = {**member_config(config, topic), "enable.partition.eof": True, "auto.offset.reset": "error"}
    consumer = Consumer({**settings, "fetch.wait.max.ms": 10}, logger=LIBRARY_LOG)
    try:
        _through(consumer, topic, starts, ends, on_message, wait=True)
    finally:
        consumer.close()


def _through(
    consumer: Consumer,
    topic: str,
    starts: Mapping[int, int],
    ends: Mapping[int, int],
    on_message: Callable[[Message], None],
    *,
    wait: bool,
) -> dict[int, int]:
    """Read each partition from one offset to another; returns the offsets reached.

    If an open transaction hides messages before an end, this waits for it, or stops reading.
    """
    reached = {partition: end for partition, end in ends.items() if starts[partition] >= end}
    left = {partition: start for partition, start in starts.items() if partition not in reached}
    consumer.assign([KafkaPartition(topic, partition, start) for partition, start in left.items()])
    deadline = time.monotonic() + _SECONDS
    while len(reached) < len(starts):
        messages = consumer.consume(500, 0.1)
        if any(message.error() is None for message in messages):
            deadline = time.monotonic() + _SECONDS
        elif time.monotonic() > deadline:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"no answer from the topic {topic}"))
        for message in messages:
            partition, error = message.partition(), message.error()
            if partition is not None and error is None:
                on_message(message)
                following = (message.offset() or 0) + 1
                if following >= ends[partition]:
                    reached[partition] = following
            elif error is not None and error.code() == KafkaError._PARTITION_EOF and partition is not None:
                at = message.offset() or 0
                if not wait or at >= ends[partition]:
                    reached[partition] = at
                else:
                    time.sleep(_PAUSE_SECONDS)
                    consumer.seek(KafkaPartition(topic, partition, at))
            elif error is not None and error.code() == KafkaError._AUTO_OFFSET_RESET:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"{topic} was trimmed meanwhile"))
            elif error is not None and not passing(error):
                raise refused(error, "read the table topic", topic=topic)
    return reached


def follow(position: Position, where: Input, logs: Mapping[int, Tail], epoch: int = 0) -> Ends:
    """The end of the chains of an input partition's deltas, starting at its committed position.

    `epoch` is that of the claim under which the position was committed. A delta whose claim is lower than one
    before it is dropped, as mergers do.

    >>> follow(Position(7), Input("posts", 0), {0: Tail()}).position.offset
    7
    """
    known_at = {position.offset: position}
    reached = []
    for tail in logs.values():
        end = position.offset
        known = None if tail.snapshot is None else tail.snapshot.marks.get(where)
        if known is not None and known.position.offset > end:
            end = known.position.offset
            known_at.setdefault(end, known.position)
        claimed = epoch
        for delta in tail.deltas:
            if delta.input != where or 0 < delta.epoch < claimed:
                continue
            claimed = max(claimed, delta.epoch)
            follows = delta.first_offset <= end < delta.next_offset
            if follows or delta.first_offset == end >= delta.next_offset:
                end = delta.next_offset
                known_at[end] = delta.end
        reached.append(end)
    start = min(reached)
    at = replace(position, offset=start, time=known_at[start].time, replay_time=None)
    at = replace(at, leader_epoch=known_at[start].leader_epoch)
    return Ends(at, sorted({end for end in reached if end > start}))


def highest_claim(where: Input, logs: Mapping[int, Tail]) -> int:
    """The highest epoch under which an input partition was claimed in these parts of the log."""
    epochs = [d.epoch for tail in logs.values() for d in tail.deltas if d.input == where]
    epochs += [tail.snapshot.epochs.get(where, 0) for tail in logs.values() if tail.snapshot is not None]
    return max(epochs, default=0)


def _edges(consumer: Consumer, topic: str, partition: int) -> tuple[int, int]:
    """The first offset of a partition, and the one after its last committed message."""
    # Not all brokers know a topic yet that another member has just created.
    retrying = Retrying(
        retry=retry_if_exception(may_pass),
        wait=wait_fixed(0.1),
        stop=stop_after_delay(_EDGES_SECONDS),
        reraise=True,
    )
    edges = retrying(consumer.get_watermark_offsets, KafkaPartition(topic, partition), timeout=_TRY_SECONDS)
    if edges is None:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"no answer from the topic {topic}"))
    return edges


def _add_message(tail: Tail, gather: ChunkAssembler, message: Message) -> None:
    _, record = gather.add(message.value(), message.headers(), message.offset() or 0)
    if record is None:
        return
    if is_snapshot(record.headers):
        try:
            snapshot = Snapshot.of(record)
            newer = tail.snapshot is None or snapshot.follows(tail.snapshot)
        except DeltaError as error:
            # Resuming from an earlier snapshot gives the same windows, with more deltas to read.
            log.warning("dropped %s at offset %s of %s", error, message.offset(), message.topic())
            tail.damaged = message.offset()
            return
        # If two are equally advanced, the first counts: it names the group.
        if newer:
            tail.snapshot, tail.damaged = snapshot, None
    else:
        tail.deltas.append(decode(record, rows=False))
