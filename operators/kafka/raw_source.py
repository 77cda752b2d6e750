"""Reading raw record batches, without a Python object per message or a copy of a value before decoding."""

# ruff: noqa: D102 - the methods are those of `Source`, which documents them
from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaPartition
from kafka.errors import KafkaError, OffsetOutOfRangeError
from kafka.protocol.consumer import OffsetForLeaderEpochRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.structs import OffsetAndMetadata

from ..formats.messages import Broken, Messages
from ..secrets import NoSecrets
from .array_pool import ARRAYS
from .codecs import CorruptRecords
from .raw_client import RawClient
from .raw_fetcher import TRANSPORT, Fetched, RawFetcher, ended_at
from .raw_messages import messages_of
from .raw_settings import ahead_bytes, raw_settings
from .record_batches import BrokenBatch, RecordBatch
from .source import CORRUPT, Fault, LogPosition, NoAnswer, Poll, ReadError, TopicPartition

LOG = logging.getLogger("kafka")
"""kafka-python's logger, with messages about each connection attempt; silent unless its level is set."""

for _name in [name for name in logging.root.manager.loggerDict if name.startswith("kafka.")]:
    logging.getLogger(_name).addFilter(NoSecrets())  # it logs whole requests, including log-ins

if LOG.level == logging.NOTSET:
    LOG.setLevel(logging.CRITICAL + 1)

_ALL = 1 << 30
_STEP_MS = 50
_UNKNOWN_TOPIC = 3
_AT_ONCE_BYTES = 16 << 20
"""The most compressed bytes to decompress at once; fewer if they contain enough messages."""
_LEAST_FETCH_BYTES = 64 << 10
_PAUSE_SECONDS = 0.02
"""After a longer pause between reads, a response that was fetched in advance is old."""
_NEXT_RESPONSE_MS = 10
"""How long to wait for the next response then."""
_FEW_BYTES = 256 << 10
"""It is only waited for if less than this has been fetched and not returned."""
_STALLED_SECONDS = 30.0
"""How long brokers may return nothing at all while there is something to read."""
_DEFAULTS = {
    # As measured: larger responses take memory that the system clears each time, smaller ones more requests.
    "fetch_max_bytes": 16 << 20,
    "max_partition_fetch_bytes": 4 << 20,
    "reconnect_backoff_max_ms": 1000,
    "metrics_enabled": False,
    "enable_auto_commit": False,
    "allow_auto_create_topics": False,
}


