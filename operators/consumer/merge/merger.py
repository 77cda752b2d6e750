"""Deltas in, closed windows out: the state of the merging worker, without any Kafka.

Windows are given out in order when `closing` says that they may close (`open_windows`). Those that close for
good come once, and rows that come for them later are late. A window that only silence has closed is given out
and kept: rows that follow for it count, and if there are any, it comes again, whole, when it closes next, in
another silence or for good. If there are none, it closes for good without another word, unless its merger
`confirms`.

One `Merger` follows one partition of the table topic. The log alone decides what it does, so reading the log
again gives the same windows. Only how often a kept window comes before it is final depends on when it is
asked for: if all of the log is read before asking, it comes once, with all its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import pyarrow as pa

from ...definition.stream import Stream
from ...definition.windows import ByCount, Session
from ...sinks.sink import Passed
from ...sketching.closing import Mark, closing, tell
from ...sketching.delta import Delta
from ...sketching.position import Input, Position
from ...table.final import with_final
from ...table.schema import schema_of
from ..log.faults import DeltaError
from ..log.state import LogState, Told, read_state, written
from ..options import DeliveryName
from .count_windows import CountWindows
from .open_windows import Beginning, Due, OpenWindows
from .paned_windows import PanedWindows
from .session_windows import SessionWindows


class Merger:
    """Folds deltas into windows and closes them by the watermark.

    `inputs` are the input partitions; no window closes until a delta of each has come. It takes only the next
    range of each of them and leaves out a range that was already taken, whoever sent it. A range that begins
    too early or too late can't happen in a log written with "exactly_once" and raises `DeltaError`. With
    "at_least_once", a range that overlaps what was taken is taken whole and counted in `state.overlaps`; with
    "at_most_once" it is left out, and what lies between two ranges was lost. `windows` makes what takes in
    the rows, for who wants to know something else of them than the stream's windows. With `confirms`, a
    window that was given for now is given again, unchanged, once it has closed for good.
    """

    def __init__(
        self,
        stream: Stream,
        inputs: Iterable[Input],
        delivery: DeliveryName = "exactly_once",
        windows: Callable[[], OpenWindows] | None = None,
        confirms: bool = False,
    ) -> None:
        self.stream = stream.complete()
        assert stream.window is not None
        self._window = stream.window
        self._fingerprint = stream.fingerprint()
        self._schema = schema_of(stream)
        self._delivery = delivery
        self._confirms = confirms
        self._windows = windows or self._of_stream
        self._open = self._windows()
        self._due: Due | None = None
        self.inputs = set(inputs)
        self._gone: set[str] = set()
        self.state = LogState()
        self._told = Told()
        self._position = self._updated = 0
        self._marks: dict[str, tuple[int, LogState]] = {}
        self._sources: dict[str, str] = {}

    def mark(self, name: str, offset: int) -> None:
        """Mark the beginning of a delta of several messages; it is offered once all have come."""
        if name not in self._marks:
            self._marks[name] = (offset, self.state.copy())

    def unmark(self, name: str) -> None:
        """Stop waiting for the delta with this mark."""
        self._marks.pop(name, None)

    def offer(self, delta: Delta, offset: int, name: str = "") -> bool:
        """Take the delta at `offset` of the log, or leave it out as a duplicate; True if it was taken.

        `name` is the mark of its beginning, if it has one. Raises `DeltaError` for a delta of another
        definition or out of turn.
        """
        self._position = offset + 1
        begin, before = self._marks.pop(name, (offset, None))
        if self._stale(delta) or not self._next_in_turn(delta):
            self.state.duplicates += delta.next > delta.first  # word of a claim is no row's
            self._close_up(delta.more)
            return False
        closed_us = self.state.closed_us

        def origin() -> Beginning:
            nonlocal before
            before = before or self.state.copy()
            return Beginning(begin, before)

        if delta.table is not None:
            self._open.take(delta, origin, offset, closed_us)
        missed = sum(n for pane, n in delta.messages.items() if self._window.pane_over(pane) <= closed_us)
        account = replace(
            delta.account, counted=delta.account.counted - missed, late=delta.account.late + missed
        )
        self.state.account += account
        self.state.missed += missed
        self._advance(delta)
        self._close_up(delta.more)
        return True

    def due(self) -> pa.Table | None:
        """The earliest closed window that was not handed over as it is now, if there is one.

        Of sessions, all that closed together. It comes again after a restart until `told` notes that it was
        handed over. Whether it is final, `table.final.is_final` tells.
        """
        self._due = self._open.due(self.state.due_us, self._told)
        return None if self._due is None else with_final(self._due.table(), self._due.final)

    @property
    def final(self) -> bool:
        """Whether the window that `due` gave will not come again: no row counts in it any more."""
        return self._due is not None and self._due.final

    def told(self) -> None:
        """Note that the window that `due` gave was handed over."""
        assert self._due is not None
        self._open.note(self._due, self._told, self._position)
        self._due = None

    def close(self) -> list[pa.Table]:
        """All windows that are due, earliest first; notes that they were handed over."""
        found = []
        while (table := self.due()) is not None:
            found.append(table)
            self.told()
        return found

    def close_all(self) -> list[pa.Table]:
        """All windows that were not handed over as they are now; they stay open for later rows."""
        return [with_final(table, False) for table in self._open.filling(self._told)]

    def updates(self) -> list[pa.Table]:
        """The windows that fill, as they are now, if rows have come for them since the last call."""
        since, self._updated = self._updated, self._position
        return [with_final(table, False) for table in self._open.filling(self._told, since)]

    def progress(self, now: float) -> Passed:
        """How far it has come, for sinks; `now` is the wall clock's time."""
        return Passed(self.state.closed_us, self.state.due_us, self.state.account.read, now)

    @property
    def position(self) -> int:
        """The offset of the log after what was offered last."""
        return self._position

    @property
    def open_windows(self) -> OpenWindows:
        """The windows that may still get rows, to see what they take."""
        return self._open

    def held(self) -> tuple[int, int]:
        """How many windows are open (of overlapping ones, the panes they are made of), of how many groups."""
        return self._open.held()

    @property
    def state_bytes(self) -> int:
        """Bytes of memory that its open windows take."""
        return self._open.nbytes

    def reached(self, ends: Mapping[Input, int]) -> bool:
        """Whether all messages before these offsets are folded in."""
        marks = self.state.marks
        return all(where in marks and marks[where].position.offset >= end for where, end in ends.items())

    def resume_point(self) -> tuple[int, str]:
        """Where to read the log from again after a restart, and the state to start with, as JSON.

        That is the first delta of the oldest window that was not handed over or may come again, so that every
        such window becomes whole again; or an earlier delta of which only a part has come.
        """
        places = (*self._open.origins(), *self._marks.values())
        oldest = min(places, key=lambda place: place[0], default=None)
        offset, state = oldest or (self._position, self.state)
        return offset, written(state, self._told)

    def resume(self, offset: int, told: str) -> None:
        """Take up the state that `resume_point` gave. Raises `DeltaError` if it is damaged."""
        self.state, self._told = read_state(told)
        self._position = offset
        self._open, self._due = self._windows(), None
        self._marks.clear()

    def _of_stream(self) -> OpenWindows:
        if isinstance(self._window, Session):
            return SessionWindows(self._schema, self._window)
        if isinstance(self._window, ByCount):
            return CountWindows(self._schema, self._window)
        return PanedWindows(self._schema, self._window, self._confirms)

    def _stale(self, delta: Delta) -> bool:
        """Whether another worker has claimed the input partition since the sender did."""
        claimed = self.state.epochs.get(delta.input, 0)
        if delta.epoch > claimed:
            self.state.epochs[delta.input] = delta.epoch
        return 0 < delta.epoch < claimed

    def _next_in_turn(self, delta: Delta) -> bool:
        if delta.fingerprint != self._fingerprint:
            raise DeltaError(
                f"the delta {delta.told} is of the definition {delta.fingerprint}, this stream's is "
                f"{self._fingerprint}; a changed definition needs a table topic of its own"
            )
        known = self._sources.get(delta.topic)
        if known and delta.source and delta.source != known:
            raise DeltaError(
                f"the delta {delta.told} is of another topic of that name, which was deleted and made anew; "
                "give the run a new group_id to begin with the new one"
            )
        self._sources[delta.topic] = known or delta.source
        mark = self.state.marks.get(delta.input)
        if mark is None or delta.first == mark.position.offset:
            return True
        following = mark.position.offset
        if delta.next <= following:
            return False
        if self._delivery == "at_least_once" and delta.first < following:
            self.state.overlaps += 1
            return True
        if self._delivery == "at_most_once":
            return delta.first > following
        raise DeltaError(
            f"the delta {delta.told} is out of turn, the next offset is {following}; the table topic is not "
            "what one stream wrote exactly once: start again with another group"
        )

    def _advance(self, delta: Delta) -> None:
        mark = self.state.marks.setdefault(delta.input, Mark(delta.end))
        mark.position = Position(max(mark.position.offset, delta.next), delta.time)
        tell(self.state.marks, delta.input, delta.rest)
        self.inputs.add(delta.input)

    def leave_out(self, topics: Iterable[str]) -> None:
        """Wait for no partition of these topics, which are gone."""
        if (gone := set(topics)) != self._gone:
            self._gone = gone
            self._close_up()

    def _close_up(self, more: bool = False) -> None:
        """Close windows that may close, once all deltas that were sent together have come."""
        marks = self.state.marks
        inputs = self.inputs
        if self._gone:
            marks = {where: mark for where, mark in marks.items() if where.topic not in self._gone}
            inputs = {where for where in inputs if where.topic not in self._gone}
        if not more and inputs <= marks.keys():
            found = closing(marks.values(), self._window, self.stream.closing_delay_us)
            self.state.closed_us = max(self.state.closed_us, found.final_us)
            self.state.due_us = max(self.state.closed_us, found.due_us)
            self._open.close(self.state.closed_us, self._told)
