"""Sketching messages by partition: decodes them, cuts deltas at offsets, refuses what can't be counted."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ..formats.decode import Decoded
from ..formats.messages import Broken, Messages
from ..formats.retryable_error import Unavailable
from ..kafka.retry import Retry
from ..kafka.source import ReadError
from ..watermarks.position import Input
from .dead_letters import DeadLetter
from .delta import Delta
from .late_messages import LateMessage
from .partition_state import PartitionState

_PAUSE_SECONDS = 0.2
_MOST_RUNS = 64
"""Messages in more runs of a single partition than this are first sorted by partition."""


class Decoding(Protocol):
    """Decodes messages into rows."""

    def decoded(
        self, messages: Messages, wait: Callable[[Unavailable], None] | None = None
    ) -> Iterator[tuple[Messages, Decoded]]:
        """The messages in order, in parts, and the rows of each (`definition.sources.KafkaSource`)."""


class MessageObserver(Protocol):
    """Sees messages and refused ones, and warns about them (`message_warnings`)."""

    @property
    def texts(self) -> list[str]:
        """The warnings so far."""

    @property
    def example(self) -> str:
        """Why the first refused message can't be counted; empty if none was refused."""

    def observe(self, messages: Messages, decoded: Decoded) -> None:
        """Examine a batch of messages and its rows."""

    def refused(self, letter: DeadLetter) -> None:
        """Record a message that can't be counted."""

    def late(self, messages: Messages, rows: Sequence[int], late_us: np.ndarray) -> None:
        """Record late messages of a batch, each late by so many microseconds."""

    def report_due(self, messages: int = 20, rows: int = 1_000) -> None:
        """Log the warnings that are due."""


