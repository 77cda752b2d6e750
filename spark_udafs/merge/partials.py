"""The input of Spark's merge: partial rows, and rows that only announce a watermark.

A partial row is a row of the table of sketches; the items of a sample follow in rows of their own. An
announcing row carries a task's account and the time up to which event time is complete. It belongs to no
window: its window end lies `AHEAD` of the watermark it announces, beyond all dates. Spark's watermark is
declared with the delay `AHEAD`, so it becomes the announced one and never follows a row's time, and Spark
closes a window exactly when the sketching side stops counting rows into it.
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
"""`AHEAD` in microseconds, longer than the time from 1970 to the year 10,000."""

Mode = Literal["append", "update", "complete"]
"""Spark's output modes of a stream: complete windows, or at each micro-batch the changed or all windows."""

ACCOUNT = ("read", "counted", "filtered", "late", "dead_lettered")
"""The fields of an account; in partial rows, their column names begin with two underscores."""

PROGRESS = ("messages", "lag")
"""For a micro-batch: the messages that it read, and how many more there were when it was planned."""

EVENT, FIRST, LATEST = "__event", "__first", "__latest"
"""The column of rows' event times, and the columns of each pane's first and latest time."""
WINDOW = "__window"
"""The column of the windows that Spark assigns to partial rows."""

OWN = (*(f"__{name}" for name in (*ACCOUNT, *PROGRESS)), EVENT, FIRST, LATEST, WINDOW)
"""The columns besides keys and aggregates when rows are sketched and merged."""


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
    """How workers sketch a stream's rows, if not by its windows' default."""

    def batches_of(self, delta: Delta) -> Iterator[pa.RecordBatch]:
        """Return the partial rows of a delta."""
        return iter(()) if delta.table is None else self.batches(delta.table)

    @abstractmethod
    def own_fields(self) -> list[pa.Field]:
        """Return the columns besides window and account. Raises `TypeError` for types that Spark lacks."""

    @abstractmethod
    def batches(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """Return a table's partial rows. No batch is empty, because Spark may take that for the end."""

    @abstractmethod
    def merged(self, rows: DataFrame, windows: list[Column], mode: Mode | None) -> DataFrame:
        """Merge partial rows into the table of sketches.

        `windows` holds the rows' own start and end, or a single column with Spark's window over their start,
        or nothing if all rows are in one window. `mode` is the output mode of a stream, and None for a batch.
        """

    def spread(self, rows: DataFrame) -> DataFrame:
        """Assign partial rows to the windows in which they are merged; announcing rows pass unchanged."""
        return rows

    def announcement(
        self, account: Account, watermark_us: int, messages: int = 0, lag: int = 0
    ) -> pa.RecordBatch:
        """Return the row with an account, progress, and a watermark that all partitions have reached."""
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
        """Make the table's columns, with their metadata, from the merged columns."""
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
    """Return the SQL condition for rows in a window, which excludes announcing rows."""
    return f"{quoted(END)} < timestamp_micros({AHEAD_US})"
