"""What a way of reading Kafka gives the reader: batches, ends and faults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from ...sketches.core.errors import StreamgaugeError
from ..formats.messages import Messages

TopicPartition = tuple[str, int]
"""A topic's name and a partition's number."""

EARLIEST, LATEST = -2, -1
"""Where a partition begins and where it ends now, in place of an offset."""


class ReadError(StreamgaugeError, RuntimeError):
    """Kafka can't give what was requested, and waiting won't mend it; the message says why and what to do."""


class NoAnswer(ReadError):
    """No broker has answered; a caller that can wait may try again."""


class PositionGone(ReadError):
    """An offset is not there; `lost` says which, without what to do."""

    def __init__(self, lost: str) -> None:
        super().__init__(
            f'{lost}; start from another, or set "auto.offset.reset" to "earliest" to skip what is lost'
        )
        self.lost = lost

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return type(self), (self.lost,)


class CorruptError(ReadError):
    """Bytes on a broker are not messages, and the reader was not set to skip such."""


CORRUPT = 2
"""Kafka's number for messages whose bytes are broken (``CORRUPT_MESSAGE``)."""


class Fault(NamedTuple):
    """An error that librdkafka reports: its code (``rd_kafka_resp_err_t``), its words, and where."""

    code: int
    text: str
    where: TopicPartition | None = None
    fatal: bool = False


class Poll(NamedTuple):
    """What one look at the queue gave.

    `ends` are partitions read to their end, with the offset that the next message will have at least. Where
    broken batches are skipped, `messages` may be none but a range of offsets that was (`Messages.broken`).
    """

    messages: Messages | None
    ends: dict[TopicPartition, int]
    faults: list[Fault]


class Source(Protocol):
    """A client that reads its assigned partitions, and nothing else."""

    def assign(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Read exactly these partitions, each from its offset."""

    def poll(self, limit: int, seconds: float) -> Poll:
        """At most `limit` messages, as soon as there are any, else nothing after some `seconds`."""

    def positions(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The next offset of those partitions that anything was read from, control records included."""

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Fetch no more of these for now."""

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Go on with these where `poll` left them."""

    def partitions(self, topic: str, seconds: float) -> list[int] | None:
        """A topic's partitions, or None if there is no such topic. Raises `ReadError` without an answer."""

    def watermarks(self, partition: TopicPartition, seconds: float) -> tuple[int, int]:
        """A partition's first offset and the one after its last. Raises `ReadError` without an answer."""

    def close(self) -> None:
        """Let go of everything; twice does no harm."""
