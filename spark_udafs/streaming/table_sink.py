"""Write closed windows to any Spark table: append each once, or upsert by window and keys."""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException, UnsupportedOperationException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType, LongType

from ...operators.table.schema import BATCH, END, START, ArrowStream, arrow_table, keys_of
from ...operators.table.spark_footer import DEFINED
from ...operators.table.windows import declared_windows
from ...sketches.core.protocol import SketchError
from ..frames.tables import as_frame, comments_of, is_described, one_schema
from ..merge.column_codecs import quoted
from .sinks import Batch

_TEXTS = (pa.string(), pa.large_string())


class SketchesToTable:
    """A Spark table, in a catalog or a database, that stores each micro-batch's windows once.

    The table is created by the first batch if missing; an empty table that you have created with the same
    columns, partitioned as you like, is accepted as well. Definitions are stored in the columns' metadata,
    and in their comments if a catalog stores nothing else, as Iceberg's does. The column
    ``streamgauge_batch`` records the query and micro-batch of each row: a batch that Spark repeats after a
    crash adds only the missing rows. This works for all table formats that Spark appends to, whether Parquet,
    Delta or Iceberg. Several queries may share a table if its format supports concurrent writers, which
    Spark's own Parquet tables don't. `as_table`, `rollup` and `read_table` ignore that column.

    With ``upsert=True`` rows replace those of the same window and keys, and there is no such column. This is
    for ``sketch(df).outputMode("update")`` and ``"complete"``, whose windows are emitted again and again, and
    needs a table format with MERGE, such as Delta and Iceberg; Spark's own Parquet tables don't have it.

    Raises `SketchError` for a table of another definition, with the difference, and for anything but a table
    of sketches; `ValueError` if MERGE is needed and the format lacks it, for a catalog that stores no
    definitions at all, such as databases over JDBC, and for an empty string in a key by which the table is
    partitioned, because Spark stores null instead.

    >>> import polars as pl
    >>> import streamgauge as sg
    >>> rows = sg.Stream.from_schema({"at": pl.Int64}, time=pl.from_epoch("at"))
    >>> by_minute = rows.tumbling("1m").agg(n=sg.count())
    >>> tester = sg.StreamTester(by_minute)
    >>> _ = tester.feed([{"at": 1_767_225_600}])
    >>> windows, sink = tester.finish().tables(), sg.spark.SketchesToTable("posts_by_minute")
    >>> _ = spark.sql("DROP TABLE IF EXISTS posts_by_minute")
    >>> for number in (0, 1, 1):
    ...     sink(windows, sg.spark.Batch("posts", number))
    >>> sg.spark.as_table(spark.table("posts_by_minute")).column("n").to_pylist()
    [1, 1]
    """

    def __init__(self, table: str, upsert: bool = False) -> None:
        self._table = table
        self.once = not upsert

    def __call__(self, table: ArrowStream, batch: Batch) -> None:
        """Add a batch's windows, or merge them in."""
        windows = arrow_table(table)
        spark = SparkSession.active()
        rows = as_frame(windows, spark)
        if self.once:
            rows = rows.withColumn(BATCH, F.lit(f"{batch.query}/{batch.number}"))
        if not spark.catalog.tableExists(self._table):
            rows.limit(0).write.mode("ignore").saveAsTable(self._table)
        there = spark.table(self._table)
        if DEFINED not in there.columns:
            # Created by the user.
            rows = rows.drop(DEFINED)
        if not is_described(there):
            there = self._described(there, rows, windows.schema)
        one_schema([_in_order(there, rows.columns), rows], f"SketchesToTable: {self._table} and this query")
        self._check_batch(there)
        self._check_partitions(spark, windows)
        if not windows.num_rows:
            return
        if not self.once:
            self._merge(rows, windows)
            return
        if batch.again:
            own = there.filter(F.col(BATCH) == F.lit(f"{batch.query}/{batch.number}")).alias("there")
            rows = rows.alias("rows").join(own, _same("there", "rows", windows), "left_anti")
        rows.select(*map(quoted, there.columns)).write.insertInto(self._table)

    def _described(self, there: DataFrame, rows: DataFrame, schema: pa.Schema) -> DataFrame:
        """Add comments that define the columns to the sink's table if it is empty and has those of `rows`.

        Raises `ValueError` for a catalog without comments.
        """
        if _shape(there) != _shape(rows) or not there.isEmpty():
            return there
        for name, comment in comments_of(schema).items():
            if name == DEFINED and name not in there.columns:
                continue
            with suppress(AnalysisException, UnsupportedOperationException):
                statement = f"ALTER TABLE {self._table} ALTER COLUMN {quoted(name)} COMMENT :comment"
                there.sparkSession.sql(statement, {"comment": comment})
        if not is_described(commented := there.sparkSession.table(self._table)):
            raise ValueError(
                f"SketchesToTable: the catalog of {self._table} stores neither metadata nor comments of "
                "columns, so readers could not interpret the table later; name a table of another catalog, "
                "or write the answers with your own function"
            )
        return commented

    def _check_batch(self, there: DataFrame) -> None:
        """Raise `SketchError` for a table that was created for the other way of writing."""
        if self.once == (BATCH in there.columns):
            return
        problem = "has no column" if self.once else "was made for batches that come once: it has a column"
        raise SketchError(
            f"SketchesToTable: {self._table} {problem} {BATCH}; name another table, which is created if "
            "missing"
        )

    def _check_partitions(self, spark: SparkSession, table: pa.Table) -> None:
        """Raise `ValueError` for an empty string in a key by which the table is partitioned."""
        texts = [key for key in keys_of(table.schema) if table.schema.field(key).type in _TEXTS]
        empty = [key for key in texts if pc.any(pc.equal(table[key], "")).as_py()]
        if not empty:
            return
        for column in spark.catalog.listColumns(self._table):
            if column.isPartition and column.name in empty:
                raise ValueError(
                    f"SketchesToTable: {self._table} is partitioned by {column.name}, which has an empty "
                    "string; Spark stores that as null there, so it would become another group. Name a "
                    "table that isn't partitioned by it, or filter these rows out"
                )

    def _merge(self, rows: DataFrame, table: pa.Table) -> None:
        # The condition names the target table's columns with the sink's name.
        merging = rows.alias("rows").mergeInto(self._table, _same(self._table, "rows", table))
        try:
            merging.whenMatched().updateAll().whenNotMatched().insertAll().merge()
        except (AnalysisException, UnsupportedOperationException) as error:
            if "does not support MERGE" not in str(error):
                raise
            raise ValueError(
                f"SketchesToTable: {self._table} is in a format that has no MERGE, which upserts need; "
                "create it in one that has, such as Delta or Iceberg. Closed windows are written once and "
                "need no upserts"
            ) from None


