"""Windows that consist of panes and may still get rows."""

from __future__ import annotations

import itertools
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np
import pyarrow as pa

from ...sketching.delta import Delta
from ...table.schema import aggregates_of
from ...table.window_groups import WindowGroups
from ...windows.paned import Paned
from ...windows.window import EARLIEST
from ..log.merger_state import EmittedWindows
from .fresh_rows import FreshRows, in_batches
from .open_windows import Beginning, Due
from .pane import PanePart, groups_of_parts
from .sliding_aggregation import SlidingAggregation, wholes


@dataclass(slots=True)
class _Pane:
    """A pane's rows, by the end of the first window that counts them, and the pane's origin."""

    origin: Beginning
    parts: dict[int, PanePart] = field(default_factory=dict)


@dataclass(slots=True)
class _Ready:
    """Windows that closed for good and were not emitted; without groups if everything was emitted before.

    `key` is the last window's.
    """

    key: int
    due: Due | None
    end_us: int
    origin: Beginning


class PanedWindows:
    """The windows of panes (see `OpenWindows`).

    A window that was emitted provisionally and got no more rows closes for good without another emission,
    unless `confirms`: then it is emitted again, unchanged. `EmittedWindows` identifies a window by
    `Paned.key_of`.
    """

    in_batches: ClassVar[bool] = True
    """Whether windows of one pane that close with the deltas that began them are built directly from these.

    False for kinds that modify the content of windows: these are always built from panes.
    """

    def __init__(self, schema: pa.Schema, window: Paned, confirms: bool = False) -> None:
        self._schema = schema
        self._window = window
        self._confirms = confirms
        self._single = window.single
        self._seeded = any(aggregate.family.seeded for aggregate in aggregates_of(schema).values())
        self._panes: dict[int, _Pane] = {}
        self._order: list[int] = []
        self._fresh: list[FreshRows] = []
        self._ready: deque[_Ready] = deque()
        self._closed = EARLIEST
        self._late: dict[int, list[tuple[int, PanePart]]] = {}
        self._merging: list[tuple[int, PanePart]] = []
        self._slices = self._aggregation()
        self._for_now: SlidingAggregation | None = None

    def merge(self, delta: Delta, origin: Callable[[], Beginning], offset: int, closed_us: int) -> None:
        """See `OpenWindows`."""
        self._for_now = None
        assert delta.table is not None
        fresh = FreshRows(delta.table, origin, offset)
        if not (self._single and self.in_batches):
            self._put(fresh, closed_us)
            return
        if kept := fresh.slice(fresh.over(closed_us)):
            before = origin()
            kept.origin = lambda: before
            self._fresh.append(kept)

    def _put(self, fresh: FreshRows, closed_us: int) -> None:
        """Merge rows into their panes."""
        for pane, end, rows in fresh.panes():
            if self._window.pane_over(pane) <= closed_us:
                continue
            if pane not in self._panes:
                self._panes[pane] = _Pane(fresh.origin())
                insort(self._order, pane)
            # Windows that have closed by now are already put aside: these rows count in the next ones.
            end = max(end, self._window.first_end(max(pane, closed_us)))
            parts = self._panes[pane].parts
            if end not in parts:
                parts[end] = PanePart(self._schema)
                if end > self._window.first_end(pane):
                    self._late.setdefault(end, []).append((pane, parts[end]))
            parts[end].merge(rows)
            parts[end].arrived = fresh.offset
            self._merging.append((pane, parts[end]))

    def _put_all(self) -> None:
        """Merge all fresh rows into their panes."""
        fresh, self._fresh = self._fresh, []
        for rows in fresh:
            self._put(rows, self._closed)

    def close(self, closed_us: int, emitted: EmittedWindows) -> None:
        """See `OpenWindows`."""
        whole = self._without_panes(closed_us, emitted)
        self._put_all()
        if closed_us <= self._closed:
            self._merge_pending()
            return
        ready = self._closing(list(self._ends(self._closed, closed_us)), emitted)
        ready += self._closing_together(whole, [one.key for one in ready])
        self._ready.extend(sorted(ready, key=lambda one: one.end_us))
        self._closed = closed_us
        over = list(itertools.takewhile(lambda pane: self._window.last_end(pane) <= closed_us, self._order))
        for pane in over:
            del self._panes[pane]
        del self._order[: len(over)]
        self._merge_pending()
        # The first window that counts them may not exist (few sliding windows do); the next one needs them.
        there = {
            end: [(pane, part) for pane, part in late if pane in self._panes]
            for end, late in self._late.items()
        }
        self._late = {end: late for end, late in there.items() if late}

    def _without_panes(self, closed_us: int, emitted: EmittedWindows) -> list[FreshRows]:
        """Remove and return the fresh rows of windows that close now and consist of fresh rows only.

        If sketches draw random numbers, only windows whose rows all came with one delta, so that the random
        numbers don't depend on other windows.
        """
        counts = [rows.over(closed_us) for rows in self._fresh]
        if not any(counts):
            return []
        closing = [rows.slice(0, count) for rows, count in zip(self._fresh, counts)]
        known = [np.fromiter(of, np.int64, len(of)) for of in (self._panes, emitted.delta_counts)]
        if self._seeded:
            starts, deltas = np.unique(
                np.concatenate([np.unique(rows.starts) for rows in closing]), return_counts=True
            )
            known.append(starts[deltas > 1])
        own = [~np.isin(rows.starts, np.concatenate(known)) for rows in closing]
        self._fresh = [rows.slice(count) for rows, count in zip(self._fresh, counts)]
        self._fresh += [rows.filter(~mask) for rows, mask in zip(closing, own)]
        whole = [rows.filter(mask & (rows.ends > emitted.until_us)) for rows, mask in zip(closing, own)]
        return [rows for rows in whole if len(rows)]

    def _merge_pending(self) -> None:
        """Merge waiting rows of panes that stay open; all deltas of a checkpoint have arrived by now."""
        for pane, part in self._merging:
            if pane in self._panes:
                part.merge_pending()
        self._merging.clear()

    def due(self, due_us: int, emitted: EmittedWindows) -> Due | None:
        """See `OpenWindows`."""
        self._put_all()
        while self._ready:
            first = self._ready[0]
            if first.due is not None:
                return first.due
            self._mark_ready_emitted(first, emitted, first.end_us)
        for end in self._ends(self._closed, due_us):
            if self._has_unemitted(end, emitted):
                # More rows may arrive for it: what is emitted is serialised before they do.
                return Due(end, False, partial(self._whole, end))
        return None

    def mark_emitted(self, due: Due, emitted: EmittedWindows, position: int) -> None:
        """See `OpenWindows`."""
        if due.final:
            self._mark_ready_emitted(self._ready[0], emitted, due.end_us)
        else:
            emitted.delta_counts[self._window.key_of(due.end_us)] = self._deltas(due.end_us)

    def open_tables(self, emitted: EmittedWindows, since: int = -1) -> list[pa.Table]:
        """See `OpenWindows`."""
        self._put_all()
        ready = [ready.due.groups() for ready in self._ready if ready.due is not None]
        closed = [window.table for groups in ready for window in groups.windows()]
        latest = self._window.last_end(self._order[-1]) if self._order else EARLIEST
        ends = [end for end in self._ends(self._closed, latest) if self._arrived(end) >= since]
        return closed + list(self._wholes([end for end in ends if self._has_unemitted(end, emitted)]))

    def origins(self) -> Iterable[Beginning]:
        """See `OpenWindows`."""
        self._put_all()
        return itertools.chain(
            (ready.origin for ready in self._ready if ready.due is not None),
            (pane.origin for pane in self._panes.values()),
        )

    def window_counts(self) -> tuple[int, int]:
        """See `OpenWindows`."""
        self._put_all()
        parts = (part for pane in self._panes.values() for part in pane.parts.values())
        return len(self._panes), sum(map(len, parts))

    @property
    def nbytes(self) -> int:
        """See `OpenWindows`."""
        self._put_all()
        parts = (part for pane in self._panes.values() for part in pane.parts.values())
        return self._slices.nbytes + sum(part.nbytes for part in parts)

    def largest(self) -> list[tuple[str, int]]:
        """See `OpenWindows`."""
        self._put_all()
        sizes = {start: sum(p.nbytes for p in pane.parts.values()) for start, pane in self._panes.items()}
        first = sorted(sizes, key=lambda start: -sizes[start])[:3]
        return [(f"the rows from {np.datetime64(start, 'us')} on", sizes[start]) for start in first]

    def spill(self) -> None:
        """See `OpenWindows`."""
        self._put_all()
        for pane in self._panes.values():
            for part in pane.parts.values():
                part.spill()
        self._slices.spill()
        self._for_now = None

    def _mark_ready_emitted(self, ready: _Ready, emitted: EmittedWindows, until_us: int) -> None:
        """Record that the first waiting windows, as far as they end by `until_us`, were emitted."""
        emitted.until_us = max(emitted.until_us, until_us)
        if ready.due is not None and until_us < ready.end_us:
            ready.due = Due(ready.end_us, True, partial(_after, ready.due.groups, until_us))
            return
        self._ready.popleft()
        emitted.delta_counts.pop(ready.key, None)

    def _closing(self, ends: Sequence[int], emitted: EmittedWindows) -> list[_Ready]:
        """The windows of panes with these ends."""
        fresh = {end for end in ends if self._has_unemitted(end, emitted)}
        over = [end for end in ends if end in fresh or self._window.key_of(end) in emitted.delta_counts]
        tables = self._finals([end for end in over if end in fresh or self._confirms])
        closing = []
        for end in over:
            origins = (self._panes[pane].origin for pane in self._held(end))
            origin = min(origins, key=lambda origin: origin.offset)
            due = Due(end, True, tables[end]) if end in tables else None
            closing.append(_Ready(self._window.key_of(end), due, end, origin))
        return closing

    def _closing_together(self, whole: Sequence[FreshRows], breaks: Sequence[int]) -> list[_Ready]:
        """Whole windows from these rows, as many at once as possible without crossing a break."""
        if not whole:
            return []
        origin = min((rows.origin() for rows in whole), key=lambda origin: origin.offset)
        closing = []
        for start, rows in in_batches(whole, breaks):
            end = self._window.first_end(start)
            closing.append(_Ready(start, Due(end, True, rows.groups), end, origin))
        return closing

    def _finals(self, ends: Sequence[int]) -> dict[int, Callable[[], WindowGroups]]:
        """The groups of windows whose panes get no more rows that count in them."""
        if self._single:
            starts = {self._window.key_of(end): end for end in ends}
            made = groups_of_parts(self._schema, {at: self._part_of(end) for at, end in starts.items()})
            return {starts[start]: groups for start, groups in made.items()}
        return {end: partial(_as_it_is, groups) for end, groups in self._sliding(ends, self._slices)}

    def _whole(self, end: int) -> WindowGroups:
        return WindowGroups.of_table(next(iter(self._wholes([end]))))

    def _wholes(self, ends: Sequence[int]) -> Iterator[pa.Table]:
        """The current tables of windows; changes nothing."""
        if self._single:
            yield from (self._part_of(end).table() for end in ends)
            return
        # Requested in the order of their ends, windows share their parts until rows are added.
        if ends and (self._for_now is None or not self._for_now.goes_on(ends[0])):
            self._for_now = self._aggregation()
        if ends and self._for_now is not None:
            yield from (groups.table for _, groups in self._sliding(ends, self._for_now))

    def _part_of(self, end: int) -> PanePart:
        """The only part of a window that is a single pane."""
        return self._panes[self._window.key_of(end)].parts[end]

    def _sliding(self, ends: Iterable[int], slices: SlidingAggregation) -> Iterator[tuple[int, WindowGroups]]:
        parts = ((end, slices.parts(end, self._order)) for end in ends)
        for end, groups in wholes(self._schema, self._window, parts):
            yield end, self._groups_of(groups, end)

    def _aggregation(self) -> SlidingAggregation:
        """The object that builds windows of several panes."""
        return SlidingAggregation(self._schema, self._window, self)

    def _groups_of(self, groups: WindowGroups, end: int) -> WindowGroups:
        """The groups that belong to the window."""
        return groups

    def _held(self, end: int) -> list[int]:
        """The panes of the window that ends at `end`."""
        start = self._window.start_of(end)
        return self._order[bisect_left(self._order, start) : bisect_left(self._order, end)]

    def of_pane(self, pane_us: int, until_us: int) -> list[pa.Table]:
        """See `PaneTables`."""
        parts = self._panes[pane_us].parts
        return [parts[end].cached_table() for end in sorted(parts) if end <= until_us]

    def fallen_behind(self, after_us: int, until_us: int) -> list[tuple[int, pa.Table]]:
        """See `PaneTables`."""
        ends = sorted(end for end in self._late if after_us < end <= until_us)
        return [(pane, part.cached_table()) for end in ends for pane, part in self._late[end]]

    def _deltas(self, end: int) -> int:
        """The number of deltas that brought rows to a window."""
        parts = itertools.chain.from_iterable(self._panes[pane].parts.items() for pane in self._held(end))
        return sum(part.deltas for at, part in parts if at <= end)

    def _arrived(self, end: int) -> int:
        """The offset of the latest delta with rows of a window."""
        parts = itertools.chain.from_iterable(self._panes[pane].parts.items() for pane in self._held(end))
        return max((part.arrived for at, part in parts if at <= end), default=-1)

    def _has_unemitted(self, end: int, emitted: EmittedWindows) -> bool:
        """Whether a window holds anything that neither this nor an earlier merger has emitted."""
        if end <= emitted.until_us:
            return False
        return self._deltas(end) > emitted.delta_counts.get(self._window.key_of(end), 0)

    def _ends(self, after: int, until: int) -> Iterator[int]:
        """The ends of windows with panes, after one time up to another, earliest first."""
        window, order = self._window, self._order
        end = window.first_end(after) if after > EARLIEST else EARLIEST
        while True:
            # The window's first pane, or the next existing one.
            at = bisect_left(order, window.start_of(end))
            if at == len(order):
                return
            end = max(end, window.first_end(order[at]))
            if end > until:
                return
            yield end
            end = window.first_end(end)


def _as_it_is(groups: WindowGroups) -> WindowGroups:
    return groups


def _after(groups: Callable[[], WindowGroups], until_us: int) -> WindowGroups:
    """The groups of windows that end after `until_us`."""
    left = groups()
    return left.slice(int(np.searchsorted(left.ends, until_us, "right")), len(left))
