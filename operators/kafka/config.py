"""Client settings: ours where nothing was said, the user's librdkafka settings through."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .clients import GROUP

_DEFAULTS: dict[str, Any] = {
    # librdkafka waits a second after it has filled its queue; with small messages that is most of the time.
    "fetch.queue.backoff.ms": 10,
    # Enough for two fetches' time; a queued message takes some 400 bytes besides its own, so no more.
    "queued.min.messages": 200_000,
    # What is fetched ahead takes 64 MB by the library's default, for all partitions together, and a fetch of
    # every broker besides (1 MB a partition, 50 MB at most).
    # A broker keeps a fetch for so long where nothing new comes, and a seek waits for it to come back.
    "fetch.wait.max.ms": 50,
    # A broker that comes back is found again within a second.
    "reconnect.backoff.max.ms": 1000,
    "allow.auto.create.topics": False,
    "isolation.level": "read_committed",
    # Never skip or repeat silently: a position that is gone is an error that names it.
    "auto.offset.reset": "error",
    "group.id": "streamgauge",
}

_OURS: dict[str, Any] = {
    # Positions belong to the log of tables, never to a background thread.
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    # Finite reads end here.
    "enable.partition.eof": True,
}


def reader_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a client that only reads: defaults, then `config`, then what reading relies on.

    Raises `ValueError` where `config` names no broker, or contradicts what reading relies on.

    >>> reader_config({"bootstrap.servers": "box:9092"})["fetch.queue.backoff.ms"]
    10
    >>> reader_config({})
    Traceback (most recent call last):
    ValueError: the Kafka settings name no broker; add "bootstrap.servers": "host:port"
    """
    if not (config.get("bootstrap.servers") or config.get("metadata.broker.list")):
        raise ValueError('the Kafka settings name no broker; add "bootstrap.servers": "host:port"')
    for name, value in _OURS.items():
        if name in config and as_text(config[name]) != as_text(value):
            raise ValueError(
                f'the Kafka setting "{name}" must be {as_text(value)} here, '
                f"not {as_text(config[name])}; leave it out"
            )
    # It assigns itself, so what members of groups agree on doesn't concern it.
    own = {name: value for name, value in config.items() if name == "group.id" or not name.startswith(GROUP)}
    return {**_DEFAULTS, **own, **_OURS}


def as_text(value: Any) -> str:
    """A setting's value as librdkafka spells it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
