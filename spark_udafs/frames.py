"""Any DataFrame into a table of sketches: sketched where its rows are, merged inside Spark.

    table = sketch(posts).groupBy("lang", window("created_at", "1 minute")).agg(users=distinct("user_id"))
    query(as_table(table))    # brings the table to the driver and answers it

This works on batch and streaming DataFrames, on classic Spark and on Spark Connect. Say here how late the
rows of a streaming DataFrame may come, ``sketch(posts).withWatermark("created_at", "10 seconds")``, and not
on the DataFrame itself: Spark forgets it where rows become sketches.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import ArrayType, StringType, StructType

from ..operators.definition import aggregates as ask
from ..operators.definition.aggregate import Aggregate
from ..operators.definition.checked import check_keys, typed_aggregates
from ..operators.definition.description import VERSION
from ..operators.definition.durations import microseconds, written
from ..operators.definition.sources import FrameSource
from ..operators.definition.text import type_text
from ..operators.definition.windows import Paned, Tumbling
from ..operators.sketching.lateness import broken_clocks
from ..operators.sketching.panes import Panes
from ..operators.table.schema import START, key_type, table_schema
from ..operators.table.windows import TableWindows
from .definitions import labelled, remembering
from .merge.forms import quoted
from .merge.partials import Partials
from .merge.plan import merge_timed, merge_whole, partials_of

EVENT, _LATEST = "__event", "__latest"
"""The column of event times beside those that are sketched, and the one of each pane's latest."""
_DAY_US = 86_400_000_000

Work = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What a worker makes of the batches of one task."""


@dataclass(frozen=True)
class Windows:
    """Windows over a DataFrame's time column, made by `window`.

    >>> window("at", "1 hour").definition()
    {'size': '1h', 'time': 'over "at"'}
    """

    column: str
    size_us: int
    slide_us: int
    offset_us: int

    @property
    def pane_us(self) -> int:
        """The length of panes: each pane lies wholly inside a window or wholly outside it."""
        return math.gcd(self.size_us, self.slide_us, self.offset_us)

    def over(self, column: str) -> Column:
        """Spark's own window over a column."""
        size, slide, offset = (f"{us} microseconds" for us in (self.size_us, self.slide_us, self.offset_us))
        return F.window(column, size, slide, offset)

    def definition(self) -> dict[str, str]:
        """As plain JSON."""
        told = {"size": written(self.size_us), "time": f'over "{self.column}"'}
        if self.slide_us != self.size_us:
            told["slide"] = f"every {written(self.slide_us)}"
        if self.offset_us:
            told["start"] = f"from {written(self.offset_us)}"
        return told


def window(
    timeColumn: str, windowDuration: str, slideDuration: str | None = None, startTime: str | None = None
) -> Windows:
    """Windows like those of `pyspark.sql.functions.window`; durations as there (``"1 minute"``), or ``"1m"``.

    Raises `ValueError` for text that is not a duration, and for a slide longer than the window.

    >>> window("at", "1 hour", "15 minutes").pane_us == 15 * 60_000_000
    True
    """
    size = duration(windowDuration)
    slide = size if slideDuration is None else duration(slideDuration)
    if not 0 < slide <= size:
        raise ValueError(
            f"window: a slide of {slideDuration} doesn't fit windows of {windowDuration}; it must be longer "
            "than 0 and at most the window's length"
        )
    return Windows(timeColumn, size, slide, 0 if startTime is None else duration(startTime))


def sketch(frame: DataFrame) -> Sketching:
    """Begin a table of sketches of a DataFrame's rows.

    Go on with `groupBy` and `agg`; for a streaming DataFrame with `withWatermark` first. Spark's Python
    workers sketch the rows in Arrow batches, then Spark merges the sketches.

    >>> import polars as pl
    >>> from streamgauge import as_table, distinct, query, window
    >>> rows = [("ann", "2026-01-01 00:00:10"), ("bob", "2026-01-01 00:00:20"), ("ann", "2026-01-01 00:01")]
    >>> posts = spark.createDataFrame(rows, "user string, at string")
    >>> minutes = sketch(posts).groupBy(window("at", "1 minute")).agg(users=distinct("user"))
    >>> answers = query(as_table(minutes)).sort("window_start")
    >>> answers["users"].struct.field("estimate").round(2).to_list()
    [2.0, 1.0]
    """
    return Sketching(frame)


