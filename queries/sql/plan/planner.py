"""Planning a query: of rows, or of windows, over FROM with its joins and its WHERE."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from ....operators.definition.stream import Stream
from ..errors import error_at
from ..parse.grammar import check_grammar
from ..scalars.scalars import Scalars
from .aggregates import aggregates_in
from .catalog import Catalog, Relation, column_named
from .clauses import check_clauses, limit_of
from .joins import NamedRows, Used, join_rows, move_conditions, no_time
from .logical_plan import LogicalPlan
from .projection import projection_plan
from .scope import Scope, Side
from .stream_builder import StreamBuilder, bare, with_columns
from .topic_reader import TopicReader, row_time
from .union import renaming_text, union_plans
from .view_expansion import expand_views
from .window_aggregation import WindowAggregation
from .windows import Window, window_call, window_of_clause, window_of_table


class Planner:
    """Plans queries over the relations of a catalog.

    `stream_class` is the class of a plan's stream; brokers and settings apply to all relations.
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
        """The plan of a query over topics. Raises `SqlError` if it can't be planned.

        A query that `ends` covers the rows that exist now, and may aggregate all of them without a window.
        """
        # In its own tree: an alert looks for the plan's aggregates in it.
        expand_views(select, self._catalog)
        move_conditions(select)
        return _Planning(self._catalog, self._reader, select, ends and not select.args.get("emit")).plan()


