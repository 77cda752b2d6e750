"""Merge tables of sketches inside Spark by Catalyst's own aggregates, in Spark's own state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType

from ...operators.table.schema import END, START
from ...operators.table.windows import declared_windows
from ...operators.windows.paned import Paned
from ...operators.windows.table import ALL_TIME
from .column_codecs import ColumnCodec, SampleForm, codecs_of, quoted, spark_type
from .native_sketching import over_rows, probably_drawn, shown
from .partials import WINDOW, Mode, Partials, real_rows


class NativePartials(Partials):
    """Partial rows that Catalyst's own aggregates merge, one for each group.

    If windows are composed of several panes, each row is a pane's, and `panes` assigns panes to windows.
    """

    def __init__(
        self, schema: pa.Schema, columns: Mapping[str, pa.DataType], panes: Paned | None = None
    ) -> None:
        self.forms = codecs_of(schema, columns)
        self._panes = panes
        super().__init__(schema)

    def own_fields(self) -> list[pa.Field]:
        """Return the keys, then the columns of each aggregate's codec."""
        keys = [pa.field(key, spark_type(self.table.field(key).type, key)) for key in self.keys]
        return keys + [field for form in self.forms for field in form.fields()]

    def batches(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """See `Partials.batches`."""
        if not table.num_rows:
            return
        table = table.combine_chunks()
        samples = {}
        columns: dict[str, pa.Array] = {}
        for form in self.forms:
            column = _whole(table, form.name)
            if isinstance(form, SampleForm):
                seen, parents, items = form.explode(column)
                columns[form.columns[0]] = pa.array(seen)
                samples[form.name] = form, parents, items
            else:
                columns.update(zip((field.name for field in form.fields()), form.partial(column)))
        grouping = {name: _whole(table, name) for name in (START, END, *self.keys)}
        yield self._batch({**grouping, **columns}, table.num_rows)
        for form, parents, items in samples.values():
            if not len(parents):
                continue
            rows = {name: column.take(parents.combine_chunks()) for name, column in grouping.items()}
            rows.update(zip(form.columns[1:], items))
            yield self._batch(rows, len(parents))

    def over_rows(
        self, columns: Mapping[str, str], kinds: Mapping[str, DataType]
    ) -> dict[str, Column] | None:
        """Return Catalyst's aggregates that sketch rows, by name; None if its sketches would differ.

        `columns` maps the names that keys and aggregates use to the rows' columns, and `kinds` to their
        types.
        """
        expressions: dict[str, Column] = {}
        for form in self.forms:
            column = (
                F.lit(1) if form.aggregate.column is None else F.col(quoted(columns[form.aggregate.column]))
            )
            kind = None if form.aggregate.column is None else kinds[form.aggregate.column]
            expression = over_rows(form, column, kind, F.col(quoted(_share_of(form))))
            if expression is None:
                return None
            expressions.update(expression)
        return expressions

    def sketched(
        self,
        rows: DataFrame,
        expressions: Mapping[str, Column],
        columns: Mapping[str, str],
        kinds: Mapping[str, DataType],
        twice: bool = False,
        window: Column | None = None,
    ) -> DataFrame:
        """Sketch rows with Catalyst alone, by `expressions`, the result of `over_rows`.

        If there are samples, no column's name may begin with two underscores. `twice` says that a second read
        returns the same rows at little cost. `window` is Spark's window over the rows' times; without it, all
        rows are in one window.
        """
        samples = [form for form in self.forms if isinstance(form, SampleForm)]
        if samples:
            rows = rows.select("*", *(F.rand().alias(_share_of(form)) for form in samples))
        if twice and window is None and not self.keys and len(samples) == len(self.forms) == 1:
            (form,) = samples
            seen, _, item = form.columns
            least = probably_drawn(
                rows, columns[str(form.aggregate.column)], _share_of(form), int(form.aggregate.params["k"])
            )
            joined = rows.agg(expressions[seen].alias(seen)).crossJoin(
                least.agg(expressions[item].alias(item))
            )
        else:
            keys = [F.col(quoted(columns[key])).alias(key) for key in self.keys]
            windows = [] if window is None else [window]
            joined = rows.groupBy(*windows, *keys).agg(
                *(one.alias(name) for name, one in expressions.items())
            )
            texts = [key for key in self.keys if isinstance(kinds[key], StringType)]
            if texts:
                read = {key: shown(F.col(quoted(key)), kinds[key]) for key in texts}
                joined = joined.withColumns(read)
        return self._finished(joined, _ever() if window is None else _edges())

    def spread(self, rows: DataFrame) -> DataFrame:
        """See `Partials.spread`; repeats a pane's row for each window that still counts it.

        A pane's row has the pane's start, and the end of the first window that counts it
        (`operators.sketching.panes`).
        """
        window = self._panes
        if window is None:
            return rows
        start, every, size = F.unix_micros(START), window.begin_every_us, window.size_us
        last = start - F.pmod(start, F.lit(every)) + F.lit(size)
        ends = F.sequence(F.unix_micros(END), last, F.lit(window.every_us))
        announced = F.array(F.unix_micros(END))
        spread_ends = F.explode(F.when(F.expr(real_rows()), ends).otherwise(announced))
        others = [F.col(quoted(field.name)) for field in self.schema if field.name not in (START, END)]
        spread = rows.select(START, spread_ends.alias("__end"), *others)
        end = F.col("__end")
        begin = (last if every == size else end) - F.lit(size)
        edges = F.timestamp_micros(begin).alias(START), F.timestamp_micros(end).alias(END)
        return spread.select(*edges, *others)

    def merged(self, rows: DataFrame, windows: list[Column], mode: Mode | None) -> DataFrame:
        """See `Partials.merged`."""
        keys = [F.col(quoted(key)) for key in self.keys]
        described = declared_windows(self.table)
        if not keys and mode is not None and described is not None and described.merging:
            # Spark has no streaming sessions without a key, and optimises a constant key away.
            keys = [F.coalesce(F.col("__read"), F.lit(0)).alias("__all")]
        aggregates = [F.expr(sql).alias(name) for form in self.forms for name, sql in form.merged().items()]
        merged = rows.groupBy(*windows, *keys).agg(*aggregates)
        if len(windows) == 2:
            edges = [F.col(START), F.col(END)]
        elif windows:
            edges = _edges()
        else:
            edges = _ever()
        return self._finished(merged, edges)

    def _finished(self, merged: DataFrame, edges: list[Column]) -> DataFrame:
        return self._named(merged, edges, {form.name: form.final() for form in self.forms})


def _share_of(form: ColumnCodec) -> str:
    """Return the name of the column with the random shares that select a sample's rows."""
    return f"__{form.name}_share"


def _edges() -> list[Column]:
    return [F.col(WINDOW)[edge] for edge in ("start", "end")]


def _ever() -> list[Column]:
    return [F.expr(f"timestamp_micros({edge})") for edge in ALL_TIME]


def _whole(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
