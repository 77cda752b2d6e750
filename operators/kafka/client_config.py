"""The settings of a stream's clients: readers, group members, producers, administration.

Each takes the stream's Kafka settings, above all those for security, over our defaults, and omits settings
that don't apply to it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from ..secrets import NoSecrets

LIBRARY_LOG = logging.getLogger("streamgauge.kafka.librdkafka")
"""librdkafka's logger, with messages about each connection attempt; silent unless its level is set."""
LIBRARY_LOG.addFilter(NoSecrets())

if LIBRARY_LOG.level == logging.NOTSET:
    LIBRARY_LOG.setLevel(logging.CRITICAL + 1)

EARLIER = ("earliest", "smallest", "beginning")
"""Values of ``auto.offset.reset`` that let reading continue if messages were deleted."""

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
"""Prefixes of settings for group members."""
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

_CONNECTING: dict[str, Any] = {
    # A new client waits for half of this, 100 by default, before it first connects; it doubles each time.
    "reconnect.backoff.ms": 20,
    # A broker that returns is found again within a second.
    "reconnect.backoff.max.ms": 1_000,
}

_READER_DEFAULTS: dict[str, Any] = {
    **_CONNECTING,
    # librdkafka waits a second after its queue is full; with small messages that is most of the time.
    "fetch.queue.backoff.ms": 10,
    # Enough for the time of two fetches; not more, because a queued message takes some 400 extra bytes.
    "queued.min.messages": 200_000,
    # By default, the library prefetches up to 64 MB for all partitions together, plus one fetch from
    # every broker (1 MB per partition, 50 MB at most).
    # A broker holds a fetch for this long if nothing new arrives, and a seek waits for the fetch to return.
    "fetch.wait.max.ms": 50,
    "allow.auto.create.topics": False,
    "isolation.level": "read_committed",
    # Never skip or repeat silently: a missing position is an error that names it.
    "auto.offset.reset": "error",
    "group.id": "streamgauge",
}

_READER_FIXED: dict[str, Any] = {
    # Positions belong to the log of tables, not to a background thread.
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    # Finite reads end here.
    "enable.partition.eof": True,
}


def reader_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a client that only reads: defaults, then `config`, then what reading depends on.

    Raises `ValueError` if `config` names no broker, or conflicts with what reading depends on.

    >>> reader_config({"bootstrap.servers": "box:9092"})["fetch.queue.backoff.ms"]
    10
    >>> reader_config({})
    Traceback (most recent call last):
    ValueError: the Kafka settings name no broker; add "bootstrap.servers": "host:port"
    """
    if not (config.get("bootstrap.servers") or config.get("metadata.broker.list")):
        raise ValueError('the Kafka settings name no broker; add "bootstrap.servers": "host:port"')
    for name, value in _READER_FIXED.items():
        if name in config and as_text(config[name]) != as_text(value):
            raise ValueError(
                f'the Kafka setting "{name}" must be {as_text(value)} here, '
                f"not {as_text(config[name])}; leave it out"
            )
    # It assigns partitions itself, so settings that group members agree on don't apply.
    own = {name: value for name, value in config.items() if name == "group.id" or not name.startswith(GROUP)}
    return {**_READER_DEFAULTS, **own, **_READER_FIXED}


def client_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings for any client: all except those for reading, groups and sending.

    >>> client_config({"bootstrap.servers": "box:9092", "fetch.min.bytes": 1, "sasl.mechanism": "PLAIN"})
    {'bootstrap.servers': 'box:9092', 'sasl.mechanism': 'PLAIN'}
    """
    return {k: v for k, v in config.items() if not k.startswith(_READING + GROUP + _SENDING)}


def admin_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of an administration client.

    It finds the leaders of partitions in cached metadata, which would be up to five minutes old by default.
    """
    return {**_CONNECTING, "topic.metadata.refresh.interval.ms": 10_000, **client_config(config)}


def member_config(config: Mapping[str, Any], group_id: str, member: str = "") -> dict[str, Any]:
    """A consumer that is a member of `group_id`, commits by hand and starts where it is assigned.

    `member` distinguishes the members in one process: a static name (``group.instance.id``) gets it as a
    suffix. An empty `member`, for a client that only queries the group's coordinator, removes the static
    name.

    >>> config = {"bootstrap.servers": "box:9092", "group.instance.id": "box-7"}
    >>> member_config(config, "posts", "2")["group.instance.id"]
    'box-7-2'
    """
    group = {k: v for k, v in config.items() if k.startswith((*GROUP, "max.poll.")) and k != "group.id"}
    static = group.pop("group.instance.id", None)
    if static is not None and member:
        group["group.instance.id"] = f"{static}-{member}"
    # If two workers start together, a broker may assign all partitions to the first; it learns of the
    # second, and gives up half of them, with its next heartbeat.
    ours = {"session.timeout.ms": 10_000, "heartbeat.interval.ms": 300}
    if str(group.get("group.protocol", "")).lower() == "consumer":
        ours = {}  # the brokers decide these, and the client refuses them
    return {
        # How long messages of an added partition may wait until it is found; five minutes by default.
        "topic.metadata.refresh.interval.ms": 10_000,
        **_CONNECTING,
        **client_config(config),
        **ours,
        **group,
        "group.id": group_id,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        "check.crcs": True,  # damage on a broker's disk is an error, not different state
        "allow.auto.create.topics": False,
    }


def producer_config(config: Mapping[str, Any], largest: int) -> dict[str, Any]:
    """A producer that sends each message once and in order, with messages of at most `largest` bytes."""
    sending = {k: v for k, v in config.items() if k.startswith(_SENDING) and not k.startswith("transaction")}
    return {
        **_CONNECTING,
        **client_config(config),
        **sending,
        "enable.idempotence": True,
        "acks": "all",
        "message.max.bytes": largest,
    }


def as_text(value: Any) -> str:
    """A setting's value in librdkafka's notation."""
    return str(value).lower() if isinstance(value, bool) else str(value)
