"""Reading through librdkafka's batch call: no Python object, and no call from Python, a message.

A handle of its own, only ever assigned, reads; membership and commits are another client's business. One
batch call at a time, with short waits; each message's `err` is looked at; every message goes back to the
library at once, its bytes copied into columns.
"""

# ruff: noqa: D102 - the methods are those of `Source`, which documents them
from __future__ import annotations

import ctypes as c
import logging
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from . import gather
from .clients import LIBRARY_LOG
from .config import as_text
from .gathered import columns
from .librdkafka import (
    CONSUMER,
    EVENT_ERROR,
    EVENT_LOG,
    NO_CONSUMER_CLOSE,
    Message,
    Metadata,
    address,
    library,
)
from .secrets import without_secrets
from .source import Fault, Poll, ReadError, TopicPartition

_PARTITION_END = -191
_UNKNOWN_TOPICS = (3, -188)
_WAIT_MS = 5
"""How long one batch call waits: it returns early only when it is full."""
# syslog's levels as Python's.
_LEVELS = (logging.CRITICAL,) * 3 + (
    logging.ERROR,
    logging.WARNING,
    logging.INFO,
    logging.INFO,
    logging.DEBUG,
)


class BulkSource:
    """A `Source` over ``rd_kafka_consume_batch_queue``. Raises `ReadError` for settings it doesn't know."""

    def __init__(self, config: Mapping[str, Any], headers: bool = False) -> None:
        rd = library()
        if rd is None:
            raise ReadError(
                "librdkafka 2.13.2 or newer was not found in confluent-kafka; read by PlainSource"
            )
        self._rd = rd
        self._headers = headers
        self._busy = threading.Lock()
        self._messages = np.empty(0, np.int64)
        self._rk = self._create(config)
        self._main = rd.rd_kafka_queue_get_main(self._rk)
        self._queue = rd.rd_kafka_queue_get_consumer(self._rk)
        rd.rd_kafka_set_log_queue(self._rk, self._main)

    @staticmethod
    def fits(config: Mapping[str, Any]) -> bool:
        """Whether this way is possible: the library is there, and no setting needs a Python function."""
        oauth = {str(config.get(name, "")).upper() for name in ("sasl.mechanism", "sasl.mechanisms")}
        return (
            library() is not None and "OAUTHBEARER" not in oauth and not any(map(callable, config.values()))
        )

    def _create(self, config: Mapping[str, Any]) -> int:
        rd, words = self._rd, c.create_string_buffer(512)
        conf = rd.rd_kafka_conf_new()
        for name, value in {**config, "log.queue": True}.items():
            if rd.rd_kafka_conf_set(conf, name.encode(), as_text(value).encode(), words, len(words)) != 0:
                rd.rd_kafka_conf_destroy(conf)
                raise ReadError(
                    f"the Kafka setting {name!r}: {without_secrets(words.value.decode(), config)}"
                )
        rd.rd_kafka_conf_set_events(conf, EVENT_LOG | EVENT_ERROR)
        rk = rd.rd_kafka_new(CONSUMER, conf, words, len(words))
        if not rk:
            rd.rd_kafka_conf_destroy(conf)
            said = without_secrets(words.value.decode(), config)
            raise ReadError(f"no Kafka client with these settings: {said}")
        return int(rk)

    def assign(self, offsets: Mapping[TopicPartition, int]) -> None:
        with self._list(offsets) as wanted:
            for i, offset in enumerate(offsets.values()):
                wanted.contents.elems[i].offset = offset
            self._check(self._rd.rd_kafka_assign(self._rk, wanted), "assigning partitions")

    def poll(self, limit: int, seconds: float) -> Poll:
        deadline = time.monotonic() + seconds
        ends: dict[TopicPartition, int] = {}
        with self._busy:
            if not self._rk:
                raise ReadError("this reader is closed; make a new one")
            while True:
                faults = self._served()
                left = max(0, round((deadline - time.monotonic()) * 1000))
                batch = self._batch(limit, min(left, _WAIT_MS))
                try:
                    messages = columns(self._rd, batch, self._headers)
                    if messages is None or len(messages) < len(batch):
                        self._sort_out(batch, ends, faults)
                finally:
                    gather.destroy(batch, address(self._rd.rd_kafka_message_destroy))
                if len(batch) or faults or left == 0:
                    return Poll(messages, ends, faults)

    def _batch(self, limit: int, wait_ms: int) -> np.ndarray:
        if len(self._messages) < limit:
            self._messages = np.empty(limit, np.int64)
        n = self._rd.rd_kafka_consume_batch_queue(self._queue, wait_ms, self._messages.ctypes.data, limit)
        return self._messages[: max(n, 0)]

    def _sort_out(self, batch: np.ndarray, ends: dict[TopicPartition, int], faults: list[Fault]) -> None:
        """The entries of a batch that are no messages."""
        for at in batch.tolist():
            entry = Message.from_address(at)
            if entry.err == 0:
                continue
            where = None
            if entry.rkt:
                where = (self._rd.rd_kafka_topic_name(entry.rkt).decode(), entry.partition)
            if entry.err == _PARTITION_END and where is not None:
                ends[where] = entry.offset
                continue
            words = (
                c.string_at(entry.payload, entry.len)
                if entry.payload
                else self._rd.rd_kafka_err2str(entry.err)
            )
            faults.append(Fault(entry.err, words.decode(errors="replace"), where))

    def _served(self) -> list[Fault]:
        """Log what the library logged since; its errors."""
        rd, faults = self._rd, []
        while event := rd.rd_kafka_queue_poll(self._main, 0):
            kind = rd.rd_kafka_event_type(event)
            if kind == EVENT_ERROR:
                words = (rd.rd_kafka_event_error_string(event) or b"").decode(errors="replace")
                fatal = bool(rd.rd_kafka_event_error_is_fatal(event))
                faults.append(Fault(rd.rd_kafka_event_error(event), words, None, fatal))
            elif kind == EVENT_LOG:
                facility, words, level = c.c_char_p(), c.c_char_p(), c.c_int()
                rd.rd_kafka_event_log(event, c.byref(facility), c.byref(words), c.byref(level))
                said = (words.value or b"").decode(errors="replace")
                LIBRARY_LOG.log(_LEVELS[min(level.value, 7)], "%s", said)
            rd.rd_kafka_event_destroy(event)
        return faults

    def positions(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        with self._list(partitions) as asked:
            self._check(self._rd.rd_kafka_position(self._rk, asked), "asking for positions")
            found = [asked.contents.elems[i] for i in range(asked.contents.cnt)]
            return {(e.topic.decode(), e.partition): e.offset for e in found if e.offset >= 0}

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        with self._list(partitions) as wanted:
            self._check(self._rd.rd_kafka_pause_partitions(self._rk, wanted), "pausing partitions")

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        with self._list(partitions) as wanted:
            self._check(self._rd.rd_kafka_resume_partitions(self._rk, wanted), "resuming partitions")

    def partitions(self, topic: str, seconds: float) -> list[int] | None:
        rd, known = self._rd, c.POINTER(Metadata)()
        handle = rd.rd_kafka_topic_new(self._rk, topic.encode(), None)
        if not handle:
            raise ReadError(f"{topic!r} can't be a topic's name")
        try:
            err = rd.rd_kafka_metadata(self._rk, 0, handle, c.byref(known), round(seconds * 1000))
            self._check(err, f"asking about topic {topic!r}")
            found = known.contents.topics[0]
            if found.err in _UNKNOWN_TOPICS:
                return None
            self._check(found.err, f"asking about topic {topic!r}")
            return sorted(found.partitions[i].id for i in range(found.partition_cnt))
        finally:
            if known:
                rd.rd_kafka_metadata_destroy(known)
            rd.rd_kafka_topic_destroy(handle)

    def watermarks(self, partition: TopicPartition, seconds: float) -> tuple[int, int]:
        first, last = c.c_int64(), c.c_int64()
        topic, number = partition
        err = self._rd.rd_kafka_query_watermark_offsets(
            self._rk, topic.encode(), number, c.byref(first), c.byref(last), round(seconds * 1000)
        )
        self._check(err, f"asking for the offsets of {topic}[{number}]")
        return first.value, last.value

    def close(self) -> None:
        with self._busy:
            rk, self._rk = self._rk, 0
            if rk:
                self._rd.rd_kafka_queue_destroy(self._queue)
                self._rd.rd_kafka_queue_destroy(self._main)
                self._rd.rd_kafka_destroy_flags(rk, NO_CONSUMER_CLOSE)

    def _check(self, err: int, doing: str) -> None:
        if err != 0:
            raise ReadError(f"{doing} failed: {self._rd.rd_kafka_err2str(err).decode()}")

    @contextmanager
    def _list(self, partitions: Iterable[TopicPartition]) -> Iterator[Any]:
        if not self._rk:
            raise ReadError("this reader is closed; make a new one")
        listed = self._rd.rd_kafka_topic_partition_list_new(8)
        try:
            for topic, partition in partitions:
                self._rd.rd_kafka_topic_partition_list_add(listed, topic.encode(), partition)
            yield listed
        finally:
            self._rd.rd_kafka_topic_partition_list_destroy(listed)
