"""Random scalar expressions: a frame gives what its rows give one by one, and what DuckDB gives.

Where the standard leaves a choice and DuckDB takes another than we do, it is given what means the same there:
whole numbers are divided by ``//``, and a division by zero is null.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import duckdb
import polars as pl
import pytest

from streamgauge.queries.sql.parse.dialect import statements_of
from streamgauge.queries.sql.plan.expressions import Expressions
from streamgauge.queries.sql.scalars.scalars import Scalar, Scalars

from ...cases import each

FRAME = pl.DataFrame(
    {
        "a": [0, 1, -7, None, 40, 3, -2, 9],
        "b": [2, 0, 2, 5, None, -3, -2, 9],
        "x": [0.0, 2.5, -2.5, 1e9, None, 0.1, -0.5, 7.25],
        "y": [1.5, 0.0, 2.0, -3.0, 4.25, None, -0.5, 0.2],
        "s": ["", "abc", "Zé", None, "a_b%", "  pad ", "Abc", "e\u0301"],
        "t": ["b", "é", None, "abc", "a", " ", "c", "%"],
        "p": [True, False, None, True, False, None, True, False],
        "q": [None, True, True, False, False, None, True, False],
    },
    schema_overrides={"a": pl.Int64, "b": pl.Int64},
)

Pair = tuple[str, str]
"""An expression in our SQL and in DuckDB's."""


