"""A query of windows: what its stream stores, and what is read when windows close."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import polars as pl
from sqlglot import exp

from ....operators.definition.sources import FrameSource
from ....operators.families import family
from ....operators.table.schema import END, START
from ....operators.windows.all_time import WholeInput
from ....sketches.exact.groups import DIGITS
from ..errors import SqlError, error_at
from ..parse.nodes import WindowedTable
from ..scalars.function_aliases import unknown_function
from ..scalars.scalar_functions import FUNCTIONS
from ..scalars.scalars import Scalar, a_type
from .aggregates import AggregateCall, aggregates_in, function_names
from .answer_reader import BOUNDS, EDGES, AnswerReader, answer_schema, ranks_of
from .clauses import SPARK_WINDOWS, edge_of
from .logical_plan import LogicalPlan
from .scope import EXPLODE, Scope, is_explode
from .stream_builder import aggregate_source, arguments, source_text, with_columns
from .windows import Window, check_grouped, window_call


class WindowAggregation:
    """The plan of a SELECT over windows of rows."""

    def __init__(self, scope: Scope, select: exp.Select) -> None:
        self._scope = scope
        self._select = select
        self._plain_keys: set[str] = set()
        self._edges: set[str] = set()

    def plan(self, window: Window, push: str, limit: int | None) -> LogicalPlan:
        """The plan. Raises `SqlError`."""
        select = self._select
        items = select.expressions
        for item in items:
            if isinstance(item, exp.Star):
                raise error_at(item, "* of a window: name its keys and aggregates")
        self._check_edges(window)
        group = select.args.get("group")
        self._scope.explode_items([*items, *(group.expressions if group is not None else ())])
        keys = self._keys(items)
        window = self._partitioned(window, keys)
        if isinstance(window.node, WindowedTable):
            check_grouped(window.node, self._edges)
        aggregate_calls: list[AggregateCall] = []
        aliases = {item.alias.lower(): item.this for item in items if isinstance(item, exp.Alias)}
        having = select.args.get("having")
        for node in [*items, *([having.this] if having is not None else [])]:
            aggregate_calls += aggregates_in(node)
        if not aggregate_calls:
            self._check_functions(items)
            raise error_at(items[0], "a query of groups or windows must count something, such as COUNT(*)")
        named, lines = self._aggregate_columns(aggregate_calls, items, keys)
        if keys:
            names = list(dict.fromkeys(keys.values()))
            text = ", ".join(map(repr, names))
            self._scope.builder.then(
                f".group_by({text})",
                lambda stream: stream.group_by(*names),
                select.args["group"].expressions[0],
            )
        if window.method:
            self._scope.builder.then(window.text, window.apply, window.node)
        elif not isinstance(self._scope.builder.stream.source, FrameSource):
            self._scope.builder.then(
                "# all rows that exist now as one window, which SQL alone has of a topic",
                lambda stream: replace(stream, window=WholeInput()),
                window.node,
            )
        definitions = {name: one for name, (one, _) in named.items()}
        self._scope.builder.then(
            f".agg({arguments(lines)})", lambda stream: stream.agg(**definitions), aggregate_calls[0].node
        )
        return self._selected(items, keys, aggregate_calls, named, aliases, push, limit)

    def _check_edges(self, window: Window) -> None:
        """Raise `SqlError` for an edge of another window, or one named after an unknown stream."""
        for call in self._select.find_all(exp.Anonymous):
            if call.name.upper() in EDGES and call.expressions:
                alike = exp.Anonymous(this=call.name.rpartition("_")[0], expressions=call.expressions)
                alike.meta.update(call.meta)
                named = window_call(alike)
                if (
                    named is None
                    or (named.method, named.given) != (window.method, window.given)
                    or _lengths(named) != _lengths(window)
                ):
                    raise error_at(
                        call, f"{call.name.upper()} must be of the query's window; write window_start"
                    )
        if not window.method and (
            edges := [one for one in self._select.find_all(exp.Column) if _is_edge(one)]
        ):
            raise error_at(
                edges[0], "without a WINDOW, all rows are counted together, and windows have no edges"
            )
        aliases = {*SPARK_WINDOWS, *(side.alias for side in self._scope.sides)}
        for column in self._select.find_all(exp.Column):
            if column.table and _is_edge(column) and column.parts[0].name.lower() not in aliases:
                raise error_at(column, f"no stream of the query is called {column.parts[0].name}")

    def _check_functions(self, items: list[Any]) -> None:
        """Raise `SqlError` for a misspelt function that may have been meant as an aggregate."""
        known = [*function_names(), *FUNCTIONS, *BOUNDS]
        for item in items:
            for node in item.find_all(exp.Anonymous):
                if node.name.upper() not in known and node.name.upper() not in EXPLODE:
                    raise error_at(node, unknown_function(node.name, known))

    def _keys(self, items: list[Any]) -> dict[str, str]:
        """The group's columns: by the text in GROUP BY, the stream's column."""
        group = self._select.args.get("group")
        if group is None:
            return {}
        for what in ("rollup", "cube", "grouping_sets", "all", "totals"):
            if group.args.get(what):
                raise error_at(
                    group,
                    f"{what.upper().replace('_', ' ')}: name the columns; coarser answers come from merging",
                )
        if not group.expressions:
            raise error_at(group, "GROUP BY must name a column")
        keys: dict[str, str] = {}
        aliases = {item.alias.lower(): item for item in items if isinstance(item, exp.Alias)}
        for node in group.expressions:
            if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit():
                number = int(node.this)
                if not 1 <= number <= len(items):
                    raise error_at(node, f"GROUP BY {number}: the SELECT has {len(items)} columns")
                item = items[number - 1]
            else:
                item = node
            edge = self._edge_of(item, aliases)
            self._edges |= {edge} - {""}
            if edge or window_call(item) is not None:
                continue
            alias = item.alias if isinstance(item, exp.Alias) else ""
            target = item.this if isinstance(item, exp.Alias) else item
            if isinstance(target, exp.Column) and not target.table:
                lower = target.name.lower()
                known = {name.lower() for side in self._scope.sides for name in side.columns}
                if lower not in known and lower in aliases:
                    alias, target = aliases[lower].alias, aliases[lower].this
                    keys |= self._key(target, alias, node.sql())
                    continue
            keys |= self._key(target, alias or self._alias_of(target, items), target.sql())
        exploded = {text: name for text, name in self._scope.exploded.items() if name in keys.values()}
        return {**keys, **exploded}

    def _edge_of(self, item: Any, aliases: Mapping[str, Any]) -> str:
        """The window's edge that a part of GROUP BY refers to, by name or alias; empty for others."""
        if isinstance(item, exp.Column) and not item.table and not _is_edge(item):
            known = {name.lower() for side in self._scope.sides for name in side.columns}
            if (lower := item.name.lower()) not in known:
                item = aliases.get(lower, item)
        target = item.this if isinstance(item, exp.Alias) else item
        return edge_of(target) if isinstance(target, exp.Column) else ""

    def _alias_of(self, node: Any, items: list[Any]) -> str:
        return next((item.alias for item in items if isinstance(item, exp.Alias) and item.this == node), "")

    def _key(self, node: Any, alias: str, text: str) -> dict[str, str]:
        if aggregates_in(node):
            raise error_at(node, "an aggregate can't be a key of the groups")
        if is_explode(node):
            name = self._scope.exploded[node.sql()]
        elif isinstance(node, exp.Column) and not self._scope.is_struct_field(node):
            name = self._scope.resolved(node)
            self._plain_keys.add(name)
        else:
            one = self._scope.expressions().scalar(node)
            # An alias that is a column's name would overwrite that column before it is counted.
            taken = self._scope.builder.stream.columns
            name = self._scope.new_name(alias if alias and alias not in taken else str(node.sql()))
            with_columns(self._scope.builder, {name: one}, node)
        return {text: name, node.sql(): name}

    def _partitioned(self, window: Window, keys: Mapping[str, str]) -> Window:
        """A SESSION in FROM with the keys of its sessions: those of PARTITION BY, or none.

        Raises `SqlError` for a key that isn't in GROUP BY.
        """
        if window.partition is None:
            return window
        by = [self._session_key(node, keys) for node in window.partition]
        own = dict.fromkeys(keys.values())
        if {*by} == {*own}:
            return window
        return replace(window, named=(*window.named, ("by", tuple(name for name in own if name in by))))

    def _session_key(self, node: Any, keys: Mapping[str, str]) -> str:
        plain = isinstance(node, exp.Column) and not self._scope.is_struct_field(node)
        name = self._scope.resolved(node) if plain else keys.get(node.sql(), "")
        if name in keys.values():
            return name
        raise error_at(
            node,
            f"sessions of each {node.sql()} are counted by {node.sql()}: name it in GROUP BY, too, or leave "
            "PARTITION BY out for sessions of all rows",
        )

    def _aggregate_columns(
        self, aggregate_calls: list[AggregateCall], items: list[Any], keys: Mapping[str, str]
    ) -> tuple[dict[str, tuple[Any, list[AggregateCall]]], dict[str, str]]:
        """The aggregates of the definition by name, each with the query's calls that it answers."""
        columns: dict[str, Scalar] = {}
        prepared: list[tuple[AggregateCall, str | None, dict[str, str]]] = []
        for one in aggregate_calls:
            parts = [one.of] if one.of is not None else []
            names: list[str] = []
            condition = self._filter_of(one.node)
            for part in [*parts, *(node for _, node in one.inputs)]:
                names.append(self._input(part, condition, columns, one))
            if not parts and condition is not None:
                names = [self._input(exp.Literal.number(1), condition, columns, one), *names]
                column: str | None = names[0]
            else:
                column = names[0] if parts else None
            inputs = dict(
                zip((name for name, _ in one.inputs), names[-len(one.inputs) :] if one.inputs else [])
            )
            prepared.append((one, column, inputs))
        if columns:
            with_columns(self._scope.builder, columns, aggregate_calls[0].node)
        named: dict[str, tuple[Any, list[AggregateCall]]] = {}
        for one, column, inputs in prepared:
            definition = one.aggregate(column, inputs)
            same = next((name for name, (known, _) in named.items() if known == definition), None)
            if same is not None:
                named[same][1].append(one)
                continue
            name = self._aggregate_name(one, items, {*named, *keys.values(), START, END})
            named[name] = (definition, [one])
        return named, {name: aggregate_source(one) for name, (one, _) in named.items()}

    def _filter_of(self, node: Any) -> Any:
        """The condition of FILTER (WHERE …) after an aggregate."""
        above = node.parent
        if isinstance(above, exp.Filter) and above.this is node:
            return above.expression.this
        return None

    def _input(self, node: Any, condition: Any, columns: dict[str, Scalar], call: AggregateCall) -> str:
        """The column that an aggregate reads: a column's own, or a new one named after the expression."""
        expressions = self._scope.expressions()
        one = expressions.scalar(node)
        if isinstance(one.type, pl.Decimal) and (one.type.precision or 38) > DIGITS and call.family == "sum":
            raise error_at(
                node,
                f"a SUM of {a_type(one.type)} might need more than 38 digits: write SUM(CAST(x AS "
                f"DECIMAL({DIGITS}, {min(one.type.scale, DIGITS)}))), or CAST AS DOUBLE",
            )
        if one.kind == "list" and call.family == "count":
            # An aggregate of a list is over its elements; COUNT in SQL is over rows.
            one = expressions.make.when(
                [(expressions.make.call(one, "is_not_null"), expressions.make.literal(1))], None
            )
        elif one.kind == "list" and family(call.family).exact:
            raise error_at(
                node,
                f"an exact aggregate takes single values, got {a_type(one.type)}: make rows of its elements, "
                "CROSS JOIN UNNEST(column) AS t(name), or write ARRAY_MAX(column) and the like",
            )
        elif condition is None and isinstance(node, exp.Column) and not self._scope.is_struct_field(node):
            return self._scope.resolved(node)
        text = str(node.sql())
        if condition is not None:
            text += f" where {condition.sql()}"
            holds = expressions.condition(condition, "FILTER (WHERE …)")
            one = expressions.make.when([(holds, one)], None)
        name = self._scope.new_name(text)
        columns[name] = one
        return name

    def _aggregate_name(self, one: AggregateCall, items: list[Any], taken: set[str]) -> str:
        alias = ""
        for item in items:
            if isinstance(item, exp.Alias):
                inner = item.this.this if isinstance(item.this, exp.Filter) else item.this
                alias = alias or (item.alias if inner is one.node else "")
        name = alias or one.node.name.lower()
        number, base = 2, name
        while name in taken:
            name, number = f"{base}_{number}", number + 1
        return name

    def _selected(
        self,
        items: list[Any],
        keys: Mapping[str, str],
        aggregate_calls: list[AggregateCall],
        named: Mapping[str, tuple[Any, list[AggregateCall]]],
        aliases: Mapping[str, Any],
        push: str,
        limit: int | None,
    ) -> LogicalPlan:
        calls = {id(one.node): (name, one) for name, (_, those) in named.items() for one in those}
        ranks = ranks_of(calls[id(one.node)] for one in aggregate_calls)
        stream = self._scope.builder.stream
        answers = AnswerReader(answer_schema(stream, ranks), calls, keys, self._key_of)
        selection, columns = answers.selection(
            self._select, items, aliases, ranks, limit if not push else None
        )
        if not keys and isinstance(stream.window, WholeInput):
            selection = replace(selection, of_nothing=True)
        having = self._select.args.get("having")
        compared = {"SELECT": ", ".join(item.sql() for item in items)}
        if having is not None:
            compared["HAVING"] = having.this.sql()
        return LogicalPlan(
            replace(self._scope.builder.stream, compared=compared),
            selection,
            columns,
            self._scope.builder.stream.keys,
            push,
            limit,
            source_text(self._scope.builder.lines) + answers.remark(),
            calls=calls,
        )

    def _key_of(self, node: exp.Column) -> str:
        """The key of the groups that a column's name refers to; empty if it isn't one."""
        try:
            name = self._scope.resolved(node)
        except SqlError:
            return ""
        return name if name in self._plain_keys and not self._scope.is_struct_field(node) else ""


def _lengths(window: Window) -> dict[str, Any]:
    """What determines the windows, besides their length."""
    return {name: value for name, value in window.named if name in ("every", "offset", "zone")}


def _is_edge(node: Any) -> bool:
    return isinstance(node, exp.Column) and bool(edge_of(node))
