"""What came of a statement, for people and for machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import polars as pl

from ..formats.jsonable import jsonable
from .errors import SqlError
from .selection import Result


@dataclass(frozen=True)
class StatementOutcome:
    """What came of a statement: rows, nothing to show, or an error.

    `bounds` are, by column, a list of ``[lower, upper]`` for each row; columns that are exact have none.
    """

    statement: str
    kind: Literal["rows", "done", "error"]
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[Any]] = ()
    bounds: Mapping[str, Any] = field(default_factory=dict)
    error: SqlError | None = None

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
        }

    def frame(self) -> pl.DataFrame:
        """The rows as a frame."""
        return pl.DataFrame(
            [list(row) for row in self.rows], schema=list(self.columns), orient="row", strict=False
        )


def rows_of(statement: str, result: Result) -> StatementOutcome:
    """The outcome of a query."""
    return StatementOutcome(statement, "rows", result.rows.columns, result.rows.rows(), result.bounds)
