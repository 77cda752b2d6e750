"""Reading through confluent-kafka's own `consume()`: slower, but available wherever that package is."""

# ruff: noqa: D102 - the methods are those of `Source`, which documents them
from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Consumer, KafkaError, KafkaException
from confluent_kafka import Message as KafkaMessage
from confluent_kafka import TopicPartition as KafkaPartition

from ..formats.messages import Messages, from_objects
from ..secrets import without_secrets
from .client_config import EARLIER, LIBRARY_LOG
from .concurrent_calls import ends_within
from .faults import may_pass
from .source import CORRUPT, TRUNCATED, Fault, LogPosition, NoAnswer, Poll, ReadError, TopicPartition

_BROKEN = {CORRUPT, KafkaError._BAD_MSG, KafkaError._NOT_IMPLEMENTED}
"""librdkafka's errors for broken bytes, after which it continues or fetches again."""
_ANSWER_SECONDS = 10.0
_CLOSE_SECONDS = 5.0
_LOOK_BACK = 1_000
"""How many offsets before a position are reread to check that a log still has them."""
_MOST_AT_ONCE = 10_000
"""The most messages per call of `consume()`: each is a Python object, all created in advance."""
_ENDS = re.compile(r"log truncation .*end offset is (-?\d+) \(offset leader epoch (-?\d+)\)")
"""librdkafka's message for a log that ends before what was already read."""


