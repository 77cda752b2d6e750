"""Reading topics as a server does: only committed messages, and without joining a group."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaPartition

from ...operators.kafka.client_config import LIBRARY_LOG, member_config
from ...operators.kafka.faults import passing, refused
from ...operators.kafka.topics import TopicError
from .view import NotReady

log = logging.getLogger("streamgauge.serving")

ANSWER_SECONDS = 10.0
"""How long brokers have to answer."""


def reader(config: Mapping[str, Any], group_id: str) -> Consumer:
    """A consumer that reads committed messages, from assigned positions, and joins no group."""
    reading = {"fetch.wait.max.ms": 100, "enable.partition.eof": True, "auto.offset.reset": "error"}
    return Consumer({**member_config(config, f"{group_id}.reader"), **reading}, logger=LIBRARY_LOG)


def whole(
    consumer: Consumer, topic: str, spans: Mapping[int, tuple[int, int]], doing: str
) -> Iterator[tuple[int, int, Message]]:
    """The messages of some of a topic's partitions, each with its partition and offset.

    `spans` are the offsets of each to begin and to end with; while others are still read, messages after the
    end are returned as well. `doing` describes the purpose in errors. Raises `KafkaException` if brokers
    don't answer or refuse.
    """
    consumer.assign([KafkaPartition(topic, p, begin) for p, (begin, _) in spans.items()])
    left = {p: end for p, (begin, end) in spans.items() if begin < end}
    deadline = time.monotonic() + ANSWER_SECONDS
    while left:
        messages = consumer.consume(500, 0.1)
        if messages:
            deadline = time.monotonic() + ANSWER_SECONDS
        elif time.monotonic() > deadline:
            raise no_answer(topic)
        for message in messages:
            partition, offset, error = message.partition(), message.offset(), message.error()
            if partition is None or offset is None:
                continue
            if error is None:
                yield partition, offset, message
                if offset + 1 >= left.get(partition, offset + 2):
                    del left[partition]
            elif error.code() in (KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET):
                left.pop(partition, None)
            elif not passing(error):
                raise refused(error, doing, topic=topic)


def reason_of(error: Exception, followed: str) -> str:
    """Why `followed` is temporarily unavailable, in words; an unexpected error is logged."""
    if isinstance(error, KafkaException):
        return str(error) if isinstance(error.args[0], str) else error.args[0].str()
    if isinstance(error, NotReady | TopicError | ValueError | OSError):
        return str(error)
    log.error("%s can't be followed", followed, exc_info=error)
    return f"{type(error).__name__}: {error}"


def no_answer(topic: str) -> KafkaException:
    """The error for brokers that don't report what is in a topic."""
    return KafkaException(KafkaError(KafkaError._TIMED_OUT, f"no answer from the topic {topic}"))
