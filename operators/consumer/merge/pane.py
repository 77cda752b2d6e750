"""The rows of one pane that count from the same window on, in memory and, under memory pressure, on disk.

Rows that were spilled become a table one share of their groups at a time, because a window of a million
groups would not fit in memory twice. The parts on disk are sorted by key, so a share is a range of each, and
the concatenated shares are sorted as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....sketches.core.columns.columns import as_array
from ...grouping.group_index import hash_keys
from ...table.merge import Accumulator, RowAccumulator
from ...table.schema import keys_of
from ...table.window_groups import WindowGroups
from .on_disk import TableFile

_TOGETHER_ROWS = 10_000
"""The most rows of windows to merge at once: the result is held until its last window is gone."""
_SHARE_BYTES = 32 * 1024 * 1024
_FEW_ROWS = 4_096
_MOST_WAITING = 16
"""Small deltas wait until there are this many, and are merged together."""


class PanePart:
    """Rows of one pane that count from the same window on; `deltas` is how many deltas brought them."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._live: RowAccumulator | None = None
        self._pending: list[pa.Table] = []
        self._stored: list[TableFile] = []
        self._table: pa.Table | None = None
        self.deltas = 0
        self.arrived = -1

    def __len__(self) -> int:
        rows = (part.num_rows for part in self._pending)
        return max(
            0 if self._live is None else len(self._live), *(stored.rows for stored in self._stored), *rows, 0
        )

    def merge(self, rows: pa.Table) -> None:
        """Add a delta's rows."""
        self._table = None
        self._pending.append(rows)
        if rows.num_rows > _FEW_ROWS or len(self._pending) >= _MOST_WAITING:
            self.merge_pending()
        self.deltas += 1

    def merge_pending(self) -> None:
        """Merge waiting rows: a call costs far more than a row, so several deltas are merged together."""
        if self._pending:
            rows, self._pending = pa.concat_tables(self._pending), []
            self._live = self._live or RowAccumulator(self._schema)
            self._live.merge(rows)

    @property
    def only_rows(self) -> pa.Table | None:
        """The rows of the only delta that brought any, as long as they were not merged."""
        return (
            self._pending[0] if self._live is None and not self._stored and len(self._pending) == 1 else None
        )

    def groups(self) -> WindowGroups:
        """All rows, ordered by keys; nothing may be merged in after that."""
        self.merge_pending()
        if not self._stored:
            return (self._live or RowAccumulator(self._schema)).groups()
        self.spill()
        return WindowGroups.of_table(merged(self._schema, self._stored))

    def table(self) -> pa.Table:
        """The current rows, ordered by keys."""
        return self.groups().table

    def cached_table(self) -> pa.Table:
        """Its table, computed once as long as no rows are added."""
        if self._table is None:
            self._table = self.table()
        return self._table

    def spill(self) -> None:
        """Move what is in memory to disk."""
        self.merge_pending()
        if self._live is not None:
            self._stored.append(TableFile(self._live.table()))
            self._live = None
        self._table = None

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it takes."""
        made = 0 if self._table is None else self._table.nbytes
        live = 0 if self._live is None else self._live.nbytes
        return live + made + sum(part.nbytes for part in self._pending)


def groups_of_parts(
    schema: pa.Schema, parts: Mapping[int, PanePart]
) -> dict[int, Callable[[], WindowGroups]]:
    """The groups of windows that consist of one part each and get no more rows, by start; computed on call.

    Windows whose rows came with one delta are merged together, because a call costs far more than a row.
    """
    made: dict[int, Callable[[], WindowGroups]] = {}
    together = _Together(schema)
    for start, part in parts.items():
        if (rows := part.only_rows) is None:
            made[start] = part.groups
            continue
        if together.rows + rows.num_rows > _TOGETHER_ROWS:
            together = _Together(schema)
        together.add(rows)
        made[start] = partial(together.of_window, start)
    return made


class _Together:
    """Windows whose rows are merged at once."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._tables: list[pa.Table] = []
        self._groups: WindowGroups | None = None
        self.rows = 0

    def add(self, rows: pa.Table) -> None:
        """Add the rows of another window."""
        self.rows += rows.num_rows
        self._tables.append(rows)

    def of_window(self, start_us: int) -> WindowGroups:
        """The groups of the window that starts at `start_us`."""
        if self._groups is None:
            accumulator = RowAccumulator(self._schema)
            accumulator.merge(pa.concat_tables(self._tables))
            self._groups, self._tables = accumulator.groups(), []
        low, high = np.searchsorted(self._groups.starts, [start_us, start_us + 1]).tolist()
        return self._groups.slice(low, high)


def merged(schema: pa.Schema, parts: Sequence[TableFile]) -> pa.Table:
    """Merge tables of one window, each ordered by its keys, into one in that order."""
    if len(parts) == 1:
        return parts[0].read(0, parts[0].rows)
    shares, places = [], [0] * len(parts)
    for counts in _shares(keys_of(schema), parts):
        share = Accumulator(schema)
        for at, count in enumerate(counts.tolist()):
            share.merge(parts[at].read(places[at], places[at] + count))
            places[at] += count
        shares.append(share.table())
    return pa.concat_tables(shares)


def _shares(keys: Sequence[str], parts: Sequence[TableFile]) -> Iterator[np.ndarray]:
    """Yield how many of each part's next rows make up a share that contains all rows of its groups."""
    of_part = np.repeat(np.arange(len(parts)), [part.rows for part in parts])
    if not keys:
        yield np.bincount(of_part)
        return
    known = pa.concat_tables([part.columns(keys) for part in parts])
    order = pc.sort_indices(known, [(key, "ascending") for key in keys]).to_numpy()
    _, group = hash_keys([as_array(known.column(key)) for key in keys], len(order))
    group, of_part = group[order], of_part[order]
    first_of_group = np.flatnonzero(group[1:] != group[:-1]) + 1
    most = max(1, len(order) * _SHARE_BYTES // max(1, sum(part.nbytes for part in parts)))
    low = 0
    while low < len(order):
        at = np.searchsorted(first_of_group, low + most)
        high = int(first_of_group[at]) if at < len(first_of_group) else len(order)
        yield np.bincount(of_part[low:high], minlength=len(parts))
        low = high
