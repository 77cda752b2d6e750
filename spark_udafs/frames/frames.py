"""Turn any DataFrame into a table of sketches: sketched where its rows are, merged inside Spark.

    table = sketch(posts).groupBy("lang", F.window("created_at", "1 minute")).agg(users=distinct("user_id"))
    as_table(table).answers()    # brings the table to the driver and answers it

This works on batch and streaming DataFrames, on classic Spark and on Spark Connect. Set the watermark of a
streaming DataFrame here, ``sketch(posts).withWatermark("created_at", "10 seconds")``, or on the DataFrame
itself, if a step before this one needs it, such as `dropDuplicatesWithinWatermark` (`watermarks`).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
import polars as pl
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ...operators.definition import aggregates as ask
from ...operators.definition.aggregate import Aggregate
from ...operators.definition.description import VERSION
from ...operators.definition.expression_text import type_text
from ...operators.definition.sources import FrameSource
from ...operators.definition.validation import check_keys, typed_aggregates
from ...operators.sketching.panes import Panes
from ...operators.table.schema import END, START, aggregates_of, key_type, keys_of, table_schema
from ...operators.watermarks.partition_watermark import broken_clocks
from ...operators.windows.paned import Paned
from ...operators.windows.table import AllTime
from ...operators.windows.tumbling import Tumbling
from ...sketches.core.columns.utf8_repair import readable
from ..definitions import EXPRESSIONS, labelled, remembering
from ..gc_freeze import freeze_imports
from ..merge.buckets import BUCKETS, BucketedPartials
from ..merge.catalyst import NativePartials
from ..merge.column_codecs import quoted
from ..merge.merge_plan import merge_edged, merge_timed, merge_whole, partials_of
from ..merge.partials import EVENT, FIRST, LATEST, WINDOW, Mode, Partials
from ..seeds import seed_of_task
from ..session.map_in_arrow import Work, quicker_in_python, through_workers
from ..session.worker_interpreter import check_worker_python
from .aggregate_request import FrameRequest
from .declared import DeclaredFrame
from .input_columns import InputColumns
from .watermarks import has_watermark, watermark_ms, with_watermark_of_rows
from .windows import FrameWindows, LocalWindows, Sessions, Windows, in_years, windows_of_column

_DAY_US = 86_400_000_000
_IN_THE_JVM = {"sketched": "by Spark"}
"""Part of a definition if Catalyst sketches the rows: its state differs from that of partial sketches."""


def sketch(frame: DataFrame, *, schema: StructType | None = None, streaming: bool = False) -> Sketching:
    """Begin a table of sketches of a DataFrame's rows.

    Continue with `groupBy` and `agg`; for a streaming DataFrame, with `withWatermark` first. Spark's Python
    workers sketch the rows in Arrow batches, then Spark merges the sketches; Catalyst does both where it can.

    The DataFrame's schema comes from Spark unless you declare it, which the functions of Spark Declarative
    Pipelines require. With `schema` nothing is analysed, and `streaming` states whether it is a streaming
    DataFrame. Keys, times and aggregates must then be columns or their fields, not expressions, and only
    Catalyst's own sketches are possible, because PySpark analyses whatever goes through Python. A checkpoint
    of another definition is not refused there: refresh a streaming table fully if you change it.

    Raises `TypeError` for anything but a Spark DataFrame and its schema, and `ValueError` for `streaming`
    without a schema.

    >>> import polars as pl
    >>> from pyspark.sql import functions as F
    >>> import streamgauge as sg
    >>> rows = [("ann", "2026-01-01 00:00:10"), ("bob", "2026-01-01 00:00:20"), ("ann", "2026-01-01 00:01")]
    >>> posts = spark.createDataFrame(rows, "user string, at string")
    >>> by_minute = sg.spark.sketch(posts).groupBy(F.window("at", "1 minute"))
    >>> minutes = by_minute.agg(n=F.count("*"), users=sg.distinct("user"))
    >>> answers = sg.spark.as_table(minutes).answers().sort("window_start")
    >>> answers["n"].to_list(), answers["users"].struct.field("estimate").round(2).to_list()
    ([2, 1], [2.0, 1.0])
    """
    if not isinstance(frame, DataFrame):
        raise TypeError(
            f"sketch accepts a Spark DataFrame, got {frame!r}; spark.table and createDataFrame return one, "
            "which is grouped afterwards: sketch(df).groupBy(...)"
        )
    if schema is not None:
        if not isinstance(schema, StructType):
            raise TypeError(f"sketch: schema must be a StructType, as a DataFrame has, got {schema!r}")
        check_worker_python(frame.sparkSession, plans=streaming)
        return Sketching(DeclaredFrame(frame, schema, streaming))
    if streaming:
        raise ValueError("sketch: streaming=True is only for a declared schema; without one, Spark knows")
    check_worker_python(frame.sparkSession, plans=frame.isStreaming)
    return Sketching(frame)


@dataclass(frozen=True)
class Sketching:
    """A DataFrame to be turned into a table of sketches; created by `sketch`, which shows an example."""

    frame: DataFrame | DeclaredFrame
    lateness: tuple[str, str] | None = None
    keys: tuple[str | Column, ...] = ()
    windows: FrameWindows | None = None
    mode: Mode = "append"

    def withWatermark(self, eventTime: str, delayThreshold: str) -> Sketching:
        """Like `DataFrame.withWatermark`: how long a window of a streaming DataFrame waits for late rows."""
        return replace(self, lateness=(eventTime, delayThreshold))

    def outputMode(self, outputMode: Mode) -> Sketching:
        """Like `DataStreamWriter.outputMode`, which must get the same mode.

        If our own merge stores the state (`merge.buckets`), the state is laid out for the mode. Without a
        watermark or windows, only ``"update"`` and ``"complete"`` are possible. Raises `ValueError` for
        anything but ``"append"``, ``"update"`` and ``"complete"``.
        """
        if outputMode not in ("append", "update", "complete"):
            raise ValueError(f'outputMode must be "append", "update" or "complete", got {outputMode!r}')
        return replace(self, mode=outputMode)

    def groupBy(
        self,
        *keys: str | Column | FrameWindows | Sequence[str | Column | FrameWindows],
    ) -> Sketching:
        """Group by columns, and by at most one `F.window`, `F.session_window` or `window`.

        Columns are named as for `DataFrame.groupBy`, including nested ones and names in backticks. They may
        be expressions, and may be in a list. A struct or an array becomes a key as its JSON text. In a batch,
        a window's time may also be an expression. Raises `ValueError` for a second window, and for one whose
        length differs from row to row; raises `TypeError` for anything else.
        """
        if len(keys) == 1 and isinstance(keys[0], list | tuple):
            keys = tuple(keys[0])
        names: list[str | Column] = []
        windows: list[FrameWindows] = []
        for key in keys:
            if not isinstance(key, str | Column | FrameWindows):
                raise TypeError(f"groupBy takes names of columns, columns and a window, got {key!r}")
            resolved = windows_of_column(key) if isinstance(key, Column) else key
            if isinstance(resolved, FrameWindows):
                windows.append(resolved)
            elif isinstance(key, str | Column):
                names.append(key)
        if len(windows) > 1:
            raise ValueError("groupBy: a table has one kind of window; make another table for the other")
        return replace(self, keys=tuple(names), windows=windows[0] if windows else None)

    groupby = groupBy

    def agg(self, *unnamed: Any, **aggregates: Aggregate | Column) -> DataFrame:
        """Return the table of sketches: window_start, window_end, the keys, and a column for each aggregate.

        The last column is ``streamgauge_definition``, which identifies the rows' definition if tables are
        mixed later. Besides this package's aggregates it accepts Spark's exact ones that can be merged:
        `F.count`, `F.sum`, `F.avg`, `F.min`, `F.max` and `F.variance`, of columns or expressions
        (`aggregates` describes how they are stored). Decimals are counted as their text by aggregates that
        count equal values. The rows of a batch without windows stay in the JVM if Catalyst's own aggregates
        produce the same sketches (`merge.native_sketching`), which is as fast as calling Spark's functions;
        many rows in memory go through Python if that is even faster (`map_in_arrow`).

        Without a window the table lacks the first two columns. Raises `ValueError` for columns that don't
        exist, for a streaming DataFrame without windows or a watermark in append mode, and if the state has
        to be in RocksDB and isn't (`merge.buckets`); raises `TypeError` for columns that an aggregate doesn't
        accept. A row with a time outside the years 1 to 9999 ends the query with an error.
        """
        if unnamed:
            raise TypeError('agg: name the column of each aggregate, as in agg(users=distinct("user"))')
        request = FrameRequest.of(self.frame, self.keys, aggregates, self._over())
        time = request.time
        self._check(request, time)
        inputs = InputColumns.of(self.frame, request, time)
        check_keys("groupBy", request.keys, inputs.columns)
        keys = {key: key_type(inputs.types[key]) for key in request.keys}
        typed = typed_aggregates(request.aggregates, request.keys, inputs.types)
        windows = AllTime() if self.windows is None else self.windows.of_table()
        local = self.windows.windows if isinstance(self.windows, LocalWindows) else None
        plan = partials_of(table_schema(keys, typed, windows), inputs.types, self.frame.isStreaming, local)
        definition = self._definition(inputs.columns, request, typed)
        delay_ms = self._own_delay_ms(time)
        table = self._by_catalyst(inputs, plan, definition, delay_ms)
        if isinstance(self.frame, DeclaredFrame):
            return table if table is not None else _not_by_catalyst(plan)
        if table is not None:
            return table
        if plan.keys and self.windows is None and not self.frame.isStreaming:
            # A batch needs no state, and our own merge handles many sketches per call.
            plan = BucketedPartials(plan.table, _buckets(self.frame))
        times = {} if self.windows is None or local is not None else {LATEST: ask.max(EVENT)}
        if isinstance(self.windows, Sessions):
            times[FIRST] = ask.min(EVENT)
        kept = {**typed, **{name: one.typed(inputs.types[EVENT]) for name, one in times.items()}}
        sketched = table_schema(keys, kept, None)
        # Expressions can't be pickled, so workers don't get them.
        windows_of_rows = None if self.windows is None else replace(self.windows, time=None)
        work = _sketching(sketched, self._panes(), windows_of_rows, plan, inputs.in_arrow)
        partials = self._partials(inputs, work, plan.schema)
        if not self.frame.isStreaming:
            return self._merged(partials, plan)
        partials = remembering(partials, definition, from_arrow_schema(plan.schema))
        if delay_ms is not None:
            partials = with_watermark_of_rows(partials, START, delay_ms)
        elif self.lateness is not None:
            partials = partials.withWatermark(START, self.lateness[1])
        return labelled(self._merged(partials, plan), definition)

    def _own_delay_ms(self, time: str | None) -> int | None:
        """The delay of the DataFrame's own watermark; None without one, or if `withWatermark` set one."""
        if time is None or self.lateness is not None or not self.frame.isStreaming:
            return None
        if isinstance(self.frame, DeclaredFrame):
            return None  # only Spark knows whether the plan moves a watermark
        own = next((watermark_ms(field) for field in self.frame.schema if field.name == time), None)
        return own if own is not None and has_watermark(self.frame) else None

    def _over(self) -> str | Column | None:
        """Return the column or expression of the windows' time. Raises `ValueError` for one in a stream."""
        if self.windows is None or self.windows.time is None:
            return None if self.windows is None else self.windows.column
        if self.frame.isStreaming:
            raise ValueError(
                f"groupBy: the window's time is {self.windows.column}, and a watermark belongs to a column; "
                'name it first: df.withColumn("at", ...), then F.window("at", ...)'
            )
        return self.windows.time

    def _by_catalyst(
        self, inputs: InputColumns, plan: Partials, definition: Mapping[str, Any], delay_ms: int | None
    ) -> DataFrame | None:
        """Return the table if Catalyst alone can make the same sketches; None if Python should make them."""
        declared, streaming = isinstance(self.frame, DeclaredFrame), self.frame.isStreaming
        if not isinstance(plan, NativePartials) or not self._tumble():
            return None
        sampled = any(a.name == "sample" for a in plan.aggregates.values())
        if streaming and sampled:
            return None  # Spark draws the same random numbers in each micro-batch
        expressions = plan.over_rows(inputs.of_rows, inputs.kinds)
        if expressions is None:
            return None
        rows = inputs.rows.frame if isinstance(inputs.rows, DeclaredFrame) else inputs.rows
        # Pipelines write tables and manage checkpoints themselves.
        compared = streaming and not declared
        definition = {**definition, **_IN_THE_JVM}
        if compared:
            rows = remembering(rows, definition, inputs.struct)
        window = None
        if isinstance(self.windows, Windows):
            event = inputs.of_rows[EVENT]
            rows = rows.withColumn(event, in_years(F.col(event), *_beyond(self.windows)))
            if delay_ms is not None:
                rows = with_watermark_of_rows(rows, event, delay_ms)
            elif streaming and self.lateness is not None:
                rows = rows.withWatermark(event, self.lateness[1])
            window = self.windows.over(event).alias(WINDOW)
        # Rows that were persisted to disk are not recomputed, so a second read returns the same rows.
        twice = sampled and self.frame.storageLevel.useDisk
        table = plan.sketched(rows, expressions, inputs.of_rows, inputs.kinds, twice, window)
        if compared:
            return labelled(table, definition)
        if declared:
            return table
        groups = [F.col(quoted(inputs.of_rows[key])) for key in plan.keys]
        if window is not None:
            groups.append(window["start"])
        if not groups or all(a.family.exact for a in plan.aggregates.values()):
            return table
        return None if quicker_in_python(rows.select(*groups)) else table

    def _tumble(self) -> bool:
        """Whether each row is in at most one window, which Spark can determine from the row alone."""
        windows = self.windows
        return windows is None or (isinstance(windows, Windows) and windows.every_us == windows.size_us)

    def _partials(self, inputs: InputColumns, work: Work, schema: pa.Schema) -> DataFrame:
        """Return the partial rows that `work` makes from the columns `inputs`, in the rows' own tasks."""
        return through_workers(inputs.alone(), work, schema)

    def _merged(self, partials: DataFrame, plan: Partials) -> DataFrame:
        mode = self.mode if self.frame.isStreaming else None
        if self.windows is None:
            return merge_whole(partials, plan, mode)
        if isinstance(self.windows, LocalWindows):
            return merge_edged(partials, plan)
        return merge_timed(partials, plan, self.windows.over_partials(), mode)

    def _definition(
        self, columns: pl.Schema, aggregates: FrameRequest, typed: Mapping[str, Aggregate]
    ) -> dict[str, Any]:
        """Return everything that decides whether sketches can be merged, as plain JSON."""
        definition: dict[str, Any] = {
            "version": VERSION,
            # The time is part of the definition even without windows.
            "source": FrameSource(pl.Schema({**columns, EVENT: pl.Datetime("us", "UTC")})).definition(),
            "keys": [[key, type_text(columns[key])] for key in aggregates.keys],
            "aggregates": {name: a.definition() for name, a in typed.items()},
            EXPRESSIONS: aggregates.columns.expressions(),
        }
        if self.windows is not None:
            definition["window"] = self.windows.definition()
        if self.mode != "append":
            definition["mode"] = self.mode
        return definition

    def _check(self, request: FrameRequest, time: str | None) -> None:
        """Raise `ValueError` for a stream whose windows would never be complete."""
        if self.frame.isStreaming and isinstance(self.windows, LocalWindows):
            raise ValueError(
                f"groupBy: Spark can't close {self.windows.of_table()} of a streaming DataFrame; define them "
                'on a topic, as in Stream.from_kafka(...).tumbling("1d", zone=...).on_spark(spark), or '
                "sketch shorter windows and roll the stored table up"
            )
        if not self.frame.isStreaming or self.mode == "complete":
            return
        if self.windows is None and self.mode == "append":
            raise ValueError(
                'a streaming DataFrame needs windows: groupBy(F.window("created_at", "1 minute")); without '
                'them give results that change: sketch(df).outputMode("update")'
            )
        if isinstance(self.windows, Sessions) and self.mode == "update":
            raise ValueError(
                'groupBy: Spark has no sessions in update mode, only in "append" and "complete"; '
                "set one of these with outputMode(...)"
            )
        late = None if self.lateness is None else request.columns.named(self.lateness[0], "withWatermark")
        if self.windows is not None and late != time and self._own_delay_ms(time) is None:
            raise ValueError(
                "a streaming DataFrame needs to know when its windows are complete: "
                f'sketch(df).withWatermark("{self.windows.column}", "10 seconds")'
            )

    def _panes(self) -> Paned:
        """Return the panes in which rows are sketched."""
        if self.windows is None:
            return Tumbling.of_length(_DAY_US)
        return self.windows.panes(self.frame.isStreaming)


