"""Follows a group's table topic into a `LiveTable`, in a separate thread, as long as it is served.

While brokers are unreachable the table is marked as stale and keeps its answers; when they return it
continues. If its position in the log was deleted meanwhile, it starts again at the earliest place that is
left.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaPartition

from ...operators.consumer.log.merger_state import read_state
from ...operators.kafka.faults import passing, refused
from ...operators.kafka.log_faults import DeltaError
from ...operators.kafka.topics import admin, id_of
from ...operators.secrets import Settings, without_secrets
from ...sketches.core.errors import StreamgaugeError
from .closed_window_backfill import closed_windows
from .live import LiveTable
from .log_start import LogStart, Place, find_start, table_topic_of
from .table_snapshot import TableSnapshot
from .topic_reading import reader, reason_of
from .view import Stale

log = logging.getLogger("streamgauge.serving")

_LOOK_SECONDS = 1.0
_ASK_SECONDS = 2.0
_AGAIN_SECONDS = 0.5
_END_SECONDS = 15.0
_SAVE_SECONDS = 30.0
_ID_EVERY = 5
_REACH_SECONDS = 5.0
_WARN_SECONDS = 3.0


class _Moved(StreamgaugeError):
    """The log has changed: deleted behind the reader, or another topic with the same name."""


class TableFollower:
    """Reads a group's table topic until it is closed; `table` has everything read so far.

    `config` has librdkafka's settings, with ``bootstrap.servers``. With `saved`, the table starts with what
    was saved there, and is saved there every half minute and at the end. `has_topic` is set once there is a
    table topic. If it can't be read for some seconds, a warning says why.
    """

    def __init__(
        self, group_id: str, config: Mapping[str, Any], table: LiveTable, saved: TableSnapshot | None = None
    ) -> None:
        self.group_id = group_id
        self.table = table
        self._config = Settings(config)
        self._admin = admin(self._config)
        self._saved = saved
        self._stop = threading.Event()
        self._start: LogStart | None = None
        self._reached: dict[int, int] = {}
        self._heard = time.time()
        self.has_topic = False
        self._since: float | None = time.monotonic()
        self._warned = set[str]()
        self._thread = threading.Thread(target=self._run, name=f"follow {group_id}", daemon=True)
        self._thread.start()

    @property
    def heard(self) -> float:
        """When brokers last reported the end of the log, in seconds since 1970."""
        return self._heard

    def close(self) -> None:
        """End it, after saving what was read."""
        self._stop.set()
        self._thread.join(_END_SECONDS)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._begin()
                self._follow()
            except _Moved as error:
                log.warning("%s; starting again with the remaining messages", error)
            except Exception as error:
                self._is_stale(reason_of(error, f"the table {self.table.name}"))
            self._stop.wait(_AGAIN_SECONDS)

    def _begin(self) -> None:
        self._admin.reach(_REACH_SECONDS)
        table_topic_of(self._admin, self.group_id)
        self.has_topic = True
        start = find_start(self._admin, self._config, self.group_id)
        before = self._start
        known: Mapping[int, Place] = {}
        if before is not None and before.topic_id == start.topic_id and before.topic == start.topic:
            known = self.table.known().places
        elif before is not None:
            log.warning("table topic %s was recreated; discarding what was read", start.topic)
            self.table.forget()
        elif self._saved is not None and (saved := self._saved.load(start.topic, start.topic_id)) is not None:
            known = saved.places
            self.table.add_gaps(saved.gaps)
            self.table.add_closed(saved.windows)
        own = {p: place for p, place in known.items() if p in start.places and place[0] >= start.begins[p]}
        until = {p: read_state(state)[1].until_us for p, (_, state) in known.items()}
        places = {**start.places, **own}
        self.table.begin(start.stream, places, start.inputs, until, start.delivery)
        for partition, table in closed_windows(
            self._admin, self._config, self.group_id, start, self.table.wanting()
        ):
            self.table.backfill(partition, table)
        self._start = start
        self._reached = {p: start.begins[p] if place is None else place[0] for p, place in places.items()}

    def _follow(self) -> None:
        assert self._start is not None
        consumer = reader(self._config, self.group_id)
        try:
            topic = self._start.topic
            consumer.assign([KafkaPartition(topic, p, offset) for p, offset in self._reached.items()])
            look, looks, save = 0.0, 0, time.monotonic() + _SAVE_SECONDS
            while not self._stop.is_set():
                first = consumer.poll(0.1)
                for message in [] if first is None else [first, *consumer.consume(500, 0.0)]:
                    self._merge_message(message)
                if time.monotonic() >= look:
                    self._check_lag(consumer, looks)
                    look, looks = time.monotonic() + _LOOK_SECONDS, looks + 1
                if time.monotonic() >= save:
                    self._save()
                    save = time.monotonic() + _SAVE_SECONDS
        finally:
            consumer.close()
        self._save()

    def _merge_message(self, message: Message) -> None:
        error, partition, offset = message.error(), message.partition(), message.offset()
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF and partition is not None and offset is not None:
                self._reached[partition] = offset
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                raise _Moved(f"{message.topic()}[{partition}] was deleted beyond offset {offset}")
            elif not passing(error):
                raise refused(error, "read the table topic", topic=message.topic() or "")
            return
        assert partition is not None and offset is not None
        try:
            self.table.merge_message(partition, offset, message.value(), message.headers())
        except DeltaError as refusal:
            raise DeltaError(f"{message.topic()}[{partition}] at offset {offset}: {refusal}") from None
        self._reached[partition] = offset + 1

    def _check_lag(self, consumer: Consumer, looks: int) -> None:
        """Check how far the log is, and whether it is still followed."""
        assert self._start is not None
        lag = 0
        for partition, reached in self._reached.items():
            place = KafkaPartition(self._start.topic, partition)
            try:
                edges = consumer.get_watermark_offsets(place, timeout=_ASK_SECONDS)
            except KafkaException as error:
                self._is_stale(error.args[0].str())
                return
            if edges is None:
                self._is_stale("no answer from the brokers")
                return
            lag += max(0, edges[1] - reached)
        if (
            looks % _ID_EVERY == _ID_EVERY - 1
            and id_of(self._admin, self._start.topic) != self._start.topic_id
        ):
            raise _Moved(f"the table topic {self._start.topic} was recreated")
        self._heard = time.time()
        self.table.update_lag(lag)
        if self._warned:
            log.warning("the table %s is followed again", self.table.name)
        self._since, self._warned = None, set()

    def _is_stale(self, why: str) -> None:
        why = without_secrets(why, self._config)
        self.table.waiting(why)
        self.table.update_lag(None, Stale(self._heard, why))
        self._since = self._since or time.monotonic()
        if time.monotonic() - self._since >= _WARN_SECONDS and why not in self._warned:
            self._warned.add(why)
            log.warning("the table %s can't be read: %s; trying again", self.table.name, why)

    def _save(self) -> None:
        if self._saved is not None and self._start is not None:
            try:
                self._saved.save(self._start.topic, self._start.topic_id, self.table.known())
            except OSError as error:
                log.warning("the table %s can't be saved: %s", self.table.name, error)
