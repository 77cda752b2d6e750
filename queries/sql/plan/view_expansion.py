"""Expanding named queries of rows: WITH, queries in FROM and views.

Such a query selects, joins and filters the rows of streams. It is merged into the query around it: each name
is replaced by its expression, and both conditions must hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from ..errors import error_at, nearest, span_of
from ..parse.nodes import WindowedTable
from ..scalars.scalar_functions import FUNCTIONS
from .aggregates import aggregates_in
from .catalog import Catalog
from .clauses import edge_of
from .scope import is_explode
from .topic_reader import MESSAGE

_ROWS = {"expressions", "from_", "joins", "where"}


@dataclass(frozen=True)
class _ViewQuery:
    """A named query: its tree, what its names stand for, and whether all columns are passed through.

    `union` has the SELECTs of a UNION ALL, which are not expanded but planned separately.
    """

    select: exp.Select
    outputs: Mapping[str, Any]
    everything: bool
    union: tuple[exp.Select, ...] = ()


def expand_views(select: exp.Select, catalog: Catalog) -> None:
    """Expand the queries that a query names. Raises `SqlError` for queries that don't return rows."""
    _merged(select, {}, catalog)


def check_view(select: exp.Select, catalog: Catalog) -> None:
    """Raise `SqlError` for a query that can't be a view."""
    _named(select.copy(), {}, catalog)


def _alias(node: Any) -> str:
    alias = node.args.get("alias")
    if alias is None or not alias.this:
        raise error_at(node, "a query in FROM must have a name: FROM (SELECT …) AS name")
    if alias.args.get("columns"):
        raise error_at(alias, "name the columns in the SELECT: expression AS name")
    return str(alias.this.name)


def _check(node: Any, known: set[str], what: str) -> None:
    for name, value in node.args.items():
        if value and name not in known:
            raise error_at(node, f"{name.strip('_').upper()} of {what} is not supported; leave it out")


def view_rows(name: str, select: exp.Select) -> exp.Select:
    """All rows of a view's query, as a query."""
    alias = exp.TableAlias(this=exp.to_identifier(name, quoted=True))
    table = exp.Subquery(this=select.copy(), alias=alias)
    return exp.Select(expressions=[exp.Star()], from_=exp.From(this=table))


def _named(
    select: Any, named: Mapping[str, _ViewQuery], catalog: Catalog, places: bool = False
) -> _ViewQuery:
    """A query of rows. Raises `SqlError` for others.

    After a UNION ALL its columns are identified by their `places` only, and need no names.
    """
    if not isinstance(select, exp.Select):
        raise error_at(select, "a named query must be a SELECT")
    if others := select.args.get("union"):
        select.set("union", None)
        parts = [_named(select, named, catalog)]
        parts += [_named(one, named, catalog, places=True) for one in others]
        union = tuple(part.select for part in parts)
        return _ViewQuery(parts[0].select, parts[0].outputs, parts[0].everything, union)
    select = _merged(select, named, catalog)
    for name, value in select.args.items():
        if value and name not in _ROWS:
            at = value[0] if isinstance(value, list) else value if isinstance(value, exp.Expr) else select
            raise error_at(
                at,
                "a named query selects rows one by one, SELECT … FROM … WHERE …: write CREATE TABLE … AS "
                "SELECT for windows, and read that",
            )
    outputs: dict[str, Any] = {}
    everything = False
    for item in select.expressions:
        node = item.this if isinstance(item, exp.Alias) else item
        if aggregates_in(node):
            raise error_at(
                node, "a named query can't aggregate: write CREATE TABLE … AS SELECT, and read that"
            )
        if any(is_explode(below) for below in node.walk()):
            raise error_at(node, "EXPLODE in a named query: CROSS JOIN UNNEST(column) AS t(name)")
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            _check_star(select, node)
        if isinstance(node, exp.Star) or isinstance(node.this, exp.Star):
            everything = True
        elif isinstance(item, exp.Alias) or isinstance(node, exp.Column):
            if item.alias_or_name.lower() in outputs and not places:
                raise error_at(item, f"{item.alias_or_name} is selected twice; give one another name, AS …")
            outputs[item.alias_or_name.lower()] = node
        elif not places:
            raise error_at(item, "a column of a named query must have a name: expression AS name")
    if everything:
        _check_names(select, outputs, catalog)
    return _ViewQuery(select, outputs, everything)


