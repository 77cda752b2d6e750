"""The topics of a cluster, and their kinds by name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...operators.kafka.topics import Admin

SECONDS = 10.0
"""The time limit for brokers' answers."""

_KINDS = {
    r"(.+)\.table\.[0-9a-f]{16}": "table of {}",
    r"(.+)\.windows\.[0-9a-f]{16}": "closed windows of {}",
    r"(.+)\.dead-letters": "dead letters of {}",
    r"(.+)\.late-messages": "late messages of {}",
    r"__.+": "Kafka's own",
}


def known_topics(client: Admin) -> dict[str, Any]:
    """Fetch the metadata of all topics. Raises `TopicError` if no broker answers."""
    from confluent_kafka import KafkaException

    from ...operators.kafka.topics import TopicError

    try:
        return dict(client.list_topics(timeout=SECONDS).topics)
    except KafkaException as error:
        raise TopicError(
            f"no broker answered at {client.address}: {error.args[0].str()}; check --bootstrap-servers, that "
            "it runs, and the security settings"
        ) from None


def not_there(name: str, known: Any) -> str:
    """Return the message for a topic that doesn't exist."""
    from difflib import get_close_matches

    near = get_close_matches(name, list(known), 1)
    hint = f"did you mean {near[0]!r}?" if near else "`streamgauge kafka topics` lists those that do"
    return f"the topic {name!r} doesn't exist; {hint}"


def kind_of(name: str) -> str:
    """Return the kind of a topic by its name; empty if unknown.

    >>> kind_of("by-minute.table.24c2684216deea71"), kind_of("posts.dead-letters"), kind_of("posts")
    ('table of by-minute', 'dead letters of posts', '')
    """
    for pattern, kind in _KINDS.items():
        if match := re.fullmatch(pattern, name):
            return kind.format(*match.groups())
    return ""
