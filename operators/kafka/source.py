"""What a way of reading Kafka gives the reader: batches, ends and faults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol

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


class LogTruncated(ReadError):
    """A log ends before what was read of it: its broker has lost messages, as after an unclean election.

    Messages of `where` were read up to `offset`; the log has the same ones up to `end` only (None: its leader
    doesn't know how far), written by leaders up to the epoch `epoch`.
    """

    def __init__(
        self, where: TopicPartition, offset: int, end: int | None, epoch: int = -1, more: str = ""
    ) -> None:
        topic, partition = where
        upto = "before that" if end is None else f"at offset {end}"
        super().__init__(
            f"the log of {topic}[{partition}] was truncated: it was read up to offset {offset}, and what its "
            f"leader has of that ends {upto}, as after an unclean election (unclean.leader.election.enable)"
            + (more and f"; {more}")
        )
        self.where, self.offset, self.end, self.epoch, self.more = where, offset, end, epoch, more

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return type(self), (self.where, self.offset, self.end, self.epoch, self.more)


class CorruptError(ReadError):
    """Bytes on a broker are not messages, and the reader was not set to skip such."""


TRUNCATED = -139
"""librdkafka's number for a log that ends before what was read of it (``_LOG_TRUNCATION``)."""

CORRUPT = 2
"""Kafka's number for messages whose bytes are broken (``CORRUPT_MESSAGE``)."""


class LogPosition(NamedTuple):
    """An offset up to which a partition was read, and the epoch of the leader whose log it was; −1: unknown.

    A leader that was elected later tells by the epoch whether its log has all messages before the offset.
    """

    offset: int
    epoch: int = -1


class Fault(NamedTuple):
    """An error that librdkafka reports: its code (``rd_kafka_resp_err_t``), its words, and where."""

    code: int
    text: str
    where: TopicPartition | None = None
    fatal: bool = False
    end: LogPosition | None = None
    """Where the log ends that has lost what was read of it, if its leader knows."""


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

    def assign(self, positions: Mapping[TopicPartition, LogPosition]) -> None:
        """Read exactly these partitions, each from its offset."""

    def truncated(
        self, positions: Mapping[TopicPartition, LogPosition], seconds: float
    ) -> dict[TopicPartition, LogPosition | None]:
        """Those of these partitions whose logs end before the position, and where, if that is known.

        Before `assign` only. Raises `ReadError` without an answer.
        """

    def epochs(self) -> dict[TopicPartition, int]:
        """The leader's epoch of what was read last of each partition, where it is known."""

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
