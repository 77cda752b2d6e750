"""The plug for Spark 4.4's `Aggregator`: any cut of the rows into partitions and buffers gives one sketch."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DoubleType, LongType, StringType, StructType, TimestampType

from streamgauge.operators.definition.aggregate import aggregate
from streamgauge.operators.definition.aggregates import count, distinct, distinct_set, top_k, weighted_sample
from streamgauge.operators.families import FAMILIES, MOMENT
from streamgauge.sketches.core.protocol import SketchError
from streamgauge.sketches.hll import HLL
from streamgauge.sketches.theta import Theta
from streamgauge.spark_udafs.functions.aggregator import AT_ONCE, SketchAggregator, as_aggregator

N = 3 * AT_ONCE + 500
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
TYPES: dict[str, Any] = {
    "time": TimestampType(),
    "weight": DoubleType(),
    "key": StringType(),
    "value": DoubleType(),
}
VALUES: dict[str, Any] = {
    "time": lambda n: BEGIN + timedelta(seconds=n),
    "weight": lambda n: n + 1.0,
    "key": lambda n: f"key{n % 3}",
    "value": lambda n: n % 7 + 1.0,
}
NAMES = [name for name, line in FAMILIES.items() if not line.exact]


def through_arrow(schema: StructType, buffer: tuple[Any, ...]) -> tuple[Any, ...]:
    """A buffer as it comes out of Spark's shuffle."""
    struct = pa.array([dict(zip(schema.names, buffer))], to_arrow_type(schema, timezone="UTC"))
    return tuple(struct[0].as_py().values())


def aggregated(plug: SketchAggregator, rows: list[tuple[Any, ...]], cuts: list[int]) -> bytes:
    """The rows in partitions that end at `cuts`, the buffers of all shuffled and merged."""
    whole = plug.zero()
    for start, end in zip([0, *cuts], [*cuts, len(rows)]):
        part = plug.zero()
        for row in rows[start:end]:
            part = plug.reduce(part, row)
        whole = plug.merge(whole, through_arrow(plug.bufferSchema, part))
    return plug.finish(whole)


@pytest.mark.parametrize("name", NAMES)
def test_every_sketch_is_the_same_in_one_stage_and_in_two(name: str) -> None:
    line = FAMILIES[name]
    asked = aggregate(name, "column", **{one: one for one in line.inputs if one not in MOMENT})
    plug = pickle.loads(pickle.dumps(as_aggregator(asked, LongType(), *(TYPES[one] for one in line.inputs))))
    rows = [(n * 7 % 1_000, *(VALUES[one](n) for one in line.inputs)) for n in range(N)]
    rows[5] = (None, *rows[5][1:])
    one = aggregated(plug, rows, [])
    two = aggregated(plug, rows, [0, 10, AT_ONCE + 20, N - 3])
    kind = {"kind": "long"} if line.asked.kinds and name != "tuple" else {}
    first, second = (line.sketch_class().from_bytes(image, **kind) for image in (one, two))
    assert plug.outputType.simpleString() == "binary"
    if hasattr(first, "n"):
        assert first.n == second.n == N - 1
    else:
        lower, upper = first.bounds() if hasattr(first, "lg_k") else (0, 0)
        assert lower <= 1_000 <= upper or name in ("top_k", "frequency", "membership")
        assert repr(first) == repr(second)


def test_zero_changes_nothing_and_merging_is_commutative() -> None:
    plug = as_aggregator(distinct_set("user", lg_k=14), StringType())
    parts = []
    for start in (0, 2_000, 4_000):
        buffer = plug.zero()
        for n in range(start, start + 3_000):
            buffer = plug.reduce(buffer, (f"user{n}",))
        assert plug.merge(buffer, plug.zero()) == plug.merge(plug.zero(), buffer) == buffer
        parts.append(buffer)
    one, other, third = parts
    ways = [
        plug.finish(plug.merge(plug.merge(one, other), third)),
        plug.finish(plug.merge(one, plug.merge(third, other))),
        plug.finish(plug.merge(other, plug.merge(one, third))),
    ]
    assert {Theta.from_bytes(image, 14).estimate() for image in ways} == {7_000.0}


def test_groups_may_begin_with_the_same_zero() -> None:
    plug = as_aggregator(distinct("user"), StringType())
    zero = plug.zero()
    buffers = [plug.reduce(plug.reduce(zero, (one,)), (other,)) for one, other in ("ab", "cc")]
    assert [round(HLL.from_bytes(plug.finish(buffer)).estimate()) for buffer in buffers] == [2, 1]
    assert zero == plug.zero()


def test_groups_without_rows_and_of_nulls_are_empty() -> None:
    plug = as_aggregator(distinct("user"), StringType())
    assert HLL.from_bytes(plug.finish(plug.zero())).estimate() == 0
    assert HLL.from_bytes(plug.finish(plug.reduce(plug.zero(), (None,)))).estimate() == 0


def test_small_groups_travel_as_rows() -> None:
    plug = as_aggregator(weighted_sample("item", weight="w"), StringType(), DoubleType())
    image, rows = plug.reduce(plug.reduce(plug.zero(), ("a", 1.0)), ("b", None))
    assert image is None and rows == [("a", 1.0), ("b", None)]
    assert plug.bufferSchema.simpleString() == (
        "struct<sketch:binary,rows:array<struct<column:string,weight:double>>>"
    )


def test_two_drivers_draw_independently() -> None:
    rows = [(n,) for n in range(5_000)]
    images = {
        aggregated(as_aggregator(aggregate("sample", "n", k=20), LongType()), rows, []) for _ in range(3)
    }
    assert len(images) == 3 and np.all([len(image) for image in images])


def test_what_cannot_be_asked_so() -> None:
    with pytest.raises(TypeError, match="count is exact, and a function of Spark's own"):
        as_aggregator(count())
    with pytest.raises(TypeError, match="weighted_sample takes 2 columns, column, weight; got 1 types"):
        as_aggregator(weighted_sample("item", weight="w"), StringType())
    with pytest.raises(TypeError, match="top_k"):
        as_aggregator(top_k("price"), DoubleType())
    with pytest.raises(SketchError, match="Theta"):
        plug = as_aggregator(distinct_set("user"), StringType())
        plug.merge((b"broken", []), (b"broken", []))
