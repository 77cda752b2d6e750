"""Sketches as functions of a Spark session, and functions of Spark's own that PySpark leaves out.

    register(spark)
    spark.sql("SELECT lang, answer_distinct(sketch_distinct(user)) FROM posts GROUP BY lang")

`register` lists the functions. A Python aggregate sees all rows of a group in one place, so `frames.sketch`
is faster for large groups, and in streams, where Spark takes no Python aggregates, it is the only way.

Overlapping windows hold rows twice. When you roll such a table up in SQL, keep only windows that lie end to
end: for windows of two minutes, ``WHERE unix_micros(window_start) % 120000000 = 0``.
`operators.table.merge.merge` does this by itself.

Spark does not tell a function the collation of a string, so strings that differ but compare as equal under
their collation are counted apart. Pass ``lower(...)`` of them. `frames.sketch` sees the collation and refuses
such columns.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, BooleanType, LongType, StringType

from ..operators.definition.aggregate import aggregate
from ..operators.definition.inputs import usable
from ..operators.families import FAMILIES, family
from ..sketches.core.protocol import SketchError
from .kafka.source import KafkaSketchSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ColumnOrName = Column | str


def sketches() -> list[str]:
    """The names of the families that are sketches.

    >>> sketches()[:2]
    ['distinct', 'distinct_set']
    """
    return [name for name, line in FAMILIES.items() if not line.exact]


def approx_top_k(column: ColumnOrName, k: int = 5, max_items_tracked: int = 10_000) -> Column:
    """Spark's SQL function of this name: the `k` most frequent items of a group."""
    return F.call_function("approx_top_k", _column(column), F.lit(k), F.lit(max_items_tracked))


def approx_top_k_accumulate(column: ColumnOrName, max_items_tracked: int = 10_000) -> Column:
    """Spark's SQL function of this name: a group's frequent items as a struct that can be merged."""
    return F.call_function("approx_top_k_accumulate", _column(column), F.lit(max_items_tracked))


def approx_top_k_combine(state: ColumnOrName, max_items_tracked: int | None = None) -> Column:
    """Spark's SQL function of this name: merges the structs of a group."""
    more = [] if max_items_tracked is None else [F.lit(max_items_tracked)]
    return F.call_function("approx_top_k_combine", _column(state), *more)


def approx_top_k_estimate(state: ColumnOrName, k: int = 5) -> Column:
    """Spark's SQL function of this name: the `k` most frequent items of a struct."""
    return F.call_function("approx_top_k_estimate", _column(state), F.lit(k))


def register(spark: SparkSession) -> list[str]:
    """Register this package's SQL functions and its Kafka source in a session; returns the functions' names.

    NAME is the name of an aggregate, such as ``distinct`` or ``top_k``; each answer has the error that the
    aggregate promises.

    - ``sketch_NAME(column)`` aggregates a column into a sketch (binary). Aggregates with a further input
      take it as a second column: ``sketch_weighted_sample(item, weight)``,
      ``sketch_decayed_count(item, at)``.
    - ``merge_NAME(sketch)`` aggregates sketches into one. It exists where Spark has no such function itself;
      the others merge with ``hll_union_agg``, ``theta_union_agg``, ``kll_merge_agg_double``,
      ``kll_merge_agg_bigint`` and ``approx_top_k_combine``.
    - ``answer_NAME(sketch)`` gives the answer with its bounds, as JSON.
    - ``frequency_of(sketch, item)`` gives how often an item occurred (bigint): never too small, and with the
      sketch's confidence not too large by more than its error.
    - ``might_contain(sketch, item)`` is false only if an item was certainly never added.
    - ``frequency_to_spark(sketch)`` writes a count-min sketch as Spark's ``count_min_sketch`` does.

    The bytes of some families don't say what kind of items they hold; there the function's name does, as in
    Spark: ``answer_kll_quantiles_double``, ``_long`` (whole numbers, dates, and timestamps in microseconds
    since 1970) and ``_float``, ``answer_top_k_string`` and ``_long``, ``answer_var_opt_string``, ``_long``
    and ``_double``. The name without a kind raises `SketchError`, since an answer read as the wrong kind
    would still look like an answer. ``answer_quantiles_long`` rounds to whole numbers.

    The source is ``spark.readStream.format("streamgauge-kafka")``: Kafka messages in the columns, and with
    the options, of Spark's own Kafka source, without its jars.

    >>> names = register(spark)
    >>> rows = [("ann", "en"), ("bob", "en"), ("eve", "de")]
    >>> posts = spark.createDataFrame(rows, "user string, lang string")
    >>> posts.createOrReplaceTempView("posts")
    >>> users = spark.sql("SELECT answer_distinct(sketch_distinct(user)) FROM posts WHERE lang = 'de'")
    >>> users.first()[0]
    '{"estimate": 1.0, "lower": 1.0, "upper": 1.0}'
    """
    # Spark tells aggregates from scalar functions by the type hints: an array in and a single value out, or
    # an array out. Its stubs don't know that.
    arrow_udf: Any = F.arrow_udf
    found: dict[str, Any] = {}
    for name in sketches():
        found[f"sketch_{name}"] = arrow_udf(_sketching(name), BinaryType())
        for kind in ("", *FAMILIES[name].asked.kinds):
            suffix = f"_{kind}" if kind else ""
            if not FAMILIES[name].spark_merge:
                found[f"merge_{name}{suffix}"] = arrow_udf(_merging(name, kind), BinaryType())
            found[f"answer_{name}{suffix}"] = arrow_udf(_answering(name, kind), StringType())
    found["frequency_of"] = arrow_udf(_frequency_of, LongType())
    found["frequency_to_spark"] = arrow_udf(_frequency_to_spark, BinaryType())
    found["might_contain"] = arrow_udf(_might_contain, BooleanType())
    for name, function in found.items():
        spark.udf.register(name, function)
    spark.dataSource.register(KafkaSketchSource)
    return list(found)