class Generator:
    """Expressions of a wanted type, no deeper than a number."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def expression(self) -> Pair:
        return self._any(self._random.choice("wntc"), 4)

    def _any(self, kind: str, depth: int) -> Pair:
        leaves, forms = {
            "w": (("a", "b", "0", "1", "3", "-4", "NULL"), self._whole),
            "n": (("x", "y", "0.5", "-2.0", "1e3"), self._number),
            "t": (("s", "t", "'abc'", "''", "'é'"), self._text),
            "c": (("p", "q", "TRUE", "FALSE", "NULL"), self._condition),
        }[kind]
        if depth == 0 or self._random.random() < 0.15:
            leaf = self._random.choice(leaves)
            if leaf == "NULL":
                return "NULL", f"NULL::{'BIGINT' if kind == 'w' else 'BOOLEAN'}"
            return leaf, f"{leaf}::DOUBLE" if kind == "n" else f"{leaf}::BIGINT" if kind == "w" else leaf
        make: Callable[[int], Pair] = self._random.choice(
            [forms, forms, forms, lambda d: self._chosen(kind, d)]
        )
        return make(depth - 1)

    def _chosen(self, kind: str, depth: int) -> Pair:
        """What gives any type."""
        form = self._random.choice(
            [
                "CASE WHEN {c} THEN {k} WHEN {c2} THEN {k2} ELSE {k3} END",
                "CASE WHEN {c} THEN {k} END",
                "COALESCE({k}, {k2})",
                "NULLIF({k}, {k2})",
            ]
        )
        parts = {name: self._any("c", depth) for name in ("c", "c2")}
        parts |= {name: self._any(kind, depth) for name in ("k", "k2", "k3")}
        return self._filled((form, form), parts)

    def _filled(self, forms: Pair, parts: dict[str, Pair]) -> Pair:
        ours, other = (
            form.format(**{name: f"({pair[side]})" for name, pair in parts.items()})
            for side, form in enumerate(forms)
        )
        return ours, other

    def _of(self, forms: list[str | Pair], depth: int, **kinds: str) -> Pair:
        form = self._random.choice(forms)
        pair = form if isinstance(form, tuple) else (form, form)
        return self._filled(pair, {name: self._any(kind, depth) for name, kind in kinds.items()})

    def _whole(self, depth: int) -> Pair:
        forms: list[str | Pair] = [
            *("{w} + {v}", "{w} - {v}", "-{w}", "ABS({w})", "LENGTH({t})", "GREATEST({w}, {v})"),
            *("LEAST({w}, {v})", "CAST({w} AS BIGINT)", "SIGN({w})"),
            # No deeper, or products leave the range, where DuckDB raises.
            *([] if depth > 1 else ["{w} * {v}"]),
            ("{w} / {v}", "{w} // NULLIF({v}, 0)"),
            ("{w} % {v}", "{w} % NULLIF({v}, 0)"),
            ("INSTR({t}, {u})", "CASE WHEN {u} = '' AND {t} IS NOT NULL THEN 1 ELSE INSTR({t}, {u}) END"),
            (
                "CAST({t} AS BIGINT)",
                "CASE WHEN regexp_full_match({t}, ' *-?[0-9]+ *') THEN TRY_CAST({t} AS BIGINT) END",
            ),
        ]
        return self._of(forms, depth, w="w", v="w", t="t", u="t")

    def _number(self, depth: int) -> Pair:
        forms: list[str | Pair] = [
            *(
                "{n} + {m}",
                "{n} - {m}",
                "{n} * {m}",
                "-{n}",
                "ABS({n})",
                "FLOOR({n})",
                "CEIL({n})",
                "ROUND({n})",
            ),
            *("{n} + {w}", "{w} * {n}", "CAST({w} AS DOUBLE)", "GREATEST({n}, {m})", "SQRT(ABS({n}))"),
            ("{n} / {m}", "{n} / NULLIF({m}, 0.0)"),
            ("{w} / {m}", "{w} / NULLIF({m}, 0.0)"),
            ("SQRT({n})", "CASE WHEN {n} >= 0 THEN SQRT({n}) END"),
            ("LN({n})", "CASE WHEN {n} > 0 THEN LN({n}) END"),
        ]
        return self._of(forms, depth, n="n", m="n", w="w")

    def _text(self, depth: int) -> Pair:
        forms: list[str | Pair] = [
            *("UPPER({t})", "LOWER({t})", "{t} || {u}", "SUBSTRING({t}, 2)", "SUBSTRING({t}, 1, 2)"),
            *("REPLACE({t}, 'b', {u})", "TRIM({t})", "LTRIM({t})", "RTRIM({t})", "CAST({w} AS VARCHAR)"),
            "{t} || {w}",
        ]
        return self._of(forms, depth, t="t", u="t", w="w")

    def _condition(self, depth: int) -> Pair:
        forms: list[str | Pair] = [
            *(f"{{w}} {sign} {{v}}" for sign in ("=", "<>", "<", "<=", ">", ">=")),
            *(f"{{t}} {sign} {{u}}" for sign in ("=", "<>", "<", ">=")),
            *("{n} < {m}", "{n} = {m}", "{w} > {n}"),
            *("{c} AND {d}", "{c} OR {d}", "NOT {c}", "{c} IS NULL", "{w} IS NOT NULL", "{t} IS NULL"),
            *("{c} IS TRUE", "{c} IS NOT FALSE", "{w} IN ({v}, 1, NULL)", "{w} NOT IN (1, 3, NULL)"),
            *(
                "{w} IN (1, {v}, 3)",
                "{t} NOT IN ('abc', {u})",
                "{w} BETWEEN 0 AND {v}",
                "{n} NOT BETWEEN {m} AND 3",
            ),
            *(
                "{t} LIKE 'a%'",
                "{t} LIKE '_b_'",
                "{t} NOT LIKE '%é%'",
                "{t} ILIKE 'A%'",
                "STARTS_WITH({t}, {u})",
            ),
            *("{w} IS DISTINCT FROM {v}", "{t} IS NOT DISTINCT FROM {u}", "{c} = {d}"),
        ]
        return self._of(forms, depth, w="w", v="w", n="n", m="n", t="t", u="t", c="c", d="c")


def scalar(text: str) -> Scalar:
    (statement,) = statements_of(f"SELECT {text}")
    make = Scalars(FRAME.schema)
    select: Any = statement.node
    return Expressions(make, lambda node: make.column(node.name)).scalar(select.select.expressions[0])


def whole(frame: pl.DataFrame, expr: pl.Expr) -> list[Any]:
    """One value for each row, also of an expression of constants."""
    values = frame.select(expr.alias("_"))["_"].to_list()
    return values * frame.height if len(values) < frame.height else values


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return one == other


@each("seed", range(5))
def test_a_frame_its_rows_and_duckdb_agree(seed: int) -> None:
    agree(seed)


@pytest.mark.soak
@each("seed", range(5, 60))
def test_thousands_of_expressions_agree(seed: int) -> None:
    agree(seed)


def agree(seed: int) -> None:
    generator = Generator(seed)
    connection = duckdb.connect()
    connection.register("rows", FRAME.to_arrow())
    for _ in range(60):
        ours, other = generator.expression()
        one = scalar(ours)
        values = whole(FRAME, one.expr)
        by_row = [whole(FRAME[at], one.expr)[0] for at in range(FRAME.height)]
        assert all(map(same, values, by_row)), (ours, values, by_row)
        assert whole(FRAME, eval(one.text, {"pl": pl})) == values or any(
            isinstance(v, float) and math.isnan(v) for v in values
        ), one.text
        theirs = [row[0] for row in connection.execute(f"SELECT {other} FROM rows").fetchall()]
        assert all(map(same, values, theirs)), (ours, other, values, theirs)
