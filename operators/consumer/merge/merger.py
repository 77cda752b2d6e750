"""Deltas in, closed windows out: the state of the merging worker, without any Kafka.

Windows are given out in order when `closing` says that they may close. Those that close for good come once,
and rows that come for them later are late. A window that only silence has closed is given out and kept: rows
that follow for it count, and if there are any, it comes again, whole, when it closes next, in another silence
or for good. If there are none, it is dropped silently.

One `Merger` follows one partition of the table topic. The log alone decides what it does, so reading the log
again gives the same windows. Only how often a kept window comes before it is final depends on when it is
asked for: if all of the log is read before asking, it comes once, with all its rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ...definition.stream import Stream
from ...sketching.closing import Mark, closing, tell
from ...sketching.delta import Delta
from ...sketching.position import Input, Position
from ...table.merge import Accumulator
from ...table.schema import START, schema_of
from ..log.faults import DeltaError
from ..log.state import LogState, Told, read_state, written
from ..options import DeliveryName


@dataclass(slots=True)
class _Open:
    """A pane that may still get rows, and where the log and the merger were before the pane's first row.

    `deltas` is the number of deltas that brought it rows.
    """

    sketches: Accumulator
    offset: int
    before: LogState
    deltas: int = 0


class Merger:
    """Folds deltas into windows and closes them by the watermark.

    `inputs` are the input partitions; no window closes until a delta of each has come. It takes only the next
    range of each of them and leaves out a range that was already taken, whoever sent it. A range that begins
    too early or too late can't happen in a log written with "exactly_once" and raises `DeltaError`. With
    "at_least_once", a range that overlaps what was taken is taken whole and counted in `state.overlaps`; with
    "at_most_once" it is left out, and what lies between two ranges was lost.
    """

    def __init__(
        self, stream: Stream, inputs: Iterable[Input], delivery: DeliveryName = "exactly_once"
    ) -> None:
        self.stream = stream.complete()
        assert stream.window is not None
        self._window = stream.window
        self._fingerprint = stream.fingerprint()
        self._schema = schema_of(stream)
        self._delivery = delivery
        self.inputs = set(inputs)
        self.state = LogState()
        self._told = Told()
        self._position = 0
        self._open: dict[int, _Open] = {}
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
            self._close_up(delta)
            return False
        missed = 0
        for pane, rows in _panes(delta.table):
            if self._window.last_end(pane) <= self.state.closed_us:
                continue
            if pane not in self._open:
                before = before or self.state.copy()
                self._open[pane] = _Open(Accumulator(self._schema), begin, before)
            self._open[pane].sketches.fold(rows)
            self._open[pane].deltas += 1
        for pane, messages in delta.messages.items():
            if self._window.last_end(pane) <= self.state.closed_us:
                missed += messages
        account = replace(
            delta.account, counted=delta.account.counted - missed, late=delta.account.late + missed
        )
        self.state.account += account
        self._advance(delta)
        self._close_up(delta)
        return True

    def due(self) -> pa.Table | None:
        """The earliest closed window that was not handed over as it is now, if there is one.

        It comes again after a restart until `told` notes that it was handed over.
        """
        pane = self._next_due()
        return None if pane is None else self._open[pane].sketches.table()

    @property
    def final(self) -> bool:
        """Whether the window that `due` gives is closed for good."""
        pane = self._next_due()
        return pane is not None and self._window.last_end(pane) <= self.state.closed_us

    def told(self) -> None:
        """Note that the window that `due` gave was handed over."""
        pane = self._next_due()
        assert pane is not None
        self._told.kept[pane] = self._open[pane].deltas
        self._next_due()  # and dropped at once if it is closed for good

    def close(self) -> list[pa.Table]:
        """All windows that are due, earliest first; notes that they were handed over."""
        found = []
        while (table := self.due()) is not None:
            found.append(table)
            self.told()
        return found

    def close_all(self) -> list[pa.Table]:
        """All windows that were not handed over as they are now; they stay open for later rows."""
        return [self._open[pane].sketches.table() for pane in sorted(self._open) if not self._is_told(pane)]

    def held(self) -> tuple[int, int]:
        """How many windows are open, and of how many groups."""
        return len(self._open), sum(len(pane.sketches) for pane in self._open.values())

    def reached(self, ends: Mapping[Input, int]) -> bool:
        """Whether all messages before these offsets are folded in."""
        marks = self.state.marks
        return all(where in marks and marks[where].position.offset >= end for where, end in ends.items())

    def resume_point(self) -> tuple[int, str]:
        """Where to read the log from again after a restart, and the state to start with, as JSON.

        That is the first delta of the oldest window that was not handed over or may come again, so that every
        such window becomes whole again; or an earlier delta of which only a part has come.
        """
        places = [(pane.offset, pane.before) for pane in self._open.values()]
        oldest = min((*places, *self._marks.values()), key=lambda place: place[0], default=None)
        offset, state = oldest or (self._position, self.state)
        return offset, written(state, self._told)

    def resume(self, offset: int, told: str) -> None:
        """Take up the state that `resume_point` gave. Raises `DeltaError` if it is damaged."""
        self.state, self._told = read_state(told)
        self._position = offset
        self._open.clear()
        self._marks.clear()

    def _is_told(self, pane: int) -> bool:
        """Whether its window was handed over with all that is in it now, by this or an earlier merger."""
        if self._window.last_end(pane) <= self._told.until_us:
            return True
        return self._open[pane].deltas <= self._told.kept.get(pane, 0)

    def _next_due(self) -> int | None:
        """The pane of the window to hand over next; earlier ones that are closed for good are dropped."""
        for pane in sorted(self._open):
            end = self._window.last_end(pane)
            if end > self.state.due_us:
                break
            if not self._is_told(pane):
                return pane
            if end <= self.state.closed_us:
                self._told.until_us = max(self._told.until_us, end)
                self._told.kept.pop(pane, None)
                del self._open[pane]
        return None

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

    def _close_up(self, delta: Delta) -> None:
        """Close windows that may close, once all deltas that were sent together have come."""
        marks = self.state.marks
        if not delta.more and self.inputs <= marks.keys():
            found = closing(marks.values(), self._window, self.stream.delay_us)
            self.state.closed_us = max(self.state.closed_us, found.final_us)
            self.state.due_us = max(self.state.closed_us, found.due_us)


def _panes(table: pa.Table | None) -> Iterator[tuple[int, pa.Table]]:
    """Split a table, which is ordered by pane, into its panes."""
    if table is None:
        return
    starts = table.column(START).combine_chunks().view(pa.int64()).to_numpy()
    edges = [0, *(np.flatnonzero(np.diff(starts)) + 1).tolist(), len(starts)] if len(starts) else []
    for low, high in itertools.pairwise(edges):
        yield int(starts[low]), table.slice(low, high - low)
