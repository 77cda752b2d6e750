"""How each aggregate's column is represented in Spark, and which SQL merges it.

Catalyst merges most columns unchanged, with one function. Some have another representation than in the table
of sketches: frequent items are a struct, samples are rows, means and variances are several columns. The
classes here convert these in both directions.
"""
# ruff: noqa: D102 - `ColumnCodec` documents the methods

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType

from ...operators.definition.aggregate import Aggregate
from ...operators.table.schema import aggregates_of, definition_text
from ...operators.table.spark_footer import DEFINED, KEY_TYPE, ROWS
from ...sampling.core.items import kept_type
from ...sketches.core.columns.lists import elements
from ...sketches.core.columns.utf8_repair import readable
from ...sketches.frequent_items.approx_top_k import items_tracked, state_type, to_state
from ..gc_freeze import freeze_imports

_SPARK_KIND = {"long": "bigint", "double": "double", "float": "float"}


@dataclass(frozen=True)
class ColumnCodec:
    """One aggregate's column that Catalyst merges unchanged, with one function."""

    name: str
    aggregate: Aggregate
    type: pa.DataType
    item: pa.DataType | None = None

    @property
    def quoted(self) -> str:
        """The column in SQL."""
        return quoted(self.name)

    def fields(self) -> list[pa.Field]:
        """The columns of a partial table."""
        return [pa.field(self.name, spark_type(self.type, self.name))]

    def partial(self, column: pa.Array) -> list[pa.Array]:
        """Convert the column of the table of sketches to the columns of a partial table."""
        return [column]

    def merged(self) -> dict[str, str]:
        """Return the SQL aggregates that merge these columns, by the names of the merged columns."""
        kind = str(self.aggregate.params.get("kind", ""))
        function = self.aggregate.family.spark_merge.format(kind=_SPARK_KIND.get(kind, kind))
        # By default, Spark's union has Spark's own default size, or fails for sketches of different sizes.
        more = {"hll_union_agg": ", true", "theta_union_agg": f", {self.aggregate.params.get('lg_k')}"}.get(
            function, ""
        )
        return {self.name: f"{function}({self.quoted}{more})"}

    def final(self) -> Column:
        """Convert the merged columns to the column of the table of sketches."""
        return F.col(self.quoted)


class FrequentForm(ColumnCodec):
    """Frequent items, which Catalyst wraps in a struct with the items' type."""

    def fields(self) -> list[pa.Field]:
        return [pa.field(self.name, spark_type(state_type(self._kind), self.name))]

    def partial(self, column: pa.Array) -> list[pa.Array]:
        return [to_state(column, self._kind, self._size)]

    def merged(self) -> dict[str, str]:
        # The function fails on nulls, which the extra rows for samples have in this column.
        merge = f"approx_top_k_combine({self.quoted}, {items_tracked(self._size)})"
        return {self.name: f"{merge} FILTER (WHERE {self.quoted} IS NOT NULL)"}

    def final(self) -> Column:
        # Spark appends eight bytes to the image: the number of nulls.
        image = f"{self.quoted}.sketch"
        return F.expr(f"substring({image}, 1, length({image}) - 8)")

    @property
    def _kind(self) -> str:
        return str(self.aggregate.params["kind"])

    @property
    def _size(self) -> int:
        return int(self.aggregate.params["max_size"])


class SampleForm(ColumnCodec):
    """A sample, sent as one row per item; `max_by` keeps the items with the highest priorities."""

    @property
    def columns(self) -> tuple[str, str, str]:
        """The columns of the rows seen, and of each item's priority and value."""
        return f"__{self.name}_seen", f"__{self.name}_priority", f"__{self.name}_item"

    def fields(self) -> list[pa.Field]:
        assert self.item is not None
        kinds = [pa.int64(), pa.float64(), spark_type(kept_type(self.item), self.name)]
        return [pa.field(name, kind) for name, kind in zip(self.columns, kinds)]

    def explode(self, column: pa.Array) -> tuple[np.ndarray, pa.Array, list[pa.Array]]:
        """Return how many rows each sample saw, and each item's sample (a row number), priority and value."""
        groups = self.aggregate.groups(len(column))
        groups.merge(np.arange(len(column)), column)
        items = groups.to_columns()  # type: ignore[attr-defined]
        priority, item = (items.column(name).combine_chunks() for name in ("priority", "item"))
        kind = self.fields()[2].type
        return groups.n, items.column("group"), [priority, item.cast(kind)]  # type: ignore[attr-defined]

    def merged(self) -> dict[str, str]:
        seen, priority, item = self.columns
        struct = f"struct({quoted(priority)} AS priority, {quoted(item)} AS item)"
        k = int(self.aggregate.params["k"])
        return {seen: f"sum({quoted(seen)})", item: f"max_by({struct}, {quoted(priority)}, {k})"}

    def final(self) -> Column:
        from pyspark.sql import functions as F

        aggregate = self.aggregate

        def pack(seen: pa.Array, kept: pa.Array) -> pa.Array:
            freeze_imports()
            groups = aggregate.groups(len(seen))
            items, parents = elements(kept)
            items = readable(items)
            n = pc.fill_null(seen, 0).to_numpy(zero_copy_only=False)
            groups.merge_columns(parents, items.field("priority"), items.field("item"), n)  # type: ignore[attr-defined]
            return groups.to_arrow()

        seen, _, item = self.columns
        return F.arrow_udf(pack, BinaryType())(F.col(quoted(seen)), F.col(quoted(item)))  # type: ignore[call-overload]


