"""Why messages of a replay could not be counted, as their dead letters say."""

from __future__ import annotations

from typing import Any

from ...operators.kafka.topics import admin
from ..app import Feed
from ..topics.command import known_topics
from ..topics.reading import TopicReading

_SHOWN = 200


def refused_messages(feed: Feed) -> list[dict[str, Any]]:
    """Each reason with the number of messages, and the first one's offset and beginning; the most come first.

    Several questions of an app may have refused the same message: it is told once.
    """
    settings = {**feed.config, "bootstrap.servers": feed.bootstrap_servers}
    topic = f"{feed.topic}.dead-letters"
    if topic not in known_topics(admin(settings)):
        return []
    reading = TopicReading(settings, topic, None)
    letters: dict[tuple[int, int], tuple[str, str]] = {}
    try:
        for message in reading.until(reading.span("earliest", None)):
            told: Any = message.headers() or ()
            headers = {name: (value or b"").decode(errors="replace") for name, value in told}
            where = int(headers["partition"]), int(headers["offset"])
            shown = (message.value() or b"")[:_SHOWN].decode(errors="replace")
            letters.setdefault(where, (headers["reason"], shown))
    finally:
        reading.close()
    found: dict[str, dict[str, Any]] = {}
    for (_, offset), (reason, first) in sorted(letters.items()):
        found.setdefault(reason, {"reason": reason, "messages": 0, "offset": offset, "first": first})
        found[reason]["messages"] += 1
    return sorted(found.values(), key=lambda one: (-one["messages"], one["offset"]))
