"""The merging worker: follows the table topic, closes windows, remembers where to begin again.

A member of its own consumer group, so that several share the partitions of a table topic. What it commits is
the first delta of its oldest open window, and as metadata all it knew there: after a restart it reads from
there and has every open window whole again.
"""

from __future__ import annotations

import base64
import logging
import threading
import time as wall
import zlib
from collections.abc import Callable

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from ..delta import DeltaError
from ..merger import LogState, Merger
from ..plan import Plan
from .clients import LIBRARY_LOG, member_config
from .delta_log import decode
from .faults import LOST, passing, refused
from .patience import Patience, Stopped
from .rebalance import Rebalance, as_exception

log = logging.getLogger("streamgauge.kafka")

_ANSWER_SECONDS = 10.0
_COMMIT_SECONDS = 5.0
_LAST_SECONDS = 3.0
_PAUSE_SECONDS = 0.2
_LARGEST_METADATA = 4_000
"""Brokers take 4,096 bytes of metadata with an offset unless told otherwise."""


class LogMerger:
    """Folds a run's deltas into windows and hands each on as it closes.

    `on_window` gets the table of sketches of a closed window, once in a run; after a crash, those closed
    since the last commit come again. With several table partitions, each brings its own groups' windows.
    """

    def __init__(
        self, plan: Plan, on_window: Callable[[pa.Table], None], stopping: Callable[[], bool]
    ) -> None:
        self._plan = plan
        self._on_window = on_window
        self._stopping = stopping
        self._due = 0.0
        self._uncommitted = False
        self._committed: dict[int, tuple[int, str | None]] = {}
        self._last_known: list[LogState] = []
        self.mergers: dict[int, Merger] = {}
        self.progressed = wall.monotonic()
        # Held while deltas are taken in: whoever has it sees each window either open or closed.
        self.lock = threading.RLock()
        self._rebalance = Rebalance(plan.config)
        self._consumer = Consumer(member_config(plan.config, plan.merger_group), logger=LIBRARY_LOG)
        self._consumer.subscribe(
            [plan.table_topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
        )

    def run(self) -> None:
        """Follow the log until told to stop, or, of a bounded run, until all is in and every window closed.

        Told to stop, it still takes in what lies in the log.
        """
        try:
            last = None
            while not self.finished:
                messages = self._read()
                with self.lock:
                    for message in messages:
                        self._take(message)
                    self._emit(False)
                if wall.monotonic() >= self._due:
                    self._commit()
                if self._stopping():
                    last = last or wall.monotonic() + _LAST_SECONDS
                    if wall.monotonic() > last or (not messages and self._at_end()):
                        break
            if self.finished:
                self._emit(True)
            last = wall.monotonic() + _LAST_SECONDS
            self._commit()
            while self._uncommitted and wall.monotonic() < last:
                self._consumer.poll(_PAUSE_SECONDS)
                self._commit()
        except Stopped as error:
            log.warning("stopped before the merger's place was committed: %s", error)
        finally:
            self._last_known = self.states()
            as_exception(self._consumer.close)

    def states(self) -> list[LogState]:
        """What each partition of the log says of the whole run: all the same once all are read."""
        return [merger.state for merger in list(self.mergers.values())] or self._last_known

    def filling(self) -> list[pa.Table]:
        """The windows that are still open, as they are now."""
        with self.lock:
            return [table for merger in list(self.mergers.values()) for table in merger.close_all()]

    @property
    def finished(self) -> bool:
        """Whether everything that a bounded run is to read is in."""
        ends = self._plan.ends
        return (
            ends is not None
            and bool(self.mergers)
            and all(m.reached(dict(ends)) for m in self.mergers.values())
        )

    def _read(self) -> list[Message]:
        """What lies in the log, as soon as there is anything: `consume` alone would wait until it has all."""
        first = as_exception(lambda: self._consumer.poll(0.1))
        if first is None:
            return []
        return [first, *as_exception(lambda: self._consumer.consume(500, 0.0))]

    def _at_end(self) -> bool:
        """Whether all of the log was read."""
        try:
            for place in self._consumer.position(self._consumer.assignment()):
                end = self._consumer.get_watermark_offsets(place, timeout=1.0)
                if end is None or 0 <= place.offset < end[1] - 1:
                    return False
        except KafkaException:
            return False
        return True

    def _take(self, message: Message) -> None:
        error = message.error()
        if error is not None:
            if error.fatal() or not passing(error):
                raise self._refused(error, "let it follow")
            return
        partition, offset = message.partition(), message.offset()
        assert partition is not None and offset is not None
        try:
            delta = decode(message.value(), message.headers())
            taken = self.mergers[partition].offer(delta, offset)
        except DeltaError as refused:
            raise DeltaError(f"{self._plan.table_topic}[{partition}] at offset {offset}: {refused}") from None
        if taken and delta.account.read:
            self.progressed = wall.monotonic()
        if not taken:
            log.info("left out %s at offset %d: its range was in already", delta.told, offset)

    def _emit(self, everything: bool) -> None:
        emitted = False
        for merger in self.mergers.values():
            for table in [*merger.close(), *(merger.close_all() if everything else ())]:
                self._on_window(table)
                emitted = True
        if emitted:
            self._due = 0.0

    def _commit(self) -> None:
        self._due = wall.monotonic() + _COMMIT_SECONDS
        places = []
        for partition, merger in self.mergers.items():
            offset, told = merger.resume_point()
            metadata = _packed(told)
            if len(metadata) > _LARGEST_METADATA:
                log.warning(
                    "the merger's state takes %d bytes, more than fit beside an offset; after a restart it "
                    "will read the whole table topic again",
                    len(metadata),
                )
                offset, metadata = 0, ""
            places.append(TopicPartition(self._plan.table_topic, partition, offset, metadata))
        now = {place.partition: (place.offset, place.metadata) for place in places}
        if now == self._committed:
            return
        try:
            self._consumer.commit(offsets=places, asynchronous=False)
            self._committed = now
            if self._uncommitted:
                log.warning("managed to commit the merger's place; going on")
            self._uncommitted = False
        except KafkaException as error:
            # No loop here: the consumer must be polled to find its way back into the group.
            fault = error.args[0]
            if not passing(fault):
                raise self._refused(fault, "commit the place in") from None
            if not self._uncommitted and fault.code() not in LOST:
                log.warning("the merger's place can't be committed now, later again: %s", fault.str())
            self._uncommitted = True

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        waiting = Patience("learn where the merger was", self._stopping)
        while True:
            try:
                places = consumer.committed(partitions, timeout=_ANSWER_SECONDS)
                break
            except KafkaException as error:
                waiting.failed(self._refused(error.args[0], "tell the place in"))
        for place in places:
            merger = Merger(self._plan.stream, range(self._plan.partitions), self._plan.delivery)
            if place.offset >= 0 and place.metadata:
                merger.resume(place.offset, _unpacked(place.metadata))
            elif place.offset < 0:
                place.offset = 0
            self.mergers[place.partition] = merger
        self._rebalance.take(consumer, [TopicPartition(p.topic, p.partition, p.offset) for p in places])

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._commit()
        self._lost(consumer, partitions)

    def _lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._last_known = self.states()  # what is known, until there is a merger again
        for place in partitions:
            self.mergers.pop(place.partition, None)
        self._committed = {}
        self._rebalance.let_go(consumer, partitions)

    def _refused(self, error: KafkaError, doing: str) -> KafkaException:
        topic, group = self._plan.table_topic, self._plan.merger_group
        return refused(error, f"{doing} the table topic {topic!r}", topic=topic, group=group)


def _packed(told: str) -> str:
    return base64.b85encode(zlib.compress(told.encode())).decode()


def _unpacked(metadata: str) -> str:
    try:
        return zlib.decompress(base64.b85decode(metadata)).decode()
    except (ValueError, zlib.error) as error:
        raise DeltaError(f"the merger's committed state is damaged ({error}): {metadata!r}") from None
