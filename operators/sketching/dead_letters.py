"""Messages that can't be counted are sent unchanged to a separate topic, with the reason.

Value and key are the message's own bytes. The headers are `reason`, `topic`, `partition`, `offset` and
`timestamp` (milliseconds since 1970); the message's own headers are not preserved. The `reason` is the same
for all messages of its kind (`formats.reasons`); the specific reason, with values and positions, is in
`details`, unless it is the same. If the message is too large for the topic, its bytes are truncated, and the
header `cut` has the original length of the value.

Messages that are damaged on a broker (``corrupt="skip"``) have one letter for a range of offsets, from
`offset` to `last_offset`, whose value is the bytes received in their place.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..formats.messages import Broken, Messages
from ..formats.reasons import Reason, kind_of
from ..kafka.outgoing_message import ANY_PARTITION, Outgoing
from ..watermarks.position import Input

LARGEST_REASON = 500
LARGEST_LETTER = 64 * 1024 * 1024
"""The message size that a producer of dead letters must support."""
TOPIC_CONFIG = {"max.message.bytes": str(LARGEST_LETTER)}
"""The settings for dead-letter topics created here: they accept any message of the input topic."""

_LARGEST_VALUE = LARGEST_LETTER - 64 * 1024


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
    last_offset: int | None = None

    @classmethod
    def of_range(cls, broken: Broken, first: int, next_offset: int) -> DeadLetter:
        """The dead letter for offsets `first` … `next_offset` − 1, part of a range that can't be read."""
        reason = Reason(f"its record batch is broken: {broken.reason}")
        place = broken.topic, broken.partition, first
        return cls(*place, -1, reason, broken.raw, last_offset=next_offset - 1)

    @classmethod
    def of(cls, where: Input, messages: Messages, row: int, reason: str) -> DeadLetter:
        """The dead letter of one message of a batch."""
        return cls(
            *where,
            int(messages.offset[row]),
            int(messages.timestamp[row]),
            reason,
            messages.value_at(row),
            messages.key[row].as_py(),
        )

    @property
    def input(self) -> Input:
        """The partition that it was in."""
        return Input(self.topic, self.partition)

    @property
    def size(self) -> int:
        """Its approximate size in bytes."""
        return len(self.value or b"") + len(self.key or b"") + len(self.reason) + 100

    def outgoing(self, topic: str) -> Outgoing:
        """The message for the dead-letter topic."""
        headers: list[tuple[str, bytes | None]] = [
            ("reason", _shown(kind_of(self.reason))),
            ("topic", self.topic.encode()),
            ("partition", str(self.partition).encode()),
            ("offset", str(self.offset).encode()),
            ("timestamp", str(self.timestamp_ms).encode()),
        ]
        if self.reason != kind_of(self.reason):
            headers.append(("details", _shown(self.reason)))
        if self.last_offset is not None:
            headers.append(("last_offset", str(self.last_offset).encode()))
        letter = Outgoing(topic, ANY_PARTITION, self.value, headers, self.key, may_be_cut=True)
        return letter if letter.size <= _LARGEST_VALUE else letter.cut(_LARGEST_VALUE)


def _shown(reason: str) -> bytes:
    return reason[:LARGEST_REASON].encode(errors="replace")
