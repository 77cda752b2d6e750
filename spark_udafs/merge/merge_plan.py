"""Merge partial tables of sketches into one.

Catalyst's own aggregates merge a table if they can merge all of its columns. If there is a single column that
they can't merge, our own merge handles the whole table, in buckets of groups: the query then has one state,
and not two that would have to be joined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ...operators.definition.stream import Stream
from ...operators.table.schema import END, START, aggregates_of, schema_of
from ...operators.table.windows import declared_windows
from ...operators.windows.count import ByCount
from ...operators.windows.paned import Paned
from ...operators.windows.window import StreamWindows
from .buckets import BucketedPartials
from .catalyst import NativePartials
from .counted import CountedPartials
from .open_windows import OpenWindowsMerge, OpenWindowsPartials, PanesMerge, SessionsMerge
from .partials import ACCOUNT, AHEAD, PROGRESS, WINDOW, Mode, Partials, real_rows
from .sessions import BucketedSessions

OBSERVED = "streamgauge"
"""The name of a query's observed metrics with the account and the progress."""


def _open_windows(
    merge: Callable[[pa.Schema, Any], OpenWindowsMerge],
) -> Callable[[pa.Schema, Any], Partials]:
    return lambda schema, window: OpenWindowsPartials(schema, merge(schema, window))


_PARTIALS: dict[str, Callable[[pa.Schema, Any], Partials]] = {
    "sliding": _open_windows(PanesMerge),
    "session": _open_windows(SessionsMerge),
    ByCount.kind: CountedPartials,
}
"""The partial rows of streams whose windows depend on a group's rows, by the kind of window."""


def merged_by_spark(window: StreamWindows | type[StreamWindows]) -> bool:
    """Whether Spark merges windows of this kind."""
    return window.of_panes or window.kind in _PARTIALS


def merged_by_catalyst(function: str) -> bool:
    """Whether this version of Spark has the function that merges a family of sketches; "" is none.

    Samples need `max_by` of several rows, which Spark has from 4.2 on.
    """
    return bool(function) and (function != "max_by" or "k" in signature(F.max_by).parameters)


def plan_of(stream: Stream) -> Partials:
    """Return the partial rows of a stream."""
    return partials_of(schema_of(stream), stream.reading.arrow_types(), window=stream.window)


def partials_of(
    schema: pa.Schema,
    columns: Mapping[str, pa.DataType],
    streaming: bool = True,
    window: StreamWindows | None = None,
) -> Partials:
    """Return how a table of this schema is sent and merged; `columns` are the aggregated columns' types.

    A batch has no late rows, so it sends sessions in fewer pieces. `window` is the window of a stream, whose
    rows are sketched by panes.

    Raises `TypeError` for columns of types that Spark doesn't have.
    """
    if window is not None and (own := _PARTIALS.get(window.kind)) is not None:
        return own(schema, window)
    panes = window if isinstance(window, Paned) and not window.single else None
    if panes is not None and panes.calendar:
        # Catalyst doesn't know where calendar windows begin.
        return OpenWindowsPartials(schema, PanesMerge(schema, panes))
    if all(merged_by_catalyst(aggregate.family.spark_merge) for aggregate in aggregates_of(schema).values()):
        return NativePartials(schema, columns, panes)
    windows = declared_windows(schema)
    if windows is not None and windows.merging:
        return BucketedSessions(schema, windows.size_us, streaming)
    if panes is not None:
        return OpenWindowsPartials(schema, PanesMerge(schema, panes))
    return BucketedPartials(schema)


def partials_of_table(schema: pa.Schema) -> Partials:
    """Return how a stored table of this schema is sent and merged.

    Catalyst merges samples item by item, for which it needs the items' type. A table of samples doesn't
    record that type, only the sampled rows have it. So our own merge handles samples.
    """
    if any(aggregate.family.spark_merge == "max_by" for aggregate in aggregates_of(schema).values()):
        return BucketedPartials(schema)
    return partials_of(schema, {})


def merge_announced(partials: DataFrame, plan: Partials) -> DataFrame:
    """Merge partial rows whose source announces the watermark.

    Each micro-batch's account, the messages it has read and its lag are among the query's observed metrics,
    under the name "streamgauge".
    """
    account = [F.sum(F.col(f"__{name}")).alias(name) for name in (*ACCOUNT, *PROGRESS)]
    rows = plan.spread(partials.observe(OBSERVED, *account))
    mode: Mode | None = "append" if partials.isStreaming else None
    if mode is not None:
        rows = rows.withWatermark(END, AHEAD)
    # Filter after the watermark, so that announcing rows move it and then vanish.
    return plan.merged(rows.filter(real_rows()), [F.col(START), F.col(END)], mode)


def merge_edged(partials: DataFrame, plan: Partials) -> DataFrame:
    """Merge a batch of partial rows in their own windows."""
    return plan.merged(partials, [F.col(START), F.col(END)], None)


def merge_timed(partials: DataFrame, plan: Partials, window: Column, mode: Mode | None) -> DataFrame:
    """Merge partial rows to which Spark itself assigns windows, by `window`."""
    return plan.merged(partials, [window.alias(WINDOW)], mode)


def merge_whole(partials: DataFrame, plan: Partials, mode: Mode | None) -> DataFrame:
    """Merge partial rows that are all in one window, `ALL_TIME`."""
    return plan.merged(partials, [], mode)
