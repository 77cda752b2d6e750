"""A message on its way to Kafka."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ANY_PARTITION = -1


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to send; the partition is chosen by its key's hash where it is `ANY_PARTITION`.

    `may_be_cut` tells that it may lose bytes rather than be refused for its size.
    """

    topic: str
    partition: int
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()
    key: bytes | None = None
    may_be_cut: bool = False

    @property
    def size(self) -> int:
        """The bytes of value and key."""
        return len(self.value or b"") + len(self.key or b"")
