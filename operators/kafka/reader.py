"""Reading assigned partitions of Kafka as batches of columns."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from confluent_kafka import KafkaError

from ..formats.messages import Broken, Messages
from ..secrets import without_secrets
from .client_config import reader_config
from .confluent_source import PlainSource
from .faults import refused
from .raw_source import RawSource
from .source import (
    CORRUPT,
    EARLIEST,
    LATEST,
    TRUNCATED,
    CorruptError,
    Fault,
    LogPosition,
    LogTruncated,
    NoAnswer,
    PositionGone,
    ReadError,
    Source,
    TopicPartition,
)

__all__ = [
    "EARLIEST",
    "LATEST",
    "CorruptError",
    "LogPosition",
    "LogTruncated",
    "NoAnswer",
    "PositionGone",
    "ReadError",
    "Reader",
]

log = logging.getLogger("streamgauge.kafka")

Corrupt = Literal["stop", "skip"]
"""What to do if a broker's bytes are broken."""

_ANSWER_SECONDS = 30.0
"""How long brokers may take to answer before the request fails."""
_BATCH_BYTES = 16 << 20
"""About how many bytes of values a batch has, by the mean size in the previous one. Larger arrays are not
reused (`array_pool`), and the system clears new ones first."""
_FIRST_MESSAGES = 200
"""The most messages in the first batch, when their size isn't known yet."""
_SAY_AGAIN_SECONDS = 10.0

# librdkafka's errors (rd_kafka_resp_err_t) that waiting can't fix; all others end when brokers return.
_POSITION_GONE = {-140, 1}
_NO_TOPIC = {3, -188, -190}
_NOT_ALLOWED = {-169, 29, 31, 58}
_NO_GROUP = 30
"""No right to use the group: the client library requires a group name, although a reader is in no group."""


_SLOWER: set[str] = set()
"""The reasons already logged in this process for not reading raw batches."""