def _buckets(rows: DataFrame | DeclaredFrame) -> int:
    """Return the number of buckets for a batch's groups: at least Spark's number of shuffle partitions."""
    return max(BUCKETS, int(rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or 0))


def _sketching(
    kept: pa.Schema,
    window: Paned,
    windows: FrameWindows | None,
    plan: Partials,
    schema: pa.Schema,
) -> Work:
    """Return a worker's function over one task's rows: columns as in `schema`, sketched as in `kept`."""
    drawn = secrets.randbits(32)
    shown = {*keys_of(kept)}
    for one in aggregates_of(kept).values():
        shown.update(one.columns if one.family.keeps_values else ())

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        panes = Panes(kept, window, salt=seed_of_task(drawn))
        always = np.zeros(0, np.int64)
        for batch in batches:
            named = zip(schema.names, batch.columns)
            table = pa.table({name: readable(column) if name in shown else column for name, column in named})
            rows = pl.from_arrow(table.cast(schema))
            assert isinstance(rows, pl.DataFrame)
            if windows is None:
                always = always if len(rows) <= len(always) else np.zeros(len(rows), np.int64)
                times = always[: len(rows)]
            else:
                rows, times = _in_time(rows, windows)
            if len(times):
                panes.add(rows, times)
        table = panes.drain()
        freeze_imports()
        if windows is not None and not isinstance(windows, LocalWindows):
            table = _timed(table, windows)
        yield from plan.batches(table)

    return run


