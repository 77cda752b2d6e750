"""The only step that touches rows: those of a pane and a group into that group's sketches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from ..definition.inputs import usable, within_reach
from ..definition.windows import Window
from ..table.schema import aggregates_of, assemble, keys_of
from .grouping import GroupIndex

_OLDEST = pl.CompatLevel.oldest()
_GOLDEN = 0x9E3779B97F4A7C15


@dataclass(frozen=True, slots=True)
class Place:
    """Where rows come from: their partition, and the offset of each (int64)."""

    partition: int
    offsets: np.ndarray

    def of(self, rows: np.ndarray) -> Place:
        """That of some of the rows, by their numbers."""
        return Place(self.partition, self.offsets[rows])


class Panes:
    """The sketches of the rows since the last `take`, by pane and keys.

    `schema` is that of the table they become (`table.schema.table_schema`), and says what is kept; `window`
    cuts time into panes. `salt` seeds those families that draw random numbers, differently for each table
    taken: give another to all whose tables are merged.

    >>> from streamgauge.operators.definition.aggregates import count
    >>> from streamgauge.operators.definition.windows import Tumbling
    >>> from streamgauge.operators.table.schema import table_schema
    >>> panes = Panes(table_schema({"lang": pa.string()}, {"posts": count()}, None), Tumbling.every("1m"))
    >>> panes.add(pl.DataFrame({"lang": ["en", "en", "fr"]}), np.array([1, 2, 61_000_000]))
    >>> panes.take().select(["lang", "posts"]).to_pylist()
    [{'lang': 'en', 'posts': 2}, {'lang': 'fr', 'posts': 1}]
    """

    def __init__(self, schema: pa.Schema, window: Window, salt: int = 0) -> None:
        self.schema = schema
        self._window = window
        self._keys = keys_of(schema)
        self._aggregates = aggregates_of(schema)
        self._salt = salt
        self._begin()

    def __len__(self) -> int:
        """Groups held: panes times keys."""
        return len(self._index)

    def add(self, rows: pl.DataFrame, times: np.ndarray, place: Place | None = None) -> None:
        """Sketch rows, in their order, that hold the columns asked for; `times` are int64 microseconds.

        `place` says where they come from, which tells rows of one event time apart.
        """
        columns = {name: rows[name].to_arrow(compat_level=_OLDEST) for name in rows.columns}
        numbers = self._number(columns, times)
        for name, asked in self._aggregates.items():
            groups = self._groups[name]
            groups.resize(len(self._index))
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
        keys = self._index.keys([self.schema.field(key).type for key in self._keys])
        table = assemble(self.schema, self._index.starts(), self._window.pane_us, keys, self._groups)
        self._salt = (self._salt * 31 + _GOLDEN) & 0x7FFF_FFFF_FFFF_FFFF
        self._begin()
        return table

    def _begin(self) -> None:
        self._index = GroupIndex()
        self._groups = {
            name: asked.groups(seed=self._salt + at)
            for at, (name, asked) in enumerate(self._aggregates.items())
        }

    def _number(self, columns: Mapping[str, pa.Array], times: np.ndarray) -> np.ndarray:
        if not self._keys:
            first = self._window.pane_start(int(times.min()))
            if first == self._window.pane_start(int(times.max())):
                # One group for all rows: an array of stride 0, which families recognise.
                return np.broadcast_to(np.int64(self._index.number_of(first)), len(times))
        return self._index.number(self._window.pane_starts(times), [columns[key] for key in self._keys])
