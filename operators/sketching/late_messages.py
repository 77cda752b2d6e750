"""Late messages are sent unchanged to a separate topic, if a run names one, with their lateness.

Value, key and headers are those of a dead letter (`dead_letters`), with an additional `late_by`: by how many
milliseconds the watermark of the message's partition was past the end of its last window when it arrived.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..formats.messages import Messages
from ..formats.reasons import Reason
from ..kafka.outgoing_message import Outgoing
from ..watermarks.position import Input
from .dead_letters import DeadLetter


@dataclass(frozen=True, slots=True)
class LateMessage:
    """A message that arrived too late to be counted, by so many microseconds.

    >>> letter = DeadLetter("posts", 0, 7, 0, "late", b"x")
    >>> LateMessage(letter, 1_500_000).outgoing("posts.late-messages").headers[0]
    ('late_by', b'1500')
    """

    letter: DeadLetter
    late_us: int

    @classmethod
    def of(cls, where: Input, messages: Messages, row: int, late_us: int) -> LateMessage:
        """The late message for one message of a batch."""
        text = f"late: its last window ended {late_us / 1e6:.3f} s before its partition's watermark"
        reason = Reason("late: its last window ended before its partition's watermark", text)
        return cls(DeadLetter.of(where, messages, row, reason), late_us)

    @property
    def size(self) -> int:
        """Its approximate size in bytes."""
        return self.letter.size

    def outgoing(self, topic: str) -> Outgoing:
        """The message for the late-message topic."""
        message = self.letter.outgoing(topic)
        return replace(message, headers=[("late_by", b"%d" % (self.late_us // 1000)), *message.headers])
