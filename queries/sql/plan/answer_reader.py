"""Computing a query's columns, its HAVING and its ORDER BY from the answers of windows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

import polars as pl
from sqlglot import exp

from ....operators.definition.stream import Stream
from ....operators.table.query import query
from ....operators.table.schema import END, START, schema_of
from ..errors import error_at, nearest
from ..scalars.scalars import Scalar, Scalars
from .aggregates import DISTINCT, RANKED, AggregateCall
from .clauses import edge_of
from .expressions import Expressions
from .selection import RANKED as RANKED_TYPE
from .selection import AnswerSelection, Output, ranked
from .stream_builder import bare

EDGES = {
    **dict.fromkeys(("TUMBLE_START", "HOP_START", "SESSION_START"), START),
    **dict.fromkeys(("TUMBLE_END", "HOP_END", "SESSION_END"), END),
}
"""Flink's functions for a window's edges."""
BOUNDS = {"LOWER_BOUND": "lower", "UPPER_BOUND": "upper"}
"""The functions that return a bound of an aggregate, and which bound."""


class AnswerReader:
    """Computes a query's columns from the answers of windows.

    `schema` is the schema of the answers, `calls` has the aggregates by their nodes' ids, `keys` the columns
    of groups by their text in the query; `key_of` returns the group column that a name refers to, empty if
    there is none.
    """

    def __init__(
        self,
        schema: Mapping[str, Any],
        calls: Mapping[int, tuple[str, AggregateCall]],
        keys: Mapping[str, str],
        key_of: Callable[[exp.Column], str],
        now: datetime | None = None,
    ) -> None:
        self._make = Scalars(schema)
        self._calls = calls
        self._keys = keys
        self._key_of = key_of
        self._aliases: dict[str, Any] = {}
        self._now = now
        self._having_text = ""

    def selection(
        self,
        select: Any,
        items: list[Any],
        aliases: Mapping[str, Any],
        ranks: Mapping[str, tuple[float, ...]],
        limit: int | None,
    ) -> tuple[AnswerSelection, dict[str, pl.DataType]]:
        """The selection of a query, and its columns' types."""
        outputs: dict[str, Output] = {}
        types: dict[str, pl.DataType] = {}
        for item in items:
            node = item.this if isinstance(item, exp.Alias) else item
            name = item.alias if isinstance(item, exp.Alias) else _item_name(item, outputs)
            if name in outputs:
                raise error_at(item, f"{name} is selected twice; give one another name, AS …")
            value = self.expressions().scalar(node)
            lower, upper = (self._bound_of(node, side) for side in ("lower", "upper"))
            outputs[name] = Output(
                name,
                value.expr,
                None if lower is None else lower.expr,
                None if upper is None else upper.expr,
            )
            types[name] = value.type
        self._aliases = dict(aliases)
        having = select.args.get("having")
        condition = None if having is None else self.expressions().condition(having.this, "HAVING")
        order = []
        for one in select.args["order"].expressions if select.args.get("order") else ():
            falling, nulls_first = (bool(one.args.get(part)) for part in ("desc", "nulls_first"))
            order.append((self._ordered(one, outputs, items), falling, nulls_first))
        self._having_text = "" if condition is None else condition.text
        return (
            AnswerSelection(
                tuple(outputs.values()),
                None if condition is None else condition.expr,
                ranks,
                tuple(order),
                limit,
            ),
            types,
        )

    def remark(self) -> str:
        """The Python for the values read from the answers, as a comment after the stream's."""
        if not self._having_text:
            return ""
        filtered = f"sg.query(table).filter({bare(self._having_text)})"
        return f"\n# HAVING, on the answers of windows:\n# {filtered}"

    def expressions(self) -> Expressions:
        """Expressions over the answers' columns."""
        return Expressions(self._make, self._column, self._special, self._now)

    def _ordered(self, one: Any, outputs: Mapping[str, Output], items: list[Any]) -> str:
        node = one.this
        if isinstance(node, exp.Literal) and node.this.isdigit() and 1 <= int(node.this) <= len(outputs):
            return list(outputs)[int(node.this) - 1]
        if isinstance(node, exp.Column) and not node.table:
            fit = [name for name in outputs if name.lower() == node.name.lower()]
            if fit:
                return fit[0]
        for name, item in zip(outputs, items):
            if (item.this if isinstance(item, exp.Alias) else item) == node:
                return name
        raise error_at(node, f"ORDER BY must name a selected column; {nearest(node.name or '', outputs)}")

    def _column(self, node: exp.Column) -> Scalar:
        name = node.name
        text = node.sql()
        if edge := edge_of(node):
            return self._edge(edge)
        if text in self._keys:
            return self._make.column(self._keys[text])
        lower = name.lower()
        if key := self._key_of(node):
            return self._make.column(key)
        if lower in self._aliases and not node.table:
            return self.expressions().scalar(self._aliases[lower])
        known = [*self._keys, *self._aliases, START, END]
        raise error_at(
            node,
            f"{name} must be in GROUP BY, or within an aggregate such as LAST({name}); "
            f"{nearest(name, known)}",
        )

    def _edge(self, name: str) -> Scalar:
        return self._make.call(self._make.column(name), "dt.replace_time_zone", None)

    def _special(self, node: Any) -> Scalar | None:
        if id(node) in self._calls:
            return self._aggregate(node, "")
        if isinstance(node, exp.Filter):
            return self._aggregate(node.this, "")
        if isinstance(node, exp.Anonymous):
            name = node.name.upper()
            if name in BOUNDS:
                return self._bound(node, BOUNDS[name])
            if name in EDGES:
                return self._edge(EDGES[name])
        if not isinstance(node, (exp.Column, exp.Literal)) and node.sql() in self._keys:
            return self._make.column(self._keys[node.sql()])
        return None

    def _bound(self, node: Any, side: str) -> Scalar:
        if len(node.expressions) != 1:
            raise error_at(
                node, f"{node.name.upper()} takes an aggregate, got {len(node.expressions)} arguments"
            )
        (inner,) = node.expressions
        if isinstance(inner, exp.Column) and inner.name.lower() in self._aliases:
            inner = self._aliases[inner.name.lower()]
        inner = inner.this if isinstance(inner, exp.Filter) else inner
        if id(inner) not in self._calls:
            raise error_at(
                node,
                f"{node.name.upper()} takes an aggregate, such as {node.name.upper()}(SUM(column))",
            )
        return self._aggregate(inner, side)

    def _bound_of(self, node: Any, side: str) -> Scalar | None:
        """The bound of a selected column, if it is an aggregate with bounds besides its value."""
        inner = node.this if isinstance(node, exp.Filter) else node
        if id(inner) not in self._calls:
            return None
        _, one = self._calls[id(inner)]
        if one.family in DISTINCT or (one.family in RANKED and one.ranks and not one.several):
            return self._aggregate(inner, side)
        return None

    def _aggregate(self, node: Any, side: str) -> Scalar:
        """The value of an aggregate, or one of its bounds."""
        make = self._make
        name, one = self._calls[id(node)]
        if one.family in DISTINCT:
            part = make.call(make.column(name), "struct.field", side or "estimate")
            if side:
                # A count is whole, and bounds of whole numbers are whole.
                slack = make.operator(part, "-" if side == "lower" else "+", make.literal(0.01))
                part = make.call(slack, "ceil" if side == "lower" else "floor")
            return make.cast(make.call(part, "round"), pl.Int64())
        if one.family in RANKED and one.ranks:
            if one.several:
                if side:
                    raise error_at(node, "a bound needs a single percentile: give one rank")
                return make.function(
                    "concat_list",
                    [
                        make.call(make.column(ranked(name, rank)), "struct.field", "value")
                        for rank in one.ranks
                    ],
                )
            return make.call(make.column(ranked(name, one.ranks[0])), "struct.field", side or "value")
        column = make.column(name)
        if not side:
            if one.family == "top_k" and (most := dict(one.options).get("k")) is not None:
                return make.call(column, "list.head", most)  # a stored table may have more items
            return make.call(column, "sqrt") if one.root else column
        if column.kind in ("list", "struct", "bytes"):
            raise error_at(
                node,
                f"{node.name.upper()} returns several numbers with their own bounds: select it without "
                "LOWER_BOUND or UPPER_BOUND",
            )
        return make.call(column, "sqrt") if one.root else column


