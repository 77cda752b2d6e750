"""A query as the `Stream` that its Python would make, and as what is read off its windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl
from sqlglot import exp

from ..definition.stream import Stream
from ..table.schema import END, START
from ..windows.durations import duration_text
from .aggregates import AggregateCall, aggregate_call, function_names
from .answer_reader import BOUNDS, AnswerReader, answer_schema, ranks_of
from .catalog import Catalog, Relation, column_named
from .clauses import WINDOW_COLUMNS, check_clauses, limit_of
from .draft import Draft, aggregate_source, arguments, bare, named_text, source_text, with_columns
from .errors import error_at, errors_at, nearest
from .expressions import Expressions
from .scalar_functions import FUNCTIONS, timestamp_of_text
from .scalars import Scalar, Scalars, a_type, type_source
from .selection import AnswerSelection
from .windows import Window, window_call, window_of_clause, window_of_table

_MESSAGE = {"rowtime": "timestamp", "rowpartition": "partition", "rowoffset": "offset"}
_EXPLODE = ("EXPLODE", "UNNEST")


@dataclass(frozen=True)
class QueryPlan:
    """A query: its stream, what it reads off windows (None for rows one by one), and the Python of both.

    `columns` are the columns of its rows with their types, `keys` those that are the groups'. `push` is
    ``final``, ``changes``, or empty for a query that ends. `calls` are its aggregates by their nodes' ids,
    each with its column; `sinks` what a run writes its windows to, other than the query's rows.
    """

    stream: Stream
    selection: AnswerSelection | None
    columns: Mapping[str, pl.DataType]
    keys: tuple[str, ...]
    push: str
    limit: int | None
    source: str
    time: str = ""
    calls: Mapping[int, tuple[str, AggregateCall]] = field(default_factory=dict)
    sinks: tuple[Any, ...] = ()


@dataclass
class _Side:
    """A relation of FROM or JOIN: its alias, and its columns' names among the stream's."""

    relation: Relation
    alias: str
    columns: dict[str, str] = field(default_factory=dict)


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
        self._servers = bootstrap_servers
        self._config = config
        self._class = stream_class

    def plan(self, select: exp.Select) -> QueryPlan:
        """The plan of a query over topics. Raises `SqlError` for what it can't be."""
        return _Planning(self, select).plan()

    def lookup(self, relation: Relation) -> Any:
        """The table that rows are joined with."""
        return relation.lookup(self._servers, self._config)

    def relation(self, table: Any) -> Relation:
        """The relation that a table of a query names."""
        if isinstance(table, exp.Subquery):
            raise error_at(
                table.this, "a query within a query: CREATE STREAM … AS SELECT first, and read that"
            )
        if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
            raise error_at(table, "FROM must name a stream or a table")
        return self._catalog.get(table.name, table)

    def base(self, relation: Relation, names: set[str], time: str, at: Any) -> tuple[Draft, dict[str, str]]:
        """The stream of a relation's topic, and its columns; `names` are those that the query uses."""
        if relation.stored:
            raise error_at(at, f"{relation.name} is a stored table: ask it without EMIT, and not with others")
        message: dict[str, str] = {}
        if relation.key and (relation.key.lower() in names or "*" in names):
            message[relation.key] = "key"
        for name, part in _MESSAGE.items():
            if name in names and not (name == "rowtime" and relation.time):
                message[name.upper()] = part
        options: dict[str, Any] = {"value": relation.decoder()}
        texts = [repr(relation.topic), f"value={relation.decoder_source()}"]
        if time:
            options["time"], text = relation.event_time(time)
            texts.append(f"time={text}")
        if message:
            options["message"] = message
            texts.append(f"message={message!r}")
        if self._servers != "localhost:9092":
            texts.append(f"bootstrap_servers={self._servers!r}")
        with errors_at(at):
            stream = self._class.from_kafka(
                relation.topic, bootstrap_servers=self._servers, config=self._config, **options
            )
        draft = Draft(stream, [f"sg.Stream.from_kafka({', '.join(texts)})"])
        columns = {name: name for name in relation.columns if name in stream.columns}
        if relation.key in message and relation.columns[relation.key] != pl.String():
            make = Scalars(stream.columns)
            one = make.cast(make.column(relation.key), relation.columns[relation.key])
            with_columns(draft, {relation.key: one}, at)
        if "ROWTIME" in message:
            make = Scalars(draft.stream.columns)
            plain = make.call(make.column("ROWTIME"), "dt.replace_time_zone", None)
            with_columns(draft, {"ROWTIME": make.cast(plain, pl.Datetime("us"))}, at)
        columns |= {name: name for name in message if name not in columns}
        if relation.time and "rowtime" in names:
            with_columns(draft, {"ROWTIME": _row_time(Scalars(draft.stream.columns), relation)}, at)
            columns["ROWTIME"] = "ROWTIME"
        return draft, columns


