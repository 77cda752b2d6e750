"""Joins: of a stream with a table by its key, and of two streams within a span of time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
from sqlglot import exp

from ....operators.windows.durations import duration_text
from ..errors import SqlError, error_at, errors_at
from ..parse.grammar import check_arguments
from ..scalars.scalars import Scalars, a_type, holds, sql_type
from .catalog import Catalog, Relation, column_named
from .clauses import conjuncts
from .scope import Scope, Side, free_name
from .stream_builder import StreamBuilder, with_columns
from .topic_reader import TopicReader, row_time


@dataclass(frozen=True)
class Used:
    """The columns that a query names, in lower case: `names` anywhere, `places` with their positions.

    Columns in `places` follow the alias of their stream, which may be empty; a place is the number of the
    join whose condition has the column, or -1 for any other.
    """

    names: set[str]
    places: set[tuple[str, str, int]]

    def beside(self, names: set[str]) -> Used:
        """These columns, and names that are used elsewhere."""
        return replace(self, names=self.names | names)

    @classmethod
    def of(cls, select: exp.Select) -> Used:
        """The columns used by a query."""
        columns = list(select.find_all(exp.Column))
        of_joins = {
            id(column): number
            for number, join in enumerate(select.args.get("joins") or ())
            if join.args.get("on") is not None
            for column in join.args["on"].find_all(exp.Column)
        }
        names, places = {column.name.lower() for column in columns}, set()
        for column in columns:
            first, *rest = [one.name.lower() for one in column.parts]
            place = of_joins.get(id(column), -1)
            places |= {("", first, place), *([(first, rest[0], place)] if rest else [])}
        if any(isinstance(one, exp.Star) for one in select.expressions):
            names.add("*")
            places.add(("", "*", -1))
        return cls(names, places)

    def column(self, name: str, alias: str, join: int) -> bool:
        """Whether a column of a stream is used anywhere except in the condition of a join."""
        named = {(owner, one) for owner, one, place in self.places if place != join}
        return bool(named & {("", name.lower()), (alias, name.lower()), ("", "*"), (alias, "*")})


@dataclass(frozen=True)
class NamedRows:
    """The rows of a named query that is planned separately: its relation for others, and its columns."""

    builder: StreamBuilder
    relation: Relation
    columns: dict[str, str]


def move_conditions(select: exp.Select) -> None:
    """Move conditions of an INNER JOIN other than equalities to WHERE, where they mean the same."""
    moved = []
    for join in select.args.get("joins") or ():
        on = join.args.get("on")
        if on is None or join.side or join.args.get("method") or join.kind not in ("", "INNER"):
            continue
        conditions = conjuncts(on)
        equal = [one for one in conditions if isinstance(one, exp.EQ)]
        if equal and len(equal) < len(conditions):
            moved += [one for one in conditions if not isinstance(one, exp.EQ)]
            join.set("on", _all(equal))
    if moved:
        where = select.args.get("where")
        select.set("where", exp.Where(this=_all([*([where.this] if where is not None else []), *moved])))


def _all(conditions: list[Any]) -> Any:
    """Conditions joined by AND; each is in parentheses unless it is the only one."""
    first, *others = conditions
    for one in others:
        both = exp.And(this=exp.Paren(this=first), expression=exp.Paren(this=one))
        both.meta.update(first.meta)
        first = both
    return first


_HALF = {"SEMI": "inner", "ANTI": "left"}
"""Joins that return only rows of the left side, and the engine's join that finds them."""