def _check_star(select: exp.Select, star: exp.Column) -> None:
    """Raise `SqlError` for a ``t.*`` that isn't all columns of the query."""
    table = select.args["from_"].this
    if select.args.get("joins"):
        raise error_at(star, f"{star.sql()} beside a join: name its columns")
    if star.table.lower() != table.alias_or_name.lower():
        raise error_at(star, f"no stream of the query is called {star.table}")


def _check_names(select: exp.Select, outputs: Mapping[str, Any], catalog: Catalog) -> None:
    """Raise `SqlError` for a column beside * with the name of one that * stands for."""
    joined = [join.this for join in select.args.get("joins") or ()]
    for table in [select.args["from_"].this, *joined]:
        relation = catalog.relations.get(table.name.lower()) if isinstance(table, exp.Table) else None
        for name in relation.columns if relation is not None else ():
            if name.lower() in outputs:
                raise error_at(
                    outputs[name.lower()], f"{name} is selected twice; give one another name, AS …"
                )


def _merged(select: exp.Select, named: Mapping[str, _ViewQuery], catalog: Catalog) -> exp.Select:
    """A query merged with the query that it reads."""
    if (given := select.args.get("with_")) is not None:
        _check(given, {"expressions"}, "WITH")
        named = dict(named)
        for one in given.expressions:
            _check(one, {"this", "alias"}, "WITH")
            named[_alias(one).lower()] = _named(one.this, named, catalog)
        select.set("with_", None)
    if select.args.get("from_") is None:
        return select
    table = select.args["from_"].this
    if isinstance(table, exp.Subquery):
        _check(table, {"this", "alias"}, "a query in FROM")
        rows = _selects(table)
        alias, inner = _alias(table).lower(), _named(rows, named, catalog)
    elif isinstance(table, exp.Table) and table.name.lower() in named:
        _check(table, {"this", "alias", "windowed"}, f"{table.name}, a named query,")
        alias, inner = (table.alias or table.name).lower(), named[table.name.lower()]
    elif isinstance(table, exp.Table) and table.name.lower() in catalog.views:
        _check(table, {"this", "alias", "windowed"}, f"{table.name}, a view,")
        alias = (table.alias or table.name).lower()
        inner = _named(_at(catalog.views[table.name.lower()], table.this), {}, catalog)
    else:
        _expand_joined(select, named, catalog)
        return select
    joins = select.args.get("joins") or []
    _expand_joined(select, named, catalog)
    if inner.union or (joins and _is_apart(inner, alias, joins)):
        select.set("from_", exp.From(this=_apart(table, inner, alias)))
        return select
    if joins:
        inner = _beside(inner, alias, joins)
        for column in list(select.find_all(exp.Column)):
            _qualify(column, inner, alias, joins, catalog)
    select.set("from_", None)
    aliases = {one.alias.lower(): one.this for one in select.expressions if isinstance(one, exp.Alias)}
    select.set("expressions", list(_items(select, inner, alias)))
    for column in list(select.find_all(exp.Column)):
        _replace(column, inner, alias, aliases)
    source = inner.select.copy()
    if (window := table.args.get("windowed")) is not None:
        source.args["from_"].this.set("windowed", _window_of(window, inner, alias))
    select.set("from_", source.args["from_"])
    select.set("joins", [*(source.args.get("joins") or ()), *joins] or None)
    wheres = [one for one in (source.args.get("where"), select.args.get("where")) if one is not None]
    if wheres:
        conditions = [exp.Paren(this=one.this) for one in wheres] if len(wheres) > 1 else [wheres[0].this]
        both = conditions[0]
        for other in conditions[1:]:
            both = exp.And(this=both, expression=other)
        select.set("where", exp.Where(this=both))
    return select


def _selects(table: exp.Subquery) -> exp.Select:
    """The SELECT in brackets, with those of its UNION ALL."""
    selects: list[Any] = []
    waiting: list[Any] = [table.this]
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.Subquery) and not node.args.get("alias"):
            waiting.append(node.this)
        elif isinstance(node, exp.Union) and not node.args.get("distinct"):
            _check(node, {"this", "expression", "distinct"}, "UNION ALL")
            waiting += [node.expression, node.this]
        elif isinstance(node, exp.SetOperation):
            word = type(node).__name__.upper()
            raise error_at(node.this, f"{word}: streams support only UNION ALL")
        elif isinstance(node, exp.Select):
            selects.append(node)
        else:
            raise error_at(table, "FROM takes a name without brackets")
    first, *others = selects
    if others:
        first.set("union", others)
    return first


