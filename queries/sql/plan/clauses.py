"""The clauses of a query: which are supported, and what to write in place of others."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from ....operators.table.schema import END, START
from ..errors import error_at
from ..parse.grammar import check_arguments
from .expressions import refused

WINDOW_COLUMNS = {
    **dict.fromkeys(("window_start", "windowstart"), START),
    **dict.fromkeys(("window_end", "windowend"), END),
}
"""Names that people use for a window's edges."""
SPARK_WINDOWS = ("window", "session_window")
"""Spark's names for a window, whose `start` and `end` are its edges."""


def edge_of(column: exp.Column) -> str:
    """The window's edge that a column's name refers to, `START` or `END`; empty for others.

    >>> import sqlglot
    >>> edge_of(sqlglot.parse_one("session_window.start")), edge_of(sqlglot.parse_one("WINDOWEND"))
    ('window_start', 'window_end')
    """
    name = column.name.lower()
    if column.table.lower() in SPARK_WINDOWS:
        return {"start": START, "end": END}.get(name, "")
    return WINDOW_COLUMNS.get(name, "")


def check_clauses(select: exp.Select) -> None:
    """Raise `SqlError` for clauses that no query may have, so that none is silently ignored."""
    check_arguments(select)
    for node in select.find_all(exp.Window, exp.Subquery, exp.Exists):
        raise refused(node if isinstance(node, exp.Window) else node.this)
    if not select.expressions:
        raise error_at(select, "SELECT must name a column")


def conjuncts(condition: Any) -> list[Any]:
    """The conditions that a condition joins by AND, ignoring parentheses around them.

    >>> import sqlglot
    >>> [one.sql() for one in conjuncts(sqlglot.parse_one("a = 1 AND (b = 2 AND (c OR d))"))]
    ['a = 1', 'b = 2', 'c OR d']
    """
    if isinstance(condition, exp.Paren):
        return conjuncts(condition.this)
    if isinstance(condition, exp.And):
        return [*conjuncts(condition.this), *conjuncts(condition.expression)]
    return [condition]


def limit_of(select: exp.Select) -> int | None:
    """The number of LIMIT; None without one."""
    limit = select.args.get("limit")
    if limit is None:
        return None
    if isinstance(limit, exp.Fetch):
        raise error_at(limit.args.get("count") or limit, "FETCH FIRST: write LIMIT 10 after the query")
    number = limit.expression
    if (
        not isinstance(number, exp.Literal)
        or number.is_string
        or not number.this.isdigit()
        or int(number.this) < 1
    ):
        raise error_at(number or limit, "LIMIT must be a whole number ≥ 1")
    return int(number.this)
