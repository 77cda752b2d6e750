"""The configuration of a node: its properties, its logging, and its ports."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path

HOST = "127.0.0.1"

_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={logs}
# One node: everything has one replica, and few partitions so that it starts and stops quickly.
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
# Members that begin together get their partitions together. Kafka's default is three seconds.
group.initial.rebalance.delay.ms=15
# Members of groups whose partitions the broker assigns hear of it with their next heartbeat.
group.consumer.min.heartbeat.interval.ms=300
group.consumer.heartbeat.interval.ms=300
# A broker on a busy machine may be late with its heartbeats. While its controller misses them, no partition
# has a leader and no topic can be made. One that was killed is back as soon as its old session is over.
broker.session.timeout.ms=9000
broker.heartbeat.interval.ms=500
auto.create.topics.enable=false
# Replayed posts carry old clocks: nothing is deleted for its age.
log.retention.ms=-1
# A small heap: the cleaner's default buffer alone would take 128 MB of it.
log.cleaner.dedupe.buffer.size=4194304
# Compaction is seen while one looks on.
log.cleaner.backoff.ms=1000
"""

_LOGGING = """\
rootLogger.level=WARN
rootLogger.appenderRef.out.ref=OUT
logger.server.name=kafka.server.KafkaRaftServer
logger.server.level=INFO
appender.out.type=Console
appender.out.name=OUT
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d %p %m (%c)%n
"""


def write_settings(folder: Path, port: int, others: Mapping[str, object] = {}) -> Path:
    """Write a node's settings to its folder, overridden by `others`; return the file for the start."""
    settings, logs = folder / "broker.properties", folder / "log"
    controller = free_port(but=port)
    ours = _PROPERTIES.format(host=HOST, port=port, controller=controller, logs=logs.as_posix())
    # If a name occurs twice, the last value counts.
    settings.write_text(ours + "".join(f"{name}={value}\n" for name, value in others.items()))
    (folder / "logging.properties").write_text(_LOGGING)
    return settings


def is_free(port: int) -> bool:
    """Whether no program listens on a port of this machine."""
    with socket.socket() as probe:
        # As in Java: a port with only lingering connections is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def free_port(but: int | None = None) -> int:
    """Return a port on which no program is listening."""
    while True:
        with socket.socket() as probe:
            probe.bind((HOST, 0))
            if (port := probe.getsockname()[1]) != but:
                return int(port)