class _Planning:
    """The planning of one query."""

    def __init__(
        self,
        catalog: Catalog,
        reader: TopicReader,
        select: exp.Select,
        ends: bool = False,
        untimed: bool = False,
        names: frozenset[str] = frozenset(),
    ) -> None:
        self._catalog = catalog
        self._reader = reader
        self._select = select
        self._ends = ends
        self._untimed = untimed
        self.scope: Scope | None = None
        # A topic on both sides of a join is read in one way, with everything that either side uses.
        self._used = Used.of(select).beside(
            {*names, *(one for query in _named(select) for one in names_in(query))}
        )

    def plan(self) -> LogicalPlan:
        plan = self._planned()
        # Anything without a specific message above is detected here.
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
        scope = self.scope = self._scope(window, aggregated)
        if not aggregated:
            if select.args.get("order"):
                raise error_at(
                    select.args["order"].expressions[0], "ORDER BY: a stream's rows have no end to sort at"
                )
            return projection_plan(scope, items, push, limit, partition_by)
        first = scope.sides[0].relation
        if window is None and (self._ends or (first is not None and first.path)):
            # A query that ends can have all of its rows in one window.
            window = Window(select.args["from_"].this, "", ())
        if window is None:
            at = next((one for one in items if aggregates_in(one)), None) or (
                select.args.get("group") or select.args["having"]
            )
            raise error_at(
                at,
                "an aggregate of a stream must have a window, or it would never finish; write WINDOW "
                "TUMBLING (SIZE 1 HOUR) after FROM. For running totals store windows, CREATE TABLE t WITH "
                "(SKETCHES='folder') AS SELECT …, and merge them, SELECT … FROM t; without EMIT a SELECT "
                "counts all rows that exist now",
            )
        return WindowAggregation(scope, select).plan(window, push, limit)

    def _window(self) -> Window | None:
        """The window of the query, however it is written. Raises `SqlError` for two."""
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
        joins = select.args.get("joins") or []
        union, whole = table.meta.get("union"), aggregated and window is None
        if union:
            rows = self._united(table, union, untimed=self._untimed or (whole and not joins))
            builder, relation, columns = rows.builder, rows.relation, rows.columns
        else:
            relation = self._catalog.relation(table)
        time = "" if self._untimed else relation.time
        if window is not None and window.time is not None:
            alias = (table.alias or relation.name).lower()
            if not isinstance(window.time, exp.Column) or window.time.table.lower() not in ("", alias):
                raise error_at(window.time, f"a window must name the time column of {relation.name}")
        if window is not None and window.time is not None and window.time.name.upper() != "ROWTIME":
            named = column_named(window.time.name, relation.columns, window.time, relation.name)
            if union and named != time:
                raise error_at(
                    window.time,
                    "windows of a named query must use the event time of its streams: window by "
                    f"{time or 'ROWTIME'}, got {named}",
                )
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
                f"{relation.name} is a stored table of sketches, which must be queried by itself: SELECT … "
                f"FROM {relation.name}",
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
        if whole and (relation.path or not joins):
            time = ""
        if relation.lost_time and not time and (window is not None or "rowtime" in self._used.names):
            raise no_time(relation, table)
        if not union:
            builder, columns = self._reader.scan(relation, self._used.names, time, table)
        scope = Scope(builder, [Side(relation, (table.alias or relation.name).lower(), columns)])
        exploded = []
        for join in joins:
            if isinstance(join.this, exp.Unnest):
                exploded.append(join)
            else:
                queries = join.this.meta.get("union")
                other = self._united(join.this, queries, untimed=False) if queries else None
                join_rows(self._reader, self._catalog, scope, join, self._used, other)
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

    def _united(self, table: Any, selects: list[exp.Select], untimed: bool) -> NamedRows:
        """The rows of a named query, or of its UNION ALL as one stream, and its relation for others.

        Rows are `untimed` if all of them are counted together, so that rows without an event time count as
        well.
        """
        for select in selects:
            move_conditions(select)
        names = frozenset(self._used.names) if len(selects) == 1 else frozenset[str]()
        parts = [_Planning(self._catalog, self._reader, one, untimed=untimed, names=names) for one in selects]
        given = [one.plan() for one in parts]
        plans = union_plans(given, selects)
        columns = plans[0].columns
        texts = []
        for part, plan in zip(parts, given):
            assert part.scope is not None
            lines = list(part.scope.builder.lines)
            if any(side.relation is not None and side.relation.path for side in part.scope.sides):
                raise error_at(
                    table,
                    "UNION ALL in a named query can read only topics, not files"
                    if len(selects) > 1
                    else "a named query of files can't be joined: write the join within it",
                )
            texts.append([*lines, *filter(None, [renaming_text(plan, columns)])])
        streams = [one.stream for one in plans]
        merged = ", ".join("\n        ".join(lines) for lines in texts[1:])
        builder = StreamBuilder(streams[0], texts[0])
        if streams[1:]:
            builder.then(f".merge({merged})", lambda stream: stream.merge(*streams[1:]), table)
        sides = [side.relation for part in parts if part.scope is not None for side in part.scope.sides]
        lost = [one.lost_time for one in sides if one is not None and one.kind == "stream" and one.lost_time]
        first = plans[0]
        relation = Relation(
            table.name,
            "stream",
            "",
            columns,
            time=first.time,
            time_format=first.time_format,
            lost_time=lost[0] if lost else "",
        )
        known = {name: name for name in columns}
        if relation.time and "rowtime" in self._used.names and "ROWTIME" not in known:
            moment = row_time(Scalars(builder.columns), relation)
            with_columns(builder, {"ROWTIME": moment}, table)
            known["ROWTIME"] = "ROWTIME"
        return NamedRows(builder, relation, known)


def _named(select: exp.Select) -> list[exp.Select]:
    """The named queries that a query reads and that are planned separately, except those of a UNION ALL."""
    from_ = select.args.get("from_")
    tables = [from_.this] if from_ is not None else []
    tables += [join.this for join in select.args.get("joins") or ()]
    queries: list[list[exp.Select]] = [table.meta.get("union") or [] for table in tables]
    return [one for given in queries if len(given) == 1 for one in given]


def names_in(select: exp.Select) -> set[str]:
    """The names of columns in a query, and in the queries that it reads."""
    return Used.of(select).names.union(*(names_in(one) for one in _named(select)))