def join_rows(
    reader: TopicReader, catalog: Catalog, scope: Scope, join: Any, used: Used, named: NamedRows | None
) -> None:
    """Join the rows with the table, the stream or the `named` query of a JOIN. Raises `SqlError`."""
    how = _how(join)
    check_arguments(join, "join")
    if join.args.get("on") is None:
        raise error_at(join.this, "a join must say which rows go together: ON a.column = b.column")
    table = join.this
    relation = catalog.relation(table) if named is None else named.relation
    alias = (table.alias or relation.name).lower()
    if any(side.alias == alias for side in scope.sides):
        raise error_at(table, f"{alias} is joined twice; give it another name, JOIN {relation.name} AS other")
    if relation.path or any(side.relation is not None and side.relation.path for side in scope.sides):
        raise error_at(
            table, "files can't be joined: send their rows to a topic first, with `streamgauge ingest`"
        )
    if relation.windowed:
        raise error_at(
            table,
            f"{relation.name} has windows and no key: read it, FROM {relation.name}, and join tables with it",
        )
    within, version = table.args.get("within"), table.args.get("version")
    if version is not None and relation.kind == "stream":
        raise error_at(
            version.expression,
            f"FOR SYSTEM_TIME AS OF is for a table with a key, and {relation.name} is a stream: declare its "
            "topic as a TABLE",
        )
    pairs = _equalities(join.args["on"])
    kind = (join.args.get("kind") or "").upper()
    if kind == "SEMI" and relation.kind == "stream":
        raise error_at(
            table,
            f"SEMI JOIN with a stream: a row may have several partners in {relation.name}; write JOIN, which "
            "gives a row for each, or declare the topic as a TABLE, which has one row of each key",
        )
    if relation.kind == "table":
        if within is not None:
            raise error_at(within, "WITHIN is for a join with a stream; a table has one row of each key")
        _join_table(reader, scope, join, relation, alias, pairs, how, used)
    else:
        if within is None:
            raise error_at(
                table,
                "a join of two streams must say how far apart the rows of a pair may be: JOIN "
                f"{relation.name} WITHIN 10 MINUTES ON …",
            )
        rows = None if named is None else (named.builder, named.columns)
        _join_stream(reader, scope, join, relation, alias, pairs, how, within, used, rows)
    if kind == "ANTI":
        _without_partner(scope, alias, table)
    if kind in _HALF:
        scope.sides[-1] = Side(relation, alias, {})


def _how(join: Any) -> str:
    """The engine's name for a kind of join; others are refused, with an equivalent."""
    side, kind = ((join.args.get(part) or "").upper() for part in ("side", "kind"))
    words = " ".join(filter(None, (side, kind)))
    if kind in _HALF and side in ("", "LEFT"):
        return _HALF[kind]
    how = {"": "inner", "INNER": "inner", "OUTER": "outer"}.get(kind) if not side else None
    if side in ("LEFT", "FULL") and kind in ("", "OUTER"):
        how = "left" if side == "LEFT" else "outer"
    if how is None:
        raise error_at(
            join.this, f"{words} JOIN: write an INNER, LEFT or FULL OUTER JOIN, with the two sides swapped"
        )
    return how


def _sorted_pair(pair: Any, right: Relation, alias: str) -> tuple[Any, str]:
    """The left column's tree and the right column's name, of one equality."""
    sides: list[Any] = [pair.this, pair.expression]
    for left, other in (sides, sides[::-1]):
        if isinstance(other, exp.Column) and other.table.lower() == alias and not other.args.get("db"):
            return left, column_named(other.name, right.columns, other, right.name)
    for left, other in (sides, sides[::-1]):
        if isinstance(other, exp.Column) and not other.table:
            fit = [name for name in right.columns if name.lower() == other.name.lower()]
            if fit:
                return left, fit[0]
    raise error_at(pair, f"ON must name a column of {right.name}, {alias}.column")


def _computed_side(pair: Any, alias: str) -> tuple[Any, Any] | None:
    """The sides of an equality whose right side is an expression of only a stream's own columns."""
    for left, right in ((pair.this, pair.expression), (pair.expression, pair.this)):
        columns = list(right.find_all(exp.Column))
        plain = isinstance(right, exp.Column) and not right.args.get("db")
        own = all(len(one.parts) > 1 and one.parts[0].name.lower() == alias for one in columns)
        if columns and own and not plain:
            return left, right
    return None