class PartitionBuffer:
    """A worker's state between two checkpoints: the progress of its partitions, and refused messages.

    `ends` are the offsets at which reading of partitions ends, or None. `ready` has deltas that had to be cut
    before the checkpoint, in order; `remarks` has the warnings about the messages. `alive` is called during
    the search for rows that fail, which may take long, and while something that the decoder needs is
    unreachable; that is retried until `stopping`, or not at all. Late messages are collected in `late` if
    `keeps_late` says so.
    """

    def __init__(
        self,
        remarks: MessageObserver,
        ends: Mapping[Input, int] | None = None,
        alive: Callable[[], None] | None = None,
        stopping: Callable[[], bool] | None = None,
        keeps_late: bool = False,
    ) -> None:
        self._keeps_late = keeps_late
        self._ends = ends
        self._alive = alive
        self._patience = None if stopping is None else Retry("decode messages", stopping)
        self.remarks = remarks
        self.progress: dict[Input, PartitionState] = {}
        self.ready: list[Delta] = []
        self.dead_letters: list[DeadLetter] = []
        self.late: list[LateMessage] = []
        self.dead_bytes = 0
        self._cuts: dict[Input, list[int]] = {}

    def add_partition(self, progress: PartitionState, cuts: list[int]) -> None:
        """Add a partition. Its deltas end at each offset in `cuts`, and elsewhere."""
        self.progress[progress.input] = progress
        self._cuts[progress.input] = sorted(cuts)

    def forget(self) -> None:
        """Drop everything that was not delivered; another worker rereads it."""
        self.progress.clear()
        self._cuts.clear()
        self.clear()

    def release(self, inputs: Collection[Input]) -> None:
        """Drop the state of some partitions, which another worker has now."""
        for where in inputs:
            self.progress.pop(where, None)
            self._cuts.pop(where, None)
        self.clear(inputs)

    def clear(self, inputs: Collection[Input] | None = None) -> None:
        """Forget the deltas that were ready, for some partitions or for all: they are delivered."""
        self.ready = [] if inputs is None else [d for d in self.ready if d.input not in inputs]
        self.dead_letters = (
            [] if inputs is None else [letter for letter in self.dead_letters if letter.input not in inputs]
        )
        self.late = [] if inputs is None else [one for one in self.late if one.letter.input not in inputs]
        self.dead_bytes = sum(one.size for one in self.dead_letters) + sum(one.size for one in self.late)

    def sketch(self, source: Decoding, messages: Messages) -> None:
        """Sketch messages decoded by `source`, except of unrecovered partitions or out of range."""
        if messages.broken is not None:
            self.skip(messages.broken)
            return
        for part, decoded in self.decoded(source, by_partition(messages)):
            self.add(part, decoded)
        self.remarks.report_due()

    def decoded(self, source: Decoding, messages: Messages) -> Iterator[tuple[Messages, Decoded]]:
        """Decode messages with `source`, retrying while something that it needs is unreachable."""
        wait = None if self._patience is None else self._wait
        for part, decoded in source.decoded(messages, wait):
            if self._patience is not None:
                self._patience.done()
            yield part, decoded

    def add(self, messages: Messages, decoded: Decoded) -> None:
        """Sketch decoded messages; those of a partition are in order."""
        self.remarks.observe(messages, decoded)
        for low, high in messages.runs():
            where = Input(*messages.topic_partition(low))
            if where in self.progress:
                _check_order(where, messages.offset[low:high])
                self._sketch_run(where, messages, decoded, low, high)

    def recall(self, messages: Messages, decoded: Decoded) -> None:
        """Remember messages that were counted before their partitions were recovered; ignore all others."""
        for low, high in messages.runs():
            where = Input(*messages.topic_partition(low))
            progress = self.progress.get(where)
            if progress is not None and progress.recall_offset < progress.next_offset:
                _recall(progress, messages, decoded, low, high)

    def _wait(self, error: Unavailable) -> None:
        assert self._patience is not None
        if self._alive is not None:
            self._alive()
        self._patience.still(str(error))
        time.sleep(_PAUSE_SECONDS)

    def skip_to(self, where: Input, offset: int) -> None:
        """Record that only transaction markers or gaps are left before `offset`."""
        progress = self.progress[where]
        while self._cuts[where] and self._cuts[where][0] <= offset:
            progress.skip(self._cuts[where].pop(0))
            self.ready.append(progress.delta())
        progress.skip(offset)

    def leave_out(self, where: Input, offset: int) -> None:
        """Skip the messages before `offset` on request: they are not read, and counted as skipped."""
        progress, cuts = self.progress[where], self._cuts[where]
        while progress.next_offset < offset:
            next_offset = min([offset, *cuts[:1]])
            progress.leave_out(next_offset)
            self.skip_to(where, next_offset)

    def end_of(self, where: Input) -> int | None:
        """The offset at which reading of a partition ends, or None."""
        return None if self._ends is None else self._ends.get(where, 0)

    def _sketch_run(self, where: Input, messages: Messages, decoded: Decoded, low: int, high: int) -> None:
        progress, offsets = self.progress[where], messages.offset
        if progress.recall_offset < progress.next_offset:
            _recall(progress, messages, decoded, low, high)
        low += int(np.searchsorted(offsets[low:high], progress.next_offset))
        end = self.end_of(where)
        if end is not None:
            high = low + int(np.searchsorted(offsets[low:high], end))
        cuts = self._cuts[where]
        while low < high and cuts and cuts[0] <= offsets[high - 1]:
            middle = low + int(np.searchsorted(offsets[low:high], cuts[0]))
            self._sketch(progress, messages, decoded, low, middle)
            self.skip_to(where, cuts[0])
            low = middle
        self._sketch(progress, messages, decoded, low, high)

    def _sketch(
        self, progress: PartitionState, messages: Messages, decoded: Decoded, low: int, high: int
    ) -> None:
        if low == high:
            return
        following = int(messages.offset[high - 1]) + 1
        first, last = np.searchsorted(decoded.refused, [low, high])
        for at in range(first, last):
            self._refuse(progress.input, messages, int(decoded.refused[at]), decoded.reasons[at])
        skipped = np.searchsorted(decoded.skipped, [low, high])
        rows = decoded.rows
        low, high, numbers = _rows(decoded, low, high)

        def refuse(refused: np.ndarray, reason: str) -> None:
            for row in (refused + low if rows is None else numbers[refused]).tolist():
                self._refuse(progress.input, messages, row, reason)

        def late_messages(late_rows: np.ndarray, late_us: np.ndarray) -> None:
            places = (late_rows + low if rows is None else numbers[late_rows]).tolist()
            self.remarks.late(messages, places, late_us)
            if not self._keeps_late:
                return
            for row, us in zip(places, late_us.tolist()):
                self.late.append(LateMessage.of(progress.input, messages, row, us))
                self.dead_bytes += self.late[-1].size

        if low < high:
            stamps = messages.timestamp[numbers]
            frame, offsets = decoded.frame.slice(low, high - low), messages.offset[numbers]
            progress.add(frame, stamps, offsets, following, refuse, late_messages)
        progress.skip(following, int(last - first), int(skipped[1] - skipped[0]))

    def skip(self, broken: Broken) -> None:
        """Count offsets whose messages can't be read as dead letters, with one letter for the range."""
        where = Input(broken.topic, broken.partition)
        progress, end = self.progress.get(where), self.end_of(where)
        if progress is None:
            return
        last = broken.next if end is None else min(broken.next, end)
        cuts = self._cuts[where]
        while progress.next_offset < last:
            first, next_offset = max(broken.first, progress.next_offset), min([last, *cuts[:1]])
            if first < next_offset:
                self.dead_letters.append(DeadLetter.of_range(broken, first, next_offset))
                self.dead_bytes += self.dead_letters[-1].size
            progress.skip(next_offset, max(0, next_offset - first))
            self.skip_to(where, next_offset)

    def _refuse(self, where: Input, messages: Messages, row: int, reason: str) -> None:
        if self._alive is not None:
            self._alive()
        letter = DeadLetter.of(where, messages, row, reason)
        self.dead_letters.append(letter)
        self.remarks.refused(letter)
        self.dead_bytes += letter.size


