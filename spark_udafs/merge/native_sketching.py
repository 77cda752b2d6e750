"""Sketch rows with Catalyst's own aggregates if they produce the same sketches as ours.

Sending a row to a Python worker costs a tenth of a microsecond of CPU time or more, whatever happens to it
there; that is as much as one of Catalyst's sketches. So the rows of a batch stay in the JVM if all of its
aggregates are in this table, which is as fast as calling Spark's functions by hand. The exception is many
cached rows in too many groups for Catalyst's hash table (`map_in_arrow.quicker_in_python`):

| aggregate | of columns of |
|---|---|
| `distinct` | whole numbers, booleans, strings, binary |
| `distinct_set` | the same, and floats |
| `kll_quantiles` | whole numbers, booleans, floats, decimals |
| `top_k` | whole numbers, booleans, strings |
| `sample` | single values of any type that can be ordered |
| `count` | anything but lists, whose elements it counts |
| `sum`, `mean` | whole numbers, booleans |
| `min`, `max` | all but floats and lists |

All others use our own sketches, because Catalyst's would differ: its HLL accepts no floats, it sums floats
without compensating rounding errors, treats −0.0 as 0.0, doesn't expose a variance's squared deviations, and
can't hash timestamps as microseconds, as ours do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as spark

from ...sketches.frequent_items.approx_top_k import items_tracked
from .column_codecs import ColumnCodec, SampleForm

_WHOLE = (spark.ByteType, spark.ShortType, spark.IntegerType, spark.LongType, spark.BooleanType)
_REAL = (spark.FloatType, spark.DoubleType)
_TEXT = (spark.StringType, spark.BinaryType)
_OTHER = (spark.DateType, spark.TimestampType, spark.TimestampNTZType, spark.DecimalType)

_LEAST_SHARE = 2.0**-54
"""Half the smallest step of `rand()`, so that no priority is 0."""
_NEVER = 42.0
"""The negative logarithm of the probability, 6e-19, that a part of a sample is too small."""

Sketched = dict[str, Column]
"""Aggregates by the names of the columns that `ColumnCodec.merged` returns."""


def over_rows(
    form: ColumnCodec, column: Column, kind: spark.DataType | None, share: Column
) -> Sketched | None:
    """Return Catalyst's aggregates for the columns of `form.merged()`; None if its sketch would differ.

    `kind` is the type of the column, None for an aggregate of whole rows; `share` is a random number in
    [0, 1) for each row, which selects samples.
    """
    if form.aggregate.inputs:
        return None
    if isinstance(form, SampleForm):
        return _sample(form, column, kind, share)
    builder = _OVER_ROWS.get(form.aggregate.name)
    return None if builder is None else builder(form, column, kind)


def probably_drawn(rows: DataFrame, column: str, share: str, k: int) -> DataFrame:
    """Return a subset of the rows with a value that includes the `k` rows with the smallest shares.

    A task keeps its row i if the row's share is below c / i. Of a task's n rows, the k with the smallest
    shares have shares below c / n, and so are kept, unless fewer than k of n shares are below c / n. By
    Chernoff's bound (Mitzenmacher and Upfal, *Probability and Computing*, theorem 4.5) the probability of
    that is at most exp(−(c − k)² / 2c), which is 6e-19 for this c; if c is n or more, all rows are kept. So
    the k rows with the smallest shares are a reservoir sample of all rows, while only about c · log(n / c) of
    n rows cost more than a comparison.
    """
    c = k + _NEVER + math.sqrt(_NEVER * (_NEVER + 2 * k))
    before = F.monotonically_increasing_id().bitwiseAND(F.lit((1 << 33) - 1))
    numbered = rows.where(F.col(column).isNotNull()).select(column, share, before.alias("before"))
    return numbered.where(F.col(share) * (F.col("before") + 1) < c)


def _sample(form: SampleForm, column: Column, kind: spark.DataType | None, share: Column) -> Sketched | None:
    if not isinstance(kind, (*_WHOLE, *_REAL, *_TEXT, *_OTHER)):
        return None
    seen, _, item = form.columns
    pair = F.struct(share.alias("share"), as_kept(column, kind).alias("item"))
    least = F.when(column.isNotNull(), -share)
    drawn = F.call_function("max_by", pair, least, F.lit(int(form.aggregate.params["k"])))
    return {seen: F.count(column), item: F.transform(drawn, _with_priority)}


def _with_priority(pair: Column) -> Column:
    """Pair an item with the priority that `sampling.core.priority` assigns to its share."""
    priority = F.log1p(-F.greatest(pair["share"], F.lit(_LEAST_SHARE)))
    return F.struct(priority.alias("priority"), pair["item"].alias("item"))


def shown(column: Column, kind: spark.DataType | None) -> Column:
    """Repair stored strings as `utf8_repair.readable` does; per group, as it costs as much as a sketch."""
    return F.make_valid_utf8(column) if isinstance(kind, spark.StringType) else column


def as_kept(column: Column, kind: spark.DataType | None) -> Column:
    """Cast a value to the widest type of its sort, which tables store."""
    if isinstance(kind, spark.BooleanType):
        return column
    if isinstance(kind, _WHOLE):
        return column.cast("bigint")
    return column.cast("double") if isinstance(kind, _REAL) else column


def _distinct(form: ColumnCodec, column: Column, kind: spark.DataType | None) -> Sketched | None:
    if not isinstance(kind, (*_WHOLE, *_TEXT)):
        return None
    return {form.name: F.hll_sketch_agg(_hashed(column, kind), int(form.aggregate.params["lg_k"]))}


def _distinct_set(form: ColumnCodec, column: Column, kind: spark.DataType | None) -> Sketched | None:
    if not isinstance(kind, (*_WHOLE, *_REAL, *_TEXT)):
        return None
    size = F.lit(form.aggregate.params["lg_k"])
    return {form.name: F.call_function("theta_sketch_agg", _hashed(column, kind), size)}


def _hashed(column: Column, kind: spark.DataType | None) -> Column:
    # Catalyst hashes an integer as a bigint, as we do.
    return column if isinstance(kind, spark.IntegerType | spark.LongType) else _number(column, kind)


def _number(column: Column, kind: spark.DataType | None) -> Column:
    return column.cast("bigint") if isinstance(kind, spark.BooleanType) else as_kept(column, kind)


def _quantiles(form: ColumnCodec, column: Column, kind: spark.DataType | None) -> Sketched | None:
    if not isinstance(kind, (*_WHOLE, *_REAL, spark.DecimalType)):
        return None
    of = {"long": "bigint", "double": "double"}[form.aggregate.params["kind"]]
    size = F.lit(form.aggregate.params["k"])
    return {form.name: F.call_function(f"kll_sketch_agg_{of}", column.cast(of), size)}


def _top_k(form: ColumnCodec, column: Column, kind: spark.DataType | None) -> Sketched | None:
    if not isinstance(kind, (*_WHOLE, spark.StringType)):
        return None
    size = F.lit(items_tracked(int(form.aggregate.params["max_size"])))
    return {form.name: F.call_function("approx_top_k_accumulate", _number(column, kind), size)}


def _count(form: ColumnCodec, column: Column, kind: spark.DataType | None) -> Sketched | None:
    if isinstance(kind, spark.ArrayType):
        return None
    return {form.name: F.count(F.lit(1) if kind is None else column)}


def _sum(form: ColumnCodec, column: Column, kind: spark.DataType | None) -> Sketched | None:
    if not isinstance(kind, _WHOLE):
        return None
    # The sum gets ten more digits, so it can't overflow and has the type of the table's column.
    return {form.name: F.sum(_number(column, kind).cast("decimal(28, 0)"))}


def _mean(form: ColumnCodec, column: Column, kind: spark.DataType | None) -> Sketched | None:
    summed = _sum(form, column, kind)
    if summed is None:
        return None
    n, total = form.merged()
    # A count of 0 becomes null, so that the column is nullable in Arrow, like ours.
    return {n: F.nullif(F.count(column), F.lit(0)), total: summed[form.name].cast("double")}


def _extreme(form: ColumnCodec, column: Column, kind: spark.DataType | None) -> Sketched | None:
    if not isinstance(kind, (*_WHOLE, *_TEXT, *_OTHER)):
        return None
    least = F.min if form.aggregate.name == "min" else F.max
    return {form.name: shown(least(as_kept(column, kind)), kind)}


_OVER_ROWS: Mapping[str, Callable[[Any, Column, spark.DataType | None], Sketched | None]] = {
    "distinct": _distinct,
    "distinct_set": _distinct_set,
    "kll_quantiles": _quantiles,
    "top_k": _top_k,
    "count": _count,
    "sum": _sum,
    "mean": _mean,
    "min": _extreme,
    "max": _extreme,
}