class _Planning:
    """One query."""

    def __init__(self, planner: Planner, select: exp.Select) -> None:
        self._planner = planner
        self._select = select
        self._sides: list[_Side] = []
        self._names = {column.name.lower() for column in select.find_all(exp.Column)}
        if any(isinstance(one, exp.Star) for one in select.expressions):
            self._names.add("*")
        self._extra: dict[str, str] = {}
        self._rendered: dict[str, str] = {}

    def plan(self) -> QueryPlan:
        select = self._select
        check_clauses(select)
        emit = select.args.get("emit")
        push = "" if emit is None else emit.this.lower()
        limit = limit_of(select)
        window = self._window()
        draft = self._rows(window)
        items = select.expressions
        aggregated = window is not None or select.args.get("group") or any(_aggregates(one) for one in items)
        if not aggregated and select.args.get("having") is None:
            if select.args.get("order"):
                raise error_at(
                    select.args["order"].expressions[0], "ORDER BY: a stream's rows have no end to sort at"
                )
            return self._row_plan(draft, items, push, limit)
        if window is None:
            at = next((one for one in items if _aggregates(one)), None) or (
                select.args.get("group") or select.args["having"]
            )
            raise error_at(
                at,
                "an aggregate of a stream must have a window, or it would never be done; write WINDOW "
                "TUMBLING (SIZE 1 MINUTE) behind FROM",
            )
        return self._window_plan(draft, window, push, limit)

    # Rows

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

    def _rows(self, window: Window | None) -> Draft:
        select = self._select
        if select.args.get("from_") is None:
            raise error_at(
                select.expressions[0] if select.expressions else select, "a query must read a stream, FROM …"
            )
        table = select.args["from_"].this
        relation = self._planner.relation(table)
        time = relation.time
        joins = select.args.get("joins") or []
        if window is not None and window.time is not None and window.time.name.upper() != "ROWTIME":
            named = column_named(window.time.name, relation.columns, window.time, relation.name)
            if time and named != time:
                raise error_at(
                    window.time,
                    f"{relation.name} has its event time in {time}: window by that, or declare the stream "
                    f"with TIMESTAMP='{named}'",
                )
            time = named
        if relation.kind == "table" and not relation.windowed:
            raise error_at(
                table,
                f"{relation.name} is a table, whose rows replace each other: read it by a join, FROM stream "
                f"LEFT JOIN {relation.name} ON …, or declare its topic as a STREAM",
            )
        names = set(self._names)
        draft, columns = self._planner.base(relation, names, time, table)
        self._sides.append(_Side(relation, (table.alias or relation.name).lower(), columns))
        exploded = []
        for join in joins:
            if isinstance(join.this, exp.Unnest):
                exploded.append(join)
            else:
                self._join(draft, join)
        for join in exploded:
            self._unnest(draft, join)
        where = select.args.get("where")
        if where is not None:
            if _aggregates(where):
                raise error_at(
                    where.this, "WHERE filters rows before they are counted: write aggregates in HAVING"
                )
            one = self._expressions(draft).condition(where.this, "WHERE")
            draft.then(f".filter({bare(one.text)})", lambda stream: stream.filter(one.expr), where.this)
        return draft

    def _join(self, draft: Draft, join: Any) -> None:
        kind = (join.args.get("side") or join.args.get("kind") or "INNER").upper()
        how = {"LEFT": "left", "INNER": "inner", "FULL": "outer", "OUTER": "outer"}.get(kind)
        if how is None:
            raise error_at(
                join.this, f"{kind} JOIN: write an INNER, LEFT or FULL OUTER JOIN, the other way round"
            )
        if join.args.get("using"):
            raise error_at(join.this, "USING: write ON a.column = b.column")
        if join.args.get("on") is None:
            raise error_at(join.this, "a join must say which rows go together: ON a.column = b.column")
        table = join.this
        relation = self._planner.relation(table)
        alias = (table.alias or relation.name).lower()
        if any(side.alias == alias for side in self._sides):
            raise error_at(
                table, f"{alias} is joined twice; give it another name, JOIN {relation.name} AS other"
            )
        within = table.args.get("within")
        pairs = _equalities(join.args["on"])
        if relation.kind == "table":
            if within is not None:
                raise error_at(within, "WITHIN is for a join with a stream; a table has one row of each key")
            self._join_table(draft, join, relation, alias, pairs, how)
        else:
            if within is None:
                raise error_at(
                    table,
                    "a join of two streams must say how far apart the rows of a pair may be: JOIN "
                    f"{relation.name} WITHIN 10 MINUTES ON …",
                )
            self._join_stream(draft, join, relation, alias, pairs, how, within)

    def _sorted_pair(self, pair: Any, right: Relation, alias: str) -> tuple[Any, str]:
        """The left column's tree and the right column's name, of one equality."""
        sides: list[Any] = [pair.this, pair.expression]
        for left, other in (sides, sides[::-1]):
            if isinstance(other, exp.Column) and other.table.lower() == alias:
                return left, column_named(other.name, right.columns, other, right.name)
        for left, other in (sides, sides[::-1]):
            if isinstance(other, exp.Column) and not other.table:
                fit = [name for name in right.columns if name.lower() == other.name.lower()]
                if fit:
                    return left, fit[0]
        raise error_at(pair, f"ON must name a column of {right.name}, {alias}.column")

    def _join_table(
        self, draft: Draft, join: Any, relation: Relation, alias: str, pairs: list[Any], how: str
    ) -> None:
        if how == "outer":
            raise error_at(
                join.this, "a table is joined by INNER or LEFT JOIN: rows it has besides have no time"
            )
        if len(pairs) != 1:
            raise error_at(
                pairs[1], f"{relation.name} is joined by its key {relation.key} alone; put the rest in WHERE"
            )
        left, right = self._sorted_pair(pairs[0], relation, alias)
        if right != relation.key:
            raise error_at(
                pairs[0], f"{relation.name} is joined by its key, {alias}.{relation.key}, got {right}"
            )
        on = self._key_column(draft, left)
        with errors_at(join.this):
            lookup = self._planner.lookup(relation)
        suffix = f"_{alias}"
        key_type = relation.columns[relation.key]
        text = (
            f".join(sg.LookupTable.from_kafka({relation.topic!r}, value={relation.decoder_source()}"
            + (f", key={type_source(key_type)}" if key_type != pl.String() else "")
            + self._servers_text()
            + f"), on={on!r}, how={how!r}, suffix={suffix!r})"
        )
        before = set(draft.stream.columns)
        draft.then(text, lambda stream: stream.join(lookup, on=on, how=how, suffix=suffix), join.this)
        columns = {name: name + suffix if name in before else name for name in relation.values}
        self._sides.append(_Side(relation, alias, {relation.key: on, **columns}))

    def _join_stream(
        self,
        draft: Draft,
        join: Any,
        relation: Relation,
        alias: str,
        pairs: list[Any],
        how: str,
        within: Any,
    ) -> None:
        other, columns = self._planner.base(relation, self._names, relation.time, join.this)
        on = []
        for pair in pairs:
            left, right = self._sorted_pair(pair, relation, alias)
            name = self._key_column(draft, left)
            if name != columns[right]:
                make = Scalars(other.stream.columns)
                with_columns(other, {name: make.column(columns[right])}, pair)
            on.append(name)
        length, suffix = duration_text(within.this), f"_{alias}"
        inner = "".join(f"\n        {line}" for line in other.lines[1:])
        text = f".join({other.lines[0]}{inner}, on={on!r}, within={length!r}, how={how!r}, suffix={suffix!r})"
        before = set(draft.stream.columns)
        draft.then(
            text,
            lambda stream: stream.join(other.stream, on=on, within=length, how=how, suffix=suffix),
            join.this,
        )
        names = {
            name: own + suffix if own in before and own not in on else own for name, own in columns.items()
        }
        self._sides.append(_Side(relation, alias, names))

    def _servers_text(self) -> str:
        servers = self._planner._servers
        return "" if servers == "localhost:9092" else f", bootstrap_servers={servers!r}"

    def _key_column(self, draft: Draft, node: Any) -> str:
        """The column that a part of a join's condition is: a column's own, or a new one."""
        one = self._expressions(draft).scalar(node)
        if isinstance(node, exp.Column) and one.text == f"pl.col({one.expr.meta.output_name()!r})":
            return str(one.expr.meta.output_name())
        name = node.sql()
        with_columns(draft, {name: one}, node)
        return str(name)

    def _unnest(self, draft: Draft, join: Any) -> None:
        """``CROSS JOIN UNNEST(column) AS t(name)``."""
        unnest = join.this
        alias = unnest.args.get("alias")
        named = alias.args.get("columns") if alias is not None else None
        if len(unnest.expressions) != 1 or not (named or alias):
            raise error_at(unnest.expressions[0], "write CROSS JOIN UNNEST(column) AS t(name)")
        name = (named[0] if named else alias.this).name
        self._explode(draft, unnest.expressions[0], name)

    def _explode(self, draft: Draft, node: Any, name: str) -> None:
        one = self._expressions(draft).scalar(node)
        if one.kind != "list":
            raise error_at(node, f"EXPLODE takes an ARRAY, got {a_type(one.type)}")
        if not (isinstance(node, exp.Column) and one.expr.meta.output_name() == name):
            with_columns(draft, {name: one}, node)
        draft.then(f".explode({name!r})", lambda stream: stream.explode(name), node)
        self._extra[name.lower()] = name

    # Names

    def _expressions(self, draft: Draft) -> Expressions:
        make = Scalars(draft.stream.columns)
        return Expressions(
            make,
            lambda node: (
                make.column(self._resolved(node)) if not self._struct_field(node) else self._field(make, node)
            ),
            self._no_aggregate,
        )

    def _no_aggregate(self, node: Any) -> Scalar | None:
        if isinstance(node, exp.Anonymous):
            if node.name.upper() in _EXPLODE:
                raise error_at(node, f"{node.name.upper()} must stand by itself in the SELECT")
            if node.name.upper() in BOUNDS or aggregate_call(node) is not None:
                raise error_at(
                    node, f"{node.name.upper()} is an aggregate, which must stand in SELECT or HAVING"
                )
        return None

    def _struct_field(self, node: exp.Column) -> bool:
        """Whether ``a.b`` is a field of the column a."""
        table = node.table.lower()
        return bool(table) and all(side.alias != table for side in self._sides)

    def _field(self, make: Scalars, node: exp.Column) -> Scalar:
        head = node.args["table"]
        column = exp.Column(this=head.copy())
        column.meta.update(node.meta)
        known = [name.lower() for side in self._sides for name in side.columns] + list(self._extra)
        if head.name.lower() not in known:
            aliases = [side.alias for side in self._sides]
            raise error_at(
                node, f"no stream of the query is called {head.name}; {nearest(head.name, aliases)}"
            )
        one = make.column(self._resolved(column))
        return Expressions(make, lambda _: one)._field_of(one, node.name, node)

    def _resolved(self, node: exp.Column) -> str:
        """The stream's column that a name means. Raises `SqlError` with the nearest."""
        name, table = node.name, node.table.lower()
        quoted = bool(node.this.args.get("quoted"))
        if not table and name.lower() in self._extra:
            return self._extra[name.lower()]
        sides = [side for side in self._sides if not table or side.alias == table]
        same: dict[str, str] = {}
        for side in sides:
            for known, own in side.columns.items():
                if known == name or (not quoted and known.lower() == name.lower()):
                    same[f"{side.alias}.{known}"] = own
        exact = {key: own for key, own in same.items() if key.rpartition(".")[2] == name}
        same = exact or same
        if len(set(same.values())) > 1:
            raise error_at(node, f"{name} may be {' or '.join(same)}; say which")
        if not same:
            known_names = [one for side in sides for one in side.columns] + list(self._extra.values())
            if name.lower() in WINDOW_COLUMNS:
                raise error_at(node, f"{name} is known once windows close: SELECT it, or filter it in HAVING")
            text = f"; a text stands in single quotes, '{name}'" if quoted else ""
            raise error_at(node, f"no column is called {name}; {nearest(name, known_names)}{text}")
        return next(iter(same.values()))

    # Queries of rows

    def _row_plan(self, draft: Draft, items: list[Any], push: str, limit: int | None) -> QueryPlan:
        self._explode_items(draft, items)
        outputs: dict[str, Scalar] = {}
        beside = self._sides[1:]
        time = self._sides[0].relation.time if all(one.relation.kind == "table" for one in beside) else ""
        new_time = ""
        for item in items:
            node = item.this if isinstance(item, exp.Alias) else item
            if isinstance(node, exp.Star) or (
                isinstance(node, exp.Column) and isinstance(node.this, exp.Star)
            ):
                if node.args.get("except_") or node.args.get("replace"):
                    raise error_at(item, "* EXCEPT: name the columns that are wanted")
                outputs |= self._all_columns(draft, node)
                continue
            name = self._output_name(item, outputs)
            if name in outputs:
                raise error_at(item, f"{name} is selected twice; give one another name, AS …")
            if isinstance(node, exp.Anonymous) and node.name.upper() in _EXPLODE:
                outputs[name] = Scalars(draft.stream.columns).column(self._extra[name.lower()])
                continue
            outputs[name] = self._expressions(draft).scalar(node)
        for name, one in outputs.items():
            if time and one.text == f"pl.col({time!r})":
                new_time = name
        plain = all(one.text == f"pl.col({name!r})" for name, one in outputs.items())
        if not (plain and list(outputs) == list(draft.stream.columns)):
            if plain:
                text = ", ".join(map(repr, outputs))
                draft.then(f".select({text})", lambda stream: stream.select(*outputs), items[0])
            else:
                text = named_text(outputs)
                named = {name: one.expr for name, one in outputs.items()}
                draft.then(f".select({text})", lambda stream: stream.select(**named), items[0])
        columns = {name: draft.stream.columns[name] for name in outputs}
        return QueryPlan(draft.stream, None, columns, (), push, limit, source_text(draft.lines), new_time)

    def _all_columns(self, draft: Draft, node: Any) -> dict[str, Scalar]:
        make = Scalars(draft.stream.columns)
        wanted = node.table.lower() if isinstance(node, exp.Column) else ""
        columns: dict[str, Scalar] = {}
        for side in self._sides:
            if wanted and side.alias != wanted:
                continue
            names = [name for name in side.columns if name.lower() not in _MESSAGE]
            columns |= {side.columns[name]: make.column(side.columns[name]) for name in names}
        if not columns:
            raise error_at(node, f"no stream of the query is called {wanted}")
        return columns | {name: make.column(name) for name in self._extra.values()}

    def _explode_items(self, draft: Draft, items: list[Any]) -> None:
        for item in items:
            node = item.this if isinstance(item, exp.Alias) else item
            if isinstance(node, exp.Anonymous) and node.name.upper() in _EXPLODE:
                if len(node.expressions) != 1:
                    raise error_at(node, f"{node.name.upper()} takes 1 argument, got {len(node.expressions)}")
                self._explode(draft, node.expressions[0], self._output_name(item, {}))
                self._rendered[node.sql()] = self._output_name(item, {})

    def _output_name(self, item: Any, taken: Mapping[str, Any]) -> str:
        """The name of a selected column: its alias, the column's, the function's, or its text."""
        if isinstance(item, exp.Alias):
            return item.alias
        if isinstance(item, exp.Column):
            edge = WINDOW_COLUMNS.get(item.name.lower())
            return edge or item.name
        if isinstance(item, exp.Anonymous):
            name = item.name.lower()
            if name in (*map(str.lower, _EXPLODE),) and len(item.expressions) == 1:
                inner = item.expressions[0]
                return inner.name if isinstance(inner, exp.Column) else name
            number, base = 2, name
            while name in taken:
                name, number = f"{base}_{number}", number + 1
            return name
        return str(item.sql())

    # Queries of windows

    def _window_plan(self, draft: Draft, window: Window, push: str, limit: int | None) -> QueryPlan:
        select = self._select
        items = select.expressions
        for item in items:
            if isinstance(item, exp.Star):
                raise error_at(item, "* of a window: name its keys and aggregates")
        self._explode_items(draft, items)
        keys = self._keys(draft, items)
        aggregate_calls: list[AggregateCall] = []
        aliases = {item.alias.lower(): item.this for item in items if isinstance(item, exp.Alias)}
        having = select.args.get("having")
        for node in [*items, *([having.this] if having is not None else [])]:
            aggregate_calls += _aggregates(node)
        if not aggregate_calls:
            self._check_functions(items)
            raise error_at(items[0], "a query of windows must count something, such as COUNT(*)")
        named, lines = self._aggregate_columns(draft, aggregate_calls, items, keys)
        if keys:
            names = list(dict.fromkeys(keys.values()))
            text = ", ".join(map(repr, names))
            draft.then(
                f".group_by({text})",
                lambda stream: stream.group_by(*names),
                select.args["group"].expressions[0],
            )
        draft.then(window.text, window.apply, window.node)
        definitions = {name: one for name, (one, _) in named.items()}
        draft.then(
            f".agg({arguments(lines)})", lambda stream: stream.agg(**definitions), aggregate_calls[0].node
        )
        return self._selected(draft, items, keys, aggregate_calls, named, aliases, push, limit)

    def _check_functions(self, items: list[Any]) -> None:
        """Raise `SqlError` for a misspelt function, which may have been meant as an aggregate."""
        known = [*function_names(), *FUNCTIONS, *BOUNDS]
        for item in items:
            for node in item.find_all(exp.Anonymous):
                if node.name.upper() not in known and node.name.upper() not in _EXPLODE:
                    raise error_at(
                        node, f"no function is called {node.name}; {nearest(node.name.upper(), known)}"
                    )

    def _keys(self, draft: Draft, items: list[Any]) -> dict[str, str]:
        """The group's columns: by the text of what stands in GROUP BY, the stream's column."""
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
            if window_call(item) is not None or _is_edge(item) or _is_edge(getattr(item, "this", None)):
                continue
            alias = item.alias if isinstance(item, exp.Alias) else ""
            target = item.this if isinstance(item, exp.Alias) else item
            if isinstance(target, exp.Column) and not target.table:
                lower = target.name.lower()
                known = {name.lower() for side in self._sides for name in side.columns} | set(self._extra)
                if lower not in known and lower in aliases:
                    alias, target = aliases[lower].alias, aliases[lower].this
                    keys |= self._key(draft, target, alias, node.sql())
                    continue
            keys |= self._key(draft, target, alias or self._alias_of(target, items), target.sql())
        exploded = {text: name for text, name in self._rendered.items() if name in keys.values()}
        return {**keys, **exploded}

    def _alias_of(self, node: Any, items: list[Any]) -> str:
        return next((item.alias for item in items if isinstance(item, exp.Alias) and item.this == node), "")

    def _key(self, draft: Draft, node: Any, alias: str, text: str) -> dict[str, str]:
        if _aggregates(node):
            raise error_at(node, "an aggregate can't be a key of the groups")
        if isinstance(node, exp.Anonymous) and node.name.upper() in _EXPLODE:
            name = self._rendered.get(node.sql())
            if name is None:
                name = alias or self._output_name(node, {})
                self._explode(draft, node.expressions[0], name)
            return {text: name, node.sql(): name}
        if isinstance(node, exp.Column) and not self._struct_field(node):
            name = self._resolved(node)
            return {text: name, node.sql(): name}
        one = self._expressions(draft).scalar(node)
        name = alias or str(node.sql())
        with_columns(draft, {name: one}, node)
        return {text: name, node.sql(): name}

    def _aggregate_columns(
        self, draft: Draft, aggregate_calls: list[AggregateCall], items: list[Any], keys: Mapping[str, str]
    ) -> tuple[dict[str, tuple[Any, list[AggregateCall]]], dict[str, str]]:
        """The aggregates of the definition by their names, each with the queries' calls that it answers."""
        columns: dict[str, Scalar] = {}
        prepared: list[tuple[AggregateCall, str | None, dict[str, str]]] = []
        for one in aggregate_calls:
            parts = [one.of] if one.of is not None else []
            names: list[str] = []
            condition = self._filter_of(one.node)
            for part in [*parts, *(node for _, node in one.inputs)]:
                names.append(self._input(draft, part, condition, columns))
            if not parts and condition is not None:
                names = [self._input(draft, exp.Literal.number(1), condition, columns), *names]
                column: str | None = names[0]
            else:
                column = names[0] if parts else None
            inputs = dict(
                zip((name for name, _ in one.inputs), names[-len(one.inputs) :] if one.inputs else [])
            )
            prepared.append((one, column, inputs))
        if columns:
            with_columns(draft, columns, aggregate_calls[0].node)
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
        """The condition of FILTER (WHERE …) behind an aggregate."""
        above = node.parent
        if isinstance(above, exp.Filter) and above.this is node:
            return above.expression.this
        return None

    def _input(self, draft: Draft, node: Any, condition: Any, columns: dict[str, Scalar]) -> str:
        """The column that an aggregate is of: a column's own, or a new one named after the expression."""
        expressions = self._expressions(draft)
        one = expressions.scalar(node)
        if condition is None and isinstance(node, exp.Column) and not self._struct_field(node):
            return self._resolved(node)
        name = str(node.sql())
        if condition is not None:
            name += f" where {condition.sql()}"
            holds = expressions.condition(condition, "FILTER (WHERE …)")
            one = expressions.make.when([(holds, one)], None)
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
        draft: Draft,
        items: list[Any],
        keys: Mapping[str, str],
        aggregate_calls: list[AggregateCall],
        named: Mapping[str, tuple[Any, list[AggregateCall]]],
        aliases: Mapping[str, Any],
        push: str,
        limit: int | None,
    ) -> QueryPlan:
        calls = {id(one.node): (name, one) for name, (_, those) in named.items() for one in those}
        ranks = ranks_of(calls[id(one.node)] for one in aggregate_calls)
        answers = AnswerReader(answer_schema(draft.stream, ranks), calls, keys, draft.stream.keys)
        selection, columns = answers.selection(
            self._select, items, aliases, ranks, limit if not push else None
        )
        having = self._select.args.get("having")
        compared = {"SELECT": ", ".join(item.sql() for item in items)}
        if having is not None:
            compared["HAVING"] = having.this.sql()
        return QueryPlan(
            replace(draft.stream, compared=compared),
            selection,
            columns,
            draft.stream.keys,
            push,
            limit,
            source_text(draft.lines) + answers.remark(),
            calls=calls,
        )


