"""A message to be sent to Kafka, and shortening messages that are too large."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

ANY_PARTITION = -1

_LEAST = 1_000
"""Messages of this many bytes are not shortened further."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to send; if the partition is `ANY_PARTITION`, its key's hash determines it.

    `may_be_cut` means that it may be shortened rather than be refused for its size, `is_row` that it is a
    forwarded row, whose duplicates readers can't recognise.
    """

    topic: str
    partition: int
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()
    key: bytes | None = None
    may_be_cut: bool = False
    is_row: bool = False

    @property
    def size(self) -> int:
        """The bytes of value and key."""
        return len(self.value or b"") + len(self.key or b"")

    def cut(self, limit: int) -> Outgoing:
        """The same message with at most `limit` bytes; the header `cut` has the value's original length."""
        key = self.key and self.key[: limit // 2]
        value = self.value and self.value[: limit - len(key or b"")]
        headers = list(self.headers)
        if not headers or headers[-1][0] != "cut":
            headers.append(("cut", str(len(self.value or b"")).encode()))
        return replace(self, value=value, key=key, headers=headers)


def shorter(messages: Sequence[Outgoing]) -> list[Outgoing] | None:
    """The messages with the largest one that may be cut reduced to a quarter; None if none may be cut.

    For a topic that refuses a message because of its size, if the user may not read the topic's limit.

    >>> letter = Outgoing("dead", 0, b"x" * 4_000, [("reason", b"not JSON")], may_be_cut=True)
    >>> [found] = shorter([letter])
    >>> len(found.value), found.headers[-1], shorter([found])
    (1000, ('cut', b'4000'), None)
    """
    largest = max((message.size for message in messages if message.may_be_cut), default=0)
    if largest <= _LEAST:
        return None
    limit = max(largest // 4, _LEAST)
    return [m.cut(limit) if m.may_be_cut and m.size > limit else m for m in messages]
