"""Merge tables of sketches inside Spark into coarser windows and fewer keys, batch and streaming."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from ...operators.table.merge import windows_of_rollup
from ...operators.table.schema import (
    END,
    START,
    TIME_TYPE,
    aggregates_of,
    definition_of,
    keys_of,
    table_schema,
    with_schema,
)
from ...operators.table.spark_footer import DEFINED, check_rows
from ...operators.table.windows import declared_windows, edges, within
from ...operators.windows.paned import Paned
from ...operators.windows.table import TableWindows
from ...sketches.core.protocol import SketchError
from ..definitions import labelled, remembering
from ..gc_freeze import freeze_imports
from ..merge.merge_plan import merge_edged, merge_timed, partials_of_table
from ..merge.partials import Partials
from ..worker_errors import raised_alone
from .row_definitions import described
from .tables import defined_by, one_schema, others_defined, timed_columns
from .watermarks import has_watermark, with_watermark_of_rows
from .windows import in_our_notation


def rollup(
    table: DataFrame | Sequence[DataFrame],
    every: str | None = None,
    by: Sequence[str] | None = None,
    delay: str = "0 seconds",
    *,
    offset: str | None = None,
    zone: str | None = None,
) -> DataFrame:
    """Merge a table of sketches, or several of one definition, into coarser windows and fewer keys.

    `every` is the length of the new windows (``"1 hour"``, or ``"1h"``), into which the table's own must fit;
    without it the windows stay. `offset` and `zone` determine where the new windows begin, as in `merge`; by
    default the zone is the table's own. `by` names the keys to preserve (all if None, none if empty). Merging
    does not increase a sketch's error. If windows overlap, only those that lie end to end are used, as in
    `merge`.

    A streaming table emits each new window once, when a window of the table begins `delay` after its end;
    later rows for it are dropped, as with Spark's watermarks. A table that `sketch` creates in the same query
    has a watermark, by which both close their windows, and then `delay` has no effect. A streaming table
    needs `every`, even if it equals the windows' length, and its own checkpoint, which belongs to one
    definition; its new windows have one length and begin in UTC.

    Tables read from ORC, JSON or CSV are described by their rows, as for `as_table`.

    Raises `SketchError` for DataFrames that aren't tables of sketches, for different definitions, which it
    names, and for windows that don't fit. If rows of different definitions were mixed in one table before,
    the query raises it. Raises `ValueError` for keys that the table doesn't have; `TypeError` for anything
    but a Spark DataFrame.

    >>> import streamgauge as sg
    >>> columns = ["id % 50 AS user", "id % 2 AS side", "timestamp_seconds(id) AS at"]
    >>> rows = spark.range(7200).selectExpr(*columns)
    >>> aggregates = {"rows": sg.count(), "users": sg.distinct("user")}
    >>> minutes = sg.spark.sketch(rows).groupBy("side", sg.spark.window("at", "1 minute")).agg(**aggregates)
    >>> table = sg.spark.as_table(sg.spark.rollup(minutes, every="1 hour", by=[]))
    >>> hours = table.answers().sort("window_start")
    >>> minutes.count(), hours["rows"].to_list(), hours["users"].struct.field("estimate").round().to_list()
    (240, [3600, 3600], [50.0, 50.0])
    """
    tables = [table] if isinstance(table, DataFrame) else list(table)
    if not tables:
        raise ValueError("rollup: no tables were given; give at least one, which may be empty")
    if not all(isinstance(one, DataFrame) for one in tables):
        raise TypeError(f"rollup takes Spark DataFrames, got {table!r}; spark.table gives one by its name")
    if isinstance(by, str):
        raise ValueError(f"rollup: by takes a list of keys, as in by=[{json.dumps(by)}]")
    tables = [described(one) for one in tables]
    schema = one_schema(tables, "rollup")
    own = keys_of(schema)
    if unknown := [key for key in by or () if key not in own]:
        raise ValueError(f"rollup: {', '.join(unknown)} is not a key of this table; its keys are {own}")
    length = None if every is None else in_our_notation(every)
    larger = windows_of_rollup("rollup", length, offset, zone, schema)
    windows = _windows(schema, larger)
    keys = {key: schema.field(key).type for key in own if by is None or key in by}
    plan = partials_of_table(table_schema(keys, aggregates_of(schema), windows))
    columns = from_arrow_schema(plan.schema)
    # PySpark's mapInArrow can't handle column names with dots, so columns are renamed for the trip.
    partials = [
        one.select(*_renamed(one, schema), others_defined(one)).mapInArrow(
            _partial(schema, plan, larger, defined_by(one)), columns
        )
        for one in tables
    ]
    rows = partials[0]
    for more in partials[1:]:
        rows = rows.unionAll(more)
    if not rows.isStreaming:
        edged = larger is None or larger.calendar
        return merge_edged(rows, plan) if edged else merge_timed(rows, plan, _over(windows), None)
    if larger is not None and larger.calendar:
        raise SketchError(
            f"rollup: Spark can't close {larger.text} of a streaming table; roll up the stored table, as in "
            "rollup(spark.read.parquet(...), ...)"
        )
    if larger is None:
        raise SketchError(
            "rollup: Spark knows when a streaming table's windows are complete only by their length; name "
            'it, even if it stays the same, as in every="1 minute"'
        )
    definition = {**definition_of(plan.table), "window": windows.definition()}
    rows = remembering(rows, definition, columns)
    if all(map(has_watermark, tables)):
        rows = with_watermark_of_rows(rows, START, 0)
    else:
        rows = rows.withWatermark(START, delay)
    return labelled(merge_timed(rows, plan, _over(windows), "append"), definition)


def _renamed(table: DataFrame, schema: pa.Schema) -> list[Column]:
    """Return the table with its columns renamed to numbers."""
    return [column.alias(f"c{at}") for at, column in enumerate(timed_columns(table, schema))]


def _over(windows: TableWindows) -> Column:
    """Return Spark's own window of this kind, over the start of a row's window."""
    length, offset = (f"{us} microseconds" for us in (windows.size_us, windows.offset_us))
    return F.window(START, length, length, offset)


def _windows(schema: pa.Schema, larger: Paned | None) -> TableWindows:
    """Return the new table's windows. Raises `SketchError` if the table's own can't be merged into them."""
    windows = declared_windows(schema)
    if windows is None:
        raise SketchError(
            "rollup: this table doesn't record its kind of windows, so it isn't known which may be merged; "
            "use the table as it was written, or merge(as_table(table)), which looks at the rows"
        )
    if larger is None:
        return windows
    if not windows.rolls_up:
        raise SketchError(
            f"rollup: this table has {windows}, which can't be merged into windows of one length"
        )
    if not windows.fit_into(larger):
        raise SketchError(
            f"rollup: {windows} don't fit into {larger.text}; choose a multiple of their length"
        )
    return larger.of_table()


def _partial(
    schema: pa.Schema, plan: Partials, larger: Paned | None, defined: str | None
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a worker's function over the table's rows: select those that count, and the keys to keep."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_imports()
        with raised_alone():
            for batch in batches:
                if not batch.num_rows:
                    continue
                table = pa.Table.from_batches([batch]).rename_columns([*schema.names, DEFINED])
                check_rows(table[DEFINED], defined)
                table = with_schema(table.drop_columns([DEFINED]), schema)
                if larger is not None:
                    mask = within(table, keys_of(schema), larger)
                    table = table if mask is None else table.filter(pa.array(mask))
                    starts, _ = edges(table)
                    # Rows keep their own start, by which Spark moves its watermark, and get the new end.
                    ends = pa.array(larger.first_ends(starts)).view(TIME_TYPE)
                    table = table.set_column(1, schema.field(END), ends)
                    if larger.calendar:
                        begins = pa.array(larger.pane_starts(starts)).view(TIME_TYPE)
                        table = table.set_column(0, schema.field(START), begins)
                yield from plan.batches(table.select(plan.table.names))

    return run
