"""A transaction that a worker left open when the group moved on is ended at once, not by its time-out."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from streamgauge.operators.consumer.group.committed import LONE, Committed, committable
from streamgauge.operators.consumer.group.membership import MembershipLost
from streamgauge.operators.consumer.worker.delivery import ExactlyOnce
from streamgauge.operators.kafka import produce
from streamgauge.operators.kafka.outgoing_message import Outgoing
from streamgauge.operators.watermarks.position import Input, Position

pytestmark = pytest.mark.kafka


class NoAnswer(Producer):
    """A producer that hears nothing of its commits."""

    def commit_transaction(self, *timeout: Any) -> None:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))


class Member:
    """A member of a group that loses its membership while a delivery waits."""

    def __init__(self, servers: str, group: str) -> None:
        self.group_id = group
        self._consumer = Consumer({"bootstrap.servers": servers, "group.id": group})

    def offsets(self, places: Mapping[Input, Any]) -> Any:
        return committable(places)

    def group_metadata(self) -> Any:
        return self._consumer.consumer_group_metadata()

    def committed(self, places: Mapping[Input, Any], seconds: float) -> Mapping[Input, Mapping[str, Any]]:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    def keep_alive(self) -> None:
        raise MembershipLost("a rebalance revoked its partitions")


def test_a_transaction_is_ended_when_its_worker_lost_its_partitions(kafka: Any, monkeypatch: Any) -> None:
    servers, topic = kafka.bootstrap_servers, "left-open"
    kafka.create_topic(topic)
    settings = {"bootstrap.servers": servers, "transaction.timeout.ms": 600_000}
    monkeypatch.setattr(produce, "Producer", NoAnswer)
    delivery = ExactlyOnce(settings, Member(servers, topic), lambda: False)
    places = {Input(topic, 0): {LONE: Committed(Position(5))}}
    with pytest.raises(MembershipLost):
        delivery.deliver([Outgoing(topic, 0, b"a")], places)

    successor = Consumer({"bootstrap.servers": servers, "group.id": topic})
    began = time.monotonic()
    while True:
        try:
            [place] = successor.committed([TopicPartition(topic, 0)], timeout=5)
            break
        except KafkaException:
            assert time.monotonic() - began < 120, "nobody ended the transaction"
    assert place.offset < 0 and place.error is None
    successor.close()
    delivery.close()
