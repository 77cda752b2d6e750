"""The groups of closed windows: live sketches, and serialised bytes only when the table is requested.

Windows that close together share one batch. Derived values (a table, an answer, rows as JSON) are computed
for all windows of the batch at once, and each window has its slice: a call costs far more than a row. Nothing
here changes any more, so threads may share it, and answering changes no byte of a table.
"""

from __future__ import annotations

import copy
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np
import pyarrow as pa

from ...sketches.core.columns.columns import as_array
from ...sketches.core.lazy import pl
from ...sketches.core.memory_size import held_bytes
from ...sketches.core.one_by_one import OneByOne
from ...sketches.core.protocol import Groups
from ..definition.aggregate import Aggregate
from .final import is_final, with_final
from .schema import END, START, aggregates_of, keys_of, order_of, window_columns, with_sketches
from .windows import declared_windows

T = TypeVar("T")

_Rows = slice
"""The builtin, which a method with the same name hides from annotations."""


class _Batch(ABC):
    """Windows that share their columns; its rows are in the order of the table."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._shared: dict[Hashable, Any] = {}

    @cached_property
    def keys(self) -> list[str]:
        return keys_of(self.schema)

    @cached_property
    def aggregates(self) -> dict[str, Aggregate]:
        return aggregates_of(self.schema)

    @property
    @abstractmethod
    def columns(self) -> pa.Table:
        """The times and the keys, and possibly more."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """The bytes of the sketches, in their current form."""

    @property
    @abstractmethod
    def table(self) -> pa.Table:
        """The table of sketches."""

    @abstractmethod
    def made_answers(self, name: str) -> Any:
        """A column's answers, one per row: an Arrow array or a list."""

    @property
    def rows(self) -> int:
        return self.columns.num_rows

    @property
    def frame(self) -> pl.DataFrame:
        """The times and the keys."""
        names = [START, END, *self.keys]
        return self.share("frame", lambda: pl.DataFrame(pl.from_arrow(self.columns.select(names))))

    def answers(self, name: str) -> Any:
        """`made_answers`, computed once."""
        return self.share(("answers", name), lambda: self.made_answers(name))

    def times(self, name: str) -> np.ndarray:
        """One of the columns of times, in microseconds."""
        return self.share(name, lambda: as_array(self.columns.column(name)).view(pa.int64()).to_numpy())

    def marked_table(self, final: bool | None) -> pa.Table:
        """The table of sketches, marked as final or not, unless that is None."""
        if final is None:
            return self.table
        return self.share(("table", final), lambda: with_final(self.table, final))

    def cuts(self) -> np.ndarray:
        """The numbers of the rows with which a window begins, except the first."""
        windows = declared_windows(self.schema)
        if windows is not None and not windows.common_edges:
            return np.empty(0, np.int64)
        new = (np.diff(self.times(START)) != 0) | (np.diff(self.times(END)) != 0)
        return np.flatnonzero(new) + 1

    def share(self, what: Hashable, make: Callable[[], Any]) -> Any:
        """The result of `make`, computed once; threads that call it at the same time each compute it."""
        if what not in self._shared:
            self._shared[what] = make()
        return self._shared[what]

    def alone(self) -> Self:
        """The same windows without cached results."""
        other = copy.copy(self)
        other._shared = {}
        return other


class _Bytes(_Batch):
    """Windows in a table."""

    def __init__(self, table: pa.Table) -> None:
        super().__init__(table.schema)
        self._table = table

    @property
    def columns(self) -> pa.Table:
        return self._table

    @property
    def nbytes(self) -> int:
        return self._table.nbytes

    @property
    def table(self) -> pa.Table:
        return self._table

    def made_answers(self, name: str) -> Any:
        return answers(self.aggregates[name], self._table.column(name))