def _in_order(table: DataFrame, columns: list[str]) -> DataFrame:
    """Reorder a table's columns if it has exactly these; some formats put partition columns last."""
    return table.select(*map(quoted, columns)) if set(table.columns) == set(columns) else table


def _shape(frame: DataFrame) -> dict[str, object]:
    """Return the columns' types, with one type for all integers, since some formats have fewer of them."""
    types = {field.name: field.dataType for field in frame.schema}
    return {name: LongType() if isinstance(kind, IntegralType) else kind for name, kind in types.items()}


def _same(there: str, rows: str, table: pa.Table) -> Column:
    """Return the condition that a table's row has the window and keys of a new row; null equals null.

    It also names the first and the last start of these windows. That is redundant, but lets a format with
    file statistics read only the files from that time.
    """
    windows, within = declared_windows(table.schema), F.lit(True)
    times = [] if windows is not None and windows.all_time else [START, END]
    if times:
        starts = pc.min_max(table[START].cast(pa.int64())).as_py()
        start = F.col(f"{there}.{START}")
        within = start.between(*(F.timestamp_micros(F.lit(starts[edge])) for edge in ("min", "max")))
    for name in (*times, *keys_of(table.schema)):
        within &= F.col(f"{there}.{quoted(name)}").eqNullSafe(F.col(f"{rows}.{quoted(name)}"))
    return within
