"""A message on its way to Kafka."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ANY_PARTITION = -1


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to send; the partition is chosen by its key's hash where it is `ANY_PARTITION`."""

    topic: str
    partition: int
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()
    key: bytes | None = None
