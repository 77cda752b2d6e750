"""Tables of sketches on their way into Spark's merge: partial rows, and rows that only announce.

A partial row is a row of the table of sketches; the items of a sample follow as rows of their own. An
announcing row carries a task's account and up to where event time is complete, and is in no window: its
window's end lies `AHEAD` of the watermark it announces, beyond all dates. Declared with that much delay,
Spark's own watermark is then the announced one and never a row's, so Spark closes a window exactly when the
sketching side no longer counts rows into it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from ..operators.accounting import Account
from ..operators.lateness import YEAR_10000
from ..operators.table import END, START, TIME_TYPE, keys_of
from .forms import SampleForm, forms_of, quoted, spark_type

AHEAD = "3000000 days"
AHEAD_US = 3_000_000 * 86_400_000_000
"""Longer than from the epoch to the year 10,000."""

ACCOUNT = ("read", "counted", "filtered", "late", "dead_lettered")
"""The fields of an account; in partial rows each is a column with two underscores before its name."""


class Partials:
    """The partial rows of one table of sketches' schema."""

    def __init__(self, schema: pa.Schema, columns: Mapping[str, pa.DataType]) -> None:
        self.table = schema
        self.keys = keys_of(schema)
        self.forms = forms_of(schema, columns)
        fields = [pa.field(START, TIME_TYPE), pa.field(END, TIME_TYPE)]
        fields += [pa.field(key, spark_type(schema.field(key).type, key)) for key in self.keys]
        fields += [field for form in self.forms for field in form.fields()]
        fields += [pa.field(f"__{name}", pa.int64()) for name in ACCOUNT]
        self.schema = pa.schema(fields)

    def batches(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """The partial rows of a table of sketches. No batch is empty: Spark may take one for the end."""
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

    def announcement(self, account: Account, watermark_us: int) -> pa.RecordBatch:
        """The row that carries an account, and a watermark that all partitions have reached."""
        # Spark's watermark begins at 1970, and takes nothing before it.
        end = AHEAD_US + min(max(watermark_us, 0), YEAR_10000)
        columns = {name: pa.array([end]).view(TIME_TYPE) for name in (START, END)}
        columns.update({f"__{name}": pa.array([getattr(account, name)]) for name in ACCOUNT})
        return self._batch(columns, 1)

    def _batch(self, columns: Mapping[str, pa.Array], rows: int) -> pa.RecordBatch:
        arrays = []
        for field in self.schema:
            column = columns.get(field.name)
            if column is None:
                column = pa.nulls(rows, field.type)
            arrays.append(column if column.type == field.type else column.cast(field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def real_rows() -> str:
    """In SQL: the rows that are in a window, without those that only announce."""
    return f"{quoted(END)} < timestamp_micros({AHEAD_US})"


def _whole(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