def by_partition(messages: Messages) -> Messages:
    """The messages sorted by partition, if they are in too many runs.

    Within a partition they stay in order.
    """
    if len(messages.runs()) <= _MOST_RUNS:
        return messages
    return messages.select(np.lexsort((messages.partition, messages.topic)))


def _check_order(where: Input, offsets: np.ndarray) -> None:
    """Raise if offsets are out of order: rows that are on time would be considered late."""
    unordered = offsets[1:] <= offsets[:-1]
    if unordered.any():
        at = int(np.argmax(unordered))
        raise ReadError(
            f"{where} was read out of order: offset {offsets[at + 1]} came after {offsets[at]}; none of it "
            "was counted; start the run again"
        )


def _recall(progress: PartitionState, messages: Messages, decoded: Decoded, low: int, high: int) -> None:
    """Remember those of a partition's messages that were counted before it was recovered."""
    offsets = messages.offset
    first, last = low + np.searchsorted(offsets[low:high], [progress.recall_offset, progress.next_offset])
    # A message after them shows that there are no more.
    following = progress.next_offset if last < high else int(offsets[high - 1]) + 1
    low, high, numbers = _rows(decoded, int(first), int(last))
    frame = decoded.frame.slice(low, high - low)
    progress.recall(frame, messages.timestamp[numbers], offsets[numbers], following)


def _rows(decoded: Decoded, low: int, high: int) -> tuple[int, int, Any]:
    """The rows of the messages `low` … `high` − 1, and the numbers of those that are rows."""
    rows = decoded.rows
    if rows is None:
        return low, high, slice(low, high)
    first, last = (int(at) for at in np.searchsorted(rows, [low, high]))
    return first, last, rows[first:last]
