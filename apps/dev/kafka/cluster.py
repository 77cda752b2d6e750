"""Several Kafka nodes on one machine, for everything that needs more than one: replicas and leader changes.

with EmbeddedCluster() as cluster:
    cluster.create_topic("posts", partitions=4)
    cluster.nodes[0].kill()
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from .broker import BrokerError, EmbeddedKafka, PortTakenError, cluster_id
from .node import HOST, free_port, is_free


@dataclass(frozen=True, slots=True)
class _Layout:
    """A cluster's id and its nodes' ports, for clients and for other nodes."""

    cluster: str
    listeners: list[int]
    controllers: list[int]


class EmbeddedCluster:
    """Kafka nodes on loopback ports, each a broker and a controller, with topics replicated on all nodes.

    Any of `nodes` may be killed and restarted while more than half of them run. They listen on `port` and the
    following ports, by default on free ones. `data` is a folder that preserves everything across restarts,
    including ports unless others are requested; without one, everything is deleted at the end. With
    ``detached=True`` the nodes run until they are ended.

    Raises `BrokerError` for a folder with another number of brokers, and what `EmbeddedKafka` raises.
    """

    def __init__(
        self,
        brokers: int = 3,
        port: int | None = None,
        data: str | Path | None = None,
        *,
        detached: bool = False,
    ) -> None:
        self._keep = data is not None
        self.folder = (
            Path(tempfile.mkdtemp(prefix="streamgauge-kafka-"))
            if data is None
            else Path(data).expanduser().resolve()
        )
        try:
            layout = _layout(self.folder, brokers, port)
        except BrokerError:
            if data is None:
                self.folder.rmdir()
            raise
        self.nodes = [
            EmbeddedKafka(
                layout.listeners[number],
                self.folder / str(number + 1),
                detached=detached,
                settings=_settings(number, layout),
                cluster=layout.cluster,
            )
            for number in range(brokers)
        ]
        self._ports = layout.listeners

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all nodes, for ``bootstrap.servers``."""
        return ",".join(f"{HOST}:{port}" for port in self._ports)

    def start(self) -> Self:
        """Start all nodes together, because none is ready before more than half of them run."""
        try:
            with ThreadPoolExecutor(len(self.nodes)) as starting:
                list(starting.map(EmbeddedKafka.start, self.nodes))
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop all nodes; flush preserved data, and remove other data."""
        end = EmbeddedKafka.stop if self._keep else EmbeddedKafka.kill
        with ThreadPoolExecutor(len(self.nodes)) as ending:
            list(ending.map(end, self.nodes))
        if not self._keep:
            shutil.rmtree(self.folder, ignore_errors=True)

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic with a replica on each node; two must have a message before it is acknowledged."""
        from confluent_kafka.admin import AdminClient, NewTopic

        wanted: Any = NewTopic(
            name, partitions, replication_factor=len(self.nodes), config={"min.insync.replicas": "2"}
        )
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        admin.create_topics([wanted], operation_timeout=30)[name].result(30)


def kept_brokers(folder: Path) -> int | None:
    """Return the number of brokers with data in a folder; None if there are none."""
    if (folder / "cluster.json").is_file():
        return len(_read(folder).listeners)
    return 1 if (folder / "log").is_dir() else None


def node(folder: Path, number: int) -> EmbeddedKafka:
    """Return a node, counted from 0, of a detached cluster that runs in a folder, to restart it."""
    layout = _read(folder)
    return EmbeddedKafka(
        layout.listeners[number],
        folder / str(number + 1),
        detached=True,
        settings=_settings(number, layout),
        cluster=layout.cluster,
    )


def _layout(folder: Path, brokers: int, port: int | None) -> _Layout:
    """Return the folder's layout, with free ports in place of ports that are in use by now."""
    kept = kept_brokers(folder)
    if kept not in (None, brokers):
        raise BrokerError(
            f"the folder {folder} keeps the data of {kept} broker{'s' * (kept != 1)}, not of {brokers}; "
            f"start {kept}, or name another folder"
        )
    layout = _read(folder) if kept else _Layout(cluster_id(), [0] * brokers, [0] * brokers)
    listeners = list(range(port, port + brokers)) if port is not None else layout.listeners
    for wanted in listeners if port is not None else ():
        if wanted > 65_535 or not is_free(wanted):
            raise PortTakenError(wanted)
    used = set(listeners)
    layout = _Layout(layout.cluster, _free(listeners, used), _free(layout.controllers, used))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cluster.json").write_text(json.dumps(asdict(layout)))
    return layout


def _read(folder: Path) -> _Layout:
    return _Layout(**json.loads((folder / "cluster.json").read_text()))


def _free(ports: Sequence[int], used: set[int]) -> list[int]:
    """Replace unset and used ports by free ones that aren't in `used`, and add all of them to `used`."""
    free = []
    for port in ports:
        while port == 0 or not is_free(port):
            candidate = free_port()
            port = 0 if candidate in used else candidate
        used.add(port)
        free.append(port)
    return free


def _settings(number: int, layout: _Layout) -> dict[str, object]:
    """Return a node's options: its own and the other nodes' addresses."""
    voters = ",".join(f"{n + 1}@{HOST}:{port}" for n, port in enumerate(layout.controllers))
    own, count = f"PLAINTEXT://{HOST}:{layout.listeners[number]}", len(layout.listeners)
    return {
        "node.id": number + 1,
        "controller.quorum.voters": voters,
        "listeners": f"{own},CONTROLLER://{HOST}:{layout.controllers[number]}",
        "default.replication.factor": count,
        "min.insync.replicas": min(2, count),
        "offsets.topic.replication.factor": count,
        "transaction.state.log.replication.factor": count,
        "transaction.state.log.min.isr": min(2, count),
        # Other nodes take over a killed node's partitions.
        "broker.session.timeout.ms": 3_000,
    }
