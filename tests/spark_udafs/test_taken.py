"""The columns that are taken of a DataFrame: those that are asked, by what they are there, and no more."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from streamgauge.operators.definition import aggregates as ask
from streamgauge.operators.definition.aggregate import Aggregate
from streamgauge.spark_udafs.asked import AskedOfFrame
from streamgauge.spark_udafs.merge.partials import EVENT
from streamgauge.spark_udafs.taken import Taken

pytestmark = pytest.mark.spark


def taken(frame: Any, *keys: Any, time: str | None = None, **aggregates: Aggregate) -> Taken:
    asked = AskedOfFrame.of(frame, keys, aggregates or {"n": ask.count()})
    return Taken.of(frame, asked, None if time is None else asked.columns.named(time))


@pytest.fixture(scope="module")
def frame(spark: Any) -> Any:
    given = (
        "1 AS n, 'a' AS `to.d`, named_struct('name', 'ann') AS user, TIMESTAMP'2026-01-01' AS at, 1.5BD AS d"
    )
    return spark.sql(f"SELECT {given}")


def test_of_its_own_columns_a_dataframe_is_what_it_was(frame: Any) -> None:
    own = taken(frame, "to.d", users=ask.distinct("n"))
    assert own.rows is frame and own.of_rows == {"to.d": "to.d", "n": "n"}
    assert own.types == {"to.d": pa.large_string(), "n": pa.int32()}
    rows = own.alone()
    assert rows.columns == ["c0", "c1"] and [tuple(row) for row in rows.collect()] == [("a", 1)]


def test_what_is_made_of_columns_is_taken_by_the_name_it_has_for_a_table(frame: Any) -> None:
    made = taken(frame, "user.name", (F.col("n") % 2).alias("odd"), prices=ask.kll_quantiles("d"))
    assert list(made.of_rows) == ["name", "odd", "d"] == made.in_arrow.names and made.alone() is made.rows
    assert [tuple(row) for row in made.rows.collect()] == [("ann", 1, Decimal("1.5"))]


def test_the_time_of_windows_comes_last_and_rows_without_columns_have_one(frame: Any) -> None:
    timed = taken(frame, "n", time="at")
    assert list(timed.of_rows) == ["n", EVENT] and timed.types[EVENT] == pa.timestamp("us", "UTC")
    assert [row[1].year for row in timed.alone().collect()] == [2026]
    alone = taken(frame)
    assert list(alone.of_rows) == [EVENT] and alone.alone().count() == 1


def test_collations_are_refused_where_values_are_compared(frame: Any) -> None:
    loose = frame.withColumn("word", F.expr("'a' COLLATE UTF8_LCASE"))
    for keys, asked in ((["word"], {}), ([], {"words": ask.distinct("word")})):
        with pytest.raises(TypeError, match=r"'word' has the collation UTF8_LCASE"):
            taken(loose, *keys, **asked)
    assert list(taken(loose, n=ask.count("word")).of_rows) == ["word"]