class _Live(_Batch):
    """Windows in live groups, in their own order, until `alone` has built a table."""

    def __init__(self, schema: pa.Schema, columns: pa.Table, groups: Mapping[str, Groups]) -> None:
        super().__init__(schema)
        self._order = order_of(columns)
        self._columns = columns if self._order is None else columns.take(self._order)
        self._groups: Mapping[str, Groups] | None = groups
        self._needed = True

    @property
    def columns(self) -> pa.Table:
        return self._columns

    @property
    def nbytes(self) -> int:
        return self.share("nbytes", lambda: held_bytes(self._groups) + self._columns.nbytes)

    @property
    def table(self) -> pa.Table:
        groups = self._groups
        if groups is not None:
            placed = self.schema, self._columns, self._order
            self.share("table", lambda: with_sketches(*placed, lambda name: groups[name].to_arrow()))
            self._groups = groups if self._needed else None
        return self._shared["table"]

    def made_answers(self, name: str) -> Any:
        groups = self._groups
        if groups is None:
            return answers(self.aggregates[name], self.table.column(name))
        if isinstance(groups[name], OneByOne):
            # Reading an image merges it into an empty sketch, which may change the order of a sample.
            return answers(self.aggregates[name], in_order(groups[name].to_arrow(), self._order))
        return in_order(groups[name].answers(**self.aggregates[name].answer), self._order)

    def alone(self) -> Self:
        other = super().alone()
        other._needed = False
        return other


