"""Three brokers for episodes side by side: each has its own proxies; what befalls a broker befalls all."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from confluent_kafka import (
    Consumer,
    ElectionType,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from kafka import TopicPartition as Partition
from kafka.admin import KafkaAdminClient

from streamgauge.apps.dev.kafka.broker import EmbeddedKafka, cluster_id
from streamgauge.apps.dev.kafka.cluster import EmbeddedCluster
from streamgauge.apps.dev.kafka.node import HOST, is_free

from ..faulty_proxy import FaultyProxy
from ..waiting import until
from .posts import Place

BROKERS = 3
OFFSETS = "__consumer_offsets"
TRANSACTIONS = "__transaction_state"
_PORTS = range(15_000, 30_000)
"""Below those that the system gives to clients, one of which could have a killed broker's port."""
_RESTART_SECONDS = 120.0
_SESSION_SECONDS = 3.0
"""After which the controller takes a silent broker for dead."""


class ProxiedCluster(EmbeddedCluster):
    """Three brokers with a listener for each of `lanes`, whose clients come through that lane's proxies."""

    def __init__(self, data: Path, lanes: int = 1) -> None:
        data.mkdir(parents=True)
        ports = _free_ports(BROKERS * (2 + lanes))
        own = [[ports.pop() for _ in range(BROKERS)] for _ in range(2 + lanes)]
        clients, controllers, *proxied = own
        layout = {"cluster": cluster_id(), "listeners": clients, "controllers": controllers}
        (data / "cluster.json").write_text(json.dumps(layout))
        super().__init__(BROKERS, data=data)
        self.lanes = [Lane(self, FaultyProxy(*targets)) for targets in proxied]
        for at, node in enumerate(self.nodes):
            node._settings |= self._settings(node, at)
        self.striking = threading.Lock()
        """Held by the one that strikes brokers, until they are back."""
        self.failures: list[BaseException] = []
        """Why brokers could not be started again."""
        self._later: Callable[[], None] | None = None
        self._calm, self._inside, self._storms = threading.Condition(), 0, 0

    def _settings(self, node: EmbeddedKafka, at: int) -> dict[str, object]:
        names = [f"PROXIED{number}" for number in range(len(self.lanes))]
        behind = [f"{n}://{HOST}:{lane.proxy.targets[at]}" for n, lane in zip(names, self.lanes)]
        before = [f"{n}://{lane.proxy.addresses[at]}" for n, lane in zip(names, self.lanes)]
        plain = f"PLAINTEXT://{HOST}:{self._ports[at]}"
        return {
            "listeners": ",".join([str(node._settings["listeners"]), *behind]),
            "advertised.listeners": ",".join([plain, *before]),
            "listener.security.protocol.map": ",".join(
                f"{name}:PLAINTEXT" for name in ("CONTROLLER", "PLAINTEXT", *names)
            ),
            # Members that ask for it are missed soon.
            "group.min.session.timeout.ms": 1_000,
            "group.consumer.min.session.timeout.ms": 1_000,
            "group.consumer.session.timeout.ms": 2_000,
            # A broker that was killed reads again what is there.
            "log.segment.delete.delay.ms": 1_000,
        }

    def start(self) -> Self:
        """Start the brokers, and have them create the topics of groups and transactions."""
        super().start()
        servers = {"bootstrap.servers": self.bootstrap_servers, "log_level": 0}
        Producer({**servers, "transactional.id": "first"}).init_transactions(120)
        consumer = Consumer({**servers, "group.id": "first"})
        with suppress(KafkaException):
            consumer.committed([TopicPartition("none", 0)], timeout=60)
        consumer.close()
        self.leader((OFFSETS, 0))
        return self

    def stop(self) -> None:
        """End all brokers at once, and the proxies; the folder stays."""
        self.striking.acquire(timeout=_RESTART_SECONDS)
        for node in self.nodes:
            node.kill()
        for lane in self.lanes:
            lane.proxy.close()

    @contextmanager
    def calm(self) -> Iterator[None]:
        """Within the block most brokers run, as those need that begin a run or ask for a topic."""
        with self._calm:
            self._calm.wait_for(lambda: not self._storms)
            self._inside += 1
        try:
            yield
        finally:
            with self._calm:
                self._inside -= 1
                self._calm.notify_all()

    @contextmanager
    def storm(self) -> Iterator[None]:
        """Within the block more than one broker may be down: nobody is in a `calm`."""
        with self._calm:
            self._storms += 1
            self._calm.wait_for(lambda: not self._inside)
        try:
            yield
        finally:
            with self._calm:
                self._storms -= 1
                self._calm.notify_all()

    def leader(self, place: Place) -> EmbeddedKafka:
        """The broker that leads a partition."""
        topic, partition = place
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        leader = -1

        def led() -> bool:
            # A broker may know of a topic later than the one that created it.
            nonlocal leader
            known = admin.list_topics(timeout=120).topics
            partitions = known[topic].partitions if topic in known else {}
            leader = partitions[partition].leader if partition in partitions else -1
            return leader > 0

        until(led)
        return self.nodes[leader - 1]

    def group_coordinator(self, group: str) -> EmbeddedKafka:
        """The broker that a group's members are known to."""
        return self.leader((OFFSETS, abs(_java_hash(group)) % 4))

    def freeze(self, node: EmbeddedKafka) -> Callable[[], None]:
        """SIGSTOP of a broker; what comes back lets it run again."""
        (pid,) = (int(one) for one in Path(f"/proc/{node.pid}/task/{node.pid}/children").read_text().split())
        os.kill(pid, signal.SIGSTOP)
        return lambda: os.kill(pid, signal.SIGCONT)

    @contextmanager
    def strike(self) -> Iterator[None]:
        """Within the block no other fault strikes brokers, and those that were struck before are back."""
        self.striking.acquire()
        self._later = None
        try:
            if self.failures:
                raise self.failures[0]
            yield
        except BaseException:
            self._end_strike()
            raise
        if self._later is None:
            self._end_strike()
        else:
            threading.Thread(target=self._end_strike, name="brokers").start()

    def later(self, mend: Callable[[], None]) -> None:
        """Have a strike end with this, in the background; until then no other one begins."""
        self._later = mend

    def _end_strike(self) -> None:
        try:
            if self._later is not None:
                self._later()
        except BaseException as error:
            self.failures.append(error)
        finally:
            self.striking.release()

    def start_again(self, nodes: Sequence[EmbeddedKafka]) -> None:
        """Start brokers together: those that were most of the cluster are not ready one by one."""
        errors: list[BaseException] = []

        def begin(node: EmbeddedKafka) -> None:
            try:
                node.start()
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=begin, args=[node]) for node in nodes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]

    def move_leaders(self, topics: Sequence[str], by: random.Random) -> int:
        """Make another replica of each partition its leader; gives how many there were."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        known = admin.list_topics(timeout=120).topics
        orders: dict[Any, list[int]] = {}
        for topic in topics:
            for number, partition in known[topic].partitions.items():
                others = [one for one in partition.replicas if one != partition.leader]
                by.shuffle(others)
                orders[Partition(topic, number)] = [*others, partition.leader]
        client = KafkaAdminClient(bootstrap_servers=self.bootstrap_servers)
        try:
            client.alter_partition_reassignments(orders)
        finally:
            client.close()
        moved = [TopicPartition(one.topic, one.partition) for one in orders]
        admin.elect_leaders(ElectionType.PREFERRED, moved).result(120)
        return len(orders)


class Lane:
    """The cluster as one episode sees it, with proxies of its own: where `ProxiedKafka` is one broker."""

    def __init__(self, cluster: ProxiedCluster, proxy: FaultyProxy) -> None:
        self.cluster = cluster
        self.proxy = proxy
        self.calm = cluster.calm

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all brokers."""
        return self.cluster.bootstrap_servers

    @property
    def proxied(self) -> str:
        """Their addresses through this lane's proxies."""
        return self.proxy.address

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic with three replicas, two of which must have a message."""
        with self.calm():
            self.cluster.create_topic(name, partitions)
        for partition in range(partitions):
            self.cluster.leader((name, partition))

    def forget(self, prefix: str) -> None:
        """Delete an episode's topics: a broker that was killed would read all of them again."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        with self.calm():
            named = [topic for topic in admin.list_topics(timeout=120).topics if topic.startswith(prefix)]
            for done in admin.delete_topics(named).values():
                try:
                    done.result(120)
                except KafkaException as error:
                    print(f"a topic was not deleted: {error}", flush=True)


def past_session() -> None:
    """Wait until the controller has missed a broker."""
    time.sleep(2 * _SESSION_SECONDS)


def _free_ports(wanted: int) -> list[int]:
    ports: set[int] = set()
    while len(ports) < wanted:
        port = random.SystemRandom().choice(_PORTS)
        if is_free(port):
            ports.add(port)
    return list(ports)


def _java_hash(text: str) -> int:
    result = 0
    for sign in text:
        result = (31 * result + ord(sign)) & 0xFFFFFFFF
    return result - (1 << 32) if result >= 1 << 31 else result
