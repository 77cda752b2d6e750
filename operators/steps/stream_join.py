"""An input of a stream join: matches its rows with the other side's and buffers them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from ...sketches.core.errors import RunError
from ...sketches.core.lazy import pl
from ..definition.joining import StreamJoin
from ..definition.sources import FrameSource
from ..definition.stream import Stream
from ..steps.row_origin import RowOrigin
from ..watermarks.partition_watermark import PartitionTime
from ..windows.window import EARLIEST
from .join_buffer import JoinBuffer, KeyedRows, keyed_rows
from .join_state import JoinState
from .row_steps import Refuse, RowSteps, Stepped


@dataclass(frozen=True, slots=True)
class JoinedRows:
    """Rows of the result: the columns that are needed, their times, where they come from.

    `reached` is the watermark that a window must end after to count each: the later one of a pair's.
    """

    frame: pl.DataFrame
    times: np.ndarray
    place: RowOrigin
    reached: np.ndarray


@dataclass(frozen=True, slots=True)
class TimelyRows:
    """Rows of one input that are on time, after the steps before they meet, and the times of each.

    `reached` and `offsets` are by the numbers of the caller's rows, `before` is the partition's time before
    them.
    """

    left: Stepped
    times: np.ndarray
    reached: np.ndarray | None
    offsets: np.ndarray
    before: PartitionTime


@dataclass(slots=True)
class Tally:
    """What became of messages: how many that came now were counted and refused, and how many from before.

    `times` are those of all that were counted, of one row of each.
    """

    counted: int = 0
    moved: int = 0
    refused: int = 0
    times: list[np.ndarray] = field(default_factory=list)


class JoinSide:
    """One input's part in a pairing: the steps of its stream before rows meet, and those after."""

    def __init__(self, stream: Stream, pairing: JoinState) -> None:
        at = next(at for at, step in enumerate(stream.steps) if isinstance(step, StreamJoin))
        step = stream.steps[at]
        assert isinstance(step, StreamJoin)
        self.side, self._source = step.side, step.source
        self.pairing = pairing
        before = replace(stream, steps=stream.steps[:at], keys=(), aggregates={})
        joined = FrameSource(self._source.schema)
        self.before = RowSteps(before, self._source.sides[self.side])
        self._after = RowSteps(replace(stream, source=joined, time=None, steps=stream.steps[at + 1 :]))

    @property
    def size(self) -> int:
        """Bytes of the rows of this side that wait."""
        return self.pairing.sides[self.side].size

    def replay(self, offset: int, time: PartitionTime) -> tuple[int, PartitionTime]:
        """See `JoinState.replay`."""
        return self.pairing.replay(self.side, offset, time)

    def join(self, rows: TimelyRows, refuse: Refuse, tally: Tally) -> Iterator[JoinedRows]:
        """Match rows with the buffered ones, buffer them, and return the pairs.

        Where a later step fails on a pair, or on a row without a partner, that is left out, and the caller's
        row is refused.
        """
        assert all(self.pairing.recalled), "rows of one side were judged before the other was known again"
        yield from self._join(rows, refuse, tally)
        yield from self._emit_unmatched(tally, int(rows.offsets[0]))
        self.pairing.forget()

    def recall(self, rows: TimelyRows) -> None:
        """Know rows again that met before: as `join`, but nothing is given and none is refused."""
        for _ in self._join(rows, _say_nothing, Tally()):
            pass
        self.pairing.forget()

    def unpaired(self) -> tuple[JoinedRows, np.ndarray]:
        """This side's rows that find no partner if no row comes any more; they go on waiting for one.

        Also gives the event times of the messages among them that are not counted yet, of one row of each.
        """
        rows, at = self.pairing.sides[self.side], self.pairing.unpaired(self.side)
        rows_after = self._after.apply(self._source.alone(rows.gather(at), self.side), _fail)
        kept = at[rows_after.numbers]
        times, reached, offsets = (rows.column(name)[kept] for name in ("times", "reached", "offsets"))
        messages, firsts = np.unique(offsets, return_index=True)
        fresh = np.array([not rows.is_counted(offset) for offset in messages.tolist()], bool)
        met = JoinedRows(
            rows_after.frame, times, RowOrigin(self.pairing.inputs[self.side].rank, offsets), reached
        )
        return met, times[firsts[fresh]]

    def _join(self, rows: TimelyRows, refuse: Refuse, tally: Tally) -> Iterator[JoinedRows]:
        left, times, offsets = rows.left, rows.times, rows.offsets
        if not len(times):
            return
        self.pairing.note(self.side, int(offsets[0]), rows.before, times)
        of_rows = np.full(len(times), EARLIEST) if rows.reached is None else rows.reached[left.numbers]
        came, known = keyed_rows(left.frame, self._source.on, times, of_rows, offsets[left.numbers])
        keyed = came if known.all() else came.keep(known)
        own, numbers = self.pairing.sides[self.side], left.numbers[known]
        first = len(own)
        own.append(keyed)
        refusing = _RefusedMessages(refuse, own, offsets)
        yield from self._pairs(keyed, numbers, first, refusing, tally)
        if self._source.gives_alone(self.side):
            self._try_alone(keyed, numbers, first, refusing)
            yield from self._keyless(came.keep(~known), left.numbers[~known], refusing, tally)
        bad = np.isin(numbers, list(refusing.refused))
        own.column("counted")[first:] |= bad
        own.column("given")[first:] |= bad
        tally.refused = len(refusing.refused)

    def _emit_unmatched(self, tally: Tally, first_offset: int) -> Iterator[JoinedRows]:
        """What has waited long enough on both sides; rows from `first_offset` on have come now."""
        for side, rows in enumerate(self.pairing.sides):
            due = self.pairing.due(side)
            if not len(due):
                continue
            rows.column("given")[due] = True
            result = self._after.apply(self._source.alone(rows.gather(due), side), _fail)
            kept = due[result.numbers]
            times, reached, offsets = (rows.column(name)[kept] for name in ("times", "reached", "offsets"))
            self._count_once(side, kept, times, tally, first_offset if side == self.side else None)
            yield JoinedRows(result.frame, times, RowOrigin(self.pairing.inputs[side].rank, offsets), reached)

    def _pairs(
        self, keyed: KeyedRows, numbers: np.ndarray, first: int, refusing: _RefusedMessages, tally: Tally
    ) -> Iterator[JoinedRows]:
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
            self._count_once(self.side, first + low + mine, times, tally, int(keyed.offsets[0]))
            self._count_once(1 - self.side, theirs, times, tally, None)
            yield JoinedRows(result.frame, times, RowOrigin(self.pairing.inputs[0].rank, offsets), before)

    def _count_once(
        self, side: int, rows: np.ndarray, times: np.ndarray, tally: Tally, first_offset: int | None
    ) -> None:
        """Count the messages of these rows, each once; those before `first_offset` came earlier."""
        held = self.pairing.sides[side]
        offsets, at = np.unique(held.column("offsets")[rows], return_index=True)
        fresh = held.mark_counted(offsets)
        now = 0 if first_offset is None else int((offsets[fresh] >= first_offset).sum())
        tally.counted += now
        tally.moved += int(fresh.sum()) - now
        tally.times.append(times[at[fresh]])

    def _try_alone(
        self, keyed: KeyedRows, numbers: np.ndarray, first: int, refusing: _RefusedMessages
    ) -> None:
        """Refuse rows that could not be given by themselves, now that their messages are at hand."""
        rows = self.pairing.sides[self.side]
        alone = np.flatnonzero(~rows.column("paired")[first:])
        refuse = refusing.of(numbers[alone])

        def refuse_rows(refused: np.ndarray, reason: str) -> None:
            rows.column("given")[first + alone[refused]] = True
            refuse(refused, reason)

        self._after.apply(self._source.alone(keyed.frame[alone], self.side), refuse_rows)

    def _keyless(
        self, rows: KeyedRows, numbers: np.ndarray, refusing: _RefusedMessages, tally: Tally
    ) -> Iterator[JoinedRows]:
        """Rows without a key, which no row can be a partner of: given at once."""
        if not len(numbers):
            return
        alone = self._source.alone(rows.frame, self.side)
        result = refusing.left(self._after.apply(alone, refusing.of(numbers)), numbers)
        kept = result.numbers
        offsets, at = np.unique(rows.offsets[kept], return_index=True)
        fresh = self.pairing.sides[self.side].mark_counted(offsets)
        tally.counted += int(fresh.sum())
        tally.times.append(rows.times[kept][at[fresh]])
        place = RowOrigin(self.pairing.inputs[self.side].rank, rows.offsets[kept])
        yield JoinedRows(result.frame, rows.times[kept], place, rows.reached[kept])


