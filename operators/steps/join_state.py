"""Two streams' rows of one partition number, which pair with one another.

What pairs depends on the rows alone: each was judged in its own partition, whatever the other had read by
then. A row that is on time is kept as long as one of the other side could be on time and pair with it; so
the second of two finds the first, whichever that is.
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
"""An input waits for its partner once its own rows that wait are this part of the limit."""


class JoinState:
    """The rows that wait on both sides of one partition number, and what both inputs must know of another.

    `times` are the event times of both inputs, once they are recovered, and while their rows from before are
    read again, how far they are with that; `recalled` says with which that is done.
    """

    def __init__(self, stream: Stream, partition: int) -> None:
        source = stream.joined
        assert source is not None and stream.window is not None
        self.source: JoinedSource = source
        self.inputs = tuple(Input(part.topics[0], partition) for part in source.parts)
        self.sides = tuple(JoinBuffer(schema, source.within_us) for schema in source.sides)
        self.times: list[PartitionTime | None] = [None, None]
        self.recalled = [False, False]
        self._marks = ReplayMarks(), ReplayMarks()
        self._none_before = [_NEVER, _NEVER]
        self._window = stream.window
        self._delay_us, self._max_ahead_us = stream.delay_us, stream.max_ahead_us
        self._span_us = stream.window.longest_us

    def take_up(self, where: Input, time: PartitionTime) -> int:
        """Note the event time of an input, as its rows from before are known again; gives its side."""
        side = self.inputs.index(where)
        self.times[side] = time
        return side

    def due(self, side: int) -> np.ndarray:
        """The rows of a side that are to be given without a partner, as every one would be late by now."""
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
        """The rows of a side that would be given without a partner if no row came any more."""
        rows = self.sides[side]
        if not self.source.gives_alone(side) or not len(rows):
            return np.empty(0, np.int64)
        return np.flatnonzero(~(rows.column("paired") | rows.column("given")))

    def holds(self, side: int) -> bool:
        """Whether rows of the other side wait to learn from this one that they have no partner."""
        return len(self.unpaired(1 - side)) > 0

    def overdue(self, side: int) -> int:
        """How many rows of a side would be given without a partner if the other were as far in event time."""
        rows, time = self.sides[side], self.times[side]
        if not self.source.gives_alone(side) or time is None or not len(rows):
            return 0
        alone = ~(rows.column("paired") | rows.column("given"))
        over = self._window.last_ends(rows.column("times")[alone] + np.int64(self.source.within_us))
        return int(np.count_nonzero(over <= time.watermark(self._delay_us)))

    def restored_to(self, side: int, time: PartitionTime) -> None:
        """Note that all rows of a side from before are known again; `time` moves on with new ones."""
        self.recalled[side], self.times[side] = True, time
        if all(self.recalled):
            for own in (0, 1):
                self.sides[own].column("given")[self.due(own)] = True  # and they were, before

    def note(self, side: int, offset: int, before: PartitionTime, times: np.ndarray) -> None:
        """Rows of these times come from `offset` on; the partition's time was `before`."""
        self._marks[side].note(offset, before, int(times.max()))
        over = self._window.last_end(int(times.min()) + self.source.within_us)
        self._none_before[side] = min(self._none_before[side], over)

    def replay(self, side: int, offset: int, time: PartitionTime) -> tuple[int, PartitionTime]:
        """From where rows must be read again by who goes on at `offset`, and the event time there.

        That is within twice the reach: of each row that may still pair, it must be known whether it has.
        """
        within = self.source.within_us
        own, other = self._trusted(side), self._trusted(1 - side)
        return self._marks[side].replay(offset, time, min(other - within, own - 2 * within) - self._span_us)

    def ahead(self, paused: bool) -> int | None:
        """The side that has many rows waiting as it is far ahead of the other in event time, if one is.

        Far is further than rows must wait if both are equally far. `paused` says that it is not read
        meanwhile: it is ahead until it is half as far, or few are left.
        """
        one, two = (EARLIEST if time is None else time.seen_us for time in self.times)
        side, parts = (0 if one > two else 1), (2 if paused else 1)
        far = (self.source.within_us + self._span_us + self._delay_us) // parts
        many = self.source.limit // (_MANY * parts)
        return side if abs(one - two) > far and len(self.sides[side]) > many else None

    def forget(self) -> None:
        """Drop rows that only late ones could pair with. Raises `TooManyRows` if too many are left."""
        for side, rows in enumerate(self.sides):
            reach = self._trusted(1 - side) - self._span_us - self.source.within_us
            if not rows.forget(reach, self.source.limit):
                own, other = self.inputs[side], self.inputs[1 - side]
                raise TooManyRows(
                    f"join: more than {self.source.limit:,} rows of {own} wait for partners in {other}, "
                    "which is far behind in event time, or silent; give the topics more partitions, choose a "
                    "shorter within=, or raise limit="
                )

    def _trusted(self, side: int) -> int:
        """The watermark of a side, once it can't go back: that of a young partition may."""
        time = self.times[side]
        sure = time is not None and (self._max_ahead_us < 0 or time.rows == CONFIRMED)
        return time.watermark(self._delay_us) if time is not None and sure else EARLIEST


class JoinStates:
    """The pairings of the partitions that a worker has, by their number; none for other streams."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._known: dict[int, JoinState] = {}
        self._warned = set[Input]()
        self.held_up = 0
        """Rows that had, at the last look, only silence to show that they have no partner."""

    def of(self, where: Input) -> JoinState | None:
        """That which an input is part of."""
        if self._stream.joined is None:
            return None
        if where.partition not in self._known:
            self._known[where.partition] = JoinState(self._stream, where.partition)
        return self._known[where.partition]

    def ahead(self, inputs: Mapping[Input, bool], paused: Collection[Input]) -> set[Input]:
        """Those of the inputs that need not be read before their partners have caught up.

        An input's value says whether it is silent: nobody waits for a partner that is. `paused` are those
        that wait already.
        """
        inputs_ahead = set()
        for pairing in self._known.values():
            side = pairing.ahead(any(where in paused for where in pairing.inputs))
            if side is not None and not inputs.get(pairing.inputs[1 - side], True):
                inputs_ahead.add(pairing.inputs[side])
        return inputs_ahead & inputs.keys()

    def warn_idle(self, silent: Collection[Input]) -> None:
        """Warn, once each, of silent inputs whose rows alone can show that a row has no partner."""
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
        """Forget all but those of these inputs."""
        there = {where.partition for where in inputs}
        self._known = {number: one for number, one in self._known.items() if number in there}
