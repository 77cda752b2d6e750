"""Sketching a stream's rows: they are transformed, checked by their event times, and sketched.

Rows of a stream that forwards them take the same path, and are held instead of being sketched.

This is the same on every engine: the Kafka consumer and Spark's source both pass their decoded frames to a
`Sketcher` and send the tables that it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from ...sketches.core.lazy import pl
from ...sketches.core.memory_size import held_bytes
from ..definition.stream import Stream
from ..steps.forward_filler import look_back_of
from ..steps.join_state import JoinState
from ..steps.look_back import LookBack
from ..steps.row_origin import RowOrigin
from ..steps.row_steps import Refuse, RowSteps, Stepped, unique
from ..steps.self_join import join_of
from ..steps.stream_join import Join, JoinedRows, Tally, TimelyRows
from ..table.schema import schema_of
from ..watermarks.clock import wall_clock
from ..watermarks.partition_watermark import PartitionTime, broken_clocks
from ..windows.window import EARLIEST, StreamWindows
from .account import Account
from .forwarded_rows import ForwardedRow, ForwardedRows
from .open_counts import OpenCounts
from .panes import Sketches, few_panes
from .window_rows import rows_class

_BROKEN = "the event time is out of range, or more than max_ahead past the clock or the message's timestamp"


Late = Callable[[np.ndarray, np.ndarray], None]
"""Called with the numbers of late rows, and by how many microseconds (int64) the watermark was past them."""


class Sketcher:
    """The sketches of a stream's rows since the last `drain`.

    `salt` seeds the families that draw random numbers, differently for each drained table. Use a different
    salt for each sketcher of a stream, such as a hash of its partition and first offset. `pairing` is the
    state of a join of two streams, `once` has the ids that the partition has seen, if known. `sketches`
    overrides how rows are sketched, by default as their windows require. `timed` says whether the last rows
    included any with an event time.

    >>> from datetime import datetime
    >>> from streamgauge.operators.definition.aggregates import count
    >>> rows = Stream.from_schema({"at": pl.Datetime("us")}, time="at")
    >>> sketcher = Sketcher(rows.tumbling("1m").agg(posts=count()))
    >>> frame = pl.DataFrame({"at": [datetime(2026, 1, 1, 0, 0, s) for s in (1, 2)]})
    >>> sketcher.add(frame, PartitionTime())
    Account(read=2, counted=2, filtered=0, late=0, dead_lettered=0)
    >>> sketcher.drain().column("posts").to_pylist()
    [2]
    """

    def __init__(
        self,
        stream: Stream,
        salt: int = 0,
        clock: Callable[[], float] = wall_clock,
        pairing: JoinState | None = None,
        once: LookBack | None = None,
        sketches: type[Sketches] | None = None,
    ) -> None:
        window = stream.complete().window
        assert window is not None
        self._window = window
        self._delay_us, self._max_ahead_us = stream.delay_us, stream.max_ahead_us
        self._keep_late = stream.keep_late
        self._once = once or look_back_of(stream)
        self._join_side = None if pairing is None else join_of(stream, pairing)
        before = self._once or self._join_side
        self._steps = RowSteps(stream) if before is None else before.before
        self.timed = False
        self._sent = None if stream.sending is None else ForwardedRows(stream.sending)
        # If rows are forwarded and none is compared with earlier ones, their times are irrelevant.
        self._timeless = self._sent is not None and before is None
        kind: Any = sketches or rows_class(window)
        self._panes: Sketches = kind(schema_of(stream), window, salt)
        self._counts = self._panes.counts
        self._messages: dict[int, int] = {}
        self._clock = clock

    @property
    def schema(self) -> pa.Schema:
        """The schema of its tables."""
        return self._panes.schema

    def add(
        self,
        frame: pl.DataFrame,
        time: PartitionTime,
        timestamps_ms: np.ndarray | None = None,
        refuse: Refuse | None = None,
        place: RowOrigin | None = None,
        late: Late | None = None,
    ) -> Account:
        """Sketch one partition's next rows, in order.

        `place` is their origin, which orders rows with the same event time. `time` is the partition's and
        advances; `timestamps_ms` are the messages' own timestamps, which help to find broken clocks. Rows
        that can't be counted are dead letters: `refuse` is called with their numbers and the reason. `late`
        is called with the numbers of late rows, and by how many microseconds each is late. Filtered rows need
        no event time and don't advance it.

        Raises `ValueError` for a frame without the source's columns.
        """
        self.timed = False
        if not frame.height:
            return Account()
        refuse = refuse or _say_nothing
        left = self._steps.apply(frame, refuse)
        filtered = left.filtered
        if self._timeless:
            self.timed = True
            return self._forward(frame, left, place, refuse, filtered, 0)
        left, times = self._steps.event_times(frame, timestamps_ms, left, refuse)
        if self._once is not None:
            left = self._once.mark(left, times, timestamps_ms, _offsets(frame, place))
        left, times = self._without_broken(left, times, timestamps_ms, refuse)
        self.timed = len(times) > 0
        if self._join_side is not None:
            return self._join(self._join_side, frame, left, times, time, place, refuse, late)
        left, times, reached, missed = self._without_late(left, times, time, late)
        if self._once is not None:
            left, times, repeated = self._once.drop(left, times, refuse)
            filtered += repeated
            self._once.forget(time)
        if self._sent is not None:
            return self._forward(frame, left, place, refuse, filtered, missed)
        if len(times):
            before = None if reached is None else reached[left.numbers]
            self._panes.add(
                left.frame,
                times,
                None if place is None else RowOrigin(place.partition, left.of(place.offsets)),
                before,
            )
        counted = self._count(left, times)
        return Account(frame.height, counted, filtered, missed, frame.height - counted - filtered - missed)

    def add_unpaired(self) -> Account:
        """Sketch the rows that have no partner if no more rows arrive; they remain buffered.

        Their messages were filtered until then, so the account moves them.
        """
        if self._join_side is None:
            return Account()
        unpaired = self._join_side.unpaired()
        for rows in unpaired.rows:
            self._add_joined(rows)
        self._note_messages(unpaired.times)
        return Account(counted=len(unpaired.times), filtered=-len(unpaired.times))

    @property
    def kept_bytes(self) -> int:
        """The memory of what it retains from one table to the next.

        That is remembered ids, buffered rows, and the groups' states in their open count windows.
        """
        return sum(kept.size for kept in (self._once, self._join_side, self._counts) if kept is not None)

    @property
    def once(self) -> LookBack | None:
        """The ids that it has seen, in a deduplicated stream."""
        return self._once

    @property
    def count_bytes(self) -> int:
        """The memory of the groups' states in their open count windows."""
        return 0 if self._counts is None else self._counts.size

    def go_on(self, known: OpenCounts) -> None:
        """Set how many rows groups have in their open count windows."""
        assert self._counts is not None
        self._counts.note(known)

    def recall(
        self, frame: pl.DataFrame, timestamps_ms: np.ndarray | None, place: RowOrigin, time: PartitionTime
    ) -> None:
        """Restore rows that were counted before, for the rows that follow: none of them counts.

        `time` is the partition's before them, and advances.
        """
        if self._once is not None and frame.height:
            left = self._steps.apply(frame, _say_nothing)
            left, times = self._steps.event_times(frame, timestamps_ms, left, _say_nothing)
            self._once.mark(left, times, timestamps_ms, place.offsets)
        if self._join_side is not None and frame.height:
            left = self._steps.apply(frame, _say_nothing)
            left, times = self._steps.event_times(frame, timestamps_ms, left, _say_nothing)
            left, times = self._without_broken(left, times, timestamps_ms, _say_nothing)
            before = replace(time)
            left, times, reached, _ = self._without_late(left, times, time, None)
            self._join_side.recall(TimelyRows(left, times, reached, place.offsets, before))

    def replay_from(self, offset: int, time: PartitionTime) -> tuple[int, PartitionTime]:
        """The offset from which a worker that resumes at `offset` must reread rows, and the event time there.

        Both are unchanged if no rows must be reread.
        """
        if self._join_side is not None:
            return self._join_side.replay(offset, time)
        return (offset if self._once is None else self._once.replay_from(offset)), time

    def drain_forwarded(self) -> tuple[ForwardedRow, ...]:
        """The rows to be forwarded that were added since the last call."""
        return () if self._sent is None else self._sent.drain()

    def drain(self) -> pa.Table:
        """The table of sketches of the rows added since the last call; starts empty again."""
        self._messages = {}
        return self._panes.drain()

    def __len__(self) -> int:
        """The number of groups: windows times keys."""
        return len(self._panes)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that its sketches, or the held rows, take."""
        return held_bytes(self._panes) if self._sent is None else self._sent.nbytes

    @property
    def messages(self) -> dict[int, int]:
        """Messages counted since the last `drain`, by the start of their pane (int64 microseconds)."""
        return dict(sorted(self._messages.items()))

    def _join(
        self,
        meeting: Join,
        frame: pl.DataFrame,
        left: Stepped,
        times: np.ndarray,
        time: PartitionTime,
        place: RowOrigin | None,
        refuse: Refuse,
        late: Late | None,
    ) -> Account:
        """Sketch the pairs formed with the other stream's rows."""
        filtered, before, tally = left.filtered, replace(time), Tally()
        left, times, reached, missed = self._without_late(left, times, time, late)
        rows = TimelyRows(left, times, reached, _offsets(frame, place), before)
        for joined in meeting.join(rows, refuse, tally):
            self._add_joined(joined)
        for of_messages in tally.times:
            self._note_messages(of_messages)
        # Earlier messages that are part of a row now were filtered until then.
        counted = tally.counted
        filtered += len(unique(left.numbers)) - counted - tally.refused
        return Account(frame.height, counted, filtered, missed, frame.height - counted - filtered - missed)

    def _add_joined(self, joined: JoinedRows) -> None:
        """Sketch rows of a join, or hold them until they are forwarded."""
        if self._sent is not None:
            self._sent.add_joined(joined.frame)
        elif len(joined.times):
            self._panes.add(joined.frame, joined.times, joined.place, joined.reached)

    def _forward(
        self,
        frame: pl.DataFrame,
        left: Stepped,
        place: RowOrigin | None,
        refuse: Refuse,
        filtered: int,
        missed: int,
    ) -> Account:
        """Hold rows until they are forwarded."""
        assert self._sent is not None
        sent = self._sent.add(left, _offsets(frame, place), refuse) if len(left.numbers) else left
        counted = len(unique(sent.numbers))
        return Account(frame.height, counted, filtered, missed, frame.height - counted - filtered - missed)

    def _without_broken(
        self, left: Stepped, times: np.ndarray, timestamps_ms: np.ndarray | None, refuse: Refuse
    ) -> tuple[Stepped, np.ndarray]:
        """The rows with a plausible event time; the others are refused."""
        stamps = None if timestamps_ms is None else left.of(timestamps_ms)
        broken = broken_clocks(times, stamps, self._max_ahead_us, int(self._clock() * 1e6), self._window)
        if broken is None:
            return left, times
        refuse(unique(left.numbers[broken]), _BROKEN)
        return left.keep(~broken), times[~broken]

    def _without_late(
        self, left: Stepped, times: np.ndarray, time: PartitionTime, report_late: Late | None
    ) -> tuple[Stepped, np.ndarray, np.ndarray | None, int]:
        """The rows that are not late, their times, the watermark before them, and how many messages are late.

        The watermark is indexed by the number of the caller's row; None if all are on time for all their
        windows.
        """
        # A message advances time once, however many rows `explode` makes of it.
        messages = left.messages
        exploded = len(messages) < len(times)
        of_messages = times[np.searchsorted(left.numbers, messages)] if exploded else times
        watermarks = time.advance(of_messages, self._window, self._delay_us, self._max_ahead_us)
        if watermarks is None:
            return left, times, None, 0
        late = self._window.last_ends(of_messages) <= watermarks
        reached = np.full(messages[-1] + 1, EARLIEST)
        reached[messages] = watermarks
        count = int(late.sum())
        if not count:
            return left, times, reached, 0
        if self._keep_late:
            # The watermark lies in the first open window, so the row counts as if it had that time.
            return left, np.maximum(times, reached[left.numbers]), reached, 0
        if report_late is not None:
            report_late(messages[late], (watermarks - self._window.last_ends(of_messages))[late])
        on_time = ~(late[np.searchsorted(messages, left.numbers)] if exploded else late)
        return left.keep(on_time), times[on_time], reached, count

    def _count(self, left: Stepped, times: np.ndarray) -> int:
        """Count messages by pane, each once however many rows it became; returns their number."""
        messages = left.messages
        if len(messages) < len(times):
            times = times[np.searchsorted(left.numbers, messages)]
        self._note_messages(times)
        return len(times)

    def _note_messages(self, times: np.ndarray) -> None:
        if not len(times) or self._sent is not None:
            return
        for pane, count in _by_pane(self._window, times):
            self._messages[pane] = self._messages.get(pane, 0) + count


def _by_pane(window: StreamWindows, times: np.ndarray) -> Iterator[tuple[int, int]]:
    """The panes that contain times, by their starts, and how many each contains."""
    few = few_panes(window, times)
    if few is None:
        panes, counts = np.unique(window.pane_starts(times), return_counts=True)
        yield from zip(panes.tolist(), counts.tolist())
        return
    reached = [len(times), *(int(np.count_nonzero(times >= pane)) for pane in few[1:]), 0]
    for pane, (of_it, of_next) in zip(few, pairwise(reached)):
        if of_it > of_next:
            yield pane, of_it - of_next


def _offsets(frame: pl.DataFrame, place: RowOrigin | None) -> np.ndarray:
    return np.zeros(frame.height, np.int64) if place is None else place.offsets


def _say_nothing(rows: np.ndarray, reason: str) -> None:
    pass
