"""Windows made of panes that may still get rows: tumbling, hopping and sliding ones."""

from __future__ import annotations

import itertools
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa

from ....sketches.core.columns import as_array
from ...definition.windows import EARLIEST, Paned, Sliding
from ...sketching.delta import Delta
from ...sketching.grouping import GroupIndex
from ...table.schema import END, START, keys_of
from ..log.state import Told
from .open_windows import Beginning, Due
from .pane_part import PanePart
from .slices import Slices, wholes


@dataclass(slots=True)
class _Pane:
    """A pane's rows, by the end of the first window that counts them; and its origin."""

    origin: Beginning
    parts: dict[int, PanePart] = field(default_factory=dict)


@dataclass(slots=True)
class _Ready:
    """A window that closed for good and was not handed over; without a table if all of it was before."""

    start_us: int
    due: Due | None
    end_us: int
    origin: Beginning


class PanedWindows:
    """The windows of panes (see `OpenWindows`).

    One that was handed over for now, and that nothing was added to, closes for good without another word,
    unless `confirms`: then it is handed over again, as it was.
    """

    def __init__(self, schema: pa.Schema, window: Paned, confirms: bool = False) -> None:
        self._schema = schema
        self._window = window
        self._confirms = confirms
        self._single = window.size_us == window.every_us
        self._panes: dict[int, _Pane] = {}
        self._order: list[int] = []
        self._ready: deque[_Ready] = deque()
        self._closed = EARLIEST
        self._late: dict[int, list[tuple[int, PanePart]]] = {}
        self._taking: list[PanePart] = []
        self._slices = Slices(schema, window, self)
        self._for_now: Slices | None = None

    def take(self, delta: Delta, origin: Callable[[], Beginning], offset: int, closed_us: int) -> None:
        """See `OpenWindows`."""
        self._for_now = None
        assert delta.table is not None
        for pane, end, rows in _panes(delta.table):
            if self._window.pane_over(pane) <= closed_us:
                continue
            if pane not in self._panes:
                self._panes[pane] = _Pane(origin())
                insort(self._order, pane)
            # Windows that have closed by now are put aside already: these rows are of the next ones.
            end = max(end, self._window.first_end(max(pane, closed_us)))
            parts = self._panes[pane].parts
            if end not in parts:
                parts[end] = PanePart(self._schema)
                if end > self._window.first_end(pane):
                    self._late.setdefault(end, []).append((pane, parts[end]))
            parts[end].fold(rows)
            parts[end].arrived = offset
            self._taking.append(parts[end])

    def close(self, closed_us: int, told: Told) -> None:
        """See `OpenWindows`."""
        # Here the deltas of a checkpoint have come, which have the same panes.
        for part in self._taking:
            part.settle()
        self._taking.clear()
        if closed_us <= self._closed:
            return
        self._put_aside(list(self._ends(self._closed, closed_us)), told)
        self._closed = closed_us
        while self._order and self._window.last_end(self._order[0]) <= closed_us:
            del self._panes[self._order.pop(0)]
        # The first window that counts them may not be made (of sliding ones, few are): the next needs them.
        there = {
            end: [(pane, part) for pane, part in late if pane in self._panes]
            for end, late in self._late.items()
        }
        self._late = {end: late for end, late in there.items() if late}

    def due(self, due_us: int, told: Told) -> Due | None:
        """See `OpenWindows`."""
        while self._ready:
            first = self._ready[0]
            if first.due is not None:
                return first.due
            self._tell(first, told)
        for end in self._ends(self._closed, due_us):
            if self._fresh(end, told):
                return Due(end, False, partial(self._whole, end))
        return None

    def note(self, due: Due, told: Told, position: int) -> None:
        """See `OpenWindows`."""
        if due.final:
            self._tell(self._ready[0], told)
        else:
            told.kept[due.end_us - self._window.size_us] = self._deltas(due.end_us)

    def filling(self, told: Told, since: int = -1) -> list[pa.Table]:
        """See `OpenWindows`."""
        closed = [ready.due.table() for ready in self._ready if ready.due is not None]
        latest = self._window.last_end(self._order[-1]) if self._order else EARLIEST
        ends = [end for end in self._ends(self._closed, latest) if self._arrived(end) >= since]
        return closed + list(self._wholes([end for end in ends if self._fresh(end, told)]))

    def origins(self) -> Iterable[Beginning]:
        """See `OpenWindows`."""
        return itertools.chain(
            (ready.origin for ready in self._ready if ready.due is not None),
            (pane.origin for pane in self._panes.values()),
        )

    def held(self) -> tuple[int, int]:
        """See `OpenWindows`."""
        parts = (part for pane in self._panes.values() for part in pane.parts.values())
        return len(self._panes), sum(map(len, parts))

    @property
    def nbytes(self) -> int:
        """See `OpenWindows`."""
        parts = (part for pane in self._panes.values() for part in pane.parts.values())
        return self._slices.nbytes + sum(part.nbytes for part in parts)

    def largest(self) -> list[tuple[str, int]]:
        """See `OpenWindows`."""
        sizes = {start: sum(p.nbytes for p in pane.parts.values()) for start, pane in self._panes.items()}
        first = sorted(sizes, key=lambda start: -sizes[start])[:3]
        return [(f"the rows from {np.datetime64(start, 'us')} on", sizes[start]) for start in first]

    def spill(self) -> None:
        """See `OpenWindows`."""
        for pane in self._panes.values():
            for part in pane.parts.values():
                part.spill()
        self._slices.spill()
        self._for_now = None

    def _tell(self, ready: _Ready, told: Told) -> None:
        self._ready.popleft()
        told.until_us = max(told.until_us, ready.end_us)
        told.kept.pop(ready.start_us, None)

    def _put_aside(self, ends: Sequence[int], told: Told) -> None:
        size = self._window.size_us
        fresh = {end for end in ends if self._fresh(end, told)}
        over = [end for end in ends if end in fresh or end - size in told.kept]
        tables = self._finals([end for end in over if end in fresh or self._confirms])
        for end in over:
            held = self._order[bisect_left(self._order, end - size) : bisect_left(self._order, end)]
            origin = min((self._panes[pane].origin for pane in held), key=lambda origin: origin.offset)
            due = Due(end, True, tables[end]) if end in tables else None
            self._ready.append(_Ready(end - size, due, end, origin))

    def _finals(self, ends: Sequence[int]) -> dict[int, Callable[[], pa.Table]]:
        """The tables of windows whose panes get no more rows that they would count."""
        if self._single:
            return {end: self._part_of(end).table for end in ends}
        return {end: partial(_same, table) for end, table in self._made(ends, self._slices)}

    def _whole(self, end: int) -> pa.Table:
        return next(iter(self._wholes([end])))

    def _wholes(self, ends: Sequence[int]) -> Iterator[pa.Table]:
        """The tables of windows as they are now; leaves all as it is."""
        if self._single:
            yield from (self._part_of(end).table() for end in ends)
            return
        # Asked for in the order of their ends, windows share their parts until rows are added.
        if ends and (self._for_now is None or not self._for_now.goes_on(ends[0])):
            self._for_now = Slices(self._schema, self._window, self)
        if ends and self._for_now is not None:
            yield from (table for _, table in self._made(ends, self._for_now))

    def _part_of(self, end: int) -> PanePart:
        """The one part of a window that is a pane."""
        return self._panes[end - self._window.size_us].parts[end]

    def _made(self, ends: Iterable[int], slices: Slices) -> Iterator[tuple[int, pa.Table]]:
        parts = ((end, slices.parts(end, self._order)) for end in ends)
        for end, table in wholes(self._schema, self._window.size_us, parts):
            yield end, self._of_last(table, end) if isinstance(self._window, Sliding) else table

    def _of_last(self, table: pa.Table, end: int) -> pa.Table:
        """Of a window's groups those that have a row in its last pane."""
        keys, index = keys_of(self._schema), GroupIndex()
        last = self._main(end - self._window.pane_us)

        def numbered(rows: pa.Table) -> np.ndarray:
            return index.number(np.zeros(rows.num_rows, np.int64), [as_array(rows.column(k)) for k in keys])

        numbered(last)
        known = len(index)
        return table.filter(pa.array(numbered(table) < known))

    def _main(self, pane: int) -> pa.Table:
        """The rows of a pane that count in all of its windows."""
        part = self._panes[pane].parts.get(self._window.first_end(pane))
        return self._schema.empty_table() if part is None else part.kept_table()

    def of_pane(self, pane_us: int, until_us: int) -> list[pa.Table]:
        """See `PaneTables`."""
        parts = self._panes[pane_us].parts
        return [parts[end].kept_table() for end in sorted(parts) if end <= until_us]

    def fallen_behind(self, after_us: int, until_us: int) -> list[tuple[int, pa.Table]]:
        """See `PaneTables`."""
        ends = sorted(end for end in self._late if after_us < end <= until_us)
        return [(pane, part.kept_table()) for end in ends for pane, part in self._late[end]]

    def _deltas(self, end: int) -> int:
        """How many times deltas brought rows to a window."""
        if isinstance(self._window, Sliding):
            last = self._panes.get(end - self._window.pane_us)
            if last is None or end not in last.parts:
                return 0
        start, found = end - self._window.size_us, 0
        for pane in self._order[bisect_left(self._order, start) : bisect_left(self._order, end)]:
            found += sum(part.deltas for at, part in self._panes[pane].parts.items() if at <= end)
        return found

    def _arrived(self, end: int) -> int:
        """The offset of the latest delta with rows of a window."""
        held = self._order[
            bisect_left(self._order, end - self._window.size_us) : bisect_left(self._order, end)
        ]
        parts = itertools.chain.from_iterable(self._panes[pane].parts.items() for pane in held)
        return max((part.arrived for at, part in parts if at <= end), default=-1)

    def _fresh(self, end: int, told: Told) -> bool:
        """Whether a window holds anything that was not handed over, by this or an earlier merger."""
        if end <= told.until_us:
            return False
        return self._deltas(end) > told.kept.get(end - self._window.size_us, 0)

    def _ends(self, after: int, until: int) -> Iterator[int]:
        """The ends of windows with panes that lie after one time, up to another, earliest first."""
        window, order = self._window, self._order
        end = window.first_end(after) if after > EARLIEST else EARLIEST
        while True:
            # The first pane of the window, or the next there is.
            at = bisect_left(order, end - window.size_us)
            if at == len(order):
                return
            end = max(end, window.first_end(order[at]))
            if end > until:
                return
            yield end
            end += window.every_us


def _panes(table: pa.Table) -> Iterator[tuple[int, int, pa.Table]]:
    """Split a table, which is ordered by pane and first window, into these."""
    columns = [table.column(name).combine_chunks().view(pa.int64()).to_numpy() for name in (START, END)]
    starts, ends = columns
    if not len(starts):
        return
    new = (np.diff(starts) != 0) | (np.diff(ends) != 0)
    edges = [0, *(np.flatnonzero(new) + 1).tolist(), len(starts)]
    for low, high in itertools.pairwise(edges):
        yield int(starts[low]), int(ends[low]), table.slice(low, high - low)


def _same(table: pa.Table) -> pa.Table:
    return table