class _RefusedMessages:
    """Refuses messages whole, each once: where a step fails on one of a message's rows, none is given.

    A message with another row that was counted before is a dead letter as well, but stays counted.
    """

    def __init__(self, refuse: Refuse, own: JoinBuffer, offsets: np.ndarray) -> None:
        self._refuse = refuse
        self._own = own
        self._offsets = offsets
        self._reported: set[int] = set()
        self.refused: set[int] = set()

    def of(self, numbers: np.ndarray) -> Refuse:
        """What refuses rows of the messages with these numbers."""

        def refuse_rows(rows: np.ndarray, reason: str) -> None:
            for number in set(numbers[rows].tolist()) - self._reported:
                self._reported.add(number)
                if not self._own.is_counted(int(self._offsets[number])):
                    self.refused.add(number)
                self._refuse(np.array([number]), reason)

        return refuse_rows

    def left(self, rows: Stepped, numbers: np.ndarray) -> Stepped:
        """The rows whose messages are not refused."""
        return rows.keep(~np.isin(numbers[rows.numbers], list(self.refused))) if self.refused else rows


def _say_nothing(rows: np.ndarray, reason: str) -> None:
    pass


def _fail(rows: np.ndarray, reason: str) -> None:
    raise RunError(f"a step after join fails on a row that it accepted when the row came: {reason}")
