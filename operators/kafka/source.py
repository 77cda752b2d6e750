"""The interface between a Kafka client and the reader: batches, ends and faults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from ...sketches.core.errors import StreamgaugeError
from ..formats.messages import Messages

TopicPartition = tuple[str, int]
"""A topic's name and a partition's number."""

EARLIEST, LATEST = -2, -1
"""Stand for a partition's beginning and its current end, in place of an offset."""


class ReadError(StreamgaugeError, RuntimeError):
    """Kafka can't return what was requested, and waiting won't help; the message says why and what to do."""


class NoAnswer(ReadError):
    """No broker has answered; a caller that can wait may try again."""


class PositionGone(ReadError):
    """An offset that no longer exists; `lost` says which, without advice."""

    def __init__(self, lost: str) -> None:
        super().__init__(
            f'{lost}; start from another, or set "auto.offset.reset" to "earliest" to skip what is lost'
        )
        self.lost = lost

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return type(self), (self.lost,)


class LogTruncated(ReadError):
    """A log ends before what was already read: its broker has lost messages, as after an unclean election.

    Messages of `where` were read up to `offset`; the log has the same ones only up to `end` (None: its leader
    doesn't know how far), written by leaders up to the epoch `epoch`.
    """

    def __init__(
        self, where: TopicPartition, offset: int, end: int | None, epoch: int = -1, more: str = ""
    ) -> None:
        topic, partition = where
        upto = "before that" if end is None else f"at offset {end}"
        super().__init__(
            f"the log of {topic}[{partition}] was truncated: it was read up to offset {offset}, but its "
            f"leader's copy of it ends {upto}, as after an unclean election (unclean.leader.election.enable)"
            + (more and f"; {more}")
        )
        self.where, self.offset, self.end, self.epoch, self.more = where, offset, end, epoch, more

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return type(self), (self.where, self.offset, self.end, self.epoch, self.more)


class CorruptError(ReadError):
    """A broker's bytes are not messages, and the reader was not set to skip them."""


TRUNCATED = -139
"""librdkafka's code for a log that ends before what was already read (``_LOG_TRUNCATION``)."""

CORRUPT = 2
"""Kafka's code for messages with broken bytes (``CORRUPT_MESSAGE``)."""


class LogPosition(NamedTuple):
    """An offset up to which a partition was read, and the epoch of the leader whose log it was; −1: unknown.

    A leader elected later can tell from the epoch whether its log has all messages before the offset.
    """

    offset: int
    epoch: int = -1


class Fault(NamedTuple):
    """An error that librdkafka reports: its code (``rd_kafka_resp_err_t``), its message, and its location."""

    code: int
    text: str
    where: TopicPartition | None = None
    fatal: bool = False
    end: LogPosition | None = None
    """The end of a truncated log, if its leader knows it."""


class Poll(NamedTuple):
    """The result of one poll of the queue.

    `ends` are partitions read to their end, with the lowest possible offset of their next message. If broken
    batches are skipped, `messages` may contain only a range of offsets (`Messages.broken`).
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
        """Those of these partitions whose logs end before the position, and where, if known.

        Call it only before `assign`. Raises `ReadError` without an answer.
        """

    def epochs(self) -> dict[TopicPartition, int]:
        """The leader epoch of what was last read from each partition, if known."""

    def poll(self, limit: int, seconds: float) -> Poll:
        """At most `limit` messages, as soon as there are any, else nothing after `seconds`."""

    def caught_up(self) -> bool:
        """Whether all partitions' ends, as last reported, are read; False if the client doesn't know."""

    def positions(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The next offset of those partitions that anything was read from, control records included."""

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop fetching these for now."""

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Resume these partitions at the position of the last `poll`."""

    def partitions(self, topic: str, seconds: float) -> list[int] | None:
        """A topic's partitions, or None if there is no such topic. Raises `ReadError` without an answer."""

    def watermarks(self, partition: TopicPartition, seconds: float) -> tuple[int, int]:
        """A partition's first offset and its end. Raises `ReadError` without an answer."""

    def close(self) -> None:
        """Close all connections; may be called twice."""