class MeanForm(ColumnCodec):
    """Count and sum in a struct."""

    def merged(self) -> dict[str, str]:
        return {f"__{self.name}_{part}": f"sum({self.quoted}.{part})" for part in ("n", "sum")}

    def final(self) -> Column:
        n, total = (quoted(name) for name in self.merged())
        return F.expr(f"if({n} > 0, named_struct('n', {n}, 'sum', {total}), NULL)")


class VarianceForm(ColumnCodec):
    """Count, mean and squared deviations; parts are collected, and combined by Chan's formula at the end.

    Sums of squares could be merged without collecting, but lose all digits if the mean is large compared with
    the deviation. A part is 24 bytes; there is one for each micro-batch, task and group of an open window.
    """

    def merged(self) -> dict[str, str]:
        return {self.name: f"collect_list({self.quoted})"}

    def final(self) -> Column:
        n = "(a.n + b.n)"
        folded = (
            f"named_struct('n', {n}, "
            f"'mean', a.mean + (b.mean - a.mean) * b.n / {n}, "
            f"'m2', a.m2 + b.m2 + pow(b.mean - a.mean, 2) * a.n * b.n / {n})"
        )
        # Parts are sorted, so that the result doesn't depend on which task finished first.
        parts = f"array_sort({self.quoted})"
        return F.expr(
            f"if(size({self.quoted}) = 0, NULL, "
            f"aggregate(slice({parts}, 2, size({self.quoted})), {parts}[0], (a, b) -> {folded}))"
        )


_FORMS: dict[str, type[ColumnCodec]] = {
    "approx_top_k_combine": FrequentForm,
    "max_by": SampleForm,
    "struct_sum": MeanForm,
    "chan": VarianceForm,
}


def codecs_of(schema: pa.Schema, columns: Mapping[str, pa.DataType]) -> list[ColumnCodec]:
    """Return the codecs of a table's aggregates, all of which Catalyst can merge.

    `columns` maps the aggregated columns to their types.
    """
    forms = []
    for name, aggregate in aggregates_of(schema).items():
        merge = aggregate.family.spark_merge
        item = columns.get(aggregate.column) if aggregate.column is not None else None
        while item is not None and merge == "max_by" and hasattr(item, "value_type"):
            item = item.value_type
        forms.append(_FORMS.get(merge, ColumnCodec)(name, aggregate, schema.field(name).type, item))
    return forms


def spark_type(kind: pa.DataType, name: str) -> pa.DataType:
    """Return Spark's type for a column. Raises `TypeError` if Spark has none.

    >>> spark_type(pa.uint32(), "id")
    DataType(int64)
    """
    if pa.types.is_unsigned_integer(kind):
        if kind == pa.uint64():
            raise TypeError(
                f"{name!r} has the type {kind}, which Spark doesn't have; cast it to Int64 or String"
            )
        return {8: pa.int16(), 16: pa.int32(), 32: pa.int64()}[kind.bit_width]
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, spark_type(f.type, name)) for f in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(spark_type(kind.value_type, name))
    return kind


def defined_rows(schema: pa.Schema) -> Column:
    """Return the column that identifies the definition of rows of this schema."""
    text = definition_text(schema)
    return F.lit(text).alias(DEFINED, metadata={ROWS: text})


def quoted(name: str) -> str:
    """Quote a column's name for SQL.

    >>> quoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def key_column(field: pa.Field) -> Column:
    """Return a key of a table of sketches as a Spark column with its type in the metadata."""
    column = F.col(quoted(field.name))
    if field.type == spark_type(field.type, field.name):
        return column
    return column.alias(field.name, metadata={KEY_TYPE: str(field.type)})