class Reader:
    """Reads partitions from given offsets, in order, and tracks its positions.

    `assignments` maps (topic, partition) to the offset of the first message, or to `EARLIEST` or `LATEST`.
    `config` has librdkafka's settings, at least ``bootstrap.servers``; only committed messages are read
    unless ``isolation.level`` says otherwise. Raw record batches are read if that client supports all
    settings, otherwise ``consume()`` is used; `source` forces one of them.

    While brokers are unreachable it waits, logs that once (logger ``streamgauge.kafka``, `waiting`), and
    continues when they return. Raises `ReadError` if waiting won't help: no broker at the start, a topic or
    partition that doesn't exist, a position that no longer exists, no permission. Only one thread at a time
    may read.

        with Reader({"bootstrap.servers": "box:9092"}, {("posts", 0): EARLIEST}) as reader:
            while (messages := reader.read()) is not None:
                ...
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        assignments: Mapping[TopicPartition, int],
        headers: bool = False,
        source: Literal["raw", "plain"] | None = None,
        corrupt: Corrupt = "stop",
    ) -> None:
        whole = reader_config(config)
        self._address = str(config.get("bootstrap.servers") or config.get("metadata.broker.list"))
        self._source = _source(whole, headers, source, corrupt == "skip")
        self._next: dict[TopicPartition, int] = {}
        # Messages that were fetched and not returned: those beyond the end of a bounded read.
        self._held_back: list[Messages] = []
        self._most = _FIRST_MESSAGES
        self._paused: set[TopicPartition] = set()
        self._whole: set[TopicPartition] = set()
        self.waiting: str | None = None
        self._warned, self._warned_at = False, -math.inf
        try:
            self.assign(assignments)
        except BaseException:
            self._source.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def assign(
        self, assignments: Mapping[TopicPartition, int], known: Mapping[TopicPartition, LogPosition] = {}
    ) -> None:
        """Read these partitions instead of the previous ones.

        `known` is how far some of them had been read, at or after their offsets. Raises `LogTruncated` if a
        log has lost any of that, `NoAnswer` if no leader answers.
        """
        self._check_exist(assignments)
        known = {where: at for where, at in known.items() if where in assignments and at.epoch >= 0}
        # What this reader has read itself, its client checks while reading.
        read = {where for where in self._whole if where in known and known[where].offset <= self._next[where]}
        unchecked = {where: at for where, at in known.items() if where not in read}
        for where, end in self.truncated(unchecked).items():
            raise _truncated(where, known[where].offset, end)
        offsets = dict(assignments)
        for where, offset in assignments.items():
            if offset < 0:
                first, last = self._source.watermarks(where, _ANSWER_SECONDS)
                offsets[where] = first if offset == EARLIEST else last
        self._held_back, self._paused, self._next = [], set(), offsets
        self._whole = set(offsets)
        # Until something arrives for a partition, the library still reports its previous position.
        self._heard: set[TopicPartition] = set()
        epochs = {where: at.epoch for where, at in known.items()}
        self._source.assign({where: LogPosition(at, epochs.get(where, -1)) for where, at in offsets.items()})

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Continue from other offsets in some of the assigned partitions."""
        self._check_assigned(offsets)
        self.assign({**self.positions(), **offsets})

    def read(self, max_messages: int = 100_000, timeout: float = 1.0) -> Messages | None:
        """The next messages, as soon as there are any; None after `timeout` seconds without any.

        There are at most `max_messages`, and about 16 MiB of values.
        """
        self._pause(set())
        if self._held_back:
            return self._delivered(self._from_kept(max_messages))
        deadline = time.monotonic() + timeout
        while True:
            messages, ends = self._poll(max_messages, deadline - time.monotonic())
            if messages is not None:
                self._delivered(messages)
            self._advance(ends)
            if messages is not None or time.monotonic() >= deadline:
                return messages

    def read_to(
        self,
        ends: Mapping[TopicPartition, int],
        max_messages: int = 100_000,
        timeout: float | None = 120.0,
    ) -> Iterator[Messages]:
        """Every message before the end offset of each partition in `ends`, and no others.

        Finishes when nothing more can arrive before the end offsets, whether the offsets in between are
        messages, transaction markers, aborted messages or gaps left by compaction. Messages fetched beyond
        them are returned by the next read. Raises `ReadError` after `timeout` seconds (None: never) without
        progress.
        """
        self._check_assigned(ends)
        self.positions()
        left = {where: end for where, end in ends.items() if self._next[where] < end}
        fetched, self._held_back = self._held_back, []
        moved = time.monotonic()
        try:
            while left:
                before = dict(self._next)
                reached: Mapping[TopicPartition, int] = {}
                if fetched:
                    messages: Messages | None = fetched.pop(0)
                else:
                    self._pause(set(self._next) - set(left))
                    messages, reached = self._poll(max_messages, 0.1)
                inside = None if messages is None else self._before(messages, left)
                if inside is not None:
                    yield self._delivered(inside)
                if not fetched:
                    self._advance(reached)
                    self._advance(self._source.positions(self._heard & set(left)))
                for where in self._held() & set(left):
                    self._next[where] = left[where]
                left = {where: end for where, end in left.items() if self._next[where] < end}
                if messages is not None or self._next != before:
                    moved = time.monotonic()
                elif timeout is not None and time.monotonic() - moved > timeout:
                    raise self._stuck(left, timeout)
        finally:
            self._held_back += fetched

    def positions(self) -> dict[TopicPartition, int]:
        """The offset from which another reader would continue without loss or repetition, for each
        partition."""
        self._advance(self._source.positions(self._heard))
        return dict(self._next)

    def epochs(self) -> dict[TopicPartition, int]:
        """The epoch of the leader whose log was last read, for each partition, if known."""
        return self._source.epochs()

    def caught_up(self) -> bool:
        """Whether it has returned everything up to the partitions' ends, as brokers last reported them.

        False if the client doesn't report that.
        """
        return not self._held_back and self._source.caught_up()

    def truncated(
        self, known: Mapping[TopicPartition, LogPosition]
    ) -> dict[TopicPartition, LogPosition | None]:
        """Those of these partitions whose logs end before their positions, and where, if known.

        Call it before anything is assigned. Raises `NoAnswer` if no leader answers.
        """
        return self._source.truncated(known, _ANSWER_SECONDS)

    def end_offsets(self) -> dict[TopicPartition, int]:
        """The offset after each partition's last readable message."""
        return {where: self._source.watermarks(where, _ANSWER_SECONDS)[1] for where in self._next}

    def partitions(self, topic: str) -> list[int]:
        """A topic's partitions. Raises `ReadError` for a missing topic, `NoAnswer` without an answer."""
        try:
            numbers = self._source.partitions(topic, _ANSWER_SECONDS)
        except ReadError as error:
            kind = NoAnswer if isinstance(error, NoAnswer) else ReadError
            raise kind(
                f"no broker at {self._address} answered within {_ANSWER_SECONDS:.0f} s; "
                f"is it running, and is that its address? ({error})"
            ) from None
        if numbers is None:
            raise ReadError(
                f"there is no topic {topic!r} at {self._address}; create it, or check name and address"
            )
        return numbers

    def close(self) -> None:
        """Close the connection; may be called twice."""
        self._source.close()

    def _check_exist(self, assignments: Iterable[TopicPartition]) -> None:
        for topic in sorted({topic for topic, _ in assignments}):
            known = self.partitions(topic)
            if missing := sorted({p for t, p in assignments if t == topic} - set(known)):
                raise ReadError(
                    f"topic {topic!r} has no partition {missing[0]}, only 0 to {len(known) - 1}; "
                    "leave it out, or give the topic more partitions"
                )

    def _check_assigned(self, partitions: Iterable[TopicPartition]) -> None:
        if unknown := set(partitions) - set(self._next):
            topic, partition = min(unknown)
            raise ReadError(f"{topic}[{partition}] isn't assigned to this reader; assign it first")

    def _pause(self, partitions: set[TopicPartition]) -> None:
        """Stop fetching these partitions, and resume all others."""
        if partitions != self._paused:
            self._source.pause(partitions - self._paused)
            self._source.resume(self._paused - partitions)
            self._paused = partitions

    def _poll(self, limit: int, seconds: float) -> tuple[Messages | None, dict[TopicPartition, int]]:
        deadline = time.monotonic() + seconds
        while True:
            messages, ends, faults = self._source.poll(
                min(limit, self._most), max(0.0, deadline - time.monotonic())
            )
            if messages is not None and len(messages):
                mean = float((messages.ends - messages.starts).mean())
                self._most = max(1, int(_BATCH_BYTES / max(mean, 1.0)))
            for fault in faults:
                self._consider(fault)
            self._heard.update(ends, () if messages is None else _places(messages))
            # An end that was recorded before the brokers failed doesn't mean that they are back.
            if (messages is not None or (ends and not faults)) and self.waiting is not None:
                if self._warned:
                    log.warning("Kafka at %s is back", self._address)
                self.waiting, self._warned = None, False
            if messages is not None or ends or time.monotonic() >= deadline:
                return messages, ends

    def _consider(self, fault: Fault) -> None:
        """Wait after a temporary fault, raise for any other."""
        fault = fault._replace(text=without_secrets(fault.text))
        if fault.code == _NO_GROUP:
            return
        at = "" if fault.where is None else f" {fault.where[0]}[{fault.where[1]}]"
        if fault.code == CORRUPT:
            raise CorruptError(
                f"reading{at} at {self._address}: {fault.text}. Nothing from there on was counted; to "
                'continue after it, with the lost offsets among the dead letters, read with corrupt="skip"'
            )
        if fault.code in _NOT_ALLOWED:
            topic = "" if fault.where is None else fault.where[0]
            refusal = refused(KafkaError(fault.code, fault.text), f"let this client read{at}", topic=topic)
            raise ReadError(f"{refusal} (at {self._address})")
        if fault.fatal:
            raise ReadError(f"Kafka at {self._address} refuses{at}: {fault.text}; check the settings")
        if fault.code == TRUNCATED and fault.where is not None:
            self._whole.discard(fault.where)
            raise _truncated(fault.where, self._next[fault.where], fault.end)
        if fault.code in _POSITION_GONE and fault.where is not None:
            raise PositionGone(
                f"offset {self._next.get(fault.where)} of{at} no longer exists, or does not exist yet: "
                f"{fault.text}"
            )
        if fault.code in _NO_TOPIC and fault.where is not None:
            # Also reported for a broker that has just returned: ask again.
            self._check_exist([fault.where])
        # If one of several brokers is unreachable, this recurs between the others' messages.
        if self.waiting is None and time.monotonic() - self._warned_at > _SAY_AGAIN_SECONDS:
            log.warning("waiting for Kafka at %s: %s", self._address, fault.text)
            self._warned, self._warned_at = True, time.monotonic()
        self.waiting = fault.text

    def _delivered(self, messages: Messages) -> Messages:
        """Advance positions past messages that are being returned."""
        if (broken := messages.broken) is not None:
            self._next[broken.topic, broken.partition] = broken.next
            log.warning(
                "skipped the offsets %s to %s of %s[%s], which can't be read: %s",
                *(broken.first, broken.next - 1, broken.topic, broken.partition, broken.reason),
            )
        for low, high in messages.runs():
            where = messages.topic_partition(low)
            if messages.offset[low] < self._next[where]:  # a client that restarted by itself
                self._whole.discard(where)
                raise LogTruncated(where, self._next[where], None)
            self._next[where] = int(messages.offset[high - 1]) + 1
        return messages

    def _advance(self, positions: Mapping[TopicPartition, int]) -> None:
        """Advance past offsets that aren't messages, such as markers, if no messages are held back."""
        held = self._held()
        for where, position in positions.items():
            if where in self._next and where not in held:
                self._next[where] = max(self._next[where], position)

    def _held(self) -> set[TopicPartition]:
        return {where for messages in self._held_back for where in _places(messages)}

    def _from_kept(self, limit: int) -> Messages:
        first = self._held_back.pop(0)
        if len(first) > limit:
            self._held_back.insert(0, first.slice(limit, len(first)))
            first = first.slice(0, limit)
        return first

    def _before(self, messages: Messages, ends: Mapping[TopicPartition, int]) -> Messages | None:
        """The messages before their ends; the others are held back."""
        if messages.broken is not None:
            return self._broken_before(messages.broken, ends)
        limit = np.full(len(messages), -1, np.int64)
        for where in _partitions(messages):
            limit[_rows(messages, where)] = ends.get(where, -1)
        inside = messages.offset < limit
        if inside.all():
            return messages
        self._held_back.append(messages.select(~inside))
        return messages.select(inside) if inside.any() else None

    def _broken_before(self, broken: Broken, ends: Mapping[TopicPartition, int]) -> Messages | None:
        end = max(ends.get((broken.topic, broken.partition), -1), broken.first)
        if end < broken.next:
            self._held_back.append(Messages.skipped(replace(broken, first=end)))
        inside = replace(broken, next=min(end, broken.next))
        return Messages.skipped(inside) if inside.first < inside.next else None

    def _stuck(self, left: Mapping[TopicPartition, int], seconds: float) -> ReadError:
        where, end = min(left.items())
        because = f" ({self.waiting})" if self.waiting else ""
        return ReadError(
            f"{where[0]}[{where[1]}] gave nothing for {seconds:.0f} s at offset {self._next[where]}, "
            f"before the end at {end}{because}; was the topic truncated or recreated?"
        )