class WindowGroups:
    """The groups of a closed window, or of several that closed together, in the order of the table.

    `table` builds the table of sketches on request; `answers` answers from the live sketches. Both agree.
    `final` says whether no more rows count in them; None if unknown.

    >>> from streamgauge import Stream, StreamTester, count
    >>> rows = Stream.from_schema({"at": pl.Int64, "tag": pl.String}, time=pl.from_epoch("at"))
    >>> tester = StreamTester(rows.group_by("tag").tumbling("1m").agg(n=count()))
    >>> _ = tester.feed([{"at": 1_767_225_600, "tag": tag} for tag in ("b", "a", "b")])
    >>> groups = WindowGroups.of_table(tester.finish().tables().to_arrow())
    >>> groups.answers(["n"]).select("tag", "n").rows(), len(groups.slice(0, 1)), groups.final
    ([('a', 1), ('b', 2)], 1, False)
    """

    __slots__ = ("_batch", "_high", "_low", "_table", "final")

    def __init__(self, batch: _Batch, low: int, high: int, final: bool | None) -> None:
        self._batch, self._low, self._high, self.final = batch, low, high, final
        self._table: pa.Table | None = None

    @classmethod
    def of_table(cls, table: pa.Table) -> WindowGroups:
        """The groups in a table of sketches. Raises `SketchError` for any other table."""
        made = cls(_Bytes(table), 0, table.num_rows, is_final(table))
        made._table = table
        return made

    @classmethod
    def live(
        cls,
        schema: pa.Schema,
        starts: np.ndarray,
        length_us: int | pa.Array,
        keys: Sequence[pa.Array],
        groups: Mapping[str, Groups],
    ) -> WindowGroups:
        """Groups from window starts (int64 microseconds), keys, and sketches that no longer change."""
        batch = _Live(schema, window_columns(schema, starts, length_us, keys), groups)
        return cls(batch, 0, batch.rows, None)

    def __len__(self) -> int:
        return self._high - self._low

    @property
    def schema(self) -> pa.Schema:
        """The schema of the table."""
        return self._batch.schema

    @property
    def keys(self) -> list[str]:
        """The key columns."""
        return self._batch.keys

    @property
    def all_time(self) -> bool:
        """Whether they have no windows, only the window of all time."""
        windows = declared_windows(self.schema)
        return windows is not None and windows.all_time

    @property
    def alive(self) -> bool:
        """Whether live sketches answer."""
        return isinstance(self._batch, _Live)

    @property
    def columns(self) -> pa.Table:
        """The times and the keys."""
        names = [START, END, *self.keys]
        return self._batch.columns.select(names).slice(self._low, len(self))

    @property
    def table(self) -> pa.Table:
        """The table of sketches, marked as final or not."""
        if self._table is None:
            self._table = self._batch.marked_table(self.final).slice(self._low, len(self))
        return self._table

    def windows(self) -> list[WindowGroups]:
        """Each window by itself, in order; windows without common edges stay together."""
        cuts = self._batch.share("cuts", self._batch.cuts)
        inside = cuts[np.searchsorted(cuts, self._low, "right") : np.searchsorted(cuts, self._high)].tolist()
        if not inside:
            return [self]
        batch, final = self._batch, self.final
        edges = itertools.pairwise([self._low, *inside, self._high])
        return [WindowGroups(batch, low, high, final) for low, high in edges]

    @property
    def nbytes(self) -> int:
        """Bytes of memory: for a window in a shared batch, its share by rows."""
        return self._batch.nbytes * len(self) // max(1, self._batch.rows)

    def with_final(self, final: bool) -> WindowGroups:
        """The same groups, marked as final or not."""
        return WindowGroups(self._batch, self._low, self._high, final)

    def slice(self, low: int, high: int) -> WindowGroups:
        """The rows from `low` up to, not including, `high`."""
        return WindowGroups(self._batch, self._low + low, min(self._low + high, self._high), self.final)

    @property
    def starts(self) -> np.ndarray:
        """The start of each row's window (int64 microseconds)."""
        return self._batch.times(START)[self._low : self._high]

    @property
    def ends(self) -> np.ndarray:
        """The end of each row's window."""
        return self._batch.times(END)[self._low : self._high]

    def answers(self, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """The answers of these columns, or of all, after times and keys (see `query`)."""
        batch, low, high = self._batch, self._low, self._high
        names = batch.aggregates if columns is None else columns
        frame = batch.frame.slice(low, high - low)
        # In strict mode, Polars infers nested types from the first rows, and others become null or fail.
        return frame.hstack([pl.Series(name, batch.answers(name)[low:high], strict=False) for name in names])

    def whole(self, what: Hashable, make: Callable[[WindowGroups], T]) -> tuple[T, _Rows]:
        """The result of `make` for all windows that closed together, and the range of these rows in it.

        It is called once for all of them; `what` identifies the result.
        """
        batch = self._batch
        made = batch.share(what, lambda: make(WindowGroups(batch, 0, batch.rows, None)))
        return made, slice(self._low, self._high)

    def alone(self) -> WindowGroups:
        """The same groups without cached results, for storing their table."""
        batch = self._batch.share("alone", self._batch.alone)
        return WindowGroups(batch, self._low, self._high, self.final)

    def followed_by(self, later: WindowGroups) -> WindowGroups | None:
        """These rows and later ones as one slice, if those follow directly."""
        if self._batch is not later._batch or self._high != later._low or self.final != later.final:
            return None
        return WindowGroups(self._batch, self._low, later._high, self.final)


def in_order(values: Any, order: pa.Array | None) -> Any:
    """An Arrow array or a list in an order; unchanged if that is None."""
    if order is None:
        return values
    return values.take(order) if isinstance(values, pa.Array) else [values[at] for at in order.to_pylist()]


def as_few(parts: Iterable[WindowGroups]) -> list[WindowGroups]:
    """The same rows in as few slices as possible."""
    joined: list[WindowGroups] = []
    for part in parts:
        both = joined[-1].followed_by(part) if joined else None
        if both is None:
            joined.append(part)
        else:
            joined[-1] = both
    return joined


def answers(aggregate: Aggregate, column: pa.Array | pa.ChunkedArray) -> Any:
    """The answer for each sketch in an aggregate's column, in order: an Arrow array or a list."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    groups = aggregate.groups(len(column))
    groups.merge(np.arange(len(column)), column)
    return groups.answers(**aggregate.answer)
