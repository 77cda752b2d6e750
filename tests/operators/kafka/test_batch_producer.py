"""Blocks of messages by one call, within transactions."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import pytest
from confluent_kafka import KafkaError, KafkaException

from streamgauge.operators.kafka import batch_producer
from streamgauge.operators.kafka.batch_producer import BatchProducer, NoLibrary

from ...agents.ingest.agents import fresh, messages, values
from ...waiting import until

pytestmark = pytest.mark.kafka


def made(kafka: Any, **config: Any) -> BatchProducer:
    own = {"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": str(uuid.uuid4())}
    return BatchProducer({**own, **config}, 60)


FENCED = {KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH}
BLOCK = np.frombuffer(b"one,,three", np.uint8), np.array([0, 4, 5]), np.array([3, 0, 5])


def test_slices_of_a_block_are_messages(kafka: Any) -> None:
    topic = fresh()
    kafka.create_topic(topic, partitions=1)
    producer = made(kafka)
    producer.begin()
    assert producer.send(topic, 0, *BLOCK) == 3
    producer.commit(60)
    producer.begin()
    producer.send(topic, 0, *BLOCK)
    producer.abort(60)
    producer.begin()
    producer.send_fully(topic, 0, *BLOCK, keys=[b"k", None, b""], nulls=np.array([True, False, False]))
    producer.commit(60)
    producer.close()
    assert values(kafka, topic) == [b"one", b"", b"three", None, b"", b"three"]
    assert [one.key() for one in messages(kafka, topic)][3:] == [b"k", None, b""]


def test_what_finds_no_room_is_reported_and_keeps_its_order(kafka: Any) -> None:
    topic = fresh()
    kafka.create_topic(topic, partitions=1)
    producer = made(kafka, **{"queue.buffering.max.messages": 10, "linger.ms": 1})
    wanted = [b"%03d" % number for number in range(100)]
    data, starts = np.frombuffer(b"".join(wanted), np.uint8), np.arange(100) * 3
    for send in (producer.send, producer.send_fully):
        producer.begin()
        sent = 0
        while sent < 100:
            count = send(topic, 0, data, starts[sent:], np.full(100 - sent, 3))
            assert count <= 10
            sent += count
            producer.wait(0.01)
        producer.commit(60)
    producer.close()
    assert values(kafka, topic) == wanted * 2


def test_errors_are_those_of_kafka(kafka: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KafkaException, match=r"No such configuration property"):
        made(kafka, **{"lingr.ms": 1})
    with pytest.raises(KafkaException, match=r"transactional\.id"):
        made(kafka, **{"enable.idempotence": False})
    producer = made(kafka)
    with pytest.raises(KafkaException):
        producer.commit(1)  # of no transaction
    producer.close()
    monkeypatch.setattr(batch_producer, "library", lambda: None)
    with pytest.raises(NoLibrary, match="install its wheel"):
        made(kafka)


def test_whatever_is_sent_after_being_fenced_says_so(kafka: Any) -> None:
    topic, config = fresh(), {"transactional.id": str(uuid.uuid4()), "linger.ms": 0}
    kafka.create_topic(topic, partitions=1)
    older = made(kafka, **config)
    older.begin()
    older.send(topic, 0, *BLOCK)
    newer = made(kafka, **config)

    def refused() -> bool:
        try:
            older.send(topic, 0, *BLOCK)
        except KafkaException as error:
            assert error.args[0].code() in FENCED and error.args[0].fatal()
            return True
        return False

    until(refused)
    with pytest.raises(KafkaException) as caught:
        older.send_fully(topic, 0, *BLOCK)
    assert caught.value.args[0].code() in FENCED
    older.close()
    newer.close()
