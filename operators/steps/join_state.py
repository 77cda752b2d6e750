"""The state of a join for one partition number: rows of both streams that pair with one another.

Which rows pair depends only on the rows: each was checked for lateness in its own partition, whatever the
other had read by then. A row that is on time is buffered as long as a row of the other side could be on time
and pair with it, so the second of two finds the first, whichever that is.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from ..definition.joining import JoinedSource, TooManyRows
from ..definition.stream import Stream
from ..watermarks.partition_watermark import CONFIRMED, PartitionTime
from ..watermarks.position import Input
from ..windows.window import EARLIEST
from .join_buffer import JoinBuffer
from .replay_marks import ReplayMarks

log = logging.getLogger("streamgauge.kafka")

_HELD_UP = (
    "%s is silent, and %s rows of %s wait to learn from it that they have no partner: their windows stay "
    "open until it has a message with a later event time; one whose key of the join is null will do"
)
_NEVER = 1 << 62
_MANY = 4
"""An input waits for its partner once its buffered rows reach this fraction of the limit."""


class JoinState:
    """The buffered rows of both sides of one partition number, and what each input must know of the other.

    `times` are the event times of both inputs once they are recovered; while an input's earlier rows are
    reread, its time is how far that is. `recalled` marks the inputs that have been reread.
    """

    def __init__(self, stream: Stream, partition: int) -> None:
        source = stream.reading.joined
        assert source is not None and stream.window is not None
        self.source: JoinedSource = source
        inputs = [Input(part.topics[0], partition) for part in source.parts]
        # A stream joined with itself has both sides in one input.
        self.inputs = inputs[0], inputs[-1]
        self.sides = tuple(JoinBuffer(schema, source.within_us) for schema in source.sides)
        self.times: list[PartitionTime | None] = [None, None]
        self.recalled = [False, False]
        self._marks = ReplayMarks(), ReplayMarks()
        self._none_before = [_NEVER, _NEVER]
        self._window = stream.window
        self._delay_us, self._max_ahead_us = stream.delay_us, stream.max_ahead_us
        self._span_us = stream.window.longest_us

    def take_up(self, where: Input, time: PartitionTime) -> int:
        """Set the event time of an input whose earlier rows are being reread; returns its side."""
        side = self.inputs.index(where)
        for own in self._sides_of(side):
            self.times[own] = time
        return side

    def mark_counted(self, side: int, offsets: np.ndarray) -> np.ndarray:
        """Mark messages of a side as counted by their distinct offsets; returns a mask of the new ones."""
        fresh = [self.sides[own].mark_counted(offsets) for own in self._sides_of(side)]
        return np.logical_and.reduce(fresh)

    def is_counted(self, side: int, offset: int) -> bool:
        """Whether the message at an offset is counted."""
        return any(self.sides[own].is_counted(offset) for own in self._sides_of(side))

    def share_counted(self, side: int, first: int) -> None:
        """Mark messages of a side's rows, from row `first` on, that the other side has already counted."""
        own, other = self.sides[side], self.sides[1 - side]
        counted = other.column("offsets")[other.column("counted")]
        own.column("counted")[first:] |= np.isin(own.column("offsets")[first:], counted)

    def _sides_of(self, side: int) -> tuple[int, ...]:
        """The sides that rows of one side's input belong to."""
        return (0, 1) if self.source.of_itself else (side,)

    def due(self, side: int) -> np.ndarray:
        """The rows of a side to emit unmatched, because any partner would be late by now."""
        rows, time = self.sides[side], self.times[1 - side]
        if not self.source.gives_alone(side) or time is None or not len(rows):
            return np.empty(0, np.int64)
        watermark = time.watermark(self._delay_us)
        if watermark < self._none_before[side]:
            return np.empty(0, np.int64)
        alone = np.flatnonzero(~(rows.column("paired") | rows.column("given")))
        over = self._window.last_ends(rows.column("times")[alone] + np.int64(self.source.within_us))
        due = over <= watermark
        self._none_before[side] = int(over[~due].min(initial=_NEVER))
        return alone[due]

    def unpaired(self, side: int) -> np.ndarray:
        """The rows of a side that would be emitted unmatched if no more rows arrived."""
        rows = self.sides[side]
        if not self.source.gives_alone(side) or not len(rows):
            return np.empty(0, np.int64)
        return np.flatnonzero(~(rows.column("paired") | rows.column("given")))

    def holds(self, side: int) -> bool:
        """Whether rows wait for a side's input to show that they have no partner."""
        return any(len(self.unpaired(1 - own)) for own in self._sides_of(side))

    def overdue(self, side: int) -> int:
        """How many rows of a side would be emitted unmatched if the other were as far in event time."""
        rows, time = self.sides[side], self.times[side]
        if not self.source.gives_alone(side) or time is None or not len(rows):
            return 0
        alone = ~(rows.column("paired") | rows.column("given"))
        over = self._window.last_ends(rows.column("times")[alone] + np.int64(self.source.within_us))
        return int(np.count_nonzero(over <= time.watermark(self._delay_us)))

    def restored_to(self, side: int, time: PartitionTime) -> None:
        """Record that all earlier rows of a side are restored; `time` advances with new rows."""
        for own in self._sides_of(side):
            self.recalled[own], self.times[own] = True, time
        if all(self.recalled):
            for own in (0, 1):
                self.sides[own].column("given")[self.due(own)] = True  # they were emitted before the restart

    def note(self, side: int, offset: int, before: PartitionTime, times: np.ndarray) -> None:
        """Record that rows with these times follow `offset`; the partition's time was `before`."""
        self._marks[side].note(offset, before, int(times.max()))
        over = self._window.last_end(int(times.min()) + self.source.within_us)
        self._none_before[side] = min(self._none_before[side], over)

    def replay(self, side: int, offset: int, time: PartitionTime) -> tuple[int, PartitionTime]:
        """The offset from which a worker that resumes at `offset` must reread rows, and the event time there.

        It lies within twice the reach: for each row that may still pair, it must be known whether it has
        paired.
        """
        within = self.source.within_us
        own, other = self._trusted(side), self._trusted(1 - side)
        reach = min(other - within, own - 2 * within) - self._span_us
        places = [self._marks[one].replay(offset, time, reach) for one in self._sides_of(side)]
        return min(places, key=lambda place: place[0])

    def ahead(self, paused: bool) -> int | None:
        """The side that has many buffered rows because it is far ahead of the other in event time, if any.

        Far means further than rows must wait if both are equally far. `paused` means that it is not being
        read: it stays ahead until it is half as far, or few rows are left.
        """
        one, two = (EARLIEST if time is None else time.seen_us for time in self.times)
        side, parts = (0 if one > two else 1), (2 if paused else 1)
        far = (self.source.within_us + self._span_us + self._delay_us) // parts
        many = self.source.limit // (_MANY * parts)
        return side if abs(one - two) > far and len(self.sides[side]) > many else None

    def forget(self) -> None:
        """Drop rows that only late rows could pair with. Raises `TooManyRows` if too many are left."""
        for side, rows in enumerate(self.sides):
            reach = self._trusted(1 - side) - self._span_us - self.source.within_us
            if not rows.forget(reach, self.source.limit):
                own, other = self.inputs[side], self.inputs[1 - side]
                if own == other:
                    raise TooManyRows(
                        f"join: more than {self.source.limit:,} rows of {own} lie within within= of one "
                        "another; choose a shorter within=, or raise limit="
                    )
                raise TooManyRows(
                    f"join: more than {self.source.limit:,} rows of {own} wait for partners in {other}, "
                    "which is far behind in event time, or silent; give the topics more partitions, choose a "
                    "shorter within=, or raise limit="
                )

    def _trusted(self, side: int) -> int:
        """The watermark of a side, once it can't go back, unlike that of a young partition."""
        time = self.times[side]
        sure = time is not None and (self._max_ahead_us < 0 or time.rows == CONFIRMED)
        return time.watermark(self._delay_us) if time is not None and sure else EARLIEST


