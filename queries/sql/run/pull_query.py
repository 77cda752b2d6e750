"""Queries of stored tables of sketches: any span, fewer keys, coarser windows, by merging."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa
from sqlglot import exp

from ....operators.table.merge import larger_windows
from ....operators.table.schema import END, START, aggregates_of, keys_of, table_schema
from ....sketches.core.protocol import SketchError
from ...answers.answers import (
    MOST_FIRST,
    Answer,
    Limits,
    answer_about,
    check_limits,
    is_timeless,
    too_many,
)
from ...answers.ordered_rows import leading_groups
from ...question.question import Question
from ...views.merge_cache import Deadline, Every, MergeCache, Selection, apart
from ...views.view import ServedWindow, TableView
from ..errors import error_at, errors_at, nearest
from ..parse.grammar import check_grammar
from ..plan.aggregates import DISTINCT, AggregateCall
from ..plan.answer_reader import EDGES, AnswerReader, ranks_of, schema_of_answers
from ..plan.clauses import SPARK_WINDOWS, WINDOW_COLUMNS, check_clauses, edge_of, limit_of
from ..plan.selection import AnswerSelection
from ..plan.stored_columns import StoredColumns, set_column, with_columns, with_groups_of
from ..plan.windows import check_grouped, window_call, window_of_clause, window_of_table
from .pull_filter import PullFilter, naive

_ORDERED = (*DISTINCT, "count", "sum", "min", "max")
"""Families whose sketches are ordered like their answers in SQL."""


def pull_query(
    select: exp.Select,
    view: TableView,
    now: datetime,
    rollups: MergeCache | None = None,
    limits: Limits = Limits(),  # noqa: B008
    deadline: Deadline = Deadline(),  # noqa: B008
) -> Answer:
    """The answer of a query to a table of sketches at one moment; `now` is the value of NOW().

    Without an aggregate, each stored window and group is a row. With one, everything that GROUP BY doesn't
    name is merged: keys, and, unless it names the window, all windows of the span into one. Raises
    `SqlError`, `TooMuch` beyond the limits, and `OutOfTime`.
    """
    check_clauses(select)
    if select.args.get("emit") is not None:
        raise error_at(
            select.args["emit"], f"{view.name} is a stored table, which is queried only once: leave out EMIT"
        )
    if select.args.get("joins"):
        raise error_at(
            select.args["joins"][0].this, f"{view.name} is a stored table of sketches, which can't be joined"
        )
    check_grammar(select)
    _check_names(select, view.name)
    return _PullQuery(select, view, naive(now), rollups or MergeCache(0), limits, deadline).answer()


def _check_names(select: exp.Select, name: str) -> None:
    """Raise `SqlError` for a column of another table than the queried one."""
    table = select.args["from_"].this
    for call in select.find_all(exp.Anonymous):
        if call.name.upper() in EDGES and call.expressions:
            raise error_at(call, f"{call.name.upper()} of a stored table: write window_start or window_end")
    known = {*SPARK_WINDOWS, (table.alias or table.name).lower()}
    for column in select.find_all(exp.Column):
        if (owner := column.table) and (owner.lower() not in known or column.args.get("db")):
            raise error_at(column, f"no table of the query is called {owner}; there is {table.alias_or_name}")


def described(view: TableView) -> list[tuple[str, str]]:
    """The columns of a stored table: its keys, and a description of each aggregate."""
    aggregates = aggregates_of(view.schema).items()
    return [
        *((key, "key") for key in keys_of(view.schema)),
        *((name, f"{one.name}({one.column or ''})") for name, one in aggregates),
    ]


@dataclass(frozen=True)
class _Shape:
    """What a query merges: the keys that are preserved, and the windows."""

    keys: tuple[str, ...]
    every: Every


class _PullQuery:
    """One query."""

    def __init__(
        self,
        select: exp.Select,
        view: TableView,
        now: datetime,
        rollups: MergeCache,
        limits: Limits,
        deadline: Deadline,
    ) -> None:
        self._select, self._view, self._now = select, view, now
        self._rollups, self._limits, self._deadline = rollups, limits, deadline
        self._keys = keys_of(view.schema)
        self._columns = StoredColumns(view.name, aggregates_of(view.schema))

    def answer(self) -> Answer:
        select, columns = self._select, self._columns
        items = self._items()
        parts = [*items, *(select.args[name] for name in ("having", "order") if select.args.get(name))]
        columns.resolve(parts)
        shape = self._shape(bool(columns.calls))
        by_name = columns.by_name(parts)
        columns.calls |= by_name
        names = columns.merged() or tuple(aggregates_of(self._view.schema))[:1]
        selection = self._selection(items, shape, columns.calls)
        condition = select.args.get("where")
        where = PullFilter.of(None if condition is None else condition.this, self._view.schema)
        chosen = where.chosen(self._view.windows, self._view.schema, self._now)
        check_limits(chosen, self._limits)
        try:
            table = self._first(chosen, where, shape, names, selection, items)
            if table is None:
                table = self._merged(chosen, where, shape, names)
            table = self._with_made(table, where, shape)
            if len(selection.outputs) and selection.limit is None and table.num_rows > self._limits.answers:
                raise too_many(table.num_rows, self._limits)
            result = selection.result(table)
        except SketchError as error:
            raise error_at(select.args["from_"].this, str(error)) from None
        self._deadline.check()
        about = answer_about(self._view, "sql", result.rows, chosen, where.span(self._now))
        return replace(about, bounds=result.bounds)

    def _items(self) -> list[Any]:
        items = []
        edges = [] if is_timeless(self._view) else [START, END]
        for item in self._select.expressions:
            if isinstance(item, exp.Star):
                for name in [*edges, *self._keys, *aggregates_of(self._view.schema)]:
                    column = exp.column(exp.to_identifier(name))
                    column.meta.update(item.meta)
                    items.append(column)
            else:
                items.append(item)
        return items

    def _selection(
        self, items: list[Any], shape: _Shape, calls: Mapping[int, tuple[str, AggregateCall]]
    ) -> AnswerSelection:
        """What is read from the merged table."""
        ranks = ranks_of(calls.values())
        types = {key: self._view.schema.field(key).type for key in shape.keys}
        schema = table_schema(types, self._columns.aggregates, None)
        aliases = {item.alias.lower(): item.this for item in items if isinstance(item, exp.Alias)}
        texts = {key: key for key in shape.keys}
        by_name = {key.lower(): key for key in shape.keys}
        reader = AnswerReader(
            schema_of_answers(schema, ranks),
            calls,
            texts,
            lambda node: by_name.get(node.name.lower(), ""),
            self._now,
        )
        selection, _ = reader.selection(self._select, items, aliases, ranks, limit_of(self._select))
        # Without groups there is a row even if nothing is selected, as for a stream.
        merged = bool(calls) and shape == _Shape((), "span") and self._select.args.get("group") is None
        return replace(selection, of_nothing=merged)

    def _shape(self, aggregated: bool) -> _Shape:
        """The keys that are preserved, and whether windows are, or what they are merged into."""
        select, view = self._select, self._view
        group = select.args.get("group")
        if not aggregated and group is None and self._longer() is None:
            return _Shape(tuple(self._keys), "window")
        keys: list[str] = []
        edges: set[str] = set()
        for node in group.expressions if group is not None else ():
            if window_call(node) is not None or not isinstance(node, exp.Column):
                raise error_at(node, "GROUP BY must name keys of the table, or window_start")
            if edge := edge_of(node):
                edges.add(edge)
                continue
            fit = [key for key in self._keys if key.lower() == node.name.lower()]
            if not fit:
                raise error_at(
                    node, f"{node.name} is not a key of {view.name}; {nearest(node.name, self._keys)}"
                )
            keys.append(fit[0])
        longer = self._longer()
        if (call := select.args["from_"].this.args.get("windowed")) is not None:
            check_grouped(call, edges)
        return _Shape(tuple(dict.fromkeys(keys)), longer or ("window" if edges else "span"))

    def _longer(self) -> Every | None:
        """The windows that stored ones are merged into, or their length (microseconds); None for none."""
        select = self._select
        table, clause = select.args["from_"].this, select.args.get("window_clause")
        call = table.args.get("windowed")
        if clause is None and call is None:
            return None
        if clause is not None and call is not None:
            raise error_at(call, "a query has one window; for another length write a second query")
        window = window_of_clause(clause) if call is None else window_of_table(call)
        if window.method != "tumbling":
            raise error_at(
                window.node, "stored windows are merged into longer ones: WINDOW TUMBLING (SIZE …)"
            )
        if call is not None and window.time.name.lower() not in WINDOW_COLUMNS:
            raise error_at(window.time, "the time of stored windows is window_start: write that")
        if clause is not None and "GRACE PERIOD" in clause.args["parts"]:
            raise error_at(
                clause, "GRACE PERIOD is of a stream: stored windows wait for nothing; leave it out"
            )
        with errors_at(window.node):
            place = dict(window.named)
            larger = larger_windows(
                "a window", window.given[0], place.get("offset"), place.get("zone"), self._view.schema
            )
        return larger if larger.calendar else larger.size_us

    def _merged(
        self, chosen: list[ServedWindow], where: PullFilter, shape: _Shape, names: tuple[str, ...]
    ) -> pa.Table:
        wanted = Selection(names, shape.keys, tuple(sorted(where.keys)))
        return self._rollups.table(self._view.schema, chosen, wanted, shape.every, self._deadline)

    def _first(
        self,
        chosen: list[ServedWindow],
        where: PullFilter,
        shape: _Shape,
        names: tuple[str, ...],
        selection: AnswerSelection,
        items: list[Any],
    ) -> pa.Table | None:
        """Only the groups that come first in the query's order, if it orders by an aggregate."""
        name = self._order_column(selection, items)
        columns = self._columns
        few = selection.limit is not None and selection.limit <= MOST_FIRST
        plain = shape.every == "span" and not columns.filtered and not columns.sets
        if not (name and few and plain and shape.keys and chosen) or selection.having is not None:
            return None
        if self._rollups.for_one_request:
            return None
        if apart(self._view.schema) or set(shape.keys) != set(self._keys):
            return None
        wanted = Selection(names, shape.keys, tuple(sorted(where.keys)))
        ((_, falling, _),) = selection.order
        order = f"{'-' if falling else ''}{name}"
        question = Question("rows", every="span", order=order, limit=selection.limit)
        first = self._rollups.cached(
            "leading",
            chosen,
            (wanted, order, selection.limit),
            lambda: leading_groups(self._view, question, chosen, wanted, self._rollups, self._deadline),
        )
        if not first.height:
            return None
        return self._rollups.few(self._view.schema, chosen, wanted, first, self._deadline)

    def _order_column(self, selection: AnswerSelection, items: list[Any]) -> str:
        """The table's column whose order is that of the query; empty if there is none."""
        if len(selection.order) != 1 or selection.order[0][2]:
            return ""
        for one, item in zip(selection.outputs, items):
            node = item.this if isinstance(item, exp.Alias) else item
            if one.name == selection.order[0][0] and id(node) in self._columns.calls:
                name, call = self._columns.calls[id(node)]
                return name if call.family in _ORDERED and not call.root else ""
        return ""

    def _with_made(self, table: pa.Table, where: PullFilter, shape: _Shape) -> pa.Table:
        """The table with the columns of filtered aggregates and of set expressions."""
        columns = self._columns
        made: dict[str, pa.Array] = {}
        for condition, names in columns.filtered.values():
            filtered = where.and_(PullFilter.of(condition, self._view.schema))
            own = filtered.chosen(self._view.windows, self._view.schema, self._now)
            part = self._merged(own, filtered, shape, tuple(dict.fromkeys(names.values())))
            made |= with_groups_of(table, part, names, shape.every != "span")
        for name, (function, *sides) in columns.sets.items():
            left, right = (made[side] if side in made else table.column(side) for side in sides)
            made[name] = set_column(function, left, right, *(columns.aggregates[side] for side in sides))
        return with_columns(table, made, columns.aggregates) if made else table
