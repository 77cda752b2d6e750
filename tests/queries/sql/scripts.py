"""What the tests of statements share: declared streams, plans, and scripts without a broker."""

from __future__ import annotations

from typing import Any

import polars as pl

import streamgauge as sg
from streamgauge.queries.sql.errors import SqlError
from streamgauge.queries.sql.parse.dialect import statements_of
from streamgauge.queries.sql.plan.catalog import Catalog, relation_of
from streamgauge.queries.sql.plan.expressions import Expressions
from streamgauge.queries.sql.plan.logical_plan import LogicalPlan
from streamgauge.queries.sql.plan.planner import Planner
from streamgauge.queries.sql.run.memory import Memory
from streamgauge.queries.sql.run.session import SqlSession
from streamgauge.queries.sql.run.statement_result import StatementResult
from streamgauge.queries.sql.scalars.scalars import Scalars

DECLARED = """
CREATE STREAM posts (ts BIGINT, usr VARCHAR, lang VARCHAR, tags ARRAY<VARCHAR>, n INT, price DOUBLE,
  meta STRUCT<a INT, b VARCHAR>) WITH (KAFKA_TOPIC='posts', VALUE_FORMAT='JSON', TIMESTAMP='ts');
CREATE STREAM clicks (ts BIGINT, usr VARCHAR, page VARCHAR)
  WITH (KAFKA_TOPIC='clicks', VALUE_FORMAT='JSON', TIMESTAMP='ts');
CREATE TABLE users (usr VARCHAR PRIMARY KEY, lang VARCHAR, region VARCHAR)
  WITH (KAFKA_TOPIC='users', VALUE_FORMAT='JSON');
"""
START = 1_767_225_600_000
POSTS = {
    "ts": pl.Int64(),
    "usr": pl.String(),
    "lang": pl.String(),
    "tags": pl.List(pl.String()),
    "n": pl.Int32(),
    "price": pl.Float64(),
    "meta": pl.Struct({"a": pl.Int32(), "b": pl.String()}),
}


def declared_planner() -> Planner:
    """A planner that knows the declared streams."""
    catalog = Catalog()
    for statement in statements_of(DECLARED):
        catalog.add(relation_of(statement.node, statement.text), statement.node.name, False, False)
    return Planner(catalog, stream_class=sg.Stream)


def planned(query: str) -> LogicalPlan:
    """The plan of a SELECT over the declared streams."""
    (statement,) = statements_of(query)
    try:
        return declared_planner().plan(statement.node.select)
    except SqlError as error:
        raise error.of_text(query) from None


def outcomes(script: str) -> list[StatementResult]:
    """What comes of a script without a broker."""
    return list(SqlSession(Memory(), stream_class=sg.Stream).run(script))


def last_rows(script: str) -> list[list[Any]]:
    """The rows of a script's last statement; its error is raised."""
    last = outcomes(script)[-1]
    if last.error is not None:
        raise last.error
    return last.to_json()["rows"]


def value(expression: str, **columns: Any) -> Any:
    """The value of a scalar expression over a row of these columns."""
    frame = pl.DataFrame({name: [one] for name, one in columns.items()} or {"_": [0]})
    (statement,) = statements_of(f"SELECT {expression}")
    make = Scalars(frame.schema)
    one = Expressions(make, lambda node: make.column(node.name)).scalar(statement.node.select.expressions[0])
    written = frame.select(eval(one.text, {"pl": pl, "datetime": __import__("datetime").datetime}))
    result = frame.select(one.expr)
    assert written.equals(result), one.text
    return result.row(0)[0]
