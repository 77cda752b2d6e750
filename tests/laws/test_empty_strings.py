"""Empty strings: counted, except where a family says that it skips them as DataSketches does."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from streamgauge import Stream, StreamTester, json
from streamgauge.operators.definition.aggregates import aggregate
from streamgauge.operators.families import FAMILIES as REGISTRY
from streamgauge.spark_udafs.functions.catalogue import catalogue
from streamgauge.spark_udafs.functions.describing import description

from .families import FAMILIES, Family

SKIPPING = [line.name for line in REGISTRY.values() if line.aggregate.skips_empty]


@pytest.mark.parametrize("family", [one for one in FAMILIES if "string" in one.kinds], ids=str)
def test_a_family_says_whether_it_counts_empty_strings(family: Family) -> None:
    sketch, groups = family.new("string"), family.many(1, "string")
    inputs = family.inputs(np.arange(3))
    sketch.update(pa.array(["", "", ""]), **inputs)
    groups.update(np.zeros(3, np.int64), pa.array(["", "", ""]), **inputs)
    unchanged = sketch == family.new("string"), groups.to_arrow() == family.many(1, "string").to_arrow()
    assert unchanged == (family.line.aggregate.skips_empty,) * 2


@pytest.mark.parametrize("name", SKIPPING)
def test_sql_s_functions_say_so(name: str) -> None:
    assert "nulls and empty strings are skipped" in description(catalogue()[f"sketch_{name}"])[1]


@pytest.mark.parametrize("name", ["distinct", "distinct_set", "sliding_distinct", "cpc"])
def test_they_are_counted_the_documented_way(name: str) -> None:
    marked = pl.when(pl.col("user") == "").then(pl.lit("(empty)")).otherwise(pl.col("user"))
    posts = Stream.from_kafka("posts", value=json({"user": pl.String})).with_columns(marked=marked)
    tester = StreamTester(
        posts.tumbling("1h").agg(given=aggregate(name, "user"), all=aggregate(name, "marked"))
    )
    tester.feed([{"user": user} for user in ("", "ann", None, "bob", "")])
    (row,) = tester.finish().windows().iter_rows(named=True)
    assert (round(row["given"]["estimate"]), round(row["all"]["estimate"])) == (2, 3)