@dataclass(frozen=True)
class Sketching:
    """A DataFrame on its way into a table of sketches; made by `sketch`, which shows an example."""

    frame: DataFrame
    lateness: tuple[str, str] | None = None
    keys: tuple[str, ...] = ()
    windows: Windows | None = None

    def withWatermark(self, eventTime: str, delayThreshold: str) -> Sketching:
        """Like `DataFrame.withWatermark`: how long a window of a streaming DataFrame waits for late rows."""
        return replace(self, lateness=(eventTime, delayThreshold))

    def groupBy(self, *keys: str | Windows) -> Sketching:
        """Group by columns, and by at most one `window`.

        Raises `ValueError` for a second window, and `TypeError` for anything but columns' names and a window.
        """
        windows = [key for key in keys if isinstance(key, Windows)]
        if len(windows) > 1:
            raise ValueError("groupBy: a table has one kind of window; make another table for the other")
        names = tuple(key for key in keys if isinstance(key, str))
        if len(names) + len(windows) != len(keys):
            raise TypeError(
                "groupBy takes names of columns and a window; name expressions with withColumn first"
            )
        return replace(self, keys=names, windows=windows[0] if windows else None)

    def agg(self, **aggregates: Aggregate) -> DataFrame:
        """The table of sketches: window_start, window_end, the keys, and a column for each aggregate.

        Without a window all rows are in a single one, from 1678-01-01 to 2262-01-01, which stands for all
        time. Raises `ValueError` for columns that don't exist, for a streaming DataFrame without windows or
        a watermark, and for one that needs its state in RocksDB where it isn't (`merge.buckets`); raises
        `TypeError` for columns that an aggregate can't take.
        """
        self._check(aggregates)
        columns = [*self.keys, *(column for a in aggregates.values() for column in a.columns)]
        rows = self.frame.select(*map(_column, dict.fromkeys(columns)), self._event().alias(EVENT))
        self._check_collations(rows.schema, aggregates)
        schema = to_arrow_schema(rows.schema, timezone="UTC")
        known = _columns_of(schema)
        check_keys("groupBy", self.keys, known)
        types = {field.name: field.type for field in known.to_frame().to_arrow().schema}
        keys = {key: key_type(types[key]) for key in self.keys}
        asked = typed_aggregates(aggregates, self.keys, types)
        plan = partials_of(table_schema(keys, asked, self._windows()), types)
        latest = {_LATEST: ask.max(EVENT).typed(types[EVENT])}
        work = _sketching(table_schema(keys, {**asked, **latest}, None), self._pane(), plan, schema)
        partials = self._partials(rows, work, plan.schema)
        if self.windows is None:
            return merge_whole(partials, plan)
        if self.lateness is not None and self.frame.isStreaming:
            definition = self._definition(known, asked)
            partials = remembering(partials, definition).withWatermark(START, self.lateness[1])
            return labelled(merge_timed(partials, plan, self.windows.over(START)), definition)
        return merge_timed(partials, plan, self.windows.over(START))

    def _partials(self, rows: DataFrame, work: Work, schema: pa.Schema) -> DataFrame:
        """The partial rows that `work` makes of rows, in a task of where they are."""
        return rows.mapInArrow(work, from_arrow_schema(schema))

    def _definition(self, columns: pl.Schema, asked: Mapping[str, Aggregate]) -> dict[str, Any]:
        """All that decides whether sketches can be merged, as plain JSON."""
        assert self.windows is not None
        return {
            "version": VERSION,
            "source": FrameSource(columns).definition(),
            "keys": [[key, type_text(columns[key])] for key in self.keys],
            "aggregates": {name: a.definition() for name, a in asked.items()},
            "window": self.windows.definition(),
        }

    def _event(self) -> Column:
        if self.windows is None:
            return F.timestamp_micros(F.lit(0))
        return F.col(quoted(self.windows.column)).cast("timestamp")

    def _check(self, aggregates: dict[str, Aggregate]) -> None:
        if not aggregates:
            raise ValueError('agg: nothing is asked; name an aggregate, such as users=distinct("user")')
        known = self.frame.columns
        asked = [*self.keys, *(column for a in aggregates.values() for column in a.columns)]
        if self.windows is not None:
            asked.append(self.windows.column)
        if missing := [name for name in asked if name not in known]:
            raise ValueError(
                f"agg: no column {', '.join(map(repr, missing))}; the DataFrame has {', '.join(known)}"
            )
        if not self.frame.isStreaming:
            return
        if self.windows is None:
            raise ValueError('a streaming DataFrame needs windows: groupBy(window("created_at", "1 minute"))')
        if self.lateness is None or self.lateness[0] != self.windows.column:
            raise ValueError(
                "a streaming DataFrame needs to know when its windows are complete: "
                f'sketch(df).withWatermark("{self.windows.column}", "10 seconds")'
            )

    def _check_collations(self, schema: StructType, aggregates: dict[str, Aggregate]) -> None:
        compared = {
            column: name for name, a in aggregates.items() for column in a.columns if a.name != "count"
        }
        compared.update({key: f"groupBy({key!r})" for key in self.keys})
        for column, where in compared.items():
            kind = schema[column].dataType
            while isinstance(kind, ArrayType):
                kind = kind.elementType
            if isinstance(kind, StringType) and not kind.isUTF8BinaryCollation():
                raise TypeError(
                    f"{where}: {column!r} has the collation {kind.collation}, under which Spark takes "
                    "different strings as equal; a sketch counts them apart. Select lower(...) of it, or "
                    "collate(..., 'UTF8_BINARY'), first"
                )

    def _windows(self) -> TableWindows:
        """The windows of the table."""
        windows = self.windows
        if windows is None:
            return TableWindows.all_time()
        return TableWindows.of(windows.size_us, windows.slide_us, windows.offset_us)

    def _pane(self) -> Paned:
        """The panes that those windows are made of."""
        return Tumbling.of_length(_DAY_US if self.windows is None else self.windows.pane_us)