def _source(config: Mapping[str, Any], headers: bool, source: str | None, skip: bool) -> Source:
    """The client that reads; by default the one for raw batches."""
    try:
        return PlainSource(config, headers) if source == "plain" else RawSource(config, headers, skip)
    except ReadError as error:
        if source is not None:
            raise
        plain = PlainSource(config, headers)
        if str(error) not in _SLOWER:
            _SLOWER.add(str(error))
            log.warning("reading message by message, which is several times slower: %s", error)
        return plain


def _truncated(where: TopicPartition, offset: int, end: LogPosition | None) -> LogTruncated:
    return LogTruncated(where, offset, None) if end is None else LogTruncated(where, offset, *end)


def _places(messages: Messages) -> list[TopicPartition]:
    """The partitions of a batch."""
    broken = messages.broken
    return _partitions(messages) if broken is None else [(broken.topic, broken.partition)]


def _partitions(messages: Messages) -> list[TopicPartition]:
    """The partitions with messages in a batch."""
    return list(dict.fromkeys(messages.topic_partition(low) for low, _ in messages.runs()))


def _rows(messages: Messages, where: TopicPartition) -> np.ndarray:
    topic, partition = where
    rows: np.ndarray = messages.partition == partition
    return rows if len(messages.topics) == 1 else rows & (messages.topic == messages.topics.index(topic))
