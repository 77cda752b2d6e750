"""A SELECT without FROM: one row of constants."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import polars as pl
from sqlglot import exp

from ..errors import error_at
from ..parse.grammar import check_grammar
from ..plan.aggregates import aggregate_call
from ..plan.expressions import Expressions
from ..plan.scope import is_explode
from ..plan.selection import ResultSet
from ..scalars.scalars import Scalar, Scalars
from .pull_filter import naive


def constants(select: exp.Select, now: datetime) -> ResultSet:
    """The row; `now` is the value of NOW(). Raises `SqlError` for clauses that need rows."""
    check_grammar(select)
    if len(select.args) > 1:
        for name, value in select.args.items():
            if name != "expressions" and value:
                raise _no_rows(select)
    expressions = Expressions(Scalars({}), _no_column, _no_rows_in, naive(now))
    columns: dict[str, pl.Expr] = {}
    for item in select.expressions:
        node = item.this if isinstance(item, exp.Alias) else item
        name = item.alias if isinstance(item, exp.Alias) else str(item.sql())
        if name in columns:
            raise error_at(item, f"{name} is selected twice; give one another name, AS …")
        columns[name] = expressions.scalar(node).expr.alias(name)
    return ResultSet(pl.select(list(columns.values())))


def _no_rows(node: Any) -> Any:
    return error_at(node, "a query must read a stream, FROM …; without it, it is a row of constants")


def _no_column(node: exp.Column) -> Scalar:
    raise error_at(node, f"no column is called {node.name}: name the stream that has it, FROM …")


def _no_rows_in(node: Any) -> Scalar | None:
    if isinstance(node, exp.Star) or is_explode(node) or aggregate_call(node) is not None:
        raise _no_rows(node)
    return None
