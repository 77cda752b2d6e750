"""A message on its way to Kafka, and how one that is too large gets there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

ANY_PARTITION = -1

_LEAST = 1_000
"""Bytes of a message that is never cut further."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to send; the partition is chosen by its key's hash where it is `ANY_PARTITION`.

    `may_be_cut` says that it may lose bytes rather than be refused for its size, `is_row` that it is a row
    that is sent on, which nobody who reads it can know again.
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
        """The same with at most `limit` bytes; the header `cut` says how many the value had."""
        key = self.key and self.key[: limit // 2]
        value = self.value and self.value[: limit - len(key or b"")]
        headers = list(self.headers)
        if not headers or headers[-1][0] != "cut":
            headers.append(("cut", str(len(self.value or b"")).encode()))
        return replace(self, value=value, key=key, headers=headers)


def shorter(messages: Sequence[Outgoing]) -> list[Outgoing] | None:
    """The messages with the largest that may be cut at a quarter of their bytes; None if none may be.

    For a topic that refuses a message for its size, and whose limit nobody may have the right to know.

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
