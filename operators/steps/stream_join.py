"""An input of a stream join: matches its rows with the other side's and buffers them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from ...sketches.core.errors import RunError
from ...sketches.core.lazy import pl
from ..definition.joining import StreamJoin
from ..definition.sources import FrameSource
from ..definition.stream import Stream
from ..steps.row_origin import RowOrigin
from ..watermarks.partition_watermark import PartitionTime
from ..windows.window import EARLIEST
from .join_buffer import KeyedRows, keyed_rows
from .join_state import JoinState
from .row_steps import Refuse, RowSteps, Stepped


@dataclass(frozen=True, slots=True)
class JoinedRows:
    """Rows of the result: the required columns, their times, and their origin.

    `reached` is the watermark that a window must end after to count a row: for a pair, the later one.
    """

    frame: pl.DataFrame
    times: np.ndarray
    place: RowOrigin
    reached: np.ndarray


@dataclass(frozen=True, slots=True)
class TimelyRows:
    """Rows of one input that are on time, after the steps before the join, and the times of each.

    `reached` and `offsets` are indexed by the numbers of the caller's rows, `before` is the partition's time
    before these rows.
    """

    left: Stepped
    times: np.ndarray
    reached: np.ndarray | None
    offsets: np.ndarray
    before: PartitionTime


@dataclass(slots=True)
class Tally:
    """The outcome of messages: how many were counted, now or earlier, and refused.

    `times` has a row's time for each counted message; `keyless` are the offsets of messages that were counted
    without buffering.
    """

    counted: int = 0
    refused: int = 0
    times: list[np.ndarray] = field(default_factory=list)
    keyless: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Unpaired:
    """Rows that have no partner if no more rows arrive, and their messages that aren't counted yet.

    `offsets` and `times` are those of the messages, with the time of one row each.
    """

    rows: list[JoinedRows]
    offsets: np.ndarray
    times: np.ndarray


@dataclass(frozen=True, slots=True)
class Entered:
    """Rows that were buffered by a side, from row `first` on, and those without a key, which aren't buffered.

    The numbers are those of the caller's rows.
    """

    keyed: KeyedRows
    numbers: np.ndarray
    first: int
    keyless: KeyedRows
    keyless_numbers: np.ndarray


class Join(Protocol):
    """An input's part in a join: one side, or both sides of a stream that is joined with itself.

    `before` are the steps of its rows before they are matched, `size` is the bytes of buffered rows.
    """

    before: RowSteps

    @property
    def size(self) -> int: ...  # noqa: D102

    def replay(self, offset: int, time: PartitionTime) -> tuple[int, PartitionTime]:
        """See `JoinState.replay`."""

    def join(self, rows: TimelyRows, refuse: Refuse, tally: Tally) -> Iterator[JoinedRows]:
        """Match rows with the buffered ones, buffer them, and return the pairs."""

    def recall(self, rows: TimelyRows) -> None:
        """Restore earlier rows: like `join`, but nothing is emitted or refused."""

    def unpaired(self) -> Unpaired:
        """The rows that have no partner if no more rows arrive; they stay buffered."""


class JoinSide:
    """One side of a join: the steps of its stream before the join, and those after it."""

    def __init__(self, stream: Stream, pairing: JoinState, side: int | None = None) -> None:
        at = next(at for at, step in enumerate(stream.steps) if isinstance(step, StreamJoin))
        step = stream.steps[at]
        assert isinstance(step, StreamJoin)
        self.side, self._source = step.side if side is None else side, step.source
        self.pairing = pairing
        before = replace(stream, steps=stream.steps[:at], keys=(), aggregates={})
        joined = FrameSource(self._source.schema)
        self.before = RowSteps(before, self._source.sides[self.side])
        self._after = RowSteps(replace(stream, source=joined, time=None, steps=stream.steps[at + 1 :]))

    @property
    def size(self) -> int:
        """The bytes of this side's buffered rows."""
        return self.pairing.sides[self.side].size

    def replay(self, offset: int, time: PartitionTime) -> tuple[int, PartitionTime]:
        """See `JoinState.replay`."""
        return self.pairing.replay(self.side, offset, time)

    def join(self, rows: TimelyRows, refuse: Refuse, tally: Tally) -> Iterator[JoinedRows]:
        """Match rows with the buffered ones, buffer them, and return the pairs.

        If a later step fails on a pair, or on an unmatched row, that result is dropped, and the caller's row
        is refused.
        """
        assert all(self.pairing.recalled), "rows of one side were judged before the other was known again"
        yield from self._join(rows, refuse, tally)
        yield from self.emit_unmatched(tally)
        self.pairing.forget()

    def recall(self, rows: TimelyRows) -> None:
        """Restore earlier rows: like `join`, but nothing is emitted or refused."""
        for _ in self._join(rows, say_nothing, Tally()):
            pass
        self.pairing.forget()

    def unpaired(self) -> Unpaired:
        """See `Join`."""
        rows, at = self.pairing.sides[self.side], self.pairing.unpaired(self.side)
        rows_after = self._after.apply(self._source.alone(rows.gather(at), self.side), _fail)
        kept = at[rows_after.numbers]
        times, reached, offsets = (rows.column(name)[kept] for name in ("times", "reached", "offsets"))
        messages, firsts = np.unique(offsets, return_index=True)
        known = [self.pairing.is_counted(self.side, offset) for offset in messages.tolist()]
        fresh = ~np.array(known, bool)
        met = JoinedRows(
            rows_after.frame, times, RowOrigin(self.pairing.inputs[self.side].rank, offsets), reached
        )
        return Unpaired([met], messages[fresh], times[firsts[fresh]])

    def _join(self, rows: TimelyRows, refuse: Refuse, tally: Tally) -> Iterator[JoinedRows]:
        entered = self.enter(rows)
        if entered is None:
            return
        refusing = RefusedMessages(refuse, self.pairing, self.side, rows.offsets)
        yield from self.pairs(entered, refusing, tally)
        yield from self.without_partner(entered, refusing, tally)
        self.mark_refused(entered, refusing)
        tally.refused = len(refusing.refused)

    def enter(self, rows: TimelyRows) -> Entered | None:
        """Buffer the rows that have a key; None if there are none."""
        left, times, offsets = rows.left, rows.times, rows.offsets
        if not len(times):
            return None
        self.pairing.note(self.side, int(offsets[0]), rows.before, times)
        of_rows = np.full(len(times), EARLIEST) if rows.reached is None else rows.reached[left.numbers]
        came, known = keyed_rows(left.frame, self._source.on, times, of_rows, offsets[left.numbers])
        keyed = came if known.all() else came.keep(known)
        own = self.pairing.sides[self.side]
        first = len(own)
        own.append(keyed)
        return Entered(keyed, left.numbers[known], first, came.keep(~known), left.numbers[~known])

    def without_partner(
        self, entered: Entered, refusing: RefusedMessages, tally: Tally
    ) -> Iterator[JoinedRows]:
        """If unmatched rows are emitted, emit those without a key, which have no partner."""
        if self._source.gives_alone(self.side):
            self._try_alone(entered, refusing)
            yield from self._keyless(entered.keyless, entered.keyless_numbers, refusing, tally)

    def mark_refused(self, entered: Entered, refusing: RefusedMessages) -> None:
        """Record that refused messages are neither counted nor emitted later."""
        own, bad = self.pairing.sides[self.side], np.isin(entered.numbers, list(refusing.refused))
        own.column("counted")[entered.first :] |= bad
        own.column("given")[entered.first :] |= bad

    def emit_unmatched(self, tally: Tally) -> Iterator[JoinedRows]:
        """Emit the rows of both sides that have waited long enough."""
        for side, rows in enumerate(self.pairing.sides):
            due = self.pairing.due(side)
            if not len(due):
                continue
            rows.column("given")[due] = True
            result = self._after.apply(self._source.alone(rows.gather(due), side), _fail)
            kept = due[result.numbers]
            times, reached, offsets = (rows.column(name)[kept] for name in ("times", "reached", "offsets"))
            self._count_once(side, kept, times, tally)
            yield JoinedRows(result.frame, times, RowOrigin(self.pairing.inputs[side].rank, offsets), reached)

    def pairs(self, entered: Entered, refusing: RefusedMessages, tally: Tally) -> Iterator[JoinedRows]:
        """The pairs of new rows with the other side's buffered rows."""
        keyed, numbers, first = entered.keyed, entered.numbers, entered.first
        own, other = self.pairing.sides[self.side], self.pairing.sides[1 - self.side]
        for low, high, mine, theirs in other.partners(keyed):
            if not len(mine):
                continue
            part = keyed.slice(low, high)
            own.column("paired")[first + low + mine] = True
            other.column("paired")[theirs] = True
            frames = part.frame[mine], other.gather(theirs)
            frame = self._source.paired(*(frames if self.side == 0 else frames[::-1]))
            of_pairs = numbers[low + mine]
            result = refusing.left(self._after.apply(frame, refusing.of(of_pairs)), of_pairs)
            kept = result.numbers
            if not len(kept):
                continue
            mine, theirs = mine[kept], theirs[kept]
            times = np.maximum(part.times[mine], other.column("times")[theirs])
            before = np.maximum(part.reached[mine], other.column("reached")[theirs])
            offsets = part.offsets[mine] if self.side == 0 else other.column("offsets")[theirs]
            self._count_once(self.side, first + low + mine, times, tally)
            self._count_once(1 - self.side, theirs, times, tally)
            yield JoinedRows(result.frame, times, RowOrigin(self.pairing.inputs[0].rank, offsets), before)

    def _count_once(self, side: int, rows: np.ndarray, times: np.ndarray, tally: Tally) -> None:
        """Count the messages of these rows, each once."""
        held = self.pairing.sides[side]
        offsets, at = np.unique(held.column("offsets")[rows], return_index=True)
        fresh = self.pairing.mark_counted(side, offsets)
        tally.counted += int(fresh.sum())
        tally.times.append(times[at[fresh]])

    def _try_alone(self, entered: Entered, refusing: RefusedMessages) -> None:
        """Refuse rows that could not be emitted unmatched, while their messages are available."""
        rows, first = self.pairing.sides[self.side], entered.first
        alone = np.flatnonzero(~rows.column("paired")[first:])
        refuse = refusing.of(entered.numbers[alone])

        def refuse_rows(refused: np.ndarray, reason: str) -> None:
            rows.column("given")[first + alone[refused]] = True
            refuse(refused, reason)

        self._after.apply(self._source.alone(entered.keyed.frame[alone], self.side), refuse_rows)

    def _keyless(
        self, rows: KeyedRows, numbers: np.ndarray, refusing: RefusedMessages, tally: Tally
    ) -> Iterator[JoinedRows]:
        """Rows without a key, which never have a partner: emitted at once."""
        if not len(numbers):
            return
        alone = self._source.alone(rows.frame, self.side)
        result = refusing.left(self._after.apply(alone, refusing.of(numbers)), numbers)
        kept = result.numbers
        offsets, at = np.unique(rows.offsets[kept], return_index=True)
        fresh = self.pairing.mark_counted(self.side, offsets) & ~np.isin(offsets, list(tally.keyless))
        tally.keyless |= set(offsets.tolist())
        tally.counted += int(fresh.sum())
        tally.times.append(rows.times[kept][at[fresh]])
        place = RowOrigin(self.pairing.inputs[self.side].rank, rows.offsets[kept])
        yield JoinedRows(result.frame, rows.times[kept], place, rows.reached[kept])


