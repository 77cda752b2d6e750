"""Sessions: runs of a group's rows without a gap, and which of them belong together.

A row joins an earlier row if it comes at most the gap after it, and if the earlier one's session would not
have ended by the watermark that the later one's partition had reached before it: a session that has ended
accepts no more rows. A pause of exactly the gap doesn't end a session, as in Flink, Kafka Streams and Spark.
So which rows belong together depends only on each partition's order of rows, not on how they were divided
into batches and deltas, nor on which delta came first, and a session may be emitted once all partitions'
watermarks have passed its end.

For a run of rows that belong together, three times are sufficient: its first row's, its last row's, and its
**barrier**, the minimum over its rows of the later of the row's time and the first time past the watermark
before it. Runs that overlap in time always belong together. Otherwise, the later one joins the earlier one if
the earlier one's end (its last row plus the gap) is not before the later one's barrier.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...sketches.core.compilation.jit import lean
from ..grouping.group_index import GroupIndex
from ..steps.row_origin import RowOrigin
from ..table.row_sets import RowSets
from ..table.schema import assemble, with_barrier
from ..windows.session import Session
from .panes import Sketches

_FEW = 10_000
"""Runs are joined early once they are more than twice as many as after the last time, and this many."""


@dataclass(frozen=True, slots=True)
class Stretches:
    """Runs of rows: their owners (a number per group), and their three times (int64 microseconds)."""

    owner: np.ndarray
    first: np.ndarray
    last: np.ndarray
    barrier: np.ndarray

    @classmethod
    def none(cls) -> Stretches:
        """No runs."""
        return cls(*(np.empty(0, np.int64) for _ in range(4)))

    @classmethod
    def of_rows(cls, own: np.ndarray, times: np.ndarray, reached: np.ndarray | None) -> Stretches:
        """Each row as a run of its own; `reached` is the watermark before it."""
        return cls(own, times, times, times if reached is None else np.maximum(times, reached + 1))

    def __len__(self) -> int:
        return len(self.owner)

    def __add__(self, other: Stretches) -> Stretches:
        pairs = zip(self._columns(), other._columns())
        return Stretches(*(np.concatenate(pair) for pair in pairs))

    def joined(self, gap_us: int) -> tuple[Stretches, np.ndarray]:
        """Join the runs that belong together, ordered by owner and time; also returns which run is in which.

        >>> times = np.array([0, 9, 3, 20])
        >>> found, part = Stretches.of_rows(np.zeros(4, int), times, None).joined(7)
        >>> found.first.tolist(), found.last.tolist(), part.tolist()
        ([0, 20], [9, 20], [0, 0, 0, 1])
        """
        part = np.empty(len(self), np.int64)
        if not len(self):
            return self, part
        order = np.lexsort((self.first, self.owner))
        own, first, last, barrier = (column[order] for column in self._columns())
        # No row before a position joins one after it if the latest one before ends before all barriers.
        latest, least = last.copy(), barrier.copy()
        _latest_so_far(own, latest)
        _least_to_come(own, least)
        apart = (latest[:-1] < first[1:]) & (latest[:-1] + np.int64(gap_us) < least[1:])
        new = np.concatenate([[True], (own[1:] != own[:-1]) | apart])
        edges = np.flatnonzero(new)
        part[order] = np.cumsum(new) - 1
        sessions = Stretches(
            own[edges],
            first[edges],
            np.maximum.reduceat(last, edges),
            np.minimum.reduceat(barrier, edges),
        )
        return sessions, part

    def _columns(self) -> tuple[np.ndarray, ...]:
        return self.owner, self.first, self.last, self.barrier


@lean
def _latest_so_far(own, times):
    """Replace each time by the latest of its owner's up to there; `own` is sorted."""
    for i in range(1, len(own)):
        if own[i] == own[i - 1]:
            times[i] = max(times[i], times[i - 1])


@lean
def _least_to_come(own, times):
    """Replace each time by the earliest of its owner's from there on; `own` is sorted."""
    for i in range(len(own) - 2, -1, -1):
        if own[i] == own[i + 1]:
            times[i] = min(times[i], times[i + 1])


class SessionRows(Sketches):
    """The sketches of the rows since the last `drain`, by runs of a group's rows without a gap.

    Each run ends with its pane, by which messages are counted, and is joined again during merging. In the
    resulting table, `window_start` is the first row's time, `window_end` the last row's plus the gap; the
    barrier follows the keys (`table.schema.with_barrier`).

    >>> import polars as pl
    >>> from streamgauge.operators.definition.aggregates import count
    >>> from streamgauge.operators.table.schema import table_schema
    >>> partial = SessionRows(table_schema({}, {"n": count()}, None), Session.of("10s"))
    >>> partial.add(pl.DataFrame({"x": [1, 2, 3]}), np.array([0, 25_000_000, 3_000_000]))
    >>> [row["n"] for row in partial.drain().to_pylist()]
    [2, 1]
    """

    def __init__(self, schema: pa.Schema, window: Session, salt: int = 0) -> None:
        self._window = window
        super().__init__(with_barrier(schema), salt)

    def __len__(self) -> int:
        return len(self._stretches)

    def _begin(self) -> None:
        super()._begin()
        self._index = GroupIndex()
        self._stretches = Stretches.none()
        self._joined = 0

    def _number(
        self,
        columns: Mapping[str, pa.Array],
        times: np.ndarray,
        place: RowOrigin | None,
        reached: np.ndarray | None,
    ) -> np.ndarray:
        own = self._index.number(self._window.pane_starts(times), [columns[key] for key in self._keys])
        stretches, part = Stretches.of_rows(own, times, reached).joined(self._window.gap_us)
        if len(self._stretches) > 2 * self._joined + _FEW:
            self._join()
        held = len(self._stretches)
        self._stretches += stretches
        return part + held

    def _join(self) -> None:
        """Join runs from several batches."""
        sessions, part = self._stretches.joined(self._window.gap_us)
        if len(sessions) < len(part):
            for name, groups in self._groups.items():
                groups.resize(len(part))
                self._groups[name] = self._aggregates[name].groups(len(sessions), seed=self._salt)
                self._groups[name].merge(part, groups.to_arrow())
            self._stretches = sessions
        self._joined = len(sessions)

    def _table(self) -> pa.Table:
        sessions, part = self._stretches.joined(self._window.gap_us)
        sets = RowSets(part)
        rows = pa.array(sessions.owner)
        keys = [key.take(rows) for key in self._index.keys([self.schema.field(k).type for k in self._keys])]
        lengths = sessions.last + np.int64(self._window.gap_us) - sessions.first
        return assemble(
            self.schema,
            sessions.first,
            lengths,
            [*keys, pa.array(sessions.barrier)],
            lambda name: sets.merge(self._aggregates[name], self._column(name), self._salt),
        )
