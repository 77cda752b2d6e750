"""Count windows: a fixed number of a group's rows at a time, in the order of their partition.

Where a window ends depends on how many of a group's rows preceded it in its partition, and a sketch can't be
divided afterwards: so the sketcher must know how many rows each open window has (`sketching.open_counts`). A
delta contains **parts** of windows. Each records its window, identified by the row that began it, and the
window's number of rows including the part. So the last parts in the log show the next worker the state of the
partition's groups, and show the merger which windows are full.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from ...sketches.core.compilation.jit import kernel
from ..grouping.group_index import hash_keys
from ..steps.row_origin import RowOrigin
from ..table.schema import assemble, keys_of, with_parts
from ..windows.count import ByCount
from .open_counts import Counts, places_of
from .panes import Sketches


@kernel
def _cut(own, places, times, size, rows, begun, part_of, held, first_rows, window, upto, first, last, part):
    """Assign each row to a part, with `held` parts existing already; returns the number of parts."""
    n = held
    for i in range(len(own)):
        group = own[i]
        if rows[group] == 0:
            begun[group] = places[i]
            part_of[group] = -1
        at = part_of[group]
        if at < 0:
            at = n
            n += 1
            part_of[group] = at
            first_rows[at - held] = i
            window[at] = begun[group]
            first[at] = last[at] = times[i]
        rows[group] += 1
        upto[at] = rows[group]
        first[at] = min(first[at], times[i])
        last[at] = max(last[at], times[i])
        part[i] = at
        if rows[group] == size:
            rows[group] = 0
    return n


class ByCountRows(Sketches):
    """The sketches of the rows since the last `drain`, by windows of a fixed number of a group's rows.

    In the resulting table, `window_start` is the earliest of the rows' times, `window_end` a microsecond
    after the latest. The row that began the window, and the window's number of rows so far, follow the keys
    (`table.schema.with_parts`). `counts` outlives the tables.
    """

    counts: Counts

    def __init__(self, schema: pa.Schema, window: ByCount, salt: int = 0) -> None:
        self._size = window.rows
        self.counts = Counts()
        super().__init__(with_parts(schema), salt)

    def __len__(self) -> int:
        return self._n

    def _begin(self) -> None:
        super()._begin()
        self.counts.forget()
        self._n = 0
        self._part_of = np.full(len(self.counts), -1, np.int64)
        self._key_parts: list[list[pa.Array]] = []
        self._window, self._upto, self._first, self._last = (np.empty(0, np.int64) for _ in range(4))

    def _number(
        self,
        columns: Mapping[str, pa.Array],
        times: np.ndarray,
        place: RowOrigin | None,
        reached: np.ndarray | None,
    ) -> np.ndarray:
        if place is None:
            raise ValueError("windows by count need the rows' offsets")
        keys = [columns[key] for key in self._keys]
        own = self.counts.number(*hash_keys(keys, len(times)))
        fresh = len(self.counts) - len(self._part_of)
        self._part_of = np.concatenate([self._part_of, np.full(fresh, -1, np.int64)])
        if self._n + len(times) > len(self._window):
            room = max(2 * len(self._window), self._n + len(times))
            self._window, self._upto, self._first, self._last = (
                np.concatenate([column[: self._n], np.empty(room - self._n, np.int64)])
                for column in (self._window, self._upto, self._first, self._last)
            )
        part, first_rows, held = np.empty(len(times), np.int64), np.empty(len(times), np.int64), self._n
        self._n = _cut(
            *(own, self._places(place.offsets), times, self._size, self.counts.rows, self.counts.first_rows),
            *(self._part_of, held, first_rows, self._window, self._upto, self._first, self._last, part),
        )
        if self._n > held:
            chosen = pa.array(first_rows[: self._n - held])
            self._key_parts.append([key.take(chosen) for key in keys])
        return part

    def _places(self, offsets: np.ndarray) -> np.ndarray:
        """A number that identifies each row (`places_of`)."""
        return places_of(offsets)

    def _table(self) -> pa.Table:
        n, types = self._n, [self.schema.field(key).type for key in keys_of(self.schema)]
        keys = [
            pa.concat_arrays([batch[at].cast(kind) for batch in self._key_parts])
            if self._key_parts
            else pa.array([], kind)
            for at, kind in enumerate(types)
        ]
        bounds = [pa.array(self._window[:n]), pa.array(self._upto[:n])]
        first, last = self._first[:n], self._last[:n]
        return assemble(self.schema, first, last + np.int64(1) - first, [*keys, *bounds], self._column)