def _in_time(rows: pl.DataFrame, windows: FrameWindows) -> tuple[pl.DataFrame, np.ndarray]:
    """Return the rows that have a time, and the times: as in Spark's windows, rows without one are dropped.

    Raises `ValueError` for a time in a year that a table can't hold.
    """
    if rows[EVENT].null_count():
        rows = rows.filter(pl.col(EVENT).is_not_null())
    times = rows[EVENT].to_physical().to_numpy()
    broken = broken_clocks(times, None, -1, 0)
    if broken is not None:
        which, what_to_do = _beyond(windows)
        raise ValueError(f"{which}{times[broken][0]}{what_to_do}")
    return rows, times


def _not_by_catalyst(plan: Partials) -> NoReturn:
    raise ValueError(
        "sketch: with a declared schema Spark's own aggregates must make the sketches, since PySpark "
        "analyses what goes through Python. That takes a window without a slide or none, and distinct, "
        "distinct_set, kll_quantiles, top_k, count, sum, mean, min and max of the columns that docs/spark.md "
        "names; got "
        f"{', '.join(f'{name}={a.name}' for name, a in plan.aggregates.items())}"
    )


def _beyond(windows: FrameWindows) -> tuple[str, str]:
    """Return the message about a row with a time that no table of sketches can hold, as two pieces.

    The row's time goes between the two. Such a row would close all windows.
    """
    return (
        f"{windows.column!r} is outside the years 1 to 9999 in a row: ",
        " microseconds from 1970; such times are often numbers of another unit. Leave such rows out before "
        'they are sketched: df.filter("year(...) BETWEEN 1 AND 9999")',
    )


def _timed(table: pa.Table, windows: FrameWindows) -> pa.Table:
    """Return a task's panes with row times in place of pane times, so that Spark treats them like rows.

    A pane gets the time of its latest row: Spark then assigns windows and moves its watermark as it would for
    the rows themselves. A piece of a session begins with its first row and ends one gap after its last.
    """
    latest = table.column(LATEST).combine_chunks()
    table = table.drop_columns([LATEST])
    if not isinstance(windows, Sessions):
        return table.set_column(0, START, latest)
    end = pa.array(latest.view(pa.int64()).to_numpy() + windows.gap_us).view(latest.type)
    first = table.column(FIRST)
    return table.drop_columns([FIRST]).set_column(0, START, first).set_column(1, END, end)
