"""A table of sketches as a value, with methods to query, merge, roll up, compare, show and write it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...sketches.core.lazy import pl
from ...sketches.core.protocol import SketchError
from ..definition.definition_diff import aggregate_text
from ..definition.description import sketch_of
from ..rendering.answers import answer, cell, span
from ..rendering.names import visible_name
from ..whole_file import whole_file
from ..windows.durations import Duration
from .merge import merge_tables, windows_of_rollup
from .schema import (
    END,
    START,
    ArrowStream,
    aggregates_of,
    arrow_table,
    drop_all_time,
    keys_of,
    to_ipc,
    write_parquet,
)
from .sets import compare
from .window_groups import WindowGroups
from .windows import declared_windows

if TYPE_CHECKING:
    import pandas as pd

PARQUET = (".parquet", ".pq")
IPC = (".arrow", ".arrows", ".ipc")
"""The extensions of files that hold tables of sketches."""

_SHOWN = 10
"""How many rows a table's text and notebook view show."""


class SketchTable:
    """A table of sketches: a row for each window and group, a column for each aggregate.

    `table` is a ``pyarrow.Table``, or anything else with ``__arrow_c_stream__``, whose column metadata
    contain the definitions; `read_table`, a run and Spark return such tables. `answers` returns numbers, each
    with the bounds that its aggregate promises, at the confidence that the aggregate states. Times are
    `window_start` and `window_end`, in UTC; a table without windows has neither. Tables are immutable:
    `merge`, `rollup`, `slice`, `filter` and `sort_by` return new ones.

    A window that closes in a run is answered from its live sketches, or from the bytes in which they arrived;
    others are produced only on request. ``pa.table(table)``, ``pl.DataFrame(table)`` and all other readers of
    Arrow streams accept it. Like a ``pyarrow.Table`` it has `schema`, `column_names`, `num_rows`, `column`
    (also with square brackets), `to_pylist`, `slice`, `filter` and `sort_by`; `to_arrow` returns the whole
    table. Notebooks show the first windows with their answers.

    Tables are equal if their columns, definitions and rows are equal, final or not.

    Raises `SketchError` for a table of anything but sketches, `TypeError` for anything but a table.

    >>> import polars as pl
    >>> import streamgauge as sg
    >>> rows = sg.Stream.from_schema({"at": pl.Int64, "lang": pl.String}, time=pl.from_epoch("at"))
    >>> tester = sg.StreamTester(rows.group_by("lang").tumbling("1m").agg(posts=sg.count()))
    >>> _ = tester.feed([{"at": 1_767_225_600 + 9 * n, "lang": "en" if n % 3 else "de"} for n in range(10)])
    >>> minutes = tester.finish().tables()
    >>> minutes
    SketchTable of 4 rows by lang, windows of 1m, may still change: posts count()
      2026-01-01 00:00 – 00:01 | de | 3
      2026-01-01 00:00 – 00:01 | en | 4
      2026-01-01 00:01 – 00:02 | de | 1
      2026-01-01 00:01 – 00:02 | en | 2
    >>> minutes.rollup(every="1h", by=[]).answers()["posts"].to_list()
    [10]
    """

    __slots__ = ("__weakref__", "_groups")

    def __init__(self, table: ArrowStream) -> None:
        if not isinstance(table, SketchTable):
            stored = arrow_table(table)
            keys_of(stored.schema)
            self._groups = WindowGroups.of_table(stored)
        else:
            self._groups = table._groups

    @classmethod
    def of_groups(cls, groups: WindowGroups) -> SketchTable:
        """The table of groups, live or not."""
        made = cls.__new__(cls)
        made._groups = groups
        return made

    def answers(self, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """The answers of these columns, or of all, after the windows and the keys, in the table's order.

        Exact aggregates are plain columns, and estimates are structs with their bounds, which `query` lists.
        Raises `ValueError` for columns that aren't aggregates of this table.
        """
        if columns:
            known = aggregates_of(self._groups.schema)
            if unknown := [name for name in columns if name not in known]:
                raise ValueError(
                    f"columns must be aggregates of this table, {list(known)}, got {unknown[0]!r}"
                )
        answers = self._groups.answers(columns)
        return answers if self._has_windows else answers.drop(START, END)

    def merge(self, *others: ArrowStream) -> SketchTable:
        """Merge this table with others of the same definition: rows of one window and group become one.

        Merging adds nothing to a sketch's error. Raises `SketchError` for other definitions.
        """
        return merge([self, *others])

    def rollup(
        self,
        every: Duration | None = None,
        by: Sequence[str] | None = None,
        *,
        offset: Duration | None = None,
        zone: str | None = None,
    ) -> SketchTable:
        """Merge windows into coarser windows, and groups into those of fewer keys.

        The function `merge` describes `every`, `by`, `offset`, `zone` and the exceptions.
        """
        return merge([self], by, every, offset=offset, zone=zone)

    def compare(
        self,
        one: str,
        other: str,
        other_table: ArrowStream | None = None,
        by: Sequence[str] | None = None,
    ) -> pl.DataFrame:
        """Union, intersection, difference and Jaccard index of two columns of sets, with bounds at 95.4 %.

        `other` is a column of `other_table` if one is given. The function `compare` describes the groups and
        the exceptions.
        """
        return compare(self, one, other, other_table, by)

    def drop_answers(self) -> None:
        """Release cached answers and hold only the sketches; answers are computed again on request."""
        self._groups = self._groups.alone()

    @property
    def is_final(self) -> bool | None:
        """Whether it contains only windows that get no more rows; None if that isn't known.

        A window is final when all partitions' event time has passed its end by the stream's delay. A window
        that only silence has closed is not final, and neither is one that was emitted at a checkpoint while
        it filled (``emit="both"``): if rows follow, it is emitted again, complete. The value is None for a
        table that was merged, or comes from Spark, where each window is emitted once.

        >>> import streamgauge as sg
        >>> import polars as pl
        >>> rows = sg.Stream.from_schema({"at": pl.Int64}, time=pl.from_epoch("at"))
        >>> tester = sg.StreamTester(rows.tumbling("1m").agg(n=sg.count()))
        >>> _ = tester.feed([{"at": 1_767_225_600}])
        >>> tester.advance(70).tables().is_final     # in the silence more rows may be on their way
        False
        >>> _ = tester.feed([{"at": 1_767_225_600 + second} for second in (1, 70)])
        >>> tester.tables().is_final
        True
        """
        return self._groups.final

    def to_arrow(self) -> pa.Table:
        """The ``pyarrow.Table``: sketches are binary, and the metadata contains their definitions."""
        return drop_all_time(self._groups.table)

    def to_polars(self) -> pl.DataFrame:
        """The table as a Polars frame, with sketches as bytes and without definitions."""
        return pl.DataFrame(pl.from_arrow(self.to_arrow()))

    def to_pandas(self) -> pd.DataFrame:
        """The table as a pandas frame, with sketches as bytes and without definitions."""
        return self.to_arrow().to_pandas()

    def write(self, path: str | Path) -> None:
        """Write it to a file, for `read_table`: Parquet, or Arrow IPC if the name ends in one of its endings.

        These are ``.arrow``, ``.arrows`` and ``.ipc``; Parquet's are ``.parquet`` and ``.pq``. Spark and all
        other readers of Parquet can read the file. An existing file is replaced atomically. Raises
        `ValueError` for other endings, `OSError` if the file can't be written.

        >>> from tempfile import mkdtemp
        >>> import streamgauge as sg
        >>> from streamgauge.operators.table.schema import table_schema
        >>> empty = sg.SketchTable(table_schema({}, {"posts": sg.count()}, None).empty_table())
        >>> file = Path(mkdtemp()) / "posts.parquet"
        >>> empty.write(file)
        >>> sg.read_table(file) == empty
        True
        """
        done = Path(path)
        if done.suffix not in (*PARQUET, *IPC):
            raise ValueError(f"path must end in {', '.join((*PARQUET, *IPC))}, got {str(path)!r}")
        with whole_file(done) as unfinished:
            if done.suffix in IPC:
                unfinished.write_bytes(to_ipc(self.to_arrow()))
            else:
                write_parquet(self._groups.table, unfinished)

    @property
    def schema(self) -> pa.Schema:
        """The columns: windows, keys, and the aggregates with their definitions."""
        schema = self._groups.schema
        return schema if self._has_windows else schema.remove(0).remove(0)

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""
        return self.schema.names

    @property
    def num_rows(self) -> int:
        """The number of rows: windows times groups."""
        return len(self._groups)

    def column(self, name: str) -> pa.ChunkedArray:
        """A column; for an aggregate, its sketches as bytes. Raises `KeyError` for a missing column."""
        if name not in self.column_names:
            raise KeyError(f"{name!r} is not a column of {self.column_names}")
        columns = self._groups.columns
        return (columns if name in columns.column_names else self._groups.table).column(name)

    __getitem__ = column

    def to_pylist(self) -> list[dict[str, Any]]:
        """A dictionary for each row, with sketches as bytes."""
        return self.to_arrow().to_pylist()

    def slice(self, offset: int = 0, length: int | None = None) -> SketchTable:
        """Consecutive rows: `length` of them, or all from `offset` on."""
        rows = len(self)
        end = rows if length is None else min(rows, offset + length)
        return SketchTable.of_groups(self._groups.slice(min(offset, rows), end))

    def filter(self, mask: Any) -> SketchTable:
        """The rows for which a column of booleans, or an expression of ``pyarrow.compute``, is true."""
        return SketchTable(self.to_arrow().filter(mask))

    def sort_by(self, sorting: str | list[tuple[str, str]]) -> SketchTable:
        """The rows in the order of a column, or of several, each ``"ascending"`` or ``"descending"``."""
        return SketchTable(self.to_arrow().sort_by(sorting))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return len(self._groups)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SketchTable | pa.Table):
            return NotImplemented
        try:
            one, two = self._groups.table, SketchTable(other)._groups.table
        except SketchError:
            return False
        windows = declared_windows(one.schema) == declared_windows(two.schema)
        return windows and aggregates_of(one.schema) == aggregates_of(two.schema) and one.equals(two)

    def __reduce__(self) -> tuple[type[SketchTable], tuple[pa.Table]]:
        return SketchTable, (self.to_arrow(),)

    def __repr__(self) -> str:
        lines = [" | ".join(line.replace("\n", ", ") for line in row) for row in self._cells()]
        return "\n  ".join([f"SketchTable of {self._summary()}", *lines, *self._more()])

    def _repr_html_(self) -> str:
        """The notebook view: windows, keys and answers, each with its bounds, of the first rows."""
        names = self.column_names
        titles = ["window (UTC)", *names[2:]] if self._has_windows else names
        head = "".join(f"<th>{escape(visible_name(title))}</th>" for title in titles)
        rows = (
            "".join(f"<td>{escape(text).replace(chr(10), '<br>')}</td>" for text in row)
            for row in self._cells()
        )
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        more = "".join(f"<p>{line}</p>" for line in self._more())
        summary = f"<p>SketchTable of {escape(self._summary())}</p>"
        return f"{summary}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"

    @property
    def _has_windows(self) -> bool:
        return not self._groups.all_time

    def _summary(self) -> str:
        """A description in one line."""
        schema, keys = self._groups.schema, self._groups.keys
        windows = declared_windows(schema)
        parts = [f"{len(self):,} row{'s' * (len(self) != 1)}"]
        parts[0] += f" by {', '.join(map(visible_name, keys))}" if keys else ""
        parts += [str(windows)] if windows is not None and self._has_windows else []
        parts += [] if self.is_final is None else ["final" if self.is_final else "may still change"]
        columns = (
            f"{visible_name(name)} {visible_name(aggregate_text(sketch_of(aggregate.definition())))}"
            for name, aggregate in aggregates_of(schema).items()
        )
        return f"{', '.join(parts)}: {'; '.join(columns)}"

    def _cells(self) -> Iterator[list[str]]:
        """The first rows as text: window, keys and answers."""
        head = self._groups.slice(0, _SHOWN)
        if not head.alive:
            head = WindowGroups.of_table(head.table)  # so that only these are answered
        try:
            answers = head.answers()
        except SketchError as error:
            yield [visible_name(f"can't be answered: {error}")]
            return
        keys = len(head.keys)
        for start, end, *values in answers.iter_rows():
            window = [span(start, end)] if self._has_windows else []
            yield [*window, *map(cell, values[:keys]), *map(_text, values[keys:])]

    def _more(self) -> list[str]:
        return [f"and {len(self) - _SHOWN:,} more"] if len(self) > _SHOWN else []


