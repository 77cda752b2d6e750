"""Parts of windows as deltas brought them: their properties in columns, their sketches in chunks.

Sessions and count windows have no common edges, so only a part's properties show where it belongs. The
sketches stay as they came until their window closes, or until there are many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import pyarrow as pa

from ....sketches.core.columns.columns import as_array
from ....sketches.core.memory_size import held_bytes
from ...table.row_sets import RowSets
from ...table.schema import TIME_TYPE, aggregates_of, keys_of
from ..log.merger_state import LogState
from .on_disk import on_disk
from .open_windows import Beginning

_MOST_ORIGINS = 64
"""The number of log positions to remember for restarts: resuming too early does no harm."""

_OWN = ("origin", "arrived", "chunk", "row")
"""A part's own columns: the offsets of its origin and of its latest delta, and where its sketches are."""


class PartialWindows:
    """Parts of windows, in order of arrival; `at` has a column for each of their properties.

    `known` names the properties besides a part's own, with their types. `schema` is the schema of the table
    that the parts become.
    """

    def __init__(self, schema: pa.Schema, known: Mapping[str, type]) -> None:
        self._schema = schema
        self.keys, self._aggregates = keys_of(schema), aggregates_of(schema)
        self._types = {**known, **dict.fromkeys(_OWN, np.int64)}
        self._at: dict[str, np.ndarray] = {name: np.empty(0, kind) for name, kind in self._types.items()}
        self._fresh: list[dict[str, np.ndarray]] = []
        self._chunks: dict[int, pa.Table] = {}
        self._next_chunk = 0
        self._stored: set[int] = set()
        self._origins: dict[int, LogState] = {}
        self.joined = 0
        """The number of parts after the last merge."""

    def __len__(self) -> int:
        return len(self.at["origin"])

    @property
    def at(self) -> dict[str, np.ndarray]:
        """The properties of the parts."""
        if self._fresh:
            parts = [self._at, *self._fresh]
            self._at = {name: np.concatenate([part[name] for part in parts]) for name in self._types}
            self._fresh = []
        return self._at

    def add(
        self, known: Mapping[str, np.ndarray], rows: pa.Table, origin: Callable[[], Beginning], offset: int
    ) -> None:
        """Add the parts of the delta at an offset of the log; `rows` are their sketches."""
        count = rows.num_rows
        begin = self._add_origin(origin())
        own = {"origin": begin, "arrived": offset, "chunk": self._store(rows)}
        numbers = {name: np.full(count, number) for name, number in own.items()}
        self._fresh.append({**known, **numbers, "row": np.arange(count)})

    def drop(self, at: np.ndarray) -> None:
        """Remove some parts; `forget` frees what only they needed."""
        kept = np.ones(len(self), bool)
        kept[at] = False
        self._at = {name: column[kept] for name, column in self.at.items()}
        self.joined = min(self.joined, len(self))

    def forget(self, needed: Iterable[int]) -> None:
        """Drop sketches and origins that no part needs any more; origins in `needed` are kept."""
        chunks = set(np.unique(self.at["chunk"]).tolist())
        self._chunks = {chunk: table for chunk, table in self._chunks.items() if chunk in chunks}
        origins = {*needed, *np.unique(self.at["origin"]).tolist()}
        self._origins = {offset: before for offset, before in self._origins.items() if offset in origins}

    def origin_of(self, offset: int) -> int:
        """The remembered position that stands for an origin: the latest one up to there."""
        return max(known for known in self._origins if known <= offset)

    def origins(self) -> list[Beginning]:
        """The positions from which the log must be reread to complete all parts."""
        return [Beginning(offset, before) for offset, before in self._origins.items()]

    @property
    def nbytes(self) -> int:
        """Bytes of memory that they take."""
        chunks = [table for chunk, table in self._chunks.items() if chunk not in self._stored]
        return held_bytes(self._at, self._fresh, chunks)

    def spill(self) -> None:
        """Move the sketches to disk."""
        self._chunks = on_disk(self._chunks)
        self._stored = set(self._chunks)

    def merged(self, at: np.ndarray, part: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> pa.Table:
        """Merge some parts into one row for each window that has any, in the order of the windows.

        `part` is the number of each part's window, `starts` and `ends` are those of all windows.
        """
        there = np.bincount(part, minlength=len(starts)) > 0
        sets, rows = RowSets((np.cumsum(there) - 1)[part]), self._rows(at)
        times = starts[there], ends[there]
        columns = [pa.array(time, pa.int64()).view(TIME_TYPE) for time in times]
        columns += [as_array(rows.column(key)).take(pa.array(sets.firsts)) for key in self.keys]
        seed = int(times[0][0]) & 0xFFFF_FFFF
        columns += [
            sets.merge(aggregate, as_array(rows.column(name)), seed)
            for name, aggregate in self._aggregates.items()
        ]
        fields = zip(columns, self._schema.types)
        cast = [column.cast(kind) if column.type != kind else column for column, kind in fields]
        return pa.Table.from_arrays(cast, schema=self._schema)

    def compact(self, part: np.ndarray, table: pa.Table, known: Mapping[str, np.ndarray]) -> None:
        """Replace the parts by one for each number in `part`, in order, with the sketches of `table`.

        Properties in `known` are set; others are those of the first of its parts.
        """
        firsts = np.full(table.num_rows, len(part))
        np.minimum.at(firsts, part, np.arange(len(part)))
        columns = {name: column[firsts] for name, column in self.at.items()}
        for name, ufunc in (("origin", np.minimum), ("arrived", np.maximum)):
            ufunc.at(columns[name], part, self._at[name])
        self._chunks = {}
        own = {"chunk": np.full(len(firsts), self._store(table)), "row": np.arange(len(firsts))}
        self._at, self.joined = {**columns, **known, **own}, len(firsts)

    def _store(self, table: pa.Table) -> int:
        self._chunks[self._next_chunk] = table
        self._next_chunk += 1
        return self._next_chunk - 1

    def _add_origin(self, origin: Beginning) -> int:
        """Remember a log position for restarts; returns the offset that stands for it."""
        if origin.offset not in self._origins:
            self._origins[origin.offset] = origin.before
            if len(self._origins) > _MOST_ORIGINS:
                kept = np.array(sorted(self._origins)[::2])
                column = self.at["origin"]
                self._at["origin"] = kept[np.searchsorted(kept, column, "right") - 1]
                self._origins = {int(offset): self._origins[int(offset)] for offset in kept}
        return self.origin_of(origin.offset)

    def _rows(self, at: np.ndarray) -> pa.Table:
        """The sketches of some parts, in their order."""
        chunk, row = self.at["chunk"][at], self._at["row"][at]
        order = np.argsort(chunk, kind="stable")
        parts = [
            self._chunks[int(number)].take(pa.array(row[order[chunk[order] == number]]))
            for number in np.unique(chunk)
        ]
        table = pa.concat_tables(parts).combine_chunks() if parts else self._schema.empty_table()
        if (order[1:] > order[:-1]).all():
            return table
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return table.take(pa.array(back))
