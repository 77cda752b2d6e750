"""The librdkafka settings that a stream controls: their valid values, and what to write instead.

A setting that is accepted and has no effect is worse than one that is refused. So this table contains every
setting that our clients override or that nothing reads; all others reach the clients that they concern.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

_SESSION_MS = 10_000
"""The default session timeout, and the minimum time that a worker needs between polls."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """A setting that must be one of `allowed`, or absent, and what to write instead."""

    allowed: tuple[str, ...]
    instead: str


_ALIASES = ("1", "-1", "smallest", "beginning")
_LOSES = "with less, a broker that fails could lose or double counts silently; leave it out"
_COMMITS = "positions are committed with the sketches, at checkpoints; leave it out"

FIXED = {
    "group.id": Fixed((), 'write group_id="…" in run(...), or on Spark .option("kafka.group.id", "…")'),
    "auto.offset.reset": Fixed(
        ("error", "earliest", "smallest", "beginning"),
        'write start="latest" in run(...) for a group that begins with new messages; "earliest" '
        "only lets a run continue after messages that were deleted before they were read",
    ),
    "transactional.id": Fixed(
        (), "each of a run's writers has one that begins with its group_id; write group_id= in run(...)"
    ),
    "enable.auto.commit": Fixed(("false",), _COMMITS),
    "auto.commit.enable": Fixed(("false",), _COMMITS),
    "auto.commit.interval.ms": Fixed((), "write checkpoint_seconds= in run(...)"),
    "enable.auto.offset.store": Fixed(("false",), _COMMITS),
    "offset.store.method": Fixed(("broker",), _COMMITS),
    "offset.store.path": Fixed((), _COMMITS),
    "offset.store.sync.interval.ms": Fixed((), _COMMITS),
    "enable.partition.eof": Fixed(("true",), "bounded reads end there; leave it out"),
    "check.crcs": Fixed(
        ("true",), 'damaged messages must not be counted; write corrupt="skip" to continue after them'
    ),
    "allow.auto.create.topics": Fixed(
        ("false",), "a topic that doesn't exist is an error here; create it, and leave this out"
    ),
    "consume.callback.max.messages": Fixed((), "messages are not read through callbacks; leave it out"),
    "acks": Fixed(("all", "-1"), _LOSES),
    "request.required.acks": Fixed(("all", "-1"), _LOSES),
    "enable.idempotence": Fixed(("true", "1"), _LOSES),
    "message.max.bytes": Fixed(
        (), "producers take messages of up to 64 MiB; set the topic's max.message.bytes, and leave this out"
    ),
}
"""By name. With fewer acknowledgements deltas, dead letters and closed windows would not be safe."""


def check_fixed(config: Mapping[str, str], obeyed: Collection[str] = ()) -> None:
    """Raise `ValueError` for a setting with an invalid value, with what to write instead.

    `config` has values in librdkafka's notation; `obeyed` are settings that the caller does support.

    >>> check_fixed({"auto.offset.reset": "earliest"})
    >>> check_fixed({"enable.auto.commit": "true"})
    Traceback (most recent call last):
    ValueError: the Kafka setting "enable.auto.commit" must be false here, got true: positions are committed \
with the sketches, at checkpoints; leave it out
    """
    for name in config.keys() & FIXED.keys() - set(obeyed):
        fixed, value = FIXED[name], config[name]
        if value.lower() in fixed.allowed:
            continue
        if not fixed.allowed:
            raise ValueError(f'the Kafka setting "{name}" can\'t be set here: {fixed.instead}')
        must = " or ".join(word for word in fixed.allowed if word not in _ALIASES)
        raise ValueError(f'the Kafka setting "{name}" must be {must} here, got {value}: {fixed.instead}')
    _check_poll_interval(config)


def _check_poll_interval(config: Mapping[str, Any]) -> None:
    try:
        poll = int(config.get("max.poll.interval.ms", 300_000))
        session = int(config.get("session.timeout.ms", _SESSION_MS))
    except ValueError:
        return  # librdkafka's message is better
    if poll < max(session, _SESSION_MS):
        raise ValueError(
            f'the Kafka setting "max.poll.interval.ms" must be at least {max(session, _SESSION_MS)} here, '
            f"got {poll}: workers poll every few seconds, and it can't be less than session.timeout.ms, "
            f"which is {session}"
        )
