"""Spark's columns are read alike, whichever kind of session made them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from streamgauge.spark_udafs.columns import term_of

pytestmark = pytest.mark.spark


@pytest.fixture(params=["classic", "connect"])
def functions(request: pytest.FixtureRequest, spark: Any) -> ModuleType:
    """Spark's functions; those of Connect make columns with no server."""
    if request.param == "classic":
        import pyspark.sql.functions.builtin as classic

        return classic
    pytest.importorskip("grpc")
    import pyspark.sql.connect.functions.builtin as connect

    return connect


def test_what_a_column_calls_and_with_what(functions: Any) -> None:
    F = functions
    assert term_of(F.col("a.`b.c`")).value == "a.`b.c`"
    assert term_of(F.col("price")).kind == "name"
    star = term_of(F.count("*"))
    assert (star.kind, star.value, [one.kind for one in star.arguments]) == ("call", "count", ["star"])
    one = term_of(F.count(F.lit(1)))
    assert (one.arguments[0].kind, one.arguments[0].value) == ("constant", 1)
    total = term_of(F.sum(F.col("a") * F.col("b")).alias("total"))
    assert (total.value, total.arguments[0].value, str(total)) == ("sum", "*", "sum(*(a, b))")
    assert term_of(F.count_distinct("user")).distinct
    assert not term_of(F.count("user")).distinct
    text = term_of(F.expr("count(*) FILTER (WHERE a > 1)"))
    assert (text.kind, str(text)) == ("text", "count(*) FILTER (WHERE a > 1)")
    assert term_of(F.col("a").cast("int")).kind == "other"
    hop = term_of(F.window("at", "1 hour", "15 minutes", "5 minutes"))
    assert [one.value for one in hop.arguments] == ["at", "1 hour", "15 minutes", "5 minutes"]
    assert term_of(F.session_window("at", "5 minutes")).arguments[1].value == "5 minutes"
