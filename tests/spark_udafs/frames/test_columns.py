"""Spark's columns are read alike, whichever kind of session made them."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from types import ModuleType
from typing import Any

import pytest

from streamgauge.spark_udafs.frames.columns import term_of

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


def expressions(F: Any) -> list[Any]:
    """Expressions that are all different; most have the text of another."""
    return [
        F.concat("a", F.lit("b")),
        F.concat("a", "b"),
        F.concat("a", F.expr("b")),
        F.concat("a, b"),
        F.concat(F.lit("a', 'b")),
        F.concat(F.lit("a"), F.lit("b")),
        F.col("a") + 1,
        F.col("a") + "1",
        F.col("a") + F.col("1"),
        F.col("a") + 1.0,
        F.col("a") + True,
        F.col("a") + F.col("true"),
        F.col("a") + F.lit(2**31),
        F.col("a") + F.lit(1).cast("bigint"),
        F.col("a") + F.lit(1).cast("int"),
        F.col("a") + F.lit(1).try_cast("int"),
        F.col("a") + F.lit(Decimal("1.0")),
        F.col("a") + F.lit(None),
        F.col("a") + F.lit(date(2026, 1, 1)),
        F.col("a") + F.lit("2026-01-01"),
        F.when(F.col("a") == 1, F.lit("x")),
        F.when(F.col("a") == "1", F.lit("x")),
        F.when(F.col("a") == 1, F.col("x")),
        F.when(F.col("a") == 1, F.lit("x")).otherwise(F.lit(None)),
        F.transform("ar", lambda x: x + 1),
        F.transform("ar", lambda x: x + F.col("x")),
        F.transform("ar", lambda x: x + "1"),
        F.transform("ar", lambda x: F.transform("ar", lambda y: x + y)),
        F.transform("ar", lambda x: F.transform("ar", lambda y: y + y)),
        F.col("s")["x"],
        F.col("s")[F.col("x")],
        F.col("s.x"),
        F.col("`s.x`"),
        F.isnotnull("ar"),
        F.max("a"),
        F.asc("a"),
        F.desc("a"),
        F.expr("concat(a, b)"),
    ]


def test_expressions_are_known_apart_by_their_trees_and_types(functions: Any) -> None:
    result, again = ([term_of(one) for one in expressions(functions)] for _ in range(2))
    assert [one.identity for one in result] == [one.identity for one in again]
    for kind in ("identity", "tree"):
        made = [str(getattr(one, kind)) for one in result]
        assert len({*made}) == len(made), [one for one in made if made.count(one) > 1]
    assert [str(one) for one in result] == [str(one) for one in again]
    assert str(result[0]) == "concat(a, 'b')" and str(result[1]) == "concat(a, b)"


def test_both_kinds_of_session_write_trees_alike(spark: Any) -> None:
    pytest.importorskip("grpc")
    import pyspark.sql.connect.functions.builtin as connect
    import pyspark.sql.functions.builtin as classic

    for F in (classic, connect):
        some = [
            F.concat("a", F.lit("b's")),
            F.col("price") * 1.5 + 2,
            F.col("`a`").cast("bigint"),
            F.col("a").try_cast("int"),
            F.transform("ar", lambda x: x + 2**40),
            F.when(F.col("a") > "1", 2).otherwise(F.col("b")),
            F.sum(F.col("a.b")),
        ]
        assert [str(term_of(one)) for one in some] == [
            "concat(a, 'b\\'s')",
            "+(*(price, 1.5), 2)",
            "CAST(a AS BIGINT)",
            "TRY_CAST(a AS INT)",
            "transform(ar, (x -> +(x, 1099511627776)))",
            "CASE WHEN >(a, '1') THEN 2 ELSE b END",
            "sum(a.b)",
        ]
