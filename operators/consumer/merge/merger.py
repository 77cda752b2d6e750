"""Deltas in, closed windows out: the state of the merging worker, without any Kafka.

Windows are emitted in order, when `closing` allows them to close (`open_windows`). Windows that close for
good are emitted once, and later rows for them are late. A window that only silence has closed is emitted and
retained: later rows for it count, and if there are any, it is emitted again, complete, when it next closes,
provisionally or for good. If there are none, it closes for good without another emission, unless its merger
`confirms`.

One `Merger` follows one partition of the table topic. Its behaviour depends only on the log, so rereading the
log gives the same windows. Only how often a provisional window is emitted before it is final depends on when
windows are requested: if the whole log is read first, it is emitted once, with all its rows.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from ...definition.stream import Stream
from ...kafka.log_faults import DeltaError
from ...sinks.sink import RunProgress
from ...sketching.account import Account
from ...sketching.delta import Delta
from ...table.final import with_final
from ...table.schema import END, START, schema_of
from ...table.window_groups import WindowGroups
from ...table.windows import edges
from ...watermarks.global_watermark import Mark, closing_times, update_idleness
from ...watermarks.position import Input, Position
from ...windows.paned import Paned
from ...windows.window import EARLIEST, StreamWindows
from ..log.merger_state import EmittedWindows, LogState, read_state, state_json
from ..options import DeliveryName
from .open_windows import Beginning, Due, OpenWindows
from .window_kinds import open_windows_class


class Merger:
    """Folds deltas into windows and closes them by the watermark.

    `inputs` are the input partitions; no window closes until a delta of each has arrived. It accepts only the
    next range of each of them and drops a range that was already merged, whichever worker sent it. A range
    that begins too early or too late can't occur in a log written with "exactly_once" and raises
    `DeltaError`. With "at_least_once", a range that overlaps merged ones is merged whole and counted in
    `state.overlaps`; with "at_most_once" it is dropped, and offsets between two ranges were lost. `windows`
    creates the object that merges the rows, if it isn't the usual one of the stream's windows. With
    `confirms`, a window that was emitted provisionally is emitted again, unchanged, once it has closed for
    good.
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
        self._emitted = EmittedWindows()
        self._position = self._updated = 0
        self._marks: dict[str, tuple[int, LogState]] = {}
        self._sources: dict[str, str] = {}
        self._unpaired: dict[Input, tuple[int, Delta]] = {}
        self._silence: tuple[int, int] | None = None
        """While all partitions are silent: the event time, and the wall-clock time when that began."""

    def mark(self, name: str, offset: int) -> None:
        """Mark the beginning of a delta of several messages; it is offered once all have arrived."""
        if name not in self._marks:
            self._marks[name] = (offset, self.state.copy())

    def unmark(self, name: str) -> None:
        """Stop waiting for the delta with this mark."""
        self._marks.pop(name, None)

    def offer(self, delta: Delta, offset: int, name: str = "") -> bool:
        """Accept the delta at `offset` of the log, or drop it as a duplicate; True if it was accepted.

        `name` is the mark of its beginning, if it has one. Raises `DeltaError` for a delta of another
        definition or out of order.
        """
        self._position = offset + 1
        begin, before = self._marks.pop(name, (offset, None))
        if delta.provisional and not self._stale(delta):
            self._unpaired[delta.input] = offset, delta
            self._close_up(delta.more)
            return False
        if self._stale(delta) or not self._next_in_turn(delta):
            self.state.duplicates += (
                delta.next_offset > delta.first_offset
            )  # claim announcements carry no rows
            self._close_up(delta.more)
            return False
        closed_us = self.state.closed_us

        def origin() -> Beginning:
            nonlocal before
            before = before or self.state.copy()
            return Beginning(begin, before)

        missed = 0
        if self.stream.keep_late:
            delta = _in_open_windows(delta, self._window, closed_us)
        else:
            missed = self._missed(delta)
        if delta.table is not None:
            self._open.merge(delta, origin, offset, closed_us)
        account = replace(
            delta.account, counted=delta.account.counted - missed, late=delta.account.late + missed
        )
        self.state.account += account
        self.state.missed += missed
        self._advance(delta)
        self._close_up(delta.more)
        return True

    def due(self) -> WindowGroups | None:
        """The groups of the earliest closed windows not yet emitted in their current form, if there are any.

        They are returned again, even after a restart, until `mark_emitted` is called.
        """
        self._due = self._open.due(self.state.due_us, self._emitted)
        return None if self._due is None else self._due.groups().with_final(self._due.final)

    @property
    def final(self) -> bool:
        """Whether the windows returned by `due` will not be emitted again: no more rows count in them."""
        return self._due is not None and self._due.final

    def mark_emitted(self, until_us: int | None = None) -> None:
        """Record that the windows returned by `due` were emitted, all or those that end by `until_us`."""
        assert self._due is not None
        if until_us is not None and until_us < self._due.end_us:
            self._open.mark_emitted(replace(self._due, end_us=until_us), self._emitted, self._position)
        else:
            self._open.mark_emitted(self._due, self._emitted, self._position)
            self._due = None

    def close(self) -> list[pa.Table]:
        """All windows that are due, earliest first; records that they were emitted."""
        tables = []
        while (groups := self.due()) is not None:
            tables += [window.table for window in groups.windows()]
            self.mark_emitted()
        return tables

    def close_all(self) -> list[pa.Table]:
        """All windows not emitted in their current form; they stay open for later rows."""
        return [with_final(table, False) for table in self._open.open_tables(self._emitted)]

    def has_ended(self, ends: Mapping[Input, int]) -> bool:
        """Whether it knows a join's unmatched rows, provided that nothing follows these offsets."""
        joined = self.stream.reading.joined
        if joined is None or joined.how == "inner" or self.stream.sending is not None:
            return True
        known = {delta.input for _, delta in self._unpaired_now()}
        marks = self.state.marks
        return all(where in known or marks[where].position.offset > end for where, end in ends.items())

    def end(self) -> list[pa.Table]:
        """Like `close_all`, with a join's unmatched rows if nothing follows; then nothing may follow."""
        for offset, delta in self._unpaired_now():
            if delta.table is not None:
                origin = partial(Beginning, offset, self.state.copy())
                self._open.merge(delta, origin, offset, self.state.closed_us)
        return self.close_all()

    def at_end(self) -> list[pa.Table]:
        """What `end` would return now; more may follow."""
        kept = copy.deepcopy(self._open) if self._unpaired_now() else self._open
        tables, self._open = self.end(), kept
        return tables

    @property
    def state_at_end(self) -> LogState:
        """Its state if nothing follows, in which messages with unmatched rows are counted."""
        state = self.state.copy()
        for _, delta in self._unpaired_now():
            missed = self._missed(delta)
            state.account += delta.account + Account(counted=-missed, filtered=missed)
        return state

    def updates(self) -> list[pa.Table]:
        """The current content of open windows that have changed since the last call."""
        since, self._updated = self._updated, self._position
        return [with_final(table, False) for table in self._open.open_tables(self._emitted, since)]

    def progress(self, now: float) -> RunProgress:
        """The run's progress, for sinks; `now` is wall-clock time."""
        state, clock_us = self.state, EARLIEST
        if self._silence is not None:
            event_us, then_us = self._silence
            clock_us = event_us + max(0, int(now * 1e6) - then_us) if event_us > EARLIEST else EARLIEST
        return RunProgress(state.closed_us, state.due_us, state.account.read, now, clock_us)

    @property
    def position(self) -> int:
        """The offset of the log after the last message offered."""
        return self._position

    @property
    def open_windows(self) -> OpenWindows:
        """The windows that may still get rows, for measuring their memory."""
        return self._open

    def window_counts(self) -> tuple[int, int]:
        """The number of open windows (for overlapping ones, of their panes), and of groups in them."""
        return self._open.window_counts()

    @property
    def state_bytes(self) -> int:
        """Bytes of memory that its open windows take."""
        return self._open.nbytes

    def has_reached(self, ends: Mapping[Input, int]) -> bool:
        """Whether all messages before these offsets are folded in."""
        marks = self.state.marks
        return all(where in marks and marks[where].position.offset >= end for where, end in ends.items())

    def restore_point(self) -> tuple[int, str]:
        """The offset from which to reread the log after a restart, and the initial state there, as JSON.

        That is the first delta of the oldest window that was not emitted or may be emitted again, so that
        every such window becomes complete again; or an earlier delta that has only partly arrived.
        """
        places = (*self._open.origins(), *self._marks.values())
        oldest = min(places, key=lambda place: place[0], default=None)
        offset, state = oldest or (self._position, self.state)
        return offset, state_json(state, self._emitted)

    def restore(self, offset: int, stored: str) -> None:
        """Restore the state that `restore_point` returned. Raises `DeltaError` if it is damaged."""
        self.state, self._emitted = read_state(stored)
        self._position = offset
        self._open, self._due = self._windows(), None
        self._marks.clear()

    def _of_stream(self) -> OpenWindows:
        kind: Any = open_windows_class(self._window)
        windows: OpenWindows = kind(self._schema, self._window, self._confirms)
        return windows

    def _unpaired_now(self) -> list[tuple[int, Delta]]:
        """The provisional deltas of partitions that, like their partners, have not advanced since."""
        marks = self.state.marks
        here = {
            where
            for where, (_, delta) in self._unpaired.items()
            if where in marks and marks[where].position.offset == delta.next_offset
        }
        joined = self.stream.reading.joined
        topics = [] if joined is None else [part.topics[0] for part in joined.parts]
        whole = (n for n in {where.partition for where in here} if all(Input(t, n) in here for t in topics))
        numbers = set(whole)
        return [self._unpaired[where] for where in here if where.partition in numbers]

    def _missed(self, delta: Delta) -> int:
        """How many of a delta's messages arrive when all of their windows are closed."""
        closed_us = self.state.closed_us
        return sum(n for pane, n in delta.messages.items() if self._window.pane_over(pane) <= closed_us)

    def _stale(self, delta: Delta) -> bool:
        """Whether another worker has claimed the input partition since the sender's claim."""
        claimed = self.state.epochs.get(delta.input, 0)
        if delta.epoch > claimed:
            self.state.epochs[delta.input] = delta.epoch
        return 0 < delta.epoch < claimed

    def _next_in_turn(self, delta: Delta) -> bool:
        if delta.fingerprint != self._fingerprint:
            raise DeltaError(
                f"the delta {delta.range_text} comes from the definition {delta.fingerprint}, but this "
                f"stream's is {self._fingerprint}; each definition needs a table topic of its own"
            )
        known = self._sources.get(delta.topic)
        if known and delta.source and delta.source != known:
            raise DeltaError(
                f"the delta {delta.range_text} comes from an earlier topic of the same name, which was "
                "deleted and recreated; to count the new one, give the run a new group_id or reset the group"
            )
        self._sources[delta.topic] = known or delta.source
        mark = self.state.marks.get(delta.input)
        if mark is None or delta.first_offset == mark.position.offset:
            return True
        following = mark.position.offset
        if delta.next_offset <= following:
            return False
        if self._delivery == "at_least_once" and delta.first_offset < following:
            self.state.overlaps += 1
            return True
        if self._delivery == "at_most_once":
            return delta.first_offset > following
        why = "the table topic was not written by one stream with exactly-once delivery"
        if delta.first_offset > following:
            why = "the table topic has lost those before, or another program wrote to it"
        raise DeltaError(
            f"the delta {delta.range_text} is out of order; the next offset is {following}; {why}: start "
            "again with another group_id"
        )

    def _advance(self, delta: Delta) -> None:
        mark = self.state.marks.setdefault(delta.input, Mark(delta.end))
        # An out-of-turn range may end where the partition was; a range that goes back is always in turn.
        ahead = delta.next_offset < delta.first_offset or delta.next_offset >= mark.position.offset
        known = delta.end if ahead else mark.position
        mark.position = Position(known.offset, delta.time, leader_epoch=known.leader_epoch)
        update_idleness(self.state.marks, delta.input, delta.rest)
        self.inputs.add(delta.input)

    def leave_out(self, topics: Iterable[str]) -> None:
        """Stop waiting for the partitions of these deleted topics."""
        if (gone := set(topics)) != self._gone:
            self._gone = gone
            self._close_up()

    def _close_up(self, more: bool = False) -> None:
        """Close the windows that may close, once all deltas that were sent together have arrived."""
        marks = self.state.marks
        inputs = self.inputs
        if self._gone:
            marks = {where: mark for where, mark in marks.items() if where.topic not in self._gone}
            inputs = {where for where in inputs if where.topic not in self._gone}
        if not more and inputs <= marks.keys():
            watermark = closing_times(marks.values(), self._window, self.stream.closing_delay_us)
            self._silence = (watermark.clock_us, watermark.now_us) if watermark.now_us else None
            self.state.closed_us = max(self.state.closed_us, watermark.final_us)
            self.state.due_us = max(self.state.closed_us, watermark.due_us)
            self._open.close(self.state.closed_us, self._emitted)


def _in_open_windows(delta: Delta, window: StreamWindows, closed_us: int) -> Delta:
    """A delta whose rows of closed windows are moved to the first open one, for streams without late rows.

    A partition knows only the windows that its own rows have closed; while it is idle, others close more.
    """
    if delta.table is None:
        return delta
    assert isinstance(window, Paned)
    starts, ends = edges(delta.table)
    if not (over := ends <= closed_us).any():
        return delta
    end = window.first_end(closed_us)
    moved = np.where(over, window.start_of(end), starts), np.where(over, end, ends)
    table = delta.table
    for name, times in zip((START, END), moved):
        at = table.schema.get_field_index(name)
        column = pa.array(times).view(table.schema.field(at).type)
        table = table.set_column(at, table.schema.field(at), column)
    order = np.argsort(moved[0], kind="stable")
    return replace(delta, table=table.take(pa.array(order)))