def _join_table(
    reader: TopicReader,
    scope: Scope,
    join: Any,
    relation: Relation,
    alias: str,
    pairs: list[Any],
    how: str,
    used: Used,
) -> None:
    if how == "outer":
        raise error_at(
            join.this, "a table must be joined by INNER or LEFT JOIN: its unmatched rows have no event time"
        )
    if len(pairs) != 1:
        raise error_at(
            pairs[1], f"{relation.name} is joined by its key {relation.key} alone; put the rest in WHERE"
        )
    left, right = _sorted_pair(pairs[0], relation, alias)
    if right != relation.key:
        raise error_at(pairs[0], f"{relation.name} is joined by its key, {alias}.{relation.key}, got {right}")
    on = scope.key_column(left)
    as_of = _moment(scope, join.this.args.get("version"))
    with errors_at(join.this):
        lookup, table_text = reader.lookup(relation, versioned=bool(as_of))
    before = scope.builder.stream.columns
    suffix = _suffix(alias, before, relation.values)
    key_type = relation.columns[relation.key]
    # The table's own key is NULL in unmatched rows, where the row's key is not.
    anti = (join.args.get("kind") or "").upper() == "ANTI"
    own_key = how == "left" and (anti or used.column(relation.key, alias, join.index or 0))
    matched = scope.new_name(f"{alias} is matched") if own_key else ""
    options = {"matched": matched, "as_of": as_of}
    more = "".join(f", {name}={value!r}" for name, value in options.items() if value)
    scope.builder.then(
        f".join({table_text}, on={on!r}, how={how!r}, suffix={suffix!r}{more})",
        lambda stream: stream.join(lookup, on=on, how=how, suffix=suffix, **options),
        join.this,
    )
    columns = {name: name + suffix if name in before else name for name in relation.values}
    scope.builder.note({own: relation.values[name] for name, own in columns.items()})
    key = on
    if matched:
        make = Scalars(scope.builder.columns)
        own = make.cast(make.column(on), key_type)
        key = scope.new_name(relation.key if relation.key not in before else relation.key + suffix)
        with_columns(scope.builder, {key: make.when([(make.column(matched), own)], None)}, join.this)
    scope.sides.append(Side(relation, alias, {relation.key: key, **columns}))


def _moment(scope: Scope, version: Any) -> str:
    """The column with the time whose version of a table is joined; empty for the latest."""
    if version is None:
        return ""
    node = version.expression
    if isinstance(node, exp.Anonymous) and node.name.upper() == "PROCTIME" and not node.expressions:
        return ""
    plain = isinstance(node, exp.Column) and not scope.is_struct_field(node)
    one = scope.expressions().scalar(node)
    if isinstance(one.type, pl.Datetime):
        return scope.key_column(node)
    own = scope.resolved(node) if plain else ""
    for side in scope.sides:
        if side.relation is not None and side.relation.time and side.columns[side.relation.time] == own:
            relation = replace(side.relation, time=own)
            name = scope.new_name(f"{own} as a time")
            make = Scalars(scope.builder.columns)
            with_columns(scope.builder, {name: row_time(make, relation)}, node)
            return name
    raise error_at(
        node,
        "FOR SYSTEM_TIME AS OF must be a TIMESTAMP of the row or its event time, as in AS OF o.ROWTIME, got "
        f"{a_type(one.type)}",
    )


def _join_stream(
    reader: TopicReader,
    scope: Scope,
    join: Any,
    relation: Relation,
    alias: str,
    pairs: list[Any],
    how: str,
    within: Any,
    used: Used,
    rows: tuple[StreamBuilder, dict[str, str]] | None,
) -> None:
    if how == "outer" and any(side.relation is None for side in scope.sides):
        raise error_at(join.this, "write UNNEST behind the FULL OUTER JOIN")
    for one in (*(side.relation for side in scope.sides if side.relation is not None), relation):
        if one.lost_time and one.kind == "stream":
            raise no_time(one, join.this)
    other, columns = rows or reader.scan(relation, used.names, relation.time, join.this)
    _check_topic(scope.builder, other, join.this)
    other_scope = Scope(other, [Side(relation, alias, columns)])
    on: list[str] = []
    for pair in pairs:
        if (computed := _computed_side(pair, alias)) is not None:
            left, own = computed[0], other_scope.key_column(computed[1])
        else:
            left, right = _sorted_pair(pair, relation, alias)
            own = columns[right]
        on.append(_shared_key(scope, other_scope, left, own, pair))
    if (join.args.get("kind") or "").upper() == "ANTI":
        make = Scalars(other.columns)
        with_columns(other, {f"{alias} is matched": make.literal(True)}, join.this)
    suffix = _suffix(
        alias, scope.builder.stream.columns, [name for name in other.stream.columns if name not in on]
    )
    # In unmatched rows, each side has a key of its own, which is NULL there.
    if how == "outer":
        for side in scope.sides:
            _keep_keys(scope, side, on, used, "", join)
    if how != "inner":
        _keep_keys(other_scope, other_scope.sides[0], on, used, suffix, join)
        columns = other_scope.sides[0].columns
    length = duration_text(within.this)
    inner = "".join(f"\n        {line}" for line in other.lines[1:])
    text = f".join({other.lines[0]}{inner}, on={on!r}, within={length!r}, how={how!r}, suffix={suffix!r})"
    before = scope.builder.stream.columns
    scope.builder.then(
        text,
        lambda stream: stream.join(other.stream, on=on, within=length, how=how, suffix=suffix),
        join.this,
    )
    own_names = {
        name: own + suffix if own in before and own not in on else own for name, own in columns.items()
    }
    mine = other.columns
    scope.builder.note(
        {own_names[name]: mine[own] for name, own in columns.items() if own in mine and own not in on}
    )
    scope.sides.append(Side(relation, alias, own_names))


