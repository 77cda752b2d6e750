"""The only step that processes rows: updates the sketches of each row's pane and group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from ...sketches.core.lazy import pl
from ..definition.input_cleaning import update, usable, within_reach
from ..grouping.arrow_columns import arrow_column
from ..grouping.group_index import GroupIndex
from ..steps.row_origin import RowOrigin
from ..table.schema import aggregates_of, assemble, keys_of
from ..windows.paned import Paned
from ..windows.window import EARLIEST, StreamWindows
from .open_counts import Counts

_GOLDEN = 0x9E3779B97F4A7C15
_FEW = 8
"""Up to this many panes, times are compared with each."""
_CODES = 2 * EARLIEST
"""From here up to `EARLIEST`, values that are no real times mark groups that don't count in all windows."""


def few_panes(window: StreamWindows, times: np.ndarray) -> Sequence[int] | None:
    """The starts of all panes from that of the earliest time to that of the latest; None if they are many.

    >>> from streamgauge.operators.windows.tumbling import Tumbling
    >>> minutes = Tumbling.every("1m")
    >>> list(few_panes(minutes, np.array([1, 61_000_000]))), few_panes(minutes, np.array([0, 10**12]))
    ([0, 60000000], None)
    """
    first, last = (window.pane_start(int(time)) for time in (times.min(), times.max()))
    if first == last:
        return [first]
    panes = window.panes(first, last) if isinstance(window, Paned) else None
    return None if panes is None or len(panes) > _FEW else panes


@contextmanager
def _naming(column: str | None) -> Iterator[None]:
    """Put the column's name before errors about its values."""
    try:
        yield
    except (TypeError, ValueError, OverflowError) as error:
        if column is not None:
            error.args = (f"column {column!r}: {error}",)
        raise


class Sketches:
    """The sketches of the rows since the last `drain`, by group; subclasses define what a group is.

    `schema` is the schema of the resulting table (`table.schema.table_schema`), and defines what is stored.
    `salt` seeds the families that draw random numbers, differently for each drained table: sketchers whose
    tables are merged need different salts. `counts` are the groups' states in their open windows, for windows
    that rows end; they outlive the tables.
    """

    counts: Counts | None = None

    def __init__(self, schema: pa.Schema, salt: int = 0) -> None:
        self.schema = schema
        self._keys = keys_of(schema)
        self._aggregates = aggregates_of(schema)
        self._salt = salt
        self._begin()

    def __len__(self) -> int:
        """The number of groups."""
        raise NotImplementedError

    def add(
        self,
        rows: pl.DataFrame,
        times: np.ndarray,
        place: RowOrigin | None = None,
        reached: np.ndarray | None = None,
    ) -> None:
        """Sketch rows with the requested columns, in order; `times` are int64 microseconds.

        `place` is their origin, which distinguishes rows with the same event time. `reached` is the watermark
        before each, if some may be late for some of their windows (`PartitionTime.advance`).
        """
        columns = {name: arrow_column(rows[name]) for name in rows.columns}
        self.add_columns(columns, times, place, reached)

    def add_columns(
        self,
        columns: Mapping[str, pa.Array],
        times: np.ndarray,
        place: RowOrigin | None = None,
        reached: np.ndarray | None = None,
    ) -> None:
        """Sketch rows given as columns of Arrow's older types; see `add`."""
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
            with _naming(None if weighted else aggregate.column):  # otherwise `update` names it
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

    def _column(self, name: str) -> pa.Array:
        """An aggregate's column, with a row for each group."""
        return self._groups[name].to_arrow()

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

    `window` divides time into panes. In the resulting table, `window_start` is the pane's start, and
    `window_end` the end of the first window that counts the rows: the pane's first window, or a later one for
    rows that were late for the earlier windows. For tumbling windows it is their own end.

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
            few = few_panes(self._window, times)
            if few is not None and len(few) == 1:
                # One group for all rows: an array of stride 0, which families recognise.
                return np.broadcast_to(np.int64(self._index.number_of(few[0])), len(times))
            if few is not None:
                return self._number_panes(few, times)
        starts = self._window.pane_starts(times)
        if behind is not None:
            assert reached is not None
            ends = self._window.first_ends(reached[behind])
            starts[behind] = self._coded(starts[behind].tolist(), ends.tolist())
        return self._index.number(starts, [columns[key] for key in self._keys])

    def _number_panes(self, panes: Sequence[int], times: np.ndarray) -> np.ndarray:
        """The groups of rows without keys, in few panes: comparing times is cheaper than hashing."""
        which = np.zeros(len(times), np.intp)
        for pane in panes[1:]:
            which += times >= pane
        numbers = np.zeros(len(panes), np.int64)
        firsts = [int(np.argmax(which == at)) for at in range(len(panes))]
        for first, at in sorted(zip(firsts, range(len(panes)))):
            if which[first] == at:  # a pane between two others may have no rows
                numbers[at] = self._index.number_of(panes[at])
        return numbers[which]

    def _behind(self, times: np.ndarray, reached: np.ndarray) -> np.ndarray | None:
        """A mask of the rows that are late for some of their windows; None if there are none."""
        if self._window.single:
            return None
        behind = np.flatnonzero(self._window.first_ends(times) <= reached)
        return behind if len(behind) else None

    def _coded(self, panes: list[int], ends: list[int]) -> list[int]:
        """Substitutes for the starts of panes whose rows count only from the window with this end on."""
        return [self._codes.setdefault(at, _CODES + len(self._codes)) for at in zip(panes, ends)]

    def _table(self) -> pa.Table:
        starts = self._index.starts()
        ends = self._window.first_ends(starts)
        if self._codes:
            known = list(self._codes)
            for at in np.flatnonzero(starts < EARLIEST).tolist():
                starts[at], ends[at] = known[starts[at] - _CODES]
        keys = self._index.keys([self.schema.field(key).type for key in self._keys])
        return assemble(self.schema, starts, ends - starts, keys, self._column)
