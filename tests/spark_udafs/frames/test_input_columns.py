"""The columns that are read of a DataFrame: those requested, by what they are there, and no more."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from streamgauge.operators.definition import aggregates as ask
from streamgauge.operators.definition.aggregate import Aggregate
from streamgauge.spark_udafs.frames.aggregate_request import FrameRequest
from streamgauge.spark_udafs.frames.input_columns import InputColumns
from streamgauge.spark_udafs.merge.partials import EVENT

pytestmark = pytest.mark.spark


def inputs_of(frame: Any, *keys: Any, time: str | None = None, **aggregates: Aggregate) -> InputColumns:
    requested = FrameRequest.of(frame, keys, aggregates or {"n": ask.count()})
    return InputColumns.of(frame, requested, None if time is None else requested.columns.named(time))


@pytest.fixture(scope="module")
def frame(spark: Any) -> Any:
    given = (
        "1 AS n, 'a' AS `to.d`, named_struct('name', 'ann') AS user, TIMESTAMP'2026-01-01' AS at, 1.5BD AS d"
    )
    return spark.sql(f"SELECT {given}")


def test_of_its_own_columns_a_dataframe_is_what_it_was(frame: Any) -> None:
    own = inputs_of(frame, "to.d", users=ask.distinct("n"))
    assert own.rows is frame and own.of_rows == {"to.d": "to.d", "n": "n"}
    assert own.types == {"to.d": pa.large_string(), "n": pa.int32()}
    rows = own.alone()
    assert rows.columns == ["c0", "c1"] and [tuple(row) for row in rows.collect()] == [("a", 1)]


def test_what_is_made_of_columns_is_taken_by_the_name_it_has_for_a_table(frame: Any) -> None:
    made = inputs_of(frame, "user.name", (F.col("n") % 2).alias("odd"), prices=ask.kll_quantiles("d"))
    assert list(made.of_rows) == ["name", "odd", "d"] == made.in_arrow.names and made.alone() is made.rows
    assert [tuple(row) for row in made.rows.collect()] == [("ann", 1, Decimal("1.5"))]


def test_the_time_of_windows_comes_last_and_rows_without_columns_have_one(frame: Any) -> None:
    timed = inputs_of(frame, "n", time="at")
    assert list(timed.of_rows) == ["n", EVENT] and timed.types[EVENT] == pa.timestamp("us", "UTC")
    assert [row[1].year for row in timed.alone().collect()] == [2026]
    alone = inputs_of(frame)
    assert list(alone.of_rows) == [EVENT] and alone.alone().count() == 1


def test_collations_are_refused_where_values_are_compared(frame: Any) -> None:
    loose = frame.withColumn("word", F.expr("'a' COLLATE UTF8_LCASE"))
    for keys, aggregates in ((["word"], {}), ([], {"words": ask.distinct("word")})):
        with pytest.raises(TypeError, match=r"'word' has the collation UTF8_LCASE"):
            inputs_of(loose, *keys, **aggregates)
    assert list(inputs_of(loose, n=ask.count("word")).of_rows) == ["word"]
