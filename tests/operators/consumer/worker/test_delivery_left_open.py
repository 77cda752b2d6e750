"""A transaction that a worker left open when the group moved on is ended at once, not by its time-out."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Mapping
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from streamgauge.operators.consumer.group.committed import LONE, Committed, committable
from streamgauge.operators.consumer.group.membership import MembershipLost
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import start
from streamgauge.operators.consumer.worker.delivery import ExactlyOnce
from streamgauge.operators.kafka import produce
from streamgauge.operators.kafka.outgoing_message import Outgoing
from streamgauge.operators.watermarks.position import Input, Position

from ....waiting import until

pytestmark = pytest.mark.kafka
_LONGER_THAN_THE_TEST = 600_000


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
    settings = {"bootstrap.servers": servers, "transaction.timeout.ms": _LONGER_THAN_THE_TEST}
    monkeypatch.setattr(produce, "Producer", NoAnswer)
    delivery = ExactlyOnce(settings, Member(servers, topic), lambda: False)
    places = {Input(topic, 0): {LONE: Committed(Position(5))}}
    with pytest.raises(MembershipLost):
        delivery.deliver([Outgoing(topic, 0, b"a")], places)

    assert _committed(servers, topic) < 0
    delivery.close()


class WaitsForTheDead(Producer):
    """A producer whose first request waits for a coordinator that is gone, whatever its timeout."""

    back = threading.Event()
    continued = threading.Event()
    waiting = 1

    def send_offsets_to_transaction(self, *args: Any) -> None:
        if WaitsForTheDead.waiting:
            WaitsForTheDead.waiting -= 1
            assert self.back.wait(120)
            try:
                super().send_offsets_to_transaction(*args)
            finally:
                self.continued.set()
        else:
            super().send_offsets_to_transaction(*args)


class Staying(Member):
    """A member that keeps its partitions, and has committed nothing in them."""

    def committed(self, places: Mapping[Input, Any], seconds: float) -> Mapping[Input, Mapping[str, Any]]:
        return {where: {} for where in places}

    def keep_alive(self) -> None:
        pass


def test_a_request_that_never_returns_is_left_behind(kafka: Any, monkeypatch: Any) -> None:
    """The library's, while a coordinator that was killed is missing; it changes nothing when it returns."""
    servers, topic = kafka.bootstrap_servers, "never-returns"
    kafka.create_topic(topic)
    settings = {"bootstrap.servers": servers, "transaction.timeout.ms": _LONGER_THAN_THE_TEST}
    monkeypatch.setattr(produce, "Producer", WaitsForTheDead)
    monkeypatch.setattr("streamgauge.operators.consumer.worker.delivery._ANSWER_SECONDS", 3.0)
    delivery = ExactlyOnce(settings, Staying(servers, topic), lambda: False)
    for place in (5, 9):
        delivery.deliver([Outgoing(topic, 0, b"a")], {Input(topic, 0): {LONE: Committed(Position(place))}})
    assert _committed(servers, topic) == 9
    WaitsForTheDead.back.set()
    assert WaitsForTheDead.continued.wait(120)
    assert _committed(servers, topic) == 9
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": f"{topic}-look", "isolation.level": "read_committed"}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    assert len(consumer.consume(3, 5.0)) == 2
    consumer.close()
    delivery.close()


@pytest.mark.slow
def test_the_transaction_of_a_worker_that_was_killed_is_ended_by_the_one_that_replaces_it(
    kafka: Any, posts: Any
) -> None:
    servers, topic = kafka.bootstrap_servers, posts(2)
    topic.send(100)
    settings = {"bootstrap.servers": servers, "transaction.timeout.ms": _LONGER_THAN_THE_TEST}
    topic.config |= settings
    running = start(topic.stream, RunOptions(group_id=topic.topic, workers=2))
    until(lambda: running.summary().account.read == 100)
    pid, transactional_id = running.worker_pids[1], running._workers._transactional_ids[1]
    os.kill(pid, signal.SIGSTOP)
    open_one = produce.transactional_producer({**settings, "transactional.id": transactional_id}, 60)
    open_one.begin_transaction()
    member, places = Member(servers, topic.topic), {Input(topic.topic, 0): {LONE: Committed(Position(5))}}
    open_one.send_offsets_to_transaction(member.offsets(places), member.group_metadata(), 60)
    os.kill(pid, signal.SIGKILL)
    topic.send(100)
    until(lambda: running.summary().account.read == 200)
    assert running.drain(120).account == topic.one_pass()[1]


def _committed(servers: str, topic: str) -> int:
    """The place that a group with the topic's name has committed, once no transaction is open."""
    successor = Consumer({"bootstrap.servers": servers, "group.id": topic})
    began = time.monotonic()
    while True:
        try:
            [place] = successor.committed([TopicPartition(topic, 0)], timeout=5)
            break
        except KafkaException:
            assert time.monotonic() - began < 120, "nobody ended the transaction"
    assert place.error is None
    successor.close()
    return place.offset
