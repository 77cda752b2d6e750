"""The WHERE of a query of a stored table: selects windows, groups by their keys, and rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pyarrow as pa
from sqlglot import exp

from ....operators.table.schema import END, START, keys_of
from ....operators.windows.window import EARLIEST
from ...views.view import ServedWindow, new_version
from ..errors import error_at, nearest
from ..plan.clauses import WINDOW_COLUMNS, conjuncts
from ..plan.expressions import Expressions
from ..scalars.scalars import Scalar, Scalars
from ..scalars.time_functions import timestamp_of_text

_EPOCH = datetime(1970, 1, 1)
_SINCE, _UNTIL = (exp.GTE, exp.GT), (exp.LTE, exp.LT)
_MIRRORED = {exp.GTE: exp.LTE, exp.GT: exp.LT, exp.LTE: exp.GTE, exp.LT: exp.GT}


@dataclass(frozen=True)
class PullFilter:
    """Conditions on a table's windows, on the values of keys, and on other properties of rows.

    `keys` are in the form of `merge_cache.Selection`, so that their merges can be reused by the next query.
    """

    windows: tuple[Any, ...] = ()
    keys: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    rows: tuple[Any, ...] = ()

    @classmethod
    def of(cls, condition: Any, schema: pa.Schema) -> PullFilter:
        """The filter for a condition. Raises nothing: names are resolved when it is applied."""
        windows, keys, rows = [], [], []
        for one in [] if condition is None else conjuncts(condition):
            names = {column.name.lower() for column in one.find_all(exp.Column)}
            if names and names <= set(WINDOW_COLUMNS):
                windows.append(one)
            elif (values := _key_values(one, schema)) is not None:
                keys.append(values)
            else:
                rows.append(one)
        return cls(tuple(windows), tuple(keys), tuple(rows))

    def and_(self, other: PullFilter) -> PullFilter:
        """Both conditions."""
        return PullFilter(self.windows + other.windows, self.keys + other.keys, self.rows + other.rows)

    def chosen(self, windows: Sequence[ServedWindow], schema: pa.Schema, now: datetime) -> list[ServedWindow]:
        """The windows that it selects, each with the selected rows. Raises `SqlError`."""
        kept = list(windows)
        if self.windows:
            frame = pl.DataFrame(
                {START: [one.start for one in kept], END: [one.end for one in kept]},
                schema={START: pl.Int64, END: pl.Int64},
            ).cast(pl.Datetime("us"))
            kept = [one for one, holds in zip(kept, _mask(self.windows, frame, (), now)) if holds]
        if not self.rows:
            return kept
        names = keys_of(schema)
        if not kept:
            # Errors in the condition are reported whatever rows there are.
            _mask(self.rows, _frame(schema.empty_table(), names), names, now)
        filtered = []
        for one in kept:
            mask = _mask(self.rows, _frame(one.table, names), names, now)
            table = one.table.filter(pa.array(mask.to_numpy(), pa.bool_()))
            # Another version, so that merges of this part are not confused with merges of the whole.
            filtered.append(replace(one.with_table(table), version=new_version()))
        return filtered

    def span(self, now: datetime) -> tuple[int, int | None]:
        """The span that it selects (int64 microseconds), as far as plain comparisons define it."""
        since, until = EARLIEST, None
        for one in self.windows:
            kind, left, right = type(one), one.this, one.args.get("expression")
            if isinstance(right, exp.Column) and kind in _MIRRORED:
                kind, left, right = _MIRRORED[kind], right, left
            if not isinstance(left, exp.Column) or right is None or right.find(exp.Column):
                continue
            if kind in _SINCE and WINDOW_COLUMNS[left.name.lower()] == START:
                since = max(since, _moment(right, now))
            elif kind in _UNTIL and WINDOW_COLUMNS[left.name.lower()] == END:
                until = min(_moment(right, now), until) if until is not None else _moment(right, now)
        return since, until


def _key_values(node: Any, schema: pa.Schema) -> tuple[str, tuple[Any, ...]] | None:
    """The key and the values in ``key = value`` and ``key IN (…)``; None for any other condition."""
    if isinstance(node, exp.EQ):
        column, given = node.this, [node.expression]
        if isinstance(node.expression, exp.Column):
            column, given = node.expression, [node.this]
    elif isinstance(node, exp.In) and node.expressions:
        column, given = node.this, node.expressions
    else:
        return None
    if not isinstance(column, exp.Column) or not all(isinstance(one, exp.Literal) for one in given):
        return None
    key = next((name for name in keys_of(schema) if name.lower() == column.name.lower()), None)
    if key is None:
        return None
    kind = schema.field(key).type
    if pa.types.is_string(kind) and all(one.is_string for one in given):
        return key, tuple(one.this for one in given)
    if pa.types.is_int64(kind) and all(not one.is_string and one.this.isdigit() for one in given):
        values = tuple(int(one.this) for one in given)
        return (key, values) if max(values) < 2**63 else None
    return None


def _frame(table: pa.Table, keys: Sequence[str]) -> pl.DataFrame:
    frame = pl.DataFrame(pl.from_arrow(table.select([START, END, *keys])))
    return frame.with_columns(pl.col(START, END).dt.replace_time_zone(None))


def _mask(conditions: Sequence[Any], frame: pl.DataFrame, keys: Sequence[str], now: datetime) -> pl.Series:
    """A mask of the rows for which all conditions hold."""
    make = Scalars(frame.schema)

    def column(node: exp.Column) -> Scalar:
        name: str | None = WINDOW_COLUMNS.get(node.name.lower()) or next(
            (key for key in keys if key.lower() == node.name.lower()), None
        )
        if name is None:
            raise error_at(
                node,
                f"WHERE of a stored table filters its keys and windows: no key is called {node.name}; "
                f"{nearest(node.name, [*keys, START, END])}",
            )
        return make.column(name)

    expressions = Expressions(make, column, now=now)
    holds = [expressions.condition(one, "WHERE").expr.fill_null(False) for one in conditions]
    # A condition without columns has one value for all rows.
    return frame.select((pl.all_horizontal(holds) & pl.repeat(True, pl.len())).alias("_"))["_"]


def _moment(node: Any, now: datetime) -> int:
    """A constant time in microseconds."""
    make = Scalars({"_": pl.Int64()})
    one = Expressions(make, lambda _: make.column("_"), now=now).scalar(node)
    one = timestamp_of_text(make, one) if one.kind == "text" else make.cast(one, pl.Datetime("us"))
    value = pl.select(one.expr.alias("_"))["_"][0]
    return EARLIEST if value is None else (value - _EPOCH) // timedelta(microseconds=1)


def naive(now: datetime) -> datetime:
    """A time in UTC without its zone, like SQL's times."""
    return now.astimezone(UTC).replace(tzinfo=None)
