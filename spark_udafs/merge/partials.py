"""Tables of sketches on their way into Spark's merge: partial rows, and rows that only announce.

A partial row is a row of the table of sketches; the items of a sample follow as rows of their own. An
announcing row carries a task's account and up to where event time is complete, and is in no window: its
window's end lies `AHEAD` of the watermark it announces, beyond all dates. Declared with that much delay,
Spark's own watermark is then the announced one and never a row's, so Spark closes a window exactly when the
sketching side no longer counts rows into it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql import Column, DataFrame

from ...operators.sketching.accounting import Account
from ...operators.sketching.lateness import YEAR_10000
from ...operators.table.schema import END, START, TIME_TYPE, aggregates_of, keys_of
from ...operators.table.spark_footer import notes_of
from ...operators.table.windows import windows_told
from .forms import key_column, quoted

AHEAD = "3000000 days"
AHEAD_US = 3_000_000 * 86_400_000_000
"""Longer than from the epoch to the year 10,000."""

ACCOUNT = ("read", "counted", "filtered", "late", "dead_lettered")
"""The fields of an account; in partial rows each is a column with two underscores before its name."""


class Partials(ABC):
    """The partial rows of one table of sketches' schema, and how Spark merges them.

    `schema` is theirs in Arrow; `table` and `keys` are of the table of sketches.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.table = schema
        self.keys = keys_of(schema)
        self.aggregates = aggregates_of(schema)
        fields = [pa.field(START, TIME_TYPE), pa.field(END, TIME_TYPE), *self.own_fields()]
        self.schema = pa.schema([*fields, *(pa.field(f"__{name}", pa.int64()) for name in ACCOUNT)])

    @abstractmethod
    def own_fields(self) -> list[pa.Field]:
        """The columns beside the window and the account. Raises `TypeError` for types Spark lacks."""

    @abstractmethod
    def batches(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """The partial rows of a table of sketches. No batch is empty: Spark may take one for the end."""

    @abstractmethod
    def merged(self, rows: DataFrame, windows: list[Column]) -> DataFrame:
        """The table of sketches of partial rows.

        `windows` are the rows' own start and end; or one column, Spark's window over their start; or none,
        where all rows are in one window.
        """

    def announcement(self, account: Account, watermark_us: int) -> pa.RecordBatch:
        """The row that carries an account, and a watermark that all partitions have reached."""
        # Spark's watermark begins at 1970, and takes nothing before it.
        end = AHEAD_US + min(max(watermark_us, 0), YEAR_10000)
        columns = {name: pa.array([end]).view(TIME_TYPE) for name in (START, END)}
        columns.update({f"__{name}": pa.array([getattr(account, name)]) for name in ACCOUNT})
        return self._batch(columns, 1)

    def _batch(self, columns: Mapping[str, pa.Array], rows: int) -> pa.RecordBatch:
        arrays = []
        for field in self.schema:
            column = columns.get(field.name)
            if column is None:
                column = pa.nulls(rows, field.type)
            arrays.append(column if column.type == field.type else column.cast(field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _named(self, merged: DataFrame, edges: list[Column], columns: Mapping[str, Column]) -> DataFrame:
        """The table's columns with what they say of themselves, from those of what was merged."""
        window = [edge.alias(name) for edge, name in zip(edges, (START, END))]
        windows = windows_told(self.table)
        keys = [key_column(self.table.field(key)) for key in self.keys]
        aggregates = [
            columns[name].alias(name, metadata=notes_of(self.table.field(name), windows))
            for name in self.aggregates
        ]
        return merged.select(*window, *keys, *aggregates)


def real_rows() -> str:
    """In SQL: the rows that are in a window, without those that only announce."""
    return f"{quoted(END)} < timestamp_micros({AHEAD_US})"