def ranks_of(calls: Iterable[tuple[str, AggregateCall]]) -> dict[str, tuple[float, ...]]:
    """The ranks at which a query reads each aggregate, by its name, without repetitions."""
    ranks: dict[str, tuple[float, ...]] = {}
    for name, one in calls:
        if one.ranks:
            ranks[name] = tuple(dict.fromkeys([*ranks.get(name, ()), *one.ranks]))
    return ranks


def answer_schema(stream: Stream, ranks: Mapping[str, tuple[float, ...]]) -> dict[str, Any]:
    """The columns of the answers of a stream's windows, including those at ranks."""
    return schema_of_answers(schema_of(stream), ranks)


def schema_of_answers(schema: Any, ranks: Mapping[str, tuple[float, ...]]) -> dict[str, Any]:
    """The columns of a table's answers, including those at ranks."""
    answers = query(schema.empty_table()).schema
    more = {ranked(name, rank): RANKED_TYPE for name, those in ranks.items() for rank in those}
    types = dict(zip(answers.names(), answers.dtypes()))
    for name, kind in types.items():
        if kind == pl.Null():
            types[name] = pl.Struct({"estimate": pl.Float64, "lower": pl.Float64, "upper": pl.Float64})
    return {**types, **more}


def _item_name(item: Any, taken: Mapping[str, Any]) -> str:
    if isinstance(item, exp.Column):
        return edge_of(item) or item.name
    if isinstance(item, exp.Dot | exp.JSONExtract) and isinstance(
        item.expression, exp.Column | exp.Identifier
    ):
        return item.expression.name
    inner = item.this if isinstance(item, exp.Filter) else item
    if isinstance(inner, exp.Anonymous):
        name = base = inner.name.lower()
        number = 2
        while name in taken:
            name, number = f"{base}_{number}", number + 1
        return name
    return str(item.sql())
