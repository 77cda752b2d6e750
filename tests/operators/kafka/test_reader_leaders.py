"""Three brokers, leaders that move and leaders that are killed: every message once, and in its order."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from confluent_kafka import ElectionType, KafkaException, Producer
from confluent_kafka import TopicPartition as Partition
from confluent_kafka.admin import AdminClient

from streamgauge.apps.dev.kafka.cluster import EmbeddedCluster
from streamgauge.operators.kafka.reader import Reader

pytestmark = [pytest.mark.kafka, pytest.mark.soak]

PARTITIONS = 4


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(3) as cluster:
        yield cluster


class Sender:
    """Sends numbers to every partition, side by side, until it is stopped."""

    def __init__(self, cluster: EmbeddedCluster, topic: str) -> None:
        self._producer = Producer(
            {"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True, "log_level": 0}
        )
        self._topic, self.sent, self._stop = topic, 0, threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            for partition in range(PARTITIONS):
                self._producer.produce(self._topic, b"%d" % self.sent, partition=partition)
            self.sent += 1
            self._producer.poll(0.001)

    def stop(self) -> int:
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(120) == 0
        return self.sent


def leaders(admin: AdminClient, topic: str) -> list[int]:
    # Not `describe_topics`: with a broker killed its requests may wait for minutes, and take a core.
    while True:
        try:
            partitions = admin.list_topics(topic, timeout=15).topics[topic].partitions
            return [partitions[number].leader for number in sorted(partitions)]
        except KafkaException:  # the request went to the broker that was killed
            continue


def until(holds: Any, seconds: float = 300.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.parametrize("source", ["raw", "plain"])
def test_leaders_that_die_and_move_lose_and_repeat_nothing(cluster: EmbeddedCluster, source: Any) -> None:
    topic = f"led-{source}-{time.time_ns()}"
    cluster.create_topic(topic, PARTITIONS)
    config = {"bootstrap.servers": cluster.bootstrap_servers}
    admin = AdminClient({**config, "log_level": 0})
    result: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
    with Reader(config, {(topic, partition): 0 for partition in result}, source=source) as reader:

        def read() -> None:
            messages = reader.read(timeout=0.5)
            for row in range(0 if messages is None else len(messages)):
                result[int(messages.partition[row])].append(messages.value_at(row))

        def read_past(sent: int) -> None:
            until(lambda: read() or min(map(len, result.values())) > sent)

        sender = Sender(cluster, topic)
        try:
            read_past(100)
            for round in range(3):
                killed = leaders(admin, topic)[round]
                cluster.nodes[killed - 1].kill()
                read_past(sender.sent + 100)
                assert killed not in leaders(admin, topic)
                cluster.nodes[killed - 1].start()
                # Back in the lead without a kill.
                until(partial(_leads_again, admin, topic, killed))
                read_past(sender.sent + 100)
        finally:
            sent = sender.stop()
        until(lambda: read() or min(map(len, result.values())) >= sent)
        assert reader.read(timeout=1.0) is None
    numbers = [b"%d" % number for number in range(sent)]
    assert all(values == numbers for values in result.values())


def _leads_again(admin: AdminClient, topic: str, node: int) -> bool:
    """Ask for every partition's first replica to lead it; whether a node leads one then."""
    places = [Partition(topic, partition) for partition in range(PARTITIONS)]
    try:
        admin.elect_leaders(ElectionType.PREFERRED, places).result(15)
        return node in leaders(admin, topic)
    except (KafkaException, TimeoutError):  # the controller may be the one that was killed
        return False