class RefusedMessages:
    """Refuses whole messages, each once: if a step fails on one of a message's rows, none is emitted.

    A message with another row that was counted before is a dead letter as well, but stays counted.
    """

    def __init__(self, refuse: Refuse, pairing: JoinState, side: int, offsets: np.ndarray) -> None:
        self._refuse = refuse
        self._pairing, self._side = pairing, side
        self._offsets = offsets
        self._reported: set[int] = set()
        self.refused: set[int] = set()

    def of(self, numbers: np.ndarray) -> Refuse:
        """A function that refuses rows of the messages with these numbers."""

        def refuse_rows(rows: np.ndarray, reason: str) -> None:
            for number in set(numbers[rows].tolist()) - self._reported:
                self._reported.add(number)
                if not self._pairing.is_counted(self._side, int(self._offsets[number])):
                    self.refused.add(number)
                self._refuse(np.array([number]), reason)

        return refuse_rows

    def left(self, rows: Stepped, numbers: np.ndarray) -> Stepped:
        """The rows whose messages are not refused."""
        return rows.keep(~np.isin(numbers[rows.numbers], list(self.refused))) if self.refused else rows


def say_nothing(rows: np.ndarray, reason: str) -> None:
    """Refuse nothing: reread rows were refused before."""


def _fail(rows: np.ndarray, reason: str) -> None:
    raise RunError(f"a step after join fails on a row that it accepted when the row came: {reason}")