def _columns_of(schema: pa.Schema) -> pl.Schema:
    """The columns of a worker's rows."""
    rows = pl.from_arrow(schema.empty_table())
    assert isinstance(rows, pl.DataFrame)
    return rows.schema


def _sketching(kept: pa.Schema, window: Paned, plan: Partials, schema: pa.Schema) -> Work:
    """What a worker does with the rows of one task, whose columns are `schema`; `kept` is kept of them."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        panes = Panes(kept, window, salt=_salt())
        for batch in batches:
            rows = pl.from_arrow(pa.Table.from_batches([batch]).cast(schema))
            assert isinstance(rows, pl.DataFrame)
            # As for Spark's own windows, rows without a time are in none; nor are years that no engine knows.
            if rows[EVENT].null_count():
                rows = rows.filter(pl.col(EVENT).is_not_null())
            times = rows[EVENT].to_physical().to_numpy()
            broken = broken_clocks(times, None, -1, 0)
            if broken is not None:
                rows, times = rows.filter(pl.Series(~broken)), times[~broken]
            if len(times):
                panes.add(rows, times)
        table = panes.take()
        # A partial row gets the time of the pane's latest row. Spark then assigns its windows and moves its
        # watermark as it would for the rows themselves.
        latest = table.column(_LATEST)
        yield from plan.batches(table.set_column(0, START, latest).drop_columns([_LATEST]))

    return run


def _salt() -> int:
    """A seed for samples: another for each task of each micro-batch, the same when Spark repeats a task."""
    task = TaskContext.get()
    if task is None:
        return 0
    places = ("sql.streaming.queryId", "streaming.sql.batchId")
    told = [task.getLocalProperty(place) or "" for place in places]
    return zlib.crc32("/".join([*told, str(task.stageId()), str(task.partitionId())]).encode())


def _column(name: str) -> Column:
    return F.col(quoted(name))


def duration(text: str) -> int:
    """A length of time in Spark's notation or ours, in microseconds.

    >>> duration("1 minute"), duration("90s")
    (60000000, 90000000)
    """
    spelled = re.sub(
        r"(\d+)\s*(microsecond|millisecond|second|minute|hour|day|week)s?\b",
        lambda found: found[1] + _UNITS[found[2]],
        text.strip().lower(),
    )
    return microseconds(re.sub(r"\s", "", spelled))


_UNITS = {
    "microsecond": "us",
    "millisecond": "ms",
    "second": "s",
    "minute": "m",
    "hour": "h",
    "day": "d",
    "week": "w",
}