def merge(
    tables: ArrowStream | Iterable[ArrowStream],
    by: Sequence[str] | None = None,
    every: Duration | None = None,
    *,
    offset: Duration | None = None,
    zone: str | None = None,
) -> SketchTable:
    """Merge the rows that have the same window and keys into one table.

    `by` names the keys to preserve (all if None, none if empty). `every` is the length of the new windows,
    into which the tables' own windows must fit. With `offset` and `zone` they begin as in `Stream.tumbling`,
    so hours merge into a day of a zone. Windows of a zone merge into windows of the same zone unless `zone`
    names another, such as ``"UTC"``. Overlapping windows contain rows twice, so `every` uses only windows
    that lie end to end, and a new window is as complete as these. Merging adds nothing to a sketch's error.

    Raises `ValueError` without tables, for keys that the tables don't have, and for an empty length; raises
    `SketchError` for tables of different definitions, for windows that don't fit, and for overlapping
    windows in a table that doesn't say how they overlap.

    >>> import polars as pl
    >>> import streamgauge as sg
    >>> rows = sg.Stream.from_schema({"at": pl.Int64, "user": pl.String}, time=pl.from_epoch("at"))
    >>> tester = sg.StreamTester(rows.tumbling("1m").agg(rows=sg.count(), users=sg.distinct("user")))
    >>> start = 1_767_225_600    # the year 2026
    >>> _ = tester.feed([{"at": start + second, "user": f"user {second % 7}"} for second in range(600)])
    >>> minutes = tester.finish().tables()
    >>> hour = sg.merge(minutes, every="1h").answers()
    >>> minutes.num_rows, hour["rows"].to_list(), hour["users"].struct.field("estimate").round(1).to_list()
    (10, [600], [7.0])
    """
    parts: Any = [tables] if hasattr(tables, "__arrow_c_stream__") else tables
    given = [arrow_table(part) for part in parts]
    larger = windows_of_rollup("merge", every, offset, zone, given[0].schema if given else None)
    return SketchTable(merge_tables(given, by, larger))


def _text(value: Any) -> str:
    """An answer as text, in one line or several."""
    return cell(value) if isinstance(value, bytes | str | None) else answer(value)