def _expand_joined(select: exp.Select, named: Mapping[str, _ViewQuery], catalog: Catalog) -> None:
    """Replace the named queries that a query joins; each is planned separately."""
    for join in select.args.get("joins") or ():
        table = join.this
        name = table.name.lower()
        if isinstance(table, exp.Subquery):
            _check(table, {"this", "alias", "within"}, "a query in JOIN")
            alias, inner = _alias(table).lower(), _named(_selects(table), named, catalog)
        elif not isinstance(table, exp.Table) or not (name in named or name in catalog.views):
            continue
        else:
            _check(table, {"this", "alias", "within"}, f"{table.name}, a named query,")
            alias = (table.alias or table.name).lower()
            if name in named:
                inner = named[name]
            else:
                inner = _named(_at(catalog.views[name], table.this), {}, catalog)
        join.set("this", _apart(table, inner, alias))


def _apart(table: Any, inner: _ViewQuery, alias: str) -> exp.Table:
    """A table in place of a named query that is planned and checked separately, outside this tree."""
    name = exp.to_identifier(alias, quoted=True)
    options = {option: table.args.get(option) for option in ("windowed", "within")}
    made = exp.Table(this=name, **{option: value for option, value in options.items() if value is not None})
    start, end = span_of(table)
    queries = [one.copy() for one in inner.union or (inner.select,)]
    made.meta.update(start=start, end=end - 1, union=queries)
    return made


def _is_apart(inner: _ViewQuery, alias: str, joins: list[Any]) -> bool:
    """Whether a named query must be planned separately, given these joins.

    Otherwise its conditions and those of the query around it are simply combined.
    """
    own = {inner.select.args["from_"].this.alias_or_name.lower(), alias}
    if inner.select.args.get("joins") or inner.everything:
        return True
    return any(
        not isinstance(join.this, exp.Table)
        or (join.args.get("side") or "").upper() not in ("", "LEFT")
        or join.this.meta.get("union")
        or join.this.alias_or_name.lower() in own
        for join in joins
    )


def _beside(inner: _ViewQuery, alias: str, joins: list[Any]) -> _ViewQuery:
    """A named query that others are joined with: its columns are prefixed with the name of its stream."""
    own = inner.select.args["from_"].this.alias_or_name
    select = inner.select.copy()
    for column in list(select.find_all(exp.Column)):
        parts = [column.args[part] for part in ("catalog", "db", "table", "this") if column.args.get(part)]
        if not _is_word(column) and (len(parts) == 1 or parts[0].name.lower() != own.lower()):
            column.replace(_placed([exp.to_identifier(own, quoted=True), *parts], column))
    outputs = {
        one.alias_or_name.lower(): one.this if isinstance(one, exp.Alias) else one
        for one in select.expressions
    }
    return _ViewQuery(select, outputs, False)


def _placed(parts: list[Any], column: exp.Column) -> exp.Column:
    """A column of the query as planned, given by the parts of its name, at another column's position."""
    made = exp.Column(**dict(zip(("this", "table", "db", "catalog"), reversed(parts))))
    made.meta.update({**column.meta, "placed": True})
    return made


def _qualify(column: exp.Column, inner: _ViewQuery, alias: str, joins: list[Any], catalog: Catalog) -> None:
    """Mark a column of a joined stream or table, which the names of a named query don't stand for.

    Raises `SqlError` for a name that both have, and for * of both.
    """
    if isinstance(column.this, exp.Star):
        raise error_at(column, f"{column.sql()} beside a named query: name the columns")
    parts = [column.args[part] for part in ("catalog", "db", "table", "this") if column.args.get(part)]
    first = parts[0].name.lower()
    tables = {join.this.alias_or_name.lower(): join.this for join in joins}
    if len(parts) > 1 and first in tables:
        column.meta["placed"] = True
        return
    if _is_word(column) or edge_of(column) or (len(parts) > 1 and first == alias):
        return
    relations = {name: catalog.relations.get(table.name.lower()) for name, table in tables.items()}
    have = [
        name
        for name, relation in relations.items()
        if relation is not None and first in {known.lower() for known in relation.columns} - {*MESSAGE}
    ]
    if have and first in inner.outputs:
        raise error_at(column, f"{first} may be {alias}.{first} or {have[0]}.{first}; say which")
    if len(have) == 1:
        column.replace(_placed([exp.to_identifier(have[0], quoted=True), *parts], column))


