"""The clauses of a query: which there may be, and what to write in place of others."""

from __future__ import annotations

from sqlglot import exp

from ....operators.table.schema import END, START
from ..errors import error_at
from .expressions import refused

_KNOWN = {
    *("expressions", "from_", "joins", "where", "group", "having", "window_clause", "emit", "limit", "order"),
    *("kind", "hint", "operation_modifiers"),
}
_CURES = {
    "distinct": "SELECT DISTINCT would keep every row; GROUP BY the columns with a window",
    "with_": "WITH: name the rows by a CREATE STREAM … AS SELECT first, and read that",
    "offset": "OFFSET: a stream has no first row; filter by time instead",
    "qualify": "QUALIFY: CREATE TABLE … AS SELECT first, and filter that",
    "laterals": "LATERAL VIEW: write EXPLODE(column) in the SELECT",
    "windows": "a named window is of OVER, which looks at other rows: write WINDOW TUMBLING (SIZE …)",
}
WINDOW_COLUMNS = {
    **dict.fromkeys(("window_start", "windowstart"), START),
    **dict.fromkeys(("window_end", "windowend"), END),
}
"""Names that people give to a window's edges."""


def check_clauses(select: exp.Select) -> None:
    """Raise `SqlError` for clauses that no query may have: none is left out in silence."""
    for name, value in select.args.items():
        if value and name not in _KNOWN:
            at = value[0] if isinstance(value, list) else value
            at = select.expressions[0] if name == "distinct" else at
            message = _CURES.get(name, f"{name.strip('_').upper()} is not supported in a query")
            raise error_at(at if isinstance(at, exp.Expr) else select, message)
    for node in select.find_all(exp.Window, exp.Subquery, exp.Exists):
        raise refused(node if isinstance(node, exp.Window) else node.this)
    if not select.expressions:
        raise error_at(select, "SELECT must name a column")


def limit_of(select: exp.Select) -> int | None:
    """The number of LIMIT; None without one."""
    limit = select.args.get("limit")
    if limit is None:
        return None
    number = limit.expression
    if (
        not isinstance(number, exp.Literal)
        or number.is_string
        or not number.this.isdigit()
        or int(number.this) < 1
    ):
        raise error_at(number or limit, "LIMIT must be a whole number ≥ 1")
    return int(number.this)
