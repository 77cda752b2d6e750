"""Sliding windows that may still get rows: each has the groups with a row in its last pane."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ....sketches.core.columns.columns import as_array
from ...grouping.group_index import GroupIndex
from ...table.schema import keys_of
from ...table.window_groups import WindowGroups
from .paned_windows import PanedWindows


class OpenSliding(PanedWindows):
    """The windows of panes that end with a pane that has rows (see `OpenWindows`)."""

    def _groups_of(self, groups: WindowGroups, end: int) -> WindowGroups:
        keys, index = keys_of(self._schema), GroupIndex()
        last = self._main(end - self._window.pane_us)

        def numbered(rows: pa.Table) -> np.ndarray:
            return index.number(np.zeros(rows.num_rows, np.int64), [as_array(rows.column(k)) for k in keys])

        numbered(last)
        known = len(index)
        having = numbered(groups.columns) < known
        return groups if having.all() else WindowGroups.of_table(groups.table.filter(pa.array(having)))

    def _main(self, pane: int) -> pa.Table:
        """The rows of a pane that count in all of its windows."""
        part = self._panes[pane].parts.get(self._window.first_end(pane))
        return self._schema.empty_table() if part is None else part.cached_table()

    def _deltas(self, end: int) -> int:
        last = self._panes.get(end - self._window.pane_us)
        return super()._deltas(end) if last is not None and end in last.parts else 0
