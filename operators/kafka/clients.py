"""The settings of a stream's clients besides its reader: members, producers, administration.

Each takes the stream's own Kafka settings, security above all, and leaves out what only concerns reading.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from .secrets import NoSecrets

LIBRARY_LOG = logging.getLogger("streamgauge.kafka.librdkafka")
"""What librdkafka says of each connection it tries; silent unless its level is set."""
LIBRARY_LOG.addFilter(NoSecrets())

if LIBRARY_LOG.level == logging.NOTSET:
    LIBRARY_LOG.setLevel(logging.CRITICAL + 1)

_READING = (
    "fetch.",
    "queued.",
    "isolation.level",
    "auto.",
    "enable.auto.",
    "enable.partition.eof",
    "check.crcs",
    "consume.",
    "max.poll.",
    "max.partition.",
)
GROUP = ("group.", "session.", "heartbeat.", "partition.assignment.", "coordinator.")
"""Settings of a group's members begin so."""
_SENDING = (
    "acks",
    "batch.",
    "compression.",
    "delivery.",
    "enable.gapless.",
    "enable.idempotence",
    "linger.",
    "message.timeout.",
    "queue.buffering.",
    "request.required.",
    "request.timeout.",
    "retries",
    "retry.",
    "transaction",
)


def client_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """What any client takes: the settings without those of reading, of groups and of sending.

    >>> client_config({"bootstrap.servers": "box:9092", "fetch.min.bytes": 1, "sasl.mechanism": "PLAIN"})
    {'bootstrap.servers': 'box:9092', 'sasl.mechanism': 'PLAIN'}
    """
    return {k: v for k, v in config.items() if not k.startswith(_READING + GROUP + _SENDING)}


def admin_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """What an administration client takes.

    Who leads a partition is looked up in what it knows, which would be five minutes old by default.
    """
    return {"topic.metadata.refresh.interval.ms": 10_000, **client_config(config)}


def member_config(config: Mapping[str, Any], group_id: str, member: str = "") -> dict[str, Any]:
    """A consumer that is a member of `group_id`, commits by hand and starts where told.

    `member` tells apart those of one process: a static name (``group.instance.id``) gets it as a suffix, and
    who has none, as he only asks the group's coordinator, takes no such name.

    >>> config = {"bootstrap.servers": "box:9092", "group.instance.id": "box-7"}
    >>> member_config(config, "posts", "2")["group.instance.id"]
    'box-7-2'
    """
    group = {k: v for k, v in config.items() if k.startswith((*GROUP, "max.poll.")) and k != "group.id"}
    static = group.pop("group.instance.id", None)
    if static is not None and member:
        group["group.instance.id"] = f"{static}-{member}"
    ours = {"session.timeout.ms": 10_000, "heartbeat.interval.ms": 1_000}
    if str(group.get("group.protocol", "")).lower() == "consumer":
        ours = {}  # the brokers decide on these, and the client refuses them
    return {
        # How long the messages of a partition that is added may wait to be found; five minutes by default.
        "topic.metadata.refresh.interval.ms": 10_000,
        **client_config(config),
        **ours,
        **group,
        "group.id": group_id,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        "check.crcs": True,  # what a broker's disk has damaged is an error, not another state
        "allow.auto.create.topics": False,
        "reconnect.backoff.max.ms": 1_000,
    }


def producer_config(config: Mapping[str, Any], largest: int) -> dict[str, Any]:
    """A producer that sends each message once and in order, of `largest` bytes at most."""
    sending = {k: v for k, v in config.items() if k.startswith(_SENDING) and not k.startswith("transaction")}
    return {
        **client_config(config),
        "linger.ms": 5,
        **sending,
        "enable.idempotence": True,
        "acks": "all",
        "message.max.bytes": largest,
        "reconnect.backoff.max.ms": 1_000,
    }