def _column(column: ColumnOrName) -> Column:
    return F.col(column) if isinstance(column, str) else column


def _sketching(name: str) -> Callable[..., bytes]:
    inputs = FAMILIES[name].inputs

    def sketched(column: pa.Array, *given: pa.Array) -> bytes:
        named = {one: one for one in inputs if one != "time"}
        groups = aggregate(name, "column", **named).typed(column.type).groups(1)
        groups.update(np.zeros(len(column), np.int64), column, **dict(zip(inputs, given)))
        return groups.to_arrow()[0].as_py()

    # Spark learns from the signature how many columns a function takes.
    def alone(column: pa.Array) -> bytes:
        return sketched(column)

    def with_input(column: pa.Array, given: pa.Array) -> bytes:
        column, named = usable(column, {inputs[0]: given})
        return sketched(column, *named.values())

    return with_input if inputs else alone


def _check_kind(verb: str, name: str, kind: str) -> None:
    asked = FAMILIES[name].asked
    if not kind and asked.must_tell_kind:
        told = ", ".join(f"{verb}_{name}_{one}" for one in asked.kinds)
        raise SketchError(
            f"{verb}_{name}: the bytes of such a sketch don't say what kind of items it holds; write {told}"
        )


def _merging(name: str, kind: str) -> Callable[[pa.Array], bytes | None]:
    def merge(column: pa.Array) -> bytes | None:
        column = column.drop_null()
        if not len(column):
            return None
        _check_kind("merge", name, kind)
        read: Any = family(name).sketch_class().from_bytes
        more = {"kind": kind} if kind else {}
        # One sketch at a time: in memory each may be a hundred times as large as its bytes.
        merged = read(column[0].as_py(), **more)
        for image in column[1:]:
            merged.merge(read(image.as_py(), **more))
        return merged.to_bytes()

    return merge


def _answering(name: str, kind: str) -> Callable[[pa.Array], pa.Array]:
    def answer(column: pa.Array) -> pa.Array:
        if column.null_count < len(column):
            _check_kind("answer", name, kind)
        sketch: Any = family(name).sketch_class()
        more = {"kind": kind} if kind else {}
        return pa.array(
            [
                None if image is None else json.dumps(sketch.from_bytes(image, **more).answer())
                for image in column.to_pylist()
            ],
            pa.string(),
        )

    return answer


def _frequency_of(column: pa.Array, item: pa.Array) -> pa.Array:
    """The count-min estimate of an item."""
    read: Any = family("frequency").sketch_class().from_bytes
    pairs = zip(column.to_pylist(), item.to_pylist())
    return pa.array(
        [None if c is None or i is None else int(read(c).estimate(i)) for c, i in pairs], pa.int64()
    )


def _frequency_to_spark(column: pa.Array) -> pa.Array:
    """Count-min sketches in Spark's own bytes."""
    read: Any = family("frequency").sketch_class().from_bytes
    return pa.array([None if c is None else read(c).to_spark() for c in column.to_pylist()], pa.binary())


def _might_contain(column: pa.Array, item: pa.Array) -> pa.Array:
    """Whether a Bloom filter may hold an item."""
    read: Any = family("membership").sketch_class().from_bytes
    pairs = zip(column.to_pylist(), item.to_pylist())
    return pa.array([None if c is None or i is None else i in read(c) for c, i in pairs], pa.bool_())