class JoinStates:
    """The join states of a worker's partitions, by number; empty for streams without a join."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._known: dict[int, JoinState] = {}
        self._warned = set[Input]()
        self.held_up = 0
        """The number of rows, at the last check, for which only silence showed that they have no partner."""

    def of(self, where: Input) -> JoinState | None:
        """The state that an input belongs to."""
        if self._stream.reading.joined is None:
            return None
        if where.partition not in self._known:
            self._known[where.partition] = JoinState(self._stream, where.partition)
        return self._known[where.partition]

    def ahead(self, inputs: Mapping[Input, bool], paused: Collection[Input]) -> set[Input]:
        """The inputs that need not be read before their partners have caught up.

        `inputs` maps each to whether it is silent: no input waits for a silent partner. `paused` are those
        that already wait.
        """
        inputs_ahead = set()
        for pairing in self._known.values():
            side = pairing.ahead(any(where in paused for where in pairing.inputs))
            if side is not None and not inputs.get(pairing.inputs[1 - side], True):
                inputs_ahead.add(pairing.inputs[side])
        return inputs_ahead & inputs.keys()

    def warn_idle(self, silent: Collection[Input]) -> None:
        """Warn, once each, of silent inputs that rows of the other side wait for."""
        self._warned &= set(silent)
        held_up = 0
        for pairing in self._known.values():
            for side, where in enumerate(pairing.inputs):
                many = pairing.overdue(1 - side) if where in silent else 0
                held_up += many
                if many and where not in self._warned:
                    log.warning(_HELD_UP, where, f"{many:,}", pairing.inputs[1 - side])
                    self._warned.add(where)
        self.held_up = held_up

    def retain(self, inputs: Iterable[Input]) -> None:
        """Forget all inputs except these."""
        there = {where.partition for where in inputs}
        self._known = {number: one for number, one in self._known.items() if number in there}
