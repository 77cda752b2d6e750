"""Parts of a query for which sqlglot's trees have no node."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.tokens import Token

from ....operators.windows import durations


class WindowClause(exp.Expression):
    """``WINDOW TUMBLING (…)``: the kind, and the parts by name."""

    arg_types: ClassVar = {"kind": True, "parts": True}


class WindowedTable(exp.Expression):
    """``TUMBLE(t, ts, …)`` in FROM: the function's name, the time column, the lengths in order.

    The zone is the one in ``ts AT TIME ZONE``.
    """

    arg_types: ClassVar = {"this": True, "time": True, "lengths": True, "partition": False, "zone": False}


class Emit(exp.Expression):
    """``EMIT FINAL`` or ``EMIT CHANGES``."""

    arg_types: ClassVar = {"this": True}


class Length(exp.Expression):
    """A length of time: microseconds, or months of the calendar."""

    arg_types: ClassVar = {"this": True, "months": False}

    @property
    def duration(self) -> str:
        """The length in the form of definitions."""
        return durations.CalendarLength(self.args.get("months") or 0, int(self.this)).text


UNITS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}


MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
"""Calendar units, which windows and their offsets may have."""


def at(node: exp.Expr, token: Token) -> Any:
    """A node with the position of a token."""
    node.update_positions(token)
    return node
