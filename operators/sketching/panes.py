"""The only step that touches rows: those of a pane and a group into that group's sketches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from ...sketches.core.lazy import pl
from ..definition.input_cleaning import update, usable, within_reach
from ..grouping.group_index import GroupIndex
from ..steps.row_origin import RowOrigin
from ..table.schema import aggregates_of, assemble, keys_of
from ..windows.paned import Paned
from ..windows.window import EARLIEST
from .open_counts import Counts

_GOLDEN = 0x9E3779B97F4A7C15
_FEW = 8
"""Panes that times are compared with one by one."""
_CODES = 2 * EARLIEST
"""From here up to `EARLIEST`, times that no row has stand for groups that are not of all their windows."""


@contextmanager
def _naming(column: str | None) -> Iterator[None]:
    """Put the column's name before what is wrong with its values."""
    try:
        yield
    except (TypeError, ValueError, OverflowError) as error:
        if column is not None:
            error.args = (f"column {column!r}: {error}",)
        raise


class Sketches:
    """The sketches of the rows since the last `drain`, by group; what a group is, subclasses say.

    `schema` is that of the table they become (`table.schema.table_schema`), and says what is kept. `salt`
    seeds those families that draw random numbers, differently for each table drained: give another to all
    whose tables are merged. `counts` are the places of groups in their open windows, of those that rows end;
    they outlive the tables.
    """

    counts: Counts | None = None

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
        place: RowOrigin | None = None,
        reached: np.ndarray | None = None,
    ) -> None:
        """Sketch rows, in their order, that hold the requested columns; `times` are int64 microseconds.

        `place` says where they come from, which tells rows of one event time apart. `reached` is the
        watermark before each, where some may be late for some of their windows (`PartitionTime.advance`).
        """
        columns = {name: rows[name].to_arrow(compat_level=pl.CompatLevel.oldest()) for name in rows.columns}
        self.add_columns(columns, times, place, reached)

    def add_columns(
        self,
        columns: Mapping[str, pa.Array],
        times: np.ndarray,
        place: RowOrigin | None = None,
        reached: np.ndarray | None = None,
    ) -> None:
        """Sketch rows that are columns of Arrow's older types; see `add`."""
        numbers = self._number(columns, times, place, reached)
        for name, aggregate in self._aggregates.items():
            groups = self._groups[name]
            groups.resize(len(self))
            column = None if aggregate.column is None else within_reach(columns[aggregate.column])
            given: dict[str, Any] = {name: columns[source] for name, source in aggregate.inputs.items()}
            if aggregate.family.inputs:
                column, given = usable(column, given)
            if "time" in aggregate.family.inputs:
                given["time"] = times
            if "offset" in aggregate.family.inputs and place is not None:
                given |= {"partition": place.partition, "offset": place.offsets}
            weighted = any(one in aggregate.inputs for one in aggregate.family.optional)
            with _naming(None if weighted else aggregate.column):  # which `update` names then
                update(groups, aggregate, numbers, column, given)

    def drain(self) -> pa.Table:
        """The table of sketches of the rows added since the last call; starts empty again."""
        table = self._table()
        self._salt = (self._salt * 31 + _GOLDEN) & 0x7FFF_FFFF_FFFF_FFFF
        self._begin()
        return table

    def _begin(self) -> None:
        self._groups = {
            name: aggregate.groups(seed=self._salt + at)
            for at, (name, aggregate) in enumerate(self._aggregates.items())
        }

    def _number(
        self,
        columns: Mapping[str, pa.Array],
        times: np.ndarray,
        place: RowOrigin | None,
        reached: np.ndarray | None,
    ) -> np.ndarray:
        """The group of each row."""
        raise NotImplementedError

    def _table(self) -> pa.Table:
        """The table of all groups."""
        raise NotImplementedError


class Panes(Sketches):
    """The sketches of the rows since the last `drain`, by pane and keys.

    `window` cuts time into panes. In the table they become, `window_start` is the pane's start, and
    `window_end` the end of the first window that counts the rows: that of the pane's first window, or of a
    later one for rows that were late for those before. So of tumbling windows it is their own end.

    >>> from streamgauge.operators.definition.aggregates import count
    >>> from streamgauge.operators.windows.tumbling import Tumbling
    >>> from streamgauge.operators.table.schema import table_schema
    >>> panes = Panes(table_schema({"lang": pa.string()}, {"posts": count()}, None), Tumbling.every("1m"))
    >>> panes.add(pl.DataFrame({"lang": ["en", "en", "fr"]}), np.array([1, 2, 61_000_000]))
    >>> panes.drain().select(["lang", "posts"]).to_pylist()
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
        place: RowOrigin | None,
        reached: np.ndarray | None,
    ) -> np.ndarray:
        behind = None if reached is None else self._behind(times, reached)
        if not self._keys and behind is None:
            first, last = (self._window.pane_start(int(time)) for time in (times.min(), times.max()))
            if first == last:
                # One group for all rows: an array of stride 0, which families recognise.
                return np.broadcast_to(np.int64(self._index.number_of(first)), len(times))
            few = self._window.panes(first, last)
            if few is not None and len(few) <= _FEW:
                return self._number_panes(few, times)
        starts = self._window.pane_starts(times)
        if behind is not None:
            assert reached is not None
            ends = self._window.first_ends(reached[behind])
            starts[behind] = self._coded(starts[behind].tolist(), ends.tolist())
        return self._index.number(starts, [columns[key] for key in self._keys])

    def _number_panes(self, panes: Sequence[int], times: np.ndarray) -> np.ndarray:
        """The groups of rows without keys, in a few panes: comparing times with each is less than hashing."""
        which = np.zeros(len(times), np.intp)
        for pane in panes[1:]:
            which += times >= pane
        numbers = np.zeros(len(panes), np.int64)
        firsts = [int(np.argmax(which == at)) for at in range(len(panes))]
        for first, at in sorted(zip(firsts, range(len(panes)))):
            if which[first] == at:  # one between two others may have no row
                numbers[at] = self._index.number_of(panes[at])
        return numbers[which]

    def _behind(self, times: np.ndarray, reached: np.ndarray) -> np.ndarray | None:
        """The rows that are late for some of their windows, None without any."""
        if self._window.single:
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
