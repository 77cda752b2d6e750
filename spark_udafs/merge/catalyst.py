"""Tables of sketches merged inside Spark by Catalyst's own aggregates, in Spark's own state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType

from ...operators.table.schema import END, START
from ...operators.table.windows import ALL_TIME, windows_told
from .forms import SampleForm, forms_of, quoted, spark_type
from .partials import Mode, Partials

_HASHED_ALIKE = (IntegerType, LongType, StringType, BinaryType)
"""The types whose values `hll_sketch_agg` takes, and hashes as `distinct` does."""


class NativePartials(Partials):
    """Partial rows that Catalyst's own aggregates merge, one for each group."""

    def __init__(self, schema: pa.Schema, columns: Mapping[str, pa.DataType]) -> None:
        self.forms = forms_of(schema, columns)
        super().__init__(schema)

    def own_fields(self) -> list[pa.Field]:
        """The keys, then the columns of each aggregate's form."""
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

    def sketched(self, rows: DataFrame, columns: Mapping[str, str]) -> DataFrame | None:
        """The table of all rows, sketched by Catalyst alone; None if it can't, or not to the same registers.

        `columns` are the rows' columns by the names that the aggregates have for them. One ungrouped
        HyperLogLog costs less there than the pipe through which rows reach a Python worker.
        """
        asked = {name: str(a.column) for name, a in self.aggregates.items() if a.name == "distinct"}
        if self.keys or len(asked) < len(self.aggregates):
            return None
        if any(not isinstance(rows.schema[columns[of]].dataType, _HASHED_ALIKE) for of in asked.values()):
            return None
        sketches = [
            F.hll_sketch_agg(columns[of], int(self.aggregates[name].params["lg_k"])).alias(name)
            for name, of in asked.items()
        ]
        edges = [F.timestamp_micros(F.lit(edge)) for edge in ALL_TIME]
        return self._named(rows.agg(*sketches), edges, {name: F.col(quoted(name)) for name in asked})

    def merged(self, rows: DataFrame, windows: list[Column], mode: Mode = "append") -> DataFrame:
        """See `Partials.merged`."""
        keys = [F.col(quoted(key)) for key in self.keys]
        told = windows_told(self.table)
        if not keys and rows.isStreaming and told is not None and told.kind == "session":
            # Spark has no sessions of a stream without a key, and sees through one that is a constant.
            keys = [F.coalesce(F.col("__read"), F.lit(0)).alias("__all")]
        aggregates = [F.expr(sql).alias(name) for form in self.forms for name, sql in form.merged().items()]
        merged = rows.groupBy(*windows, *keys).agg(*aggregates)
        if len(windows) == 2:
            edges = [F.col(START), F.col(END)]
        elif windows:
            window = F.col(quoted(merged.columns[0]))
            edges = [window["start"], window["end"]]
        else:
            edges = [F.timestamp_micros(F.lit(edge)) for edge in ALL_TIME]
        return self._named(merged, edges, {form.name: form.final() for form in self.forms})


def _whole(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
