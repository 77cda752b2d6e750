"""The only step that touches rows: those of a pane and a group into that group's sketches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from ..definition.inputs import usable, within_reach
from ..definition.windows import EARLIEST, Paned
from ..table.schema import aggregates_of, assemble, keys_of
from .grouping import GroupIndex

_OLDEST = pl.CompatLevel.oldest()
_GOLDEN = 0x9E3779B97F4A7C15
_CODES = 2 * EARLIEST
"""From here up to `EARLIEST`, times that no row has stand for groups that are not of all their windows."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where rows come from: their partition, and the offset of each (int64)."""

    partition: int
    offsets: np.ndarray

    def of(self, rows: np.ndarray) -> Place:
        """That of some of the rows, by their numbers."""
        return Place(self.partition, self.offsets[rows])


class Sketches:
    """The sketches of the rows since the last `take`, by group; what a group is, subclasses say.

    `schema` is that of the table they become (`table.schema.table_schema`), and says what is kept. `salt`
    seeds those families that draw random numbers, differently for each table taken: give another to all whose
    tables are merged.
    """

    def __init__(self, schema: pa.Schema, salt: int = 0) -> None:
        self.schema = schema
        self._keys = keys_of(schema)
        self._aggregates = aggregates_of(schema)
        self._salt = salt
        self._begin()

    def __len__(self) -> int:
        """Groups held."""
        raise NotImplementedError

    def add(
        self,
        rows: pl.DataFrame,
        times: np.ndarray,
        place: Place | None = None,
        reached: np.ndarray | None = None,
    ) -> None:
        """Sketch rows, in their order, that hold the columns asked for; `times` are int64 microseconds.

        `place` says where they come from, which tells rows of one event time apart. `reached` is the
        watermark before each, where some may be late for some of their windows (`PartitionTime.reached`).
        """
        columns = {name: rows[name].to_arrow(compat_level=_OLDEST) for name in rows.columns}
        numbers = self._number(columns, times, place, reached)
        for name, asked in self._aggregates.items():
            groups = self._groups[name]
            groups.resize(len(self))
            column = None if asked.column is None else within_reach(columns[asked.column])
            given: dict[str, Any] = {name: columns[source] for name, source in asked.inputs.items()}
            if given:
                column, given = usable(column, given)
            if "time" in asked.family.inputs:
                given["time"] = times
            if "offset" in asked.family.inputs and place is not None:
                given |= {"partition": place.partition, "offset": place.offsets}
            groups.update(numbers, column, **given)

    def take(self) -> pa.Table:
        """The table of sketches of the rows added since the last call; starts empty again."""
        table = self._table()
        self._salt = (self._salt * 31 + _GOLDEN) & 0x7FFF_FFFF_FFFF_FFFF
        self._begin()
        return table

    def _begin(self) -> None:
        self._groups = {
            name: asked.groups(seed=self._salt + at)
            for at, (name, asked) in enumerate(self._aggregates.items())
        }

    def _number(
        self,
        columns: Mapping[str, pa.Array],
        times: np.ndarray,
        place: Place | None,
        reached: np.ndarray | None,
    ) -> np.ndarray:
        """The group of each row."""
        raise NotImplementedError

    def _table(self) -> pa.Table:
        """The table of all groups."""
        raise NotImplementedError


class Panes(Sketches):
    """The sketches of the rows since the last `take`, by pane and keys.

    `window` cuts time into panes. In the table they become, `window_start` is the pane's start, and
    `window_end` the end of the first window that counts the rows: that of the pane's first window, or of a
    later one for rows that were late for those before. So of tumbling windows it is their own end.

    >>> from streamgauge.operators.definition.aggregates import count
    >>> from streamgauge.operators.definition.windows import Tumbling
    >>> from streamgauge.operators.table.schema import table_schema
    >>> panes = Panes(table_schema({"lang": pa.string()}, {"posts": count()}, None), Tumbling.every("1m"))
    >>> panes.add(pl.DataFrame({"lang": ["en", "en", "fr"]}), np.array([1, 2, 61_000_000]))
    >>> panes.take().select(["lang", "posts"]).to_pylist()
    [{'lang': 'en', 'posts': 2}, {'lang': 'fr', 'posts': 1}]
    """

    def __init__(self, schema: pa.Schema, window: Paned, salt: int = 0) -> None:
        self._window = window
        super().__init__(schema, salt)

    def __len__(self) -> int:
        return len(self._index)

    def _begin(self) -> None:
        super()._begin()
        self._index = GroupIndex()
        self._codes: dict[tuple[int, int], int] = {}

    def _number(
        self,
        columns: Mapping[str, pa.Array],
        times: np.ndarray,
        place: Place | None,
        reached: np.ndarray | None,
    ) -> np.ndarray:
        behind = None if reached is None else self._behind(times, reached)
        if not self._keys and behind is None:
            first = self._window.pane_start(int(times.min()))
            if first == self._window.pane_start(int(times.max())):
                # One group for all rows: an array of stride 0, which families recognise.
                return np.broadcast_to(np.int64(self._index.number_of(first)), len(times))
        starts = self._window.pane_starts(times)
        if behind is not None:
            assert reached is not None
            ends = self._window.first_ends(reached[behind])
            starts[behind] = self._coded(starts[behind].tolist(), ends.tolist())
        return self._index.number(starts, [columns[key] for key in self._keys])

    def _behind(self, times: np.ndarray, reached: np.ndarray) -> np.ndarray | None:
        """The rows that are late for some of their windows, None if there are none."""
        if self._window.size_us == self._window.every_us:
            return None
        behind = np.flatnonzero(self._window.first_ends(times) <= reached)
        return behind if len(behind) else None

    def _coded(self, panes: list[int], ends: list[int]) -> list[int]:
        """Stand-ins for the starts of panes whose rows count only from the window with this end on."""
        return [self._codes.setdefault(at, _CODES + len(self._codes)) for at in zip(panes, ends)]

    def _table(self) -> pa.Table:
        starts = self._index.starts()
        ends = self._window.first_ends(starts)
        if self._codes:
            known = list(self._codes)
            for at in np.flatnonzero(starts < EARLIEST).tolist():
                starts[at], ends[at] = known[starts[at] - _CODES]
        keys = self._index.keys([self.schema.field(key).type for key in self._keys])
        return assemble(self.schema, starts, ends - starts, keys, self._groups)
