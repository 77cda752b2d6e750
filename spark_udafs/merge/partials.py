"""Tables of sketches on their way into Spark's merge: partial rows, and rows that only announce a watermark.

A partial row is a row of the table of sketches; the items of a sample follow as rows of their own. An
announcing row carries a task's account and the time up to which event time is complete. It is in no window:
its window's end lies `AHEAD` of the watermark it announces, beyond all dates. Spark's watermark is declared
with the delay `AHEAD`, so it becomes the announced one and never follows a row's time, and Spark closes a
window exactly when the sketching side stops counting rows into it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Literal

import pyarrow as pa
from pyspark.sql import Column, DataFrame

from ...operators.sketching.account import Account
from ...operators.sketching.delta import Delta
from ...operators.sketching.panes import Sketches
from ...operators.table.schema import END, START, TIME_TYPE, aggregates_of, keys_of
from ...operators.table.spark_footer import notes_of
from ...operators.table.windows import declared_windows
from ...operators.windows.window import YEAR_10000
from .column_codecs import defined_rows, key_column, quoted

AHEAD = "3000000 days"
AHEAD_US = 3_000_000 * 86_400_000_000
"""`AHEAD` in microseconds, longer than from 1970 to the year 10,000."""

Mode = Literal["append", "update", "complete"]
"""Spark's output modes of a stream: complete windows, changed ones at each micro-batch, or all of them."""

ACCOUNT = ("read", "counted", "filtered", "late", "dead_lettered")
"""The fields of an account; in partial rows their columns' names begin with two underscores."""

PROGRESS = ("messages", "lag")
"""Of a micro-batch: the messages it has read, and how many more there were when it was planned."""

EVENT, FIRST, LATEST = "__event", "__first", "__latest"
"""The column of event times beside those that are sketched, and those of each pane's first and latest."""
WINDOW = "__window"
"""The column of the windows that Spark puts partial rows into."""

OWN = (*(f"__{name}" for name in (*ACCOUNT, *PROGRESS)), EVENT, FIRST, LATEST, WINDOW)
"""What rows have beside keys and aggregates where they are sketched and merged."""


class Partials(ABC):
    """The partial rows of one table of sketches' schema, and how Spark merges them.

    `schema` is their Arrow schema; `table` and `keys` are those of the table of sketches.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.table = schema
        self.keys = keys_of(schema)
        self.aggregates = aggregates_of(schema)
        observed = (*ACCOUNT, *PROGRESS)
        fields = [pa.field(START, TIME_TYPE), pa.field(END, TIME_TYPE), *self.own_fields()]
        self.schema = pa.schema([*fields, *(pa.field(f"__{name}", pa.int64()) for name in observed)])

    sketches: type[Sketches] | None = None
    """What workers make of a stream's rows, where that isn't what its windows say."""

    def batches_of(self, delta: Delta) -> Iterator[pa.RecordBatch]:
        """The partial rows of what a worker has made of a range of offsets."""
        return iter(()) if delta.table is None else self.batches(delta.table)

    @abstractmethod
    def own_fields(self) -> list[pa.Field]:
        """The columns besides the window and the account. Raises `TypeError` for types that Spark lacks."""

    @abstractmethod
    def batches(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """The partial rows of a table of sketches. No batch is empty, as Spark may take that for the end."""

    @abstractmethod
    def merged(self, rows: DataFrame, windows: list[Column], mode: Mode | None) -> DataFrame:
        """The table of sketches of partial rows.

        `windows` holds the rows' own start and end, or one column, which is Spark's window over their start,
        or nothing where all rows are in one window. `mode` is the output mode that a stream will have, and
        None for a batch.
        """

    def spread(self, rows: DataFrame) -> DataFrame:
        """Partial rows in the windows by whose edges they are merged; announcing rows pass."""
        return rows

    def announcement(
        self, account: Account, watermark_us: int, messages: int = 0, lag: int = 0
    ) -> pa.RecordBatch:
        """The row that carries an account, progress, and a watermark that all partitions have reached."""
        # Spark's watermark begins at 1970 and can't be set to an earlier time.
        end = AHEAD_US + min(max(watermark_us, 0), YEAR_10000)
        columns = {name: pa.array([end]).view(TIME_TYPE) for name in (START, END)}
        announced = {name: getattr(account, name) for name in ACCOUNT} | {"messages": messages, "lag": lag}
        columns.update({f"__{name}": pa.array([number]) for name, number in announced.items()})
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
        """The table's columns with their metadata, made of the merged columns."""
        windows = declared_windows(self.table)
        timed = windows is None or not windows.all_time
        window = [edge.alias(name) for edge, name in zip(edges, (START, END))] if timed else []
        keys = [key_column(self.table.field(key)) for key in self.keys]
        aggregates = [
            columns[name].alias(name, metadata=notes_of(self.table.field(name), windows))
            for name in self.aggregates
        ]
        return merged.select(*window, *keys, *aggregates, defined_rows(self.table))


def real_rows() -> str:
    """The SQL condition for rows that are in a window, which leaves out announcing rows."""
    return f"{quoted(END)} < timestamp_micros({AHEAD_US})"
