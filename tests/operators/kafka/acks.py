"""What each setting of `acks` loses and writes twice while brokers fail, measured on three real brokers.

`python -m tests.operators.kafka.acks` prints the table of `docs/evidence/writing.md`. Topics have three
replicas; two must be in sync. In each case numbered messages are written without a pause, a fault comes and
goes, and then all that is in the topic is compared with what the producer learned of each message.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from streamgauge.apps.dev.kafka.broker import EmbeddedKafka
from streamgauge.apps.dev.kafka.cluster import EmbeddedCluster
from streamgauge.operators.kafka.client_config import producer_config

SETTINGS: dict[str, dict[str, Any]] = {
    "acks=0": {"acks": "0"},
    "acks=1": {"acks": "1"},
    "acks=all": {"acks": "all"},
    "acks=all, idempotent": {"acks": "all", "enable.idempotence": True},
}
OURS = "acks=all, idempotent"

_A_SECOND = 2_000
_BEFORE, _DURING, _AFTER = 1.5, 5.0, 2.0
"""Seconds of writing before a fault, while it lasts, and after it is over."""


@dataclass(frozen=True, slots=True)
class Case:
    """Messages of one case: `lost` were acknowledged and are not there, `unknown` failed and are there."""

    setting: str
    fault: str
    sent: int
    acknowledged: int
    lost: int
    twice: int
    unknown: int


class Ground:
    """Three brokers, and what can happen to those of a topic."""

    def __init__(self, cluster: EmbeddedCluster, topic: str) -> None:
        self.cluster = cluster
        self._admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        self._topic = topic

    @property
    def leader(self) -> EmbeddedKafka:
        while True:
            result = self._described()
            if result is not None and result.leader > 0:
                return self.cluster.nodes[result.leader - 1]
            time.sleep(0.05)

    def in_sync(self) -> int:
        result = self._described()
        return len(result.isrs) if result is not None and result.leader > 0 else 0

    def _described(self) -> Any:
        """The topic's partition; None while the broker doesn't know it yet."""
        return self._admin.list_topics(self._topic, timeout=120).topics[self._topic].partitions.get(0)

    def followers(self, leader: EmbeddedKafka) -> list[EmbeddedKafka]:
        return [node for node in self.cluster.nodes if node is not leader]

    def mend(self) -> None:
        """All brokers run, and have all of the topic."""
        for node in self.cluster.nodes:
            freeze(node, signal.SIGCONT)
        self.cluster.start()
        deadline = time.monotonic() + 300
        while self.in_sync() < 3:
            assert time.monotonic() < deadline, "replicas are not in sync again after five minutes"
            time.sleep(0.1)


def freeze(node: EmbeddedKafka, how: signal.Signals = signal.SIGSTOP) -> None:
    """Stop a broker silently, or let it go on."""
    if node.running:
        for child in Path(f"/proc/{node.pid}/task/{node.pid}/children").read_text().split():
            os.kill(int(child), how)


def leader_killed(ground: Ground, wait: Callable[[float], None]) -> None:
    ground.leader.kill()
    wait(_DURING)


def leader_killed_after_followers_stood_still(ground: Ground, wait: Callable[[float], None]) -> None:
    leader = ground.leader
    for node in ground.followers(leader):
        freeze(node)
    wait(1.5)
    leader.kill()
    for node in ground.followers(leader):
        freeze(node, signal.SIGCONT)
    wait(_DURING)


def follower_stopped(ground: Ground, wait: Callable[[float], None]) -> None:
    freeze(ground.followers(ground.leader)[0])
    wait(_DURING)


def two_of_three_killed(ground: Ground, wait: Callable[[float], None]) -> None:
    for node in ground.followers(ground.leader):
        node.kill()
    wait(_DURING)


FAULTS = {
    "leader killed -9": leader_killed,
    "leader killed -9 while its followers were behind": leader_killed_after_followers_stood_still,
    "one follower stopped": follower_stopped,
    "two of three killed -9": two_of_three_killed,
}


def measure(cluster: EmbeddedCluster, setting: str, fault: str) -> Case:
    """Write through a fault, and compare."""
    topic = f"acks-{uuid.uuid4().hex[:8]}"
    cluster.create_topic(topic)
    ground = Ground(cluster, topic)
    ground.mend()
    own = {"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 5, "log_level": 0}
    config = producer_config(own, 1_000_000) if setting == OURS else own | SETTINGS[setting]
    producer = Producer({**config, "log_level": 0, "message.timeout.ms": 20_000})
    by_key: dict[int, bool] = {}
    stop = threading.Event()
    sent = 0

    def write() -> None:
        nonlocal sent
        began = time.monotonic()
        while not stop.is_set():
            while sent < (time.monotonic() - began) * _A_SECOND:
                number = sent

                def delivered(error: KafkaError | None, _: Message, number: int = number) -> None:
                    by_key[number] = error is None

                producer.produce(topic, b"%d" % number, partition=0, on_delivery=delivered)
                sent += 1
            producer.poll(0.005)

    writing = threading.Thread(target=write)
    writing.start()
    time.sleep(_BEFORE)
    FAULTS[fault](ground, time.sleep)
    ground.mend()
    time.sleep(_AFTER)
    stop.set()
    writing.join()
    assert producer.flush(120) == 0 and len(by_key) == sent
    result = Counter(read(cluster, topic))
    acknowledged = {number for number, well in by_key.items() if well}
    return Case(
        setting,
        fault,
        sent,
        len(acknowledged),
        lost=len(acknowledged - result.keys()),
        twice=result.total() - len(result),
        unknown=len(result.keys() - acknowledged),
    )


def read(cluster: EmbeddedCluster, topic: str) -> list[int]:
    """All numbers in a topic, in their order."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "look",
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    collected: list[int] = []
    while True:
        message = consumer.poll(120)
        assert message is not None, "the topic can't be read"
        if message.error() is None:
            collected.append(int(message.value()))
        elif message.error().code() == KafkaError._PARTITION_EOF:
            consumer.close()
            return collected


def table(cases: list[Case]) -> str:
    """As Markdown."""
    head = "| setting | fault | sent | acknowledged | of these lost | written twice | failed and yet there |"
    lines = [head, "|---|---|---:|---:|---:|---:|---:|"]
    for case in cases:
        counts = (case.sent, case.acknowledged, case.lost, case.twice, case.unknown)
        numbers = " | ".join(f"{n:,}" for n in counts)
        lines.append(f"| {case.setting} | {case.fault} | {numbers} |")
    return "\n".join(lines)


if __name__ == "__main__":
    with EmbeddedCluster(3) as three:
        print(table([measure(three, setting, fault) for fault in FAULTS for setting in SETTINGS]))
