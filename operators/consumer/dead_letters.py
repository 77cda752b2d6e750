"""Messages that can't be counted go to a topic of their own, as they came, with the reason.

Value and key are the message's own bytes; the headers say `reason`, `topic`, `partition`, `offset` and
`timestamp` (milliseconds since 1970). The message's own headers are not kept. Where the topic takes no
message so large, the bytes are cut, and the header `cut` says how many the value had.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..formats.messages import Messages
from ..kafka.outgoing import ANY_PARTITION, Outgoing

LARGEST_REASON = 500
LARGEST_LETTER = 64 * 1024 * 1024
"""Bytes that a producer of dead letters must be able to send."""
TOPIC_CONFIG = {"max.message.bytes": str(LARGEST_LETTER)}
"""Of a dead-letter topic that is made here: what the input's topic takes, this one should, too."""

_LARGEST_VALUE = LARGEST_LETTER - 64 * 1024
_LEAST = 1_000


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

    @classmethod
    def of(cls, topic: str, messages: Messages, row: int, reason: str) -> DeadLetter:
        """Of one of a batch of a topic's messages."""
        return cls(
            topic,
            int(messages.partition[row]),
            int(messages.offset[row]),
            int(messages.timestamp[row]),
            reason,
            messages.value_at(row),
            messages.key[row].as_py(),
        )

    @property
    def size(self) -> int:
        """Its bytes, about."""
        return len(self.value or b"") + len(self.key or b"") + len(self.reason) + 100

    def outgoing(self, topic: str) -> Outgoing:
        """As a message for the dead-letter topic."""
        headers: list[tuple[str, bytes | None]] = [
            ("reason", self.reason[:LARGEST_REASON].encode(errors="replace")),
            ("topic", self.topic.encode()),
            ("partition", str(self.partition).encode()),
            ("offset", str(self.offset).encode()),
            ("timestamp", str(self.timestamp_ms).encode()),
        ]
        letter = Outgoing(topic, ANY_PARTITION, self.value, headers, self.key, may_be_cut=True)
        return letter if letter.size <= _LARGEST_VALUE else _cut(letter, _LARGEST_VALUE)


def shorter(messages: Sequence[Outgoing]) -> list[Outgoing] | None:
    """The messages with the largest that may be cut at a quarter of their bytes; None if none may be.

    For a topic that refuses a message for its size, and whose limit nobody may have the right to know.

    >>> letter = DeadLetter("posts", 0, 7, 0, "no JSON", b"x" * 4_000).outgoing("dead")
    >>> [found] = shorter([letter])
    >>> len(found.value), found.headers[-1], shorter([found])
    (1000, ('cut', b'4000'), None)
    """
    largest = max((message.size for message in messages if message.may_be_cut), default=0)
    if largest <= _LEAST:
        return None
    limit = max(largest // 4, _LEAST)
    return [_cut(m, limit) if m.may_be_cut and m.size > limit else m for m in messages]


def _cut(message: Outgoing, limit: int) -> Outgoing:
    key = message.key and message.key[: limit // 2]
    value = message.value and message.value[: limit - len(key or b"")]
    headers = list(message.headers)
    if headers[-1][0] != "cut":
        headers.append(("cut", str(len(message.value or b"")).encode()))
    return replace(message, value=value, key=key, headers=headers)
