"""What a query is planned as: rows one by one, or windows, over the rows of FROM, its joins and its WHERE."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from ....operators.definition.stream import Stream
from ..errors import error_at
from ..parse.grammar import check_grammar
from .aggregates import aggregates_in
from .catalog import Catalog, column_named
from .clauses import check_clauses, limit_of
from .joins import Used, join_rows, move_conditions, no_time
from .logical_plan import LogicalPlan
from .projection import projection_plan
from .scope import Scope, Side
from .stream_builder import bare
from .topic_reader import TopicReader
from .view_expansion import expand_views
from .window_aggregation import WindowAggregation
from .windows import Window, window_call, window_of_clause, window_of_table


class Planner:
    """Plans queries over the relations of a catalog.

    `stream_class` is what a plan's stream is; brokers and settings are those of every relation.
    """

    def __init__(
        self,
        catalog: Catalog,
        bootstrap_servers: str = "localhost:9092",
        config: Mapping[str, Any] | None = None,
        stream_class: type[Stream] = Stream,
    ) -> None:
        self._catalog = catalog
        self._reader = TopicReader(bootstrap_servers, config, stream_class)

    def plan(self, select: exp.Select, ends: bool = False) -> LogicalPlan:
        """The plan of a query over topics. Raises `SqlError` for what it can't be.

        A query that `ends` is of the rows that exist now, and may aggregate all of them without a window.
        """
        # In its own tree: an alert looks for the plan's aggregates in it.
        expand_views(select, self._catalog)
        move_conditions(select)
        return _Planning(self._catalog, self._reader, select, ends and not select.args.get("emit")).plan()


class _Planning:
    """One query."""

    def __init__(self, catalog: Catalog, reader: TopicReader, select: exp.Select, ends: bool) -> None:
        self._catalog = catalog
        self._reader = reader
        self._select = select
        self._ends = ends
        self._used = Used.of(select)

    def plan(self) -> LogicalPlan:
        plan = self._planned()
        # Whatever has no message of its own above is found here.
        check_grammar(self._select)
        return plan

    def _planned(self) -> LogicalPlan:
        select = self._select
        check_clauses(select)
        emit = select.args.get("emit")
        push = "" if emit is None else emit.this.lower()
        limit = limit_of(select)
        window = self._window()
        items = select.expressions
        aggregated = bool(
            window is not None
            or select.args.get("group")
            or select.args.get("having")
            or any(aggregates_in(one) for one in items)
        )
        partition_by = select.args.get("partition_by") or []
        if partition_by and aggregated:
            raise error_at(
                partition_by[0], "PARTITION BY: windows are written by the key of their group; leave it out"
            )
        scope = self._scope(window, aggregated)
        if not aggregated:
            if select.args.get("order"):
                raise error_at(
                    select.args["order"].expressions[0], "ORDER BY: a stream's rows have no end to sort at"
                )
            return projection_plan(scope, items, push, limit, partition_by)
        first = scope.sides[0].relation
        if window is None and (self._ends or (first is not None and first.path)):
            # What ends can have all of its rows in one window.
            window = Window(select.args["from_"].this, "", ())
        if window is None:
            at = next((one for one in items if aggregates_in(one)), None) or (
                select.args.get("group") or select.args["having"]
            )
            raise error_at(
                at,
                "an aggregate of a stream must have a window, or it would never be done; write WINDOW "
                "TUMBLING (SIZE 1 HOUR) behind FROM. For running totals store windows, CREATE TABLE t "
                "WITH (SKETCHES='folder') AS SELECT …, and merge them, SELECT … FROM t; without EMIT a "
                "SELECT counts all rows that exist now",
            )
        return WindowAggregation(scope, select).plan(window, push, limit)

    def _window(self) -> Window | None:
        """The window of the query, in whichever way it is written. Raises `SqlError` for two."""
        select = self._select
        windows: list[tuple[Any, Window]] = []
        clause = select.args.get("window_clause")
        if clause is not None:
            windows.append((clause, window_of_clause(clause)))
        tables = [select.args["from_"].this] if select.args.get("from_") else []
        for table in [*tables, *(join.this for join in select.args.get("joins") or ())]:
            if (windowed := table.args.get("windowed")) is not None:
                windows.append((windowed, window_of_table(windowed)))
        group = select.args.get("group")
        for one in group.expressions if group is not None else ():
            window = window_call(one)
            if window is not None:
                windows.append((one, window))
        if len(windows) > 1:
            raise error_at(windows[1][0], "a query has one window; for another length write a second query")
        return windows[0][1] if windows else None

    def _scope(self, window: Window | None, aggregated: bool) -> Scope:
        select = self._select
        if select.args.get("from_") is None:
            raise error_at(
                select.expressions[0] if select.expressions else select, "a query must read a stream, FROM …"
            )
        table = select.args["from_"].this
        relation = self._catalog.relation(table)
        time = relation.time
        joins = select.args.get("joins") or []
        if window is not None and window.time is not None:
            alias = (table.alias or relation.name).lower()
            if not isinstance(window.time, exp.Column) or window.time.table.lower() not in ("", alias):
                raise error_at(window.time, f"a window must name the time column of {relation.name}")
        if window is not None and window.time is not None and window.time.name.upper() != "ROWTIME":
            named = column_named(window.time.name, relation.columns, window.time, relation.name)
            if time and named != time:
                raise error_at(
                    window.time,
                    f"{relation.name} has its event time in {time}: window by that, or declare the stream "
                    f"with TIMESTAMP='{named}'",
                )
            time = named
        if relation.stored:
            raise error_at(
                table,
                f"{relation.name} is a stored table of sketches, which is asked by itself: SELECT … FROM "
                f"{relation.name}",
            )
        if relation.kind == "table" and not relation.windowed:
            raise error_at(
                table,
                f"{relation.name} is a table, whose rows replace each other: read it by a join, FROM stream "
                f"LEFT JOIN {relation.name} ON …, or declare its topic as a STREAM",
            )
        if relation.path and window is not None and not time:
            raise error_at(
                table,
                f"windows need an event time, and {relation.name} names none: CREATE STREAM {relation.name} "
                f"WITH (PATH='{relation.path}', TIMESTAMP='column')",
            )
        whole = aggregated and window is None
        if whole and (relation.path or not joins):
            time = ""
        if relation.lost_time and not time and (window is not None or "rowtime" in self._used.names):
            raise no_time(relation, table)
        builder, columns = self._reader.scan(relation, self._used.names, time, table)
        scope = Scope(builder, [Side(relation, (table.alias or relation.name).lower(), columns)])
        exploded = []
        for join in joins:
            if isinstance(join.this, exp.Unnest):
                exploded.append(join)
            else:
                join_rows(self._reader, self._catalog, scope, join, self._used)
        for join in exploded:
            scope.unnest(join)
        where = select.args.get("where")
        if where is not None:
            if aggregates_in(where):
                raise error_at(
                    where.this, "WHERE filters rows before they are counted: write aggregates in HAVING"
                )
            one = scope.expressions().condition(where.this, "WHERE")
            builder.then(f".filter({bare(one.text)})", lambda stream: stream.filter(one.expr), where.this)
        return scope