def _window_of(window: WindowedTable, inner: _ViewQuery, alias: str) -> WindowedTable:
    """The window of a named query as one over the stream that it reads."""
    if inner.select.args["from_"].this.args.get("windowed") is not None:
        raise error_at(window, "a query has one window, and the named query has it already")
    made = window.copy()
    time = made.args["time"]
    for column in list(made.find_all(exp.Column)):
        _replace(column, inner, alias, {})
    if not isinstance(made.args["time"], exp.Column):
        raise error_at(
            window.args["time"],
            f"{time.name} isn't the event time as the stream has it, which windows of a named query need",
        )
    return made


def _at(select: exp.Select, at: Any) -> exp.Select:
    """A view's query, with the position of its name in all parts."""
    copied = select.copy()
    for node in copied.walk():
        if "start" in node.meta:
            node.meta.update({part: at.meta[part] for part in ("start", "end") if part in at.meta})
    return copied


def _items(select: exp.Select, inner: _ViewQuery, alias: str) -> Iterator[Any]:
    """The selected items, with * expanded; a column keeps its name."""
    for item in select.expressions:
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            if select.args.get("joins"):
                raise error_at(item, "* beside a named query: name the columns")
            if isinstance(item, exp.Column) and item.table.lower() != alias:
                raise error_at(item, f"no stream of the query is called {item.table}")
            for one in inner.select.expressions:
                copied = one.copy()
                for column in copied.find_all(exp.Column):
                    column.meta["placed"] = True
                yield copied
        elif isinstance(item, exp.Column) and not edge_of(item) and item.name.lower() not in MESSAGE:
            yield exp.Alias(this=item.copy(), alias=exp.to_identifier(item.name, quoted=True))
        else:
            yield item


def _replace(column: exp.Column, inner: _ViewQuery, alias: str, aliases: Mapping[str, Any]) -> None:
    """Replace a column's name by what it stands for. Raises `SqlError` for an unknown name."""
    if column.meta.get("placed") or _is_word(column) or isinstance(column.this, exp.Star):
        return
    parts = [column.args[part] for part in ("catalog", "db", "table", "this") if column.args.get(part)]
    if len(parts) > 1 and parts[0].name.lower() == alias:
        parts = parts[1:]
    elif edge_of(column):
        return
    name, fields = parts[0].name, parts[1:]
    if name.lower() not in inner.outputs:
        part = _part_of(column)
        if part == "group" and not fields and name.lower() in aliases:
            # An alias may be the name of a column that isn't passed through.
            again = column.replace(aliases[name.lower()].copy())
            for below in list(again.find_all(exp.Column)):
                _replace(below, inner, alias, {})
            return
        own = not fields and (part in ("having", "order") and name.lower() in aliases)
        if own or name.lower() in MESSAGE or inner.everything:
            if len(parts) < len([part for part in column.args.values() if part]):
                column.replace(exp.Column(**dict(zip(("this", "table", "db"), reversed(parts)))))
            return
        raise error_at(column, f"no column is called {name}; {nearest(name, inner.outputs)}")
    made = inner.outputs[name.lower()].copy()
    for below in made.find_all(exp.Column):
        below.meta["placed"] = True
    made = made if isinstance(made, exp.Column) else exp.Paren(this=made)
    for part in fields:
        made = exp.Dot(this=made, expression=part)
    column.replace(made)


def _part_of(column: Any) -> str:
    """The clause of the query that contains a column."""
    while column.parent is not None and not isinstance(column.parent, exp.Select):
        column = column.parent
    return str(column.arg_key)


def _is_word(column: exp.Column) -> bool:
    """Whether it is not a column but a unit of time, or the name of a parameter or of a field."""
    above = column.parent
    if isinstance(above, exp.JSONExtract):
        return column.arg_key == "expression"
    if isinstance(above, exp.Kwarg | exp.PropertyEQ):
        return column.arg_key == "this"
    if isinstance(above, exp.Anonymous):
        function = FUNCTIONS.get(above.name.upper())
        return function is not None and function.unit and above.expressions[0] is column
    return False
