"""Why messages of a replay could not be counted, from their dead letters."""

from __future__ import annotations

from typing import Any

from ...operators.kafka.topics import admin
from ..app import Feed
from ..topics.known import known_topics
from ..topics.message_reading import TopicReading

_SHOWN = 200


def refused_messages(feed: Feed) -> list[dict[str, Any]]:
    """Return each reason with its number of messages, and the first one's offset, beginning and details; the
    most frequent first.

    If several parts of an app have refused the same message, it is listed once.
    """
    settings = {**feed.config, "bootstrap.servers": feed.bootstrap_servers}
    topic = f"{feed.topic}.dead-letters"
    if topic not in known_topics(admin(settings)):
        return []
    reading = TopicReading(settings, topic, None)
    letters: dict[tuple[int, int], tuple[str, str, str]] = {}
    try:
        for message in reading.until(reading.span("earliest", None)):
            pairs: Any = message.headers() or ()
            headers = {name: (value or b"").decode(errors="replace") for name, value in pairs}
            where = int(headers["partition"]), int(headers["offset"])
            shown = (message.value() or b"")[:_SHOWN].decode(errors="replace")
            reason = headers["reason"]
            letters.setdefault(where, (reason, headers.get("details", reason), shown))
    finally:
        reading.close()
    by_reason: dict[str, dict[str, Any]] = {}
    for (_, offset), (reason, details, first) in sorted(letters.items()):
        beginning = {"offset": offset, "first": first, "details": details}
        by_reason.setdefault(reason, {"reason": reason, "messages": 0, **beginning})
        by_reason[reason]["messages"] += 1
    return sorted(by_reason.values(), key=lambda one: (-one["messages"], one["offset"]))