class PlainSource:
    """A `Source` over ``Consumer.consume()``. Raises `ReadError` for unknown settings."""

    def __init__(self, config: Mapping[str, Any], headers: bool = False) -> None:
        self._headers = headers
        self._faults: list[Fault] = []
        self._start: dict[TopicPartition, int] = {}
        self._epochs: dict[TopicPartition, int] = {}
        ours = {"logger": LIBRARY_LOG, "error_cb": self._remember, "check.crcs": True}
        # By default the library would count a truncated log from its beginning again.
        self._skips_deleted = str(config.get("auto.offset.reset")) in EARLIER
        try:
            self._consumer = Consumer({**ours, **config, "auto.offset.reset": "error"})
        except KafkaException as error:
            said = without_secrets(_words(error), config)
            raise ReadError(f"no Kafka client with these settings: {said}") from None
        self._closed = False

    def _remember(self, error: KafkaError) -> None:
        self._faults.append(Fault(error.code(), error.str(), None, error.fatal()))

    def assign(self, positions: Mapping[TopicPartition, LogPosition]) -> None:
        self._start = {where: position.offset for where, position in positions.items()}
        self._epochs = {where: position.epoch for where, position in positions.items() if position.epoch >= 0}
        self._consumer.assign(
            [
                KafkaPartition(*where, position.offset, leader_epoch=max(position.epoch, -1))
                for where, position in positions.items()
            ]
        )

    def truncated(
        self, positions: Mapping[TopicPartition, LogPosition], seconds: float
    ) -> dict[TopicPartition, LogPosition | None]:
        deadline = time.monotonic() + seconds
        lost: dict[TopicPartition, LogPosition | None] = {}
        for where, position in positions.items():
            first, _ = self.watermarks(where, seconds)
            begin = max(first, position.offset - _LOOK_BACK)
            whole, end = (
                self._has_all(where, begin, position, deadline) if begin < position.offset else (True, None)
            )
            if not whole:
                lost[where] = end
        return lost

    def _has_all(
        self, where: TopicPartition, begin: int, position: LogPosition, deadline: float
    ) -> tuple[bool, LogPosition | None]:
        """Whether the messages before a position are of its epoch or earlier, and where those end if not.

        The library requests the ends of epochs only when a leader changes while it reads, and has no call for
        it; so the last messages themselves are examined.
        """
        self._consumer.assign([KafkaPartition(*where, begin)])
        end: LogPosition | None = None
        at_end = False
        while True:
            for message in self._consumer.consume(500, 0.1):
                error, offset = message.error(), int(message.offset() or 0)
                epoch = -1 if (known := message.leader_epoch()) is None else known
                at_eof = error is not None and error.code() == KafkaError._PARTITION_EOF
                if offset >= position.offset and (error is None or at_eof):
                    return True, None
                if error is not None:
                    at_end |= at_eof or error.code() == KafkaError._AUTO_OFFSET_RESET
                elif epoch > position.epoch:
                    return False, end
                else:
                    end = LogPosition(offset + 1, epoch)
                    if offset == position.offset - 1:
                        return True, None
            if time.monotonic() > deadline:
                if at_end:  # a new leader exposes all its messages once they are replicated
                    return False, end
                topic, number = where
                raise NoAnswer(f"the leader of {topic}[{number}] did not return where its log ends")

    def epochs(self) -> dict[TopicPartition, int]:
        return dict(self._epochs)

    def poll(self, limit: int, seconds: float) -> Poll:
        if self._closed:
            raise ReadError("this reader is closed; make a new one")
        # Wait for one message, then fetch what is available: `consume` waits for the full number.
        first = self._consumer.consume(1, seconds)
        rest = self._consumer.consume(min(limit, _MOST_AT_ONCE) - 1, 0) if first and limit > 1 else []
        good: list[KafkaMessage] = []
        ends: dict[TopicPartition, int] = {}
        for message in [*first, *rest]:
            error = message.error()
            if error is None:
                good.append(message)
                if (epoch := message.leader_epoch()) is not None and epoch >= 0:
                    self._epochs[str(message.topic()), int(message.partition() or 0)] = epoch
                continue
            topic, partition = message.topic(), message.partition()
            where = None if topic is None or partition is None else (topic, partition)
            if error.code() == KafkaError._PARTITION_EOF and where is not None:
                ends[where] = int(message.offset() or 0)
            elif error.code() == KafkaError._AUTO_OFFSET_RESET and where is not None:
                self._position_gone(where, error)
            elif error.code() in _BROKEN:
                self._faults.append(Fault(CORRUPT, error.str(), where, fatal=True))
            else:
                self._faults.append(Fault(error.code(), error.str(), where, error.fatal()))
        faults, self._faults = self._faults, []
        return Poll(self._columns(good) if good else None, ends, faults)

    def _position_gone(self, where: TopicPartition, error: KafkaError) -> None:
        """Skip deleted messages if requested; otherwise report a fault."""
        if (ended := _ENDS.search(error.str())) is not None:
            end = LogPosition(*map(int, ended.groups()))
            self._faults.append(Fault(TRUNCATED, error.str(), where, end=end if min(end) >= 0 else None))
            return
        if self._skips_deleted:
            at = self.positions([where]).get(where, self._start.get(where, 0))
            first, _ = self.watermarks(where, _ANSWER_SECONDS)
            if at < first:
                # The library has stopped reading the partition, and can't seek in one that it doesn't read.
                self._consumer.incremental_unassign([KafkaPartition(*where)])
                self._consumer.incremental_assign([KafkaPartition(*where, first)])
                return
        self._faults.append(Fault(error.code(), error.str(), where))

    def _columns(self, good: list[KafkaMessage]) -> Messages:
        n = len(good)
        names = [str(m.topic()) for m in good]
        topics = tuple(dict.fromkeys(names))
        code = {name: i for i, name in enumerate(topics)}
        messages = from_objects(
            topics,
            np.fromiter((code[name] for name in names), np.int32, n),
            np.fromiter((m.partition() for m in good), np.int32, n),
            np.fromiter((m.offset() for m in good), np.int64, n),
            np.fromiter((m.timestamp()[1] for m in good), np.int64, n),
            [m.value() for m in good],
            [m.key() for m in good],
            [_headers(m) for m in good] if self._headers else None,
        )
        appended = np.fromiter((m.timestamp()[0] == TIMESTAMP_LOG_APPEND_TIME for m in good), np.bool_, n)
        return replace(messages, appended=appended) if appended.any() else messages

    def caught_up(self) -> bool:
        return False

    def positions(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        kafka_partitions = [KafkaPartition(*where) for where in partitions]
        return {
            (p.topic, p.partition): p.offset
            for p in self._consumer.position(kafka_partitions)
            if p.offset >= 0
        }

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        self._consumer.pause([KafkaPartition(*where) for where in partitions])

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        self._consumer.resume([KafkaPartition(*where) for where in partitions])

    def partitions(self, topic: str, seconds: float) -> list[int] | None:
        try:
            metadata = self._consumer.list_topics(topic, timeout=seconds).topics[topic]
        except KafkaException as error:
            kind = NoAnswer if may_pass(error) else ReadError
            raise kind(f"asking about topic {topic!r} failed: {_words(error)}") from None
        if metadata.error is not None:
            if metadata.error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
                return None
            raise ReadError(f"asking about topic {topic!r} failed: {metadata.error.str()}")
        return sorted(metadata.partitions)

    def watermarks(self, partition: TopicPartition, seconds: float) -> tuple[int, int]:
        try:
            first, last = self._consumer.get_watermark_offsets(KafkaPartition(*partition), timeout=seconds)
        except KafkaException as error:
            topic, number = partition
            raise ReadError(f"asking for the offsets of {topic}[{number}] failed: {_words(error)}") from None
        return first, last

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            # While it fetches a broken batch again, the library may wait for ever (librdkafka 2.16). It is
            # left behind then: it has no group, and nothing depends on its end.
            ends_within(_CLOSE_SECONDS, self._consumer.close)


def _headers(message: KafkaMessage) -> list[tuple[str, bytes | None]]:
    headers: Any = message.headers()
    return headers or []


def _words(error: KafkaException) -> str:
    return str(error.args[0].str()) if error.args else str(error)
