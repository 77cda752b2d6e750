"""Several Kafka nodes inside a program, for what takes more than one: replicas, leaders that move and die.

with EmbeddedCluster() as cluster:
    cluster.create_topic("posts", partitions=4)
    cluster.nodes[0].kill()
"""

from __future__ import annotations

import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

from .broker import EmbeddedKafka, cluster_id
from .node import HOST, free_port


class EmbeddedCluster:
    """Kafka nodes on loopback ports, each a broker and a controller, with topics that are on all of them.

    Any of `nodes` may be killed and started again while more than half of them run. Everything is thrown away
    at the end. Raises as `EmbeddedKafka` does.
    """

    def __init__(self, brokers: int = 3) -> None:
        ports: set[int] = set()
        while len(ports) < 2 * brokers:
            ports.add(free_port())
        listeners = [ports.pop() for _ in range(brokers)]
        controllers = [ports.pop() for _ in range(brokers)]
        name = cluster_id()
        self._folder = Path(tempfile.mkdtemp(prefix="streamgauge-kafka-"))
        self.nodes = [
            EmbeddedKafka(
                listeners[number],
                self._folder / str(number + 1),
                settings=_settings(number, listeners, controllers),
                cluster=name,
            )
            for number in range(brokers)
        ]

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all nodes, for ``bootstrap.servers``."""
        return ",".join(node.bootstrap_servers for node in self.nodes)

    def start(self) -> Self:
        """Start all nodes together, for none of them serves before more than half are there."""
        with ThreadPoolExecutor(len(self.nodes)) as starting:
            list(starting.map(EmbeddedKafka.start, self.nodes))
        return self

    def stop(self) -> None:
        """Stop all nodes, and throw away what they hold."""
        for node in self.nodes:
            node.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic with a replica on each node, two of which must have a message before it counts."""
        from confluent_kafka.admin import AdminClient, NewTopic

        wanted: Any = NewTopic(
            name, partitions, replication_factor=len(self.nodes), config={"min.insync.replicas": "2"}
        )
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        admin.create_topics([wanted], operation_timeout=30)[name].result(30)


def _settings(number: int, listeners: list[int], controllers: list[int]) -> dict[str, object]:
    """What a node is told of itself and of the others."""
    voters = ",".join(f"{n + 1}@{HOST}:{port}" for n, port in enumerate(controllers))
    own, count = f"PLAINTEXT://{HOST}:{listeners[number]}", len(listeners)
    return {
        "node.id": number + 1,
        "controller.quorum.voters": voters,
        "listeners": f"{own},CONTROLLER://{HOST}:{controllers[number]}",
        "offsets.topic.replication.factor": count,
        "transaction.state.log.replication.factor": count,
        "transaction.state.log.min.isr": min(2, count),
    }