class RawSource:
    """A `Source` over kafka-python's fetcher. Raises `ReadError` for unknown settings.

    Data that can't be read is a fault each time it is reached; with `skip` it is skipped and reported. One
    response of each broker is processed while the next one arrives. Together they take no more than the
    setting ``queued.max.messages.kbytes``, but at least a batch of each broker.
    """

    def __init__(self, config: Mapping[str, Any], headers: bool = False, skip: bool = False) -> None:
        self._settings = {**_DEFAULTS, **raw_settings(config)}
        self._ahead_bytes = ahead_bytes(config)
        self._headers = headers
        self._skip = skip
        self._busy = threading.Lock()
        self._answered = 0
        self._returned = 0.0
        self._consumer: Any = None
        self._closed = False
        self._fetcher: RawFetcher
        self._begin({})

    def assign(self, positions: Mapping[TopicPartition, LogPosition]) -> None:
        consumer = self._connected(30.0)
        places = [KafkaPartition(*where) for where in positions]
        consumer.assign(places)
        if places:
            consumer.resume(*places)
        self._share(len(self._leaders(places)))
        self._begin(positions)
        for where, position in positions.items():
            self._seek(where, position.offset)

    def _seek(self, where: TopicPartition, offset: int) -> None:
        # The consumer's own method doesn't accept the epoch.
        assigned = self._connected(30.0)._subscription.assignment[KafkaPartition(*where)]
        assigned.seek(OffsetAndMetadata(offset, "", self._epochs.get(where, -1)))

    def truncated(
        self, positions: Mapping[TopicPartition, LogPosition], seconds: float
    ) -> dict[TopicPartition, LogPosition | None]:
        manager, deadline = self._connected(seconds)._manager, time.monotonic() + seconds
        left, lost = dict(positions), dict[TopicPartition, LogPosition | None]()
        for topic in {topic for topic, _ in left}:
            manager.cluster.add_topic(topic)
        while left:
            try:
                manager.run(manager.cluster.refresh_metadata)
                for (topic, number), answer in self._ends_of_epochs(left, deadline):
                    position = left.pop((topic, number))
                    end = ended_at(answer)
                    if end is None or end.offset < position.offset:
                        lost[topic, number] = end
            except KafkaError as error:
                if not error.retriable:
                    raise ReadError(f"asking where the leaders' logs end failed: {error}") from None
            if left and time.monotonic() > deadline:
                topic, number = next(iter(left))
                raise NoAnswer(f"the leader of {topic}[{number}] did not return where its log ends")
            if left:
                time.sleep(_STEP_MS / 1000)
        return lost

    def _ends_of_epochs(
        self, positions: Mapping[TopicPartition, LogPosition], deadline: float
    ) -> Iterator[tuple[TopicPartition, Any]]:
        """What the partitions' leaders report about the epochs of these positions, if they answer."""
        manager = self._connected(30.0)._manager
        by_leader: dict[int, dict[str, list[Any]]] = {}
        for (topic, number), position in positions.items():
            leader = manager.cluster.leader_for_partition(KafkaPartition(topic, number))
            if leader is not None and leader >= 0:
                wanted = OffsetForLeaderEpochRequest.OffsetForLeaderTopic.OffsetForLeaderPartition(
                    partition=number, current_leader_epoch=-1, leader_epoch=position.epoch
                )
                by_leader.setdefault(leader, {}).setdefault(topic, []).append(wanted)
        for leader, topics in by_leader.items():
            request = OffsetForLeaderEpochRequest(replica_id=-1, topics=list(topics.items()))
            left_ms = max(deadline - time.monotonic(), 0.1) * 1000
            answer = manager.run(manager.wait_for, manager.send(request, node_id=leader), left_ms)
            for topic in answer.topics:
                for partition in topic.partitions:
                    if partition.error_code == 0:
                        yield (topic.topic, partition.partition), partition

    def epochs(self) -> dict[TopicPartition, int]:
        return dict(self._epochs)

    def _leaders(self, places: list[KafkaPartition]) -> set[int | None]:
        """The leaders of these partitions; the client itself would wait before it asks about new ones."""
        manager = self._connected(30.0)._manager
        leader = manager.cluster.leader_for_partition
        if any(leader(place) is None for place in places):
            with suppress(KafkaError):  # it asks again by itself
                manager.run(manager.cluster.refresh_metadata)
        return {leader(place) for place in places}

    def _begin(self, positions: Mapping[TopicPartition, LogPosition]) -> None:
        self._position = {where: position.offset for where, position in positions.items()}
        self._epochs = {where: position.epoch for where, position in positions.items() if position.epoch >= 0}
        self._touched: set[TopicPartition] = set()
        self._paused: set[TopicPartition] = set()
        self._waiting: deque[Fetched] = deque()
        # For a batch larger than requested: the messages not yet returned, and the offset after them.
        self._rests: dict[TopicPartition, tuple[Messages, int]] = {}
        self._ended: set[TopicPartition] = set()
        self._answers = 0
        self._down = False
        self._suspect: dict[TopicPartition, int] = {}
        self._leap: dict[TopicPartition, int] = {}
        self._stalled = 0.0

    def _share(self, brokers: int) -> None:
        """Limit fetches so that two responses of each broker fit in the prefetch limit."""
        each = max(self._ahead_bytes // (2 * max(brokers, 1)), _LEAST_FETCH_BYTES)
        for name in ("fetch_max_bytes", "max_partition_fetch_bytes"):
            self._fetcher.config[name] = min(int(self._settings[name]), each)

    def poll(self, limit: int, seconds: float) -> Poll:
        deadline = time.monotonic() + seconds
        with self._busy:
            consumer = self._connected(30.0)
            faults: list[Fault] = []
            while True:
                messages = self._ready(limit, faults)
                ends = {} if messages is not None else self._ends_reached()
                left = deadline - time.monotonic()
                if ends:
                    ARRAYS.clear()  # the next messages may take long to arrive
                if messages is not None:
                    self._returned = time.monotonic()
                if messages is not None or ends or faults or left <= 0:
                    return Poll(messages, ends, faults)
                began = time.monotonic()
                try:
                    self._fetch(consumer, min(_STEP_MS, max(1, round(left * 1000))))
                    # Messages that have arrived during the pause come with the next response.
                    if self._waiting and began - self._returned > _PAUSE_SECONDS and self._has_few():
                        self._fetch(consumer, _NEXT_RESPONSE_MS)
                except KafkaError as error:
                    faults.append(_fault(error))
                self._noticed(faults)
                self._check_stall(time.monotonic() - began)

    def _fetch(self, consumer: Any, milliseconds: int) -> None:
        for fetched in consumer.poll(milliseconds, _ALL).values():
            self._waiting.extend(fetched)

    def _has_few(self) -> bool:
        """Whether what waits to be returned is small."""
        return sum(len(step.batch.raw) for step in self._waiting if step.batch is not None) < _FEW_BYTES

    def caught_up(self) -> bool:
        ends = self._fetcher.ends
        return not (self._waiting or self._rests) and all(
            where in ends and position >= ends[where] for where, position in self._position.items()
        )

    def _noticed(self, faults: list[Fault]) -> None:
        """Errors from the fetcher's own thread; the first response after them means that brokers are back."""
        while self._fetcher.faults:
            faults.append(self._fetcher.faults.popleft())
            self._down = True
            self._answers = self._fetcher.answers
        if self._down and self._fetcher.answers > self._answers:
            self._down = False
            self._ended.clear()

    def _ready(self, limit: int, faults: list[Fault]) -> Messages | None:
        """The next fetched messages, at most `limit`."""
        for where, (messages, following) in self._rests.items():
            if where not in self._paused:
                del self._rests[where]
                return self._cut(where, messages, following, limit)
        ready = None
        while ready is None and not faults and (chosen := self._chosen(limit)):
            if isinstance(chosen[0].batch, BrokenBatch):
                ready = self._broken(chosen[0], chosen[0].batch, faults)
            else:
                ready = self._consume(chosen, limit)
        return ready

    def _broken(self, step: Fetched, batch: BrokenBatch, faults: list[Fault]) -> Messages | None:
        """Refuse or skip a broken batch, after fetching it once more: it may have been damaged in transit."""
        where, first = step.where, self._position[step.where]
        if self._suspect.get(where) != first:
            self._suspect[where] = first
            self._go_on(where, first)
            return None
        if not self._skip:
            self._waiting.appendleft(step)
            faults.append(
                Fault(CORRUPT, f"the record batch at offset {first} is damaged: {batch.why}", where, True)
            )
            return None
        following = step.next
        if following <= first:
            following = self._leapt(where, first)
            self._go_on(where, following)
        else:
            self._leap.pop(where, None)
        self._moved(where, following)
        return Messages.skipped(Broken(*where, first, following, batch.why, bytes(batch.raw)))

    def _leapt(self, where: TopicPartition, first: int) -> int:
        """The offset to try next if the extent of the damage is unknown: further each time, up to the end."""
        self._leap[where] = leap = 2 * self._leap.get(where, 1)
        return min(first + leap, max(self._fetcher.ends.get(where, 0), first + 1))

    def _go_on(self, where: TopicPartition, offset: int) -> None:
        """Fetch from another offset than the fetcher would."""
        self._waiting = deque(step for step in self._waiting if step.where != where)
        self._seek(where, offset)

    def _check_stall(self, seconds: float) -> None:
        """Detect a log damaged so that its broker finds nothing at an offset, and doesn't report it."""
        behind = [
            where
            for where, at in self._position.items()
            if where not in self._paused and at < self._fetcher.ends.get(where, 0)
        ]
        answered, self._answered = self._fetcher.answers > self._answered, self._fetcher.answers
        if self._waiting or not behind or self._down:
            self._stalled = 0.0
        elif answered:
            self._stalled += seconds
        if self._stalled > _STALLED_SECONDS:
            self._stalled = 0.0
            for where in behind:
                at, end = self._position[where], self._fetcher.ends[where]
                why = f"for {_STALLED_SECONDS:.0f} s the broker sent nothing, though it ends at {end}"
                self._waiting.append(Fetched(where, at, BrokenBatch(at, at, why, b"")))

    def _chosen(self, limit: int) -> list[Fetched]:
        """The next steps: at most `limit` messages, or one batch with more; a broken batch is returned alone.

        Beyond half of the limit they end with their partition, because sketching goes by partition.
        """
        chosen: list[Fetched] = []
        kept: list[Fetched] = []
        count = nbytes = 0
        while self._waiting and count < limit and nbytes < _AT_ONCE_BYTES:
            step = self._waiting.popleft()
            if step.where in self._paused:
                kept.append(step)
                continue
            size = step.batch.count if isinstance(step.batch, RecordBatch) else 0
            alone = isinstance(step.batch, BrokenBatch)
            if chosen and (
                alone or count + size > limit or (count > limit // 2 and step.where != chosen[-1].where)
            ):
                self._waiting.appendleft(step)
                break
            chosen.append(step)
            count += size
            nbytes += 0 if step.batch is None else len(step.batch.raw)
            if alone:
                break
        self._waiting.extendleft(reversed(kept))
        # Even if they are from several responses, each partition has one run of messages.
        order = {where: at for at, where in enumerate(dict.fromkeys(step.where for step in chosen))}
        return sorted(chosen, key=lambda step: order[step.where])

    def _consume(self, chosen: list[Fetched], limit: int) -> Messages | None:
        """The messages of these steps, past which it then moves."""
        position = dict(self._position)
        steps, begins = [], []
        for step in chosen:
            if step.batch is not None:
                steps.append(step)
                begins.append(position[step.where])
            position[step.where] = step.next
        try:
            messages = messages_of(steps, begins, self._headers) if steps else None
        except CorruptRecords as error:
            first = chosen.index(steps[error.at])
            broken = _as_broken(steps[error.at], str(error))
            self._waiting.extendleft(reversed([broken, *chosen[first + 1 :]]))
            return self._consume(chosen[:first], limit)
        for step in chosen:
            self._moved(step.where, step.next)
            if step.epoch >= 0:
                self._epochs[step.where] = step.epoch
        if messages is None or not len(messages):
            return None
        if len(messages) > limit:
            return self._cut(steps[0].where, messages, steps[0].next, limit)
        return messages

    def _cut(self, where: TopicPartition, messages: Messages, following: int, limit: int) -> Messages:
        if len(messages) <= limit:
            self._moved(where, following)
            return messages
        self._rests[where] = messages.slice(limit, len(messages)), following
        self._position[where] = int(messages.offset[limit - 1]) + 1
        return messages.slice(0, limit)

    def _moved(self, where: TopicPartition, following: int) -> None:
        self._position[where] = following
        self._touched.add(where)
        self._ended.discard(where)

    def _ends_reached(self) -> dict[TopicPartition, int]:
        """The partitions that are read to their ends, each reported once until there is more."""
        waiting = {step.where for step in self._waiting} | self._rests.keys()
        ends = {}
        for where, position in self._position.items():
            end = self._fetcher.ends.get(where)
            if end is None or where in self._ended or where in self._paused or where in waiting:
                continue
            if position >= end:
                ends[where] = position
        self._ended |= ends.keys()
        self._touched |= ends.keys()
        return ends

    def positions(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {where: self._position[where] for where in partitions if where in self._touched}

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        chosen = set(partitions)
        self._paused |= chosen
        if chosen:
            self._connected(30.0).pause(*(KafkaPartition(*where) for where in chosen))

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        chosen = set(partitions)
        self._paused -= chosen
        if chosen:
            self._connected(30.0).resume(*(KafkaPartition(*where) for where in chosen))

    def partitions(self, topic: str, seconds: float) -> list[int] | None:
        consumer = self._connected(seconds)
        request = MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
        )
        manager, deadline = consumer._manager, time.monotonic() + seconds
        while True:
            left_ms = max(deadline - time.monotonic(), 0.1) * 1000
            try:
                answer = manager.run(manager.wait_for, manager.send(request), left_ms)
                break
            except KafkaError as error:
                # A client that has lost its brokers retries them only after a while.
                if not error.retriable or time.monotonic() > deadline:
                    kind = NoAnswer if error.retriable else ReadError
                    raise kind(f"asking about topic {topic!r} failed: {error}") from None
            time.sleep(_STEP_MS / 1000)
        (metadata,) = answer.topics
        if metadata.error_code == _UNKNOWN_TOPIC:
            return None
        if metadata.error_code:
            raise ReadError(f"asking about topic {topic!r} failed: error {metadata.error_code}")
        return sorted(p.partition_index for p in metadata.partitions)

    def watermarks(self, partition: TopicPartition, seconds: float) -> tuple[int, int]:
        consumer, place = self._connected(seconds), KafkaPartition(*partition)
        try:
            first = consumer.beginning_offsets([place], timeout_ms=seconds * 1000)
            last = consumer.end_offsets([place], timeout_ms=seconds * 1000)
        except KafkaError as error:
            topic, number = partition
            raise ReadError(f"asking for the offsets of {topic}[{number}] failed: {error}") from None
        return first[place], last[place]

    def close(self) -> None:
        with self._busy:
            self._closed = True
            consumer, self._consumer = self._consumer, None
            if consumer is not None:
                consumer.close(autocommit=False, timeout_ms=1000)

    def _connected(self, seconds: float) -> Any:
        """The client, created on first use. Raises `ReadError` if no broker answers in time."""
        if self._closed:
            raise ReadError("this reader is closed; make a new one")
        if self._consumer is None:
            try:
                self._consumer = KafkaConsumer(
                    **self._settings, kafka_client=RawClient, bootstrap_timeout_ms=seconds * 1000
                )
            except (KafkaError, OSError, ValueError) as error:
                kind = NoAnswer if isinstance(error, KafkaError) and error.retriable else ReadError
                raise kind(f"no broker can be reached: {error}") from None
            made = self._consumer
            self._fetcher = RawFetcher(made._client, made._subscription, **made.config)
            made._fetcher = self._fetcher
        return self._consumer


def _as_broken(step: Fetched, why: str) -> Fetched:
    """A batch with a correct checksum whose records still can't be read."""
    batch = step.batch
    assert isinstance(batch, RecordBatch)
    return step._replace(batch=BrokenBatch(batch.base_offset, batch.next_offset, why, batch.raw))


def _fault(error: KafkaError) -> Fault:
    """An error of the fetcher, as a fault for the reader."""
    where = None
    if isinstance(error, OffsetOutOfRangeError) and error.args and isinstance(error.args[0], dict):
        place = next(iter(error.args[0]))
        where = (place.topic, place.partition)
    return Fault(getattr(error, "errno", None) or TRANSPORT, str(error), where)
