"""Messages that can't be counted go to a topic of their own, as they came, with the reason.

Value and key are the message's own bytes; the headers say `reason`, `topic`, `partition`, `offset` and
`timestamp` (milliseconds since 1970). The message's own headers are not kept.
"""

from __future__ import annotations

from dataclasses import dataclass

from .outgoing import ANY_PARTITION, Outgoing

LARGEST_REASON = 500


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that can't be counted, and why."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    reason: str
    value: bytes | None
    key: bytes | None = None

    @property
    def size(self) -> int:
        """Its bytes, about."""
        return len(self.value or b"") + len(self.key or b"") + len(self.reason) + 100

    def outgoing(self, topic: str) -> Outgoing:
        """As a message for the dead-letter topic."""
        headers: list[tuple[str, bytes | None]] = [
            ("reason", self.reason[:LARGEST_REASON].encode()),
            ("topic", self.topic.encode()),
            ("partition", str(self.partition).encode()),
            ("offset", str(self.offset).encode()),
            ("timestamp", str(self.timestamp_ms).encode()),
        ]
        return Outgoing(topic, ANY_PARTITION, self.value, headers, self.key)
