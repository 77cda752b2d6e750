"""Turn Parquet files into a table of sketches: read and sketched in Python workers, merged inside Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import TimestampType

from ...operators.definition.stream import Stream
from ...operators.steps.row_steps import RowSteps
from ..arrow_schemas import schema_in_arrow
from ..frames.aggregate_request import FrameRequest
from ..frames.frames import Sketching
from ..frames.input_columns import InputColumns
from ..merge.column_codecs import quoted, spark_type
from ..merge.partials import EVENT, Partials
from ..session.map_in_arrow import Work
from ..slow_starts import patiently
from .arriving import Arriving
from .reading import PlannedRead
from .source import bound


def sketch_parquet(
    path: str | PathLike[str],
    *,
    where: ds.Expression | None = None,
    rows: Stream | None = None,
    spark: SparkSession | None = None,
    log: str | PathLike[str] | None = None,
    files_per_trigger: int | None = None,
) -> Sketching:
    """Begin a table of sketches of Parquet files: a file, a folder, or a pattern as in Spark.

    Continue with `groupBy` and `agg`, as after `sketch`. Unlike with `sketch`, no row passes through the JVM:
    Spark's Python workers read the columns that are requested and sketch them. `where` is an Arrow expression
    over the files' columns and the ``key=value`` folders they lie in; files, and row groups whose statistics
    exclude it, are not read at all. `rows` is a stream of `Stream.from_schema` whose steps the rows go
    through first; then its declared columns are read, and its final columns can be requested. `spark` is the
    active session by default.

    It reads the files that exist now. With a `log` it is a stream of these and of newly arriving files, which
    must appear whole and never change: each is read once, even after a restart, and at most
    `files_per_trigger` per micro-batch. `log` names a folder for a record of the files read, which belongs to
    the query's checkpoint; the driver writes it, so it must be on its machine or mounted there. In this case,
    continue with `withWatermark`.

    Raises `ValueError` for columns of `rows` that the files don't have; `agg` raises what it does after
    `sketch`, and `TypeError` for windows over a column that isn't a timestamp. A row on which a step of
    `rows` fails ends the query with the reason.

    >>> from tempfile import mkdtemp
    >>> import pyarrow.compute as pc
    >>> import streamgauge as sg
    >>> folder = f"{mkdtemp()}/visits"
    >>> spark.range(1000).selectExpr("id % 70 AS user", "id % 2 AS site").write.parquet(folder)
    >>> visits = sg.spark.sketch_parquet(folder, where=pc.field("site") == 1)
    >>> table = visits.agg(rows=sg.count(), users=sg.distinct("user"))
    >>> answers = sg.spark.as_table(table).answers()
    >>> answers["rows"].to_list(), answers["users"].struct.field("estimate").round(0).to_list()
    ([500], [35.0])
    """
    spark = spark or SparkSession.active()
    path, log = fspath(path), None if log is None else fspath(log)
    plain_frame = spark.read.parquet(path)
    files = tuple(sorted(plain_frame.inputFiles())) if log is None else ()
    arriving = None if log is None else Arriving(path, log, files_per_trigger)
    if rows is None:
        frame = plain_frame if log is None else spark.readStream.schema(plain_frame.schema).parquet(path)
        return ParquetSketching(frame, files=files, where=where, arriving=arriving)
    stepped = pa.schema([pa.field(n, spark_type(k, n)) for n, k in rows.reading.arrow_types().items()])
    if missing := [name for name in rows.source.schema if name not in plain_frame.columns]:
        raise ValueError(
            f"sketch_parquet: no column {', '.join(map(repr, missing))}; the files have "
            f"{', '.join(plain_frame.columns)}"
        )
    columns = from_arrow_schema(stepped)
    # `Sketching` only uses the columns, and whether it is a stream.
    frame = (
        spark.createDataFrame([], columns) if log is None else spark.readStream.schema(columns).parquet(path)
    )
    return ParquetSketching(frame, files=files, where=where, rows=rows, arriving=arriving)


@dataclass(frozen=True)
class ParquetSketching(Sketching):
    """Parquet files to be turned into a table of sketches; `sketch_parquet` shows an example."""

    files: tuple[str, ...] = ()
    where: ds.Expression | None = None
    rows: Stream | None = None
    arriving: Arriving | None = None

    def _check(self, request: FrameRequest, time: str | None) -> None:
        """Raise `TypeError` for windows over a column that isn't a timestamp: nothing casts it here."""
        super()._check(request, time)
        if time in self.frame.columns and not isinstance(self.frame.schema[time].dataType, TimestampType):
            raise TypeError(
                f"sketch_parquet: windows need a timestamp, and {time!r} is "
                f"{self.frame.schema[time].dataType.simpleString()}; make it one in `rows`, as in "
                f'Stream.from_schema(...).with_columns({time}=pl.col("{time}").cast(pl.Datetime("us", '
                '"UTC")))'
            )

    def _by_catalyst(
        self, inputs: InputColumns, plan: Partials, definition: Mapping[str, Any], delay_ms: int | None
    ) -> DataFrame | None:
        """Return None: rows never enter the JVM, they are sketched where they are read."""
        return None

    def _partials(self, inputs: InputColumns, work: Work, schema: pa.Schema) -> DataFrame:
        """Return the partial rows that the source makes from the columns that `work` needs."""
        spark = self.frame.sparkSession
        timed = None if self.windows is None else self.windows.column
        needed = [name for name in (*inputs.of_rows, timed or EVENT) if name != EVENT]
        if made := [name for name in needed if name not in self.frame.columns]:
            raise ValueError(
                f"sketch_parquet: {', '.join(map(repr, made))} is not a column; it takes columns alone, by "
                f"their names: {', '.join(self.frame.columns)}. Make others in `rows`, by with_columns"
            )
        columns = self._columns(inputs.in_arrow, timed)
        worked = _timed(inputs.in_arrow, timed, self.rows, work)
        reading = PlannedRead(self.files, columns, self.where, worked, schema)
        source = bound(reading, self.arriving)
        spark.dataSource.register(source)
        reader = (spark.read if self.arriving is None else spark.readStream).format(source.name())
        return patiently("sketch_parquet", reader.load)

    def _columns(self, schema: pa.Schema, timed: str | None) -> pa.Schema:
        """Return the schema of the files' columns to read."""
        if self.rows is not None:
            return pl.DataFrame(schema=self.rows.source.schema).to_arrow().schema
        names = [name for name in schema.names if name != EVENT]
        if timed is not None and timed not in names:
            names.append(timed)
        if not names:
            # To only count rows, any one column is enough.
            names = self.frame.columns[:1]
        return schema_in_arrow(self.frame.select(*map(quoted, names)).schema)


def _timed(schema: pa.Schema, timed: str | None, steps: Stream | None, work: Work) -> Work:
    """Return the function over the files' batches: the steps, then `work` on the columns it needs."""

    at = schema.field(EVENT).type if EVENT in schema.names else None

    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            table = pa.Table.from_batches([batch])
            if steps is not None:
                table = _stepped(steps, table)
            columns = {name: table.column(name) for name in schema.names if name != EVENT}
            if at is not None:
                always = pa.repeat(pa.scalar(0, pa.int64()), table.num_rows).view(at)
                columns[EVENT] = always if timed is None else table.column(timed).cast(at)
            yield from pa.table(columns).select(schema.names).cast(schema).combine_chunks().to_batches()

    return lambda batches: work(rows(batches))


def _stepped(steps: Stream, table: pa.Table) -> pa.Table:
    """Return the rows after a stream's steps. Raises `ValueError` for a row on which a step fails."""

    def refuse(rows: np.ndarray, reason: str) -> None:
        row = table.slice(int(rows[0]), 1).to_pylist()[0]
        raise ValueError(f"sketch_parquet: {len(rows)} rows can't be counted: {reason}; the first is {row}")

    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return RowSteps(steps, steps.columns).apply(frame, refuse).frame.to_arrow()
