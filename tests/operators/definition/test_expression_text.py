"""Types and expressions in words."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import polars as pl

from streamgauge.operators.definition.expression_text import (
    columns_in,
    expression_text,
    skeleton,
    type_text,
)

from ...cases import each

col: Any = pl.col


@each(
    ("expression", "reported"),
    [
        (col("a") + 1 > col("b"), '(col("a") + 1) > col("b")'),
        ((col("a") > 1) & ~col("b"), '(col("a") > 1) & col("b").not_()'),
        (col('quoted "name"'), r'col("quoted \"name\"")'),
        (col("s").str.contains("(x)"), 'col("s").str.contains("(x)", literal=false, strict=true)'),
        (col("s").is_in(["a", "b"]), 'col("s").is_in(["a", "b"], nulls_equal=false)'),
        (col("at") > datetime(2026, 1, 1, 12), 'col("at") > datetime("2026-01-01T12:00:00")'),
        (col("day") == date(2026, 1, 1), 'col("day") == date("2026-01-01")'),
        (col("at") - timedelta(hours=1), 'col("at") - duration("1h")'),
        (pl.lit(b"ab"), 'bytes("6162")'),
        (pl.lit(None), "null"),
        (col("a").cast(pl.List(pl.Int8)), 'col("a").cast(list[int8])'),
        (col("a").cast(pl.Int8, strict=False), 'col("a").cast(int8, non_strict)'),
        (pl.when(col("a")).then(1).otherwise(pl.lit("x")), 'when(col("a")).then(1).otherwise("x")'),
        (pl.concat_str("a", pl.lit("-")), 'concat_str(col("a"), "-", delimiter="", ignore_nulls=false)'),
        (col("l").list.eval(pl.element() * 2), 'col("l").list.eval((element() * 2), variant=list)'),
        (pl.col("a", "b"), 'col("a", "b")'),
        (pl.all(), "all()"),
        (col("a").alias("b"), 'col("a").alias("b")'),
    ],
)
def test_expressions_read_as_the_python_that_makes_them(expression: pl.Expr, reported: str) -> None:
    assert expression_text(expression) == reported


def test_long_lists_of_constants_are_described_by_a_digest() -> None:
    texts = {expression_text(col("a").is_in([*range(1_000), last])) for last in (0, 1, 1)}
    assert len(texts) == 2
    assert all("[0, 1, 2, … 998 more, #" in text for text in texts)


def test_types_have_words_of_their_own() -> None:
    nested = pl.Struct({"a": pl.Array(pl.Decimal(9, 2), 3), "b": pl.Enum(["x"])})
    assert type_text(nested) == 'struct[a: array[decimal[9, 2], 3], b: enum["x"]]'
    assert type_text(pl.Duration("ms")) == "duration[ms]" and type_text(pl.Categorical()) == "categorical"


def test_skeletons_leave_out_constants_and_keep_columns() -> None:
    reported = 'col("x1").is_in(["a", "col(1)"]) & (col("y") > -1.5e3) & col("z").map(f #0123abcd)'
    assert skeleton(reported) == 'col("x1").is_in([_, _]) & (col("y") > _) & col("z").map(f _)'
    assert columns_in(reported) == {"x1", "y", "z"}
