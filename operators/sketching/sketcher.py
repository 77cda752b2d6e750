"""Rows in, a table of sketches out: the only step that touches rows.

The same on every engine: the Kafka consumer and Spark's source both hand their decoded frames to a
`Sketcher` and send on the tables it gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from ..definition.inputs import usable, within_reach
from ..definition.stream import Stream
from ..table.schema import assemble, schema_of
from .accounting import Account
from .clock import wall_clock
from .grouping import GroupIndex
from .lateness import PartitionTime, broken_clocks
from .row_steps import Refuse, RowSteps, once

_OLDEST = pl.CompatLevel.oldest()
_GOLDEN = 0x9E3779B97F4A7C15
_BROKEN = "the event time is out of range, or more than max_ahead past the clock or the message's timestamp"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a frame's rows come from: their partition, and the offset of each (int64)."""

    partition: int
    offsets: np.ndarray

    def of(self, rows: np.ndarray) -> dict[str, Any]:
        """The inputs of aggregates that depend on the order of rows."""
        return {"partition": self.partition, "offset": self.offsets[rows]}


class Sketcher:
    """The sketches of the rows since the last `take`.

    `salt` seeds the families that draw random numbers, differently for each table taken. Give each sketcher
    of a stream a salt of its own, such as a hash of its partition and first offset.

    >>> from datetime import datetime
    >>> from streamgauge.operators.definition.aggregates import count
    >>> rows = Stream.from_batches({"at": pl.Datetime("us")}, time="at")
    >>> sketcher = Sketcher(rows.tumbling("1m").agg(posts=count()))
    >>> frame = pl.DataFrame({"at": [datetime(2026, 1, 1, 0, 0, s) for s in (1, 2)]})
    >>> sketcher.add(frame, PartitionTime())
    Account(read=2, counted=2, filtered=0, late=0, dead_lettered=0)
    >>> sketcher.take().column("posts").to_pylist()
    [2]
    """

    def __init__(self, stream: Stream, salt: int = 0, clock: Callable[[], float] = wall_clock) -> None:
        self.stream = stream.complete()
        assert stream.window is not None
        self._window = stream.window
        self.schema = schema_of(stream)
        self._steps = RowSteps(stream)
        self._clock = clock
        self._salt = salt
        self._begin()

    def add(
        self,
        frame: pl.DataFrame,
        time: PartitionTime,
        timestamps_ms: np.ndarray | None = None,
        refuse: Refuse | None = None,
        place: Place | None = None,
    ) -> Account:
        """Sketch one partition's next rows, in their order.

        `place` says where they come from, which decides between rows of the same event time. `time` is the
        partition's and moves on; `timestamps_ms` are the messages' own timestamps, which help to find broken
        clocks. Rows that can't be counted are dead letters: `refuse` is called with their numbers and the
        reason. Filtered rows need no event time and move none.

        Raises `ValueError` for a frame without the source's columns.
        """
        if not frame.height:
            return Account()
        refuse = refuse or _say_nothing
        stream = self.stream
        left = self._steps.apply(frame, refuse)
        filtered = left.filtered
        left, times = self._steps.event_times(frame, timestamps_ms, left, refuse)
        stamps = None if timestamps_ms is None else timestamps_ms[left.numbers]
        broken = broken_clocks(times, stamps, stream.max_ahead_us, int(self._clock() * 1e6))
        if broken is not None:
            refuse(once(left.numbers[broken]), _BROKEN)
            left, times = left.keep(~broken), times[~broken]
        # A message moves time once, however many rows `explode` makes of it.
        messages = once(left.numbers)
        rows = None if len(messages) == len(times) else np.searchsorted(left.numbers, messages)
        late = time.late(
            times if rows is None else times[rows], self._window, stream.delay_us, stream.max_ahead_us
        )
        too_late = 0
        if late is not None:
            too_late = int(late.sum())
            late = late if rows is None else late[np.searchsorted(messages, left.numbers)]
            left, times = left.keep(~late), times[~late]
        counted = 0
        if len(times):
            self._sketch(left.frame, times, {} if place is None else place.of(left.numbers))
            counted = self._count_messages(
                times if rows is None else times[np.searchsorted(left.numbers, once(left.numbers))]
            )
        dead = frame.height - counted - filtered - too_late
        return Account(frame.height, counted, filtered, too_late, dead)

    def take(self) -> pa.Table:
        """The table of sketches of the rows added since the last call; starts empty again."""
        index, groups = self._index, self._groups
        keys = index.keys([self.schema.field(key).type for key in self.stream.keys])
        table = assemble(self.schema, index.starts(), self._window.pane_us, keys, groups)
        self._salt = (self._salt * 31 + _GOLDEN) & 0x7FFF_FFFF_FFFF_FFFF
        self._begin()
        return table

    def __len__(self) -> int:
        """The number of groups: windows times keys."""
        return len(self._index)

    @property
    def messages(self) -> dict[int, int]:
        """Messages counted since the last `take`, by the start of their pane (int64 microseconds)."""
        return dict(sorted(self._messages.items()))

    def _begin(self) -> None:
        self._messages: dict[int, int] = {}
        self._index = GroupIndex()
        self._groups = {
            name: asked.groups(seed=self._salt + at)
            for at, (name, asked) in enumerate(self.stream.aggregates.items())
        }

    def _sketch(self, found: pl.DataFrame, times: np.ndarray, place: Mapping[str, Any]) -> None:
        columns = {name: _arrow(found[name]) for name in found.columns}
        numbers = self._number(columns, times)
        for name, asked in self.stream.aggregates.items():
            groups = self._groups[name]
            groups.resize(len(self._index))
            column = None if asked.column is None else within_reach(columns[asked.column])
            given = {name: columns[source] for name, source in asked.inputs.items()}
            if given:
                column, given = usable(column, given)
            if "time" in asked.family.inputs:
                given["time"] = times
            if "offset" in asked.family.inputs:
                given.update(place)
            groups.update(numbers, column, **given)

    def _count_messages(self, times: np.ndarray) -> int:
        """Count messages by pane, each once, however many rows it became."""
        first = self._window.pane_start(int(times.min()))
        if first == self._window.pane_start(int(times.max())):
            self._messages[first] = self._messages.get(first, 0) + len(times)
            return len(times)
        panes, counts = np.unique(self._window.pane_starts(times), return_counts=True)
        for pane, count in zip(panes.tolist(), counts.tolist()):
            self._messages[pane] = self._messages.get(pane, 0) + count
        return len(times)

    def _number(self, columns: dict[str, pa.Array], times: np.ndarray) -> np.ndarray:
        if not self.stream.keys:
            first = self._window.pane_start(int(times.min()))
            if first == self._window.pane_start(int(times.max())):
                # One group for all rows: an array of stride 0, which families recognise.
                return np.broadcast_to(np.int64(self._index.number_of(first)), len(times))
        return self._index.number(self._window.pane_starts(times), [columns[key] for key in self.stream.keys])


def _arrow(column: pl.Series) -> pa.Array:
    return column.to_arrow(compat_level=_OLDEST)


def _say_nothing(rows: np.ndarray, reason: str) -> None:
    pass