def _aggregates(node: Any) -> list[AggregateCall]:
    """The aggregates within a part of a query, in the order of the text."""
    aggregate_calls = []
    for below in node.walk(bfs=False):
        one = aggregate_call(below)
        if one is not None:
            aggregate_calls.append(one)
    return aggregate_calls


def _row_time(make: Scalars, relation: Relation) -> Scalar:
    """A row's event time as a TIMESTAMP."""
    one = make.column(relation.time)
    if one.kind == "whole":
        return FUNCTIONS["FROM_UNIXTIME"].make(make, one)
    if relation.time_format:
        return FUNCTIONS["PARSE_TIMESTAMP"].make(make, one, make.literal(relation.time_format))
    return timestamp_of_text(make, one) if one.kind == "text" else make.cast(one, pl.Datetime("us"))


def _equalities(node: Any) -> list[Any]:
    if isinstance(node, exp.Paren):
        return _equalities(node.this)
    if isinstance(node, exp.And):
        return [*_equalities(node.this), *_equalities(node.expression)]
    if not isinstance(node, exp.EQ):
        raise error_at(node, "ON must be equalities, a.column = b.column; put the rest in WHERE")
    return [node]


def _is_edge(node: Any) -> bool:
    if not isinstance(node, exp.Column):
        return False
    if node.table.lower() == "window":
        return node.name.lower() in ("start", "end")
    return node.name.lower() in WINDOW_COLUMNS