def _check_topic(left: StreamBuilder, right: StreamBuilder, at: Any) -> None:
    """Raise `SqlError` for two streams of one topic that read its messages in different ways."""
    one, two = (builder.stream.reading.parts() for builder in (left, right))
    if len(one) == len(two) == 1 and one[0].topics == two[0].topics and not one[0].rows_like(two[0]):
        raise error_at(
            at,
            f"both sides of the join read the topic {', '.join(one[0].topics)}, as streams with other "
            "columns or another event time: name one stream, which has the columns of both, on both sides",
        )


def _without_partner(scope: Scope, alias: str, at: Any) -> None:
    """Keep only unmatched rows."""
    matched = f"{alias} is matched"
    alone = pl.col(matched).fill_null(False).not_()
    scope.builder.then(
        f".filter(pl.col({matched!r}).fill_null(False).not_())", lambda stream: stream.filter(alone), at
    )


def no_time(relation: Relation, at: Any) -> SqlError:
    """The error for a stream that a query writes without its event time, where that is needed."""
    lost = relation.lost_time
    how = f"select {lost} AS at, WITH (TIMESTAMP='at')" if "(" in lost else "select that too"
    return error_at(
        at,
        f"{relation.name} gets the time of its writing, because its SELECT omits {lost}: {how}, or name "
        "another column, WITH (TIMESTAMP='…')",
    )


def _shared_key(scope: Scope, other: Scope, left: Any, right: str, pair: Any) -> str:
    """The column that both sides of a join share for one equality: with the left's name, if that is free."""
    name = _widened(scope.builder, scope.key_column(left), other.builder.stream.columns[right], pair)
    right = _widened(other.builder, right, scope.builder.stream.columns[name], pair)
    if name == right:
        return name
    shared = name
    if name in other.builder.stream.columns:
        shared = free_name(str(pair.sql()), {*scope.builder.stream.columns, *other.builder.stream.columns})
        with_columns(scope.builder, {shared: Scalars(scope.builder.columns).column(name)}, pair)
    with_columns(other.builder, {shared: Scalars(other.builder.columns).column(right)}, pair)
    return shared


def _widened(builder: StreamBuilder, name: str, other: Any, at: Any) -> str:
    """A column of numbers for a comparison with another type: itself, or a new one if that type is wider."""
    kind = builder.stream.columns[name]
    plain = kind.is_integer() and (other.is_integer() or other.is_float())
    if kind == other or not plain or not holds(other, kind):
        return name
    wide = free_name(f"{name} as {sql_type(other)}", builder.stream.columns)
    make = Scalars(builder.columns)
    with_columns(builder, {wide: make.cast(make.column(name), other)}, at)
    return wide


def _keep_keys(scope: Scope, side: Side, on: list[str], used: Used, suffix: str, join: Any) -> None:
    """Copy a side's columns that both sides share, if the query uses them."""
    copies = {}
    for known, own in side.columns.items():
        if own in on and used.column(known, side.alias, join.index or 0):
            copies[known] = free_name(own + (suffix or f"_{side.alias}"), scope.builder.stream.columns)
    if copies:
        make = Scalars(scope.builder.columns)
        named = {copy: make.column(side.columns[known]) for known, copy in copies.items()}
        with_columns(scope.builder, named, join.this)
        side.columns |= copies


def _suffix(alias: str, left: Iterable[str], right: Iterable[str]) -> str:
    """The suffix for columns that both sides have, so that names are unique."""
    taken = {*left, *right}
    suffix, number = f"_{alias}", 2
    while any(name + suffix in taken for name in right if name in set(left)):
        suffix, number = f"_{alias}_{number}", number + 1
    return suffix


def _equalities(node: Any) -> list[Any]:
    equalities = conjuncts(node)
    if others := [one for one in equalities if not isinstance(one, exp.EQ)]:
        join = others[0].find_ancestor(exp.Join)
        rest = "put the rest in WHERE"
        if join is not None and join.side:  # there it would drop unmatched rows
            rest = "filter the rows of the other side first, in a statement of their own"
        raise error_at(others[0], f"ON must be equalities, a.column = b.column; {rest}")
    return equalities
