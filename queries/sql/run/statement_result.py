"""The result of a statement, for people and for programs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import polars as pl

from ....operators.formats.jsonable import jsonable
from ....operators.sketching.account import Account
from ..errors import SqlError
from ..plan.selection import ResultSet
from ..scalars.scalars import sql_type

_TYPE = re.compile(
    r"(?:not |out of the range of |whole number \()"
    r"(?P<name>U?Int\d+|Float\d\d|String|Boolean|Binary|Date|Time"
    r"|Datetime\(time_unit='\w+', time_zone=[^)]*\))(?=$| in ISO|\))"
)
"""Polars' name of a type in a decoder's reason."""


@dataclass(frozen=True)
class StatementResult:
    """The result of a statement: rows, nothing to show, or an error.

    `bounds` are, by column, a list of ``[lower, upper]`` for each row; exact columns have none. `warnings`
    say what is missing from the rows, such as messages that could not be read.

    A statement may have many results. `begun` is set on all but its first one; `more` if the next result has
    further rows of the same answer (`in_one`).
    """

    statement: str
    kind: Literal["rows", "done", "error"]
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[Any]] = ()
    bounds: Mapping[str, Any] = field(default_factory=dict)
    error: SqlError | None = None
    warnings: Sequence[str] = ()
    begun: bool = False
    more: bool = False

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        error = self.error
        return {
            "statement": self.statement,
            "kind": self.kind,
            "columns": list(self.columns),
            "rows": [[jsonable(value) for value in row] for row in self.rows],
            "bounds": {name: jsonable([list(pair) for pair in pairs]) for name, pairs in self.bounds.items()}
            or None,
            "error": None
            if error is None
            else {"line": error.line, "column": error.column, "message": error.message},
            **({"warnings": list(self.warnings)} if self.warnings else {}),
        }

    def frame(self) -> pl.DataFrame:
        """The rows as a frame."""
        rows = [list(row) for row in self.rows]
        return pl.DataFrame(rows, list(self.columns), orient="row", strict=False, infer_schema_length=None)


def rows_of(statement: str, result: ResultSet, begun: bool = False) -> StatementResult:
    """The result of a query."""
    return StatementResult(
        statement,
        "rows",
        result.rows.columns,
        result.rows.rows(),
        result.bounds,
        warnings=result.warnings,
        begun=begun,
        more=result.more,
    )


def in_one(show: Callable[[StatementResult], None]) -> Callable[[StatementResult], None]:
    """A function that shows the answer of a query that ends once it is complete.

    >>> show = in_one(lambda one: print(one.rows))
    >>> show(StatementResult("SELECT 1", "rows", ["n"], [(1,)], more=True))
    >>> show(StatementResult("SELECT 1", "rows", ["n"], [(2,)], begun=True))
    [(1,), (2,)]
    """
    parts: list[StatementResult] = []

    def shown(one: StatementResult) -> None:
        if not one.begun:
            parts.clear()  # after an error or Ctrl-C
        parts.append(one)
        if not one.more:
            show(joined(parts))
            parts.clear()

    return shown


def joined(parts: Sequence[StatementResult]) -> StatementResult:
    """Results of one statement, at least one, as one result."""
    last = parts[-1]
    rows = [row for one in parts for row in one.rows]
    bounds = {name: [pair for one in parts for pair in one.bounds[name]] for name in last.bounds}
    return replace(last, rows=rows, bounds=bounds)


def in_sql(reason: str) -> str:
    r"""The reason for refusing a message, with SQL's type names.

    >>> in_sql('"a" is 7.5, not a whole number (Int32)')
    '"a" is 7.5, not a whole number (INT)'
    >>> in_sql("\"at\" is 17, not Datetime(time_unit='us', time_zone=None)")
    '"at" is 17, not TIMESTAMP; of milliseconds declare a BIGINT and write FROM_UNIXTIME(at)'
    """
    match = _TYPE.search(reason)
    if match is None:
        return reason
    name = match["name"]
    kind = "TIMESTAMP" if name.startswith("Datetime") else sql_type(getattr(pl, name))
    text = reason[: match.start("name")] + kind + reason[match.end("name") :]
    number = re.match(r'"([^"]+)" is \'?-?\d+\'?, not TIMESTAMP', text)
    if number is None:
        return text
    return f"{text}; of milliseconds declare a BIGINT and write FROM_UNIXTIME({number[1]})"


def warnings_of(account: Account, reason: str = "") -> tuple[str, ...]:
    """The message about input that is missing from a query's rows; `reason` is why one of them was refused.

    >>> warnings_of(Account(read=5, counted=2, late=1, dead_lettered=2), "byte 1: not a number")
    ('2 of 5 messages could not be read, such as: byte 1: not a number', '1 of 5 messages came too late')
    """
    refused, late = account.dead_lettered, account.late
    such = f", such as: {in_sql(reason)}" if reason else ""
    return (
        *([f"{refused:,} of {account.read:,} messages could not be read{such}"] if refused else []),
        *([f"{late:,} of {account.read:,} messages came too late"] if late else []),
    )
