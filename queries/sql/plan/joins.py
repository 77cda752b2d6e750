"""Joins: of a stream with a table by its key, and of two streams within a span of time."""

from __future__ import annotations

from typing import Any

import polars as pl
from sqlglot import exp

from ....operators.windows.durations import duration_text
from ..errors import error_at, errors_at
from ..scalars.scalars import Scalars, type_source
from .catalog import Catalog, Relation, column_named
from .draft import with_columns
from .query_rows import QueryRows, Side
from .topic_rows import TopicReader


def join_rows(reader: TopicReader, catalog: Catalog, rows: QueryRows, join: Any, names: set[str]) -> None:
    """Join the rows with the table or the stream that a JOIN names. Raises `SqlError`."""
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
    relation = catalog.relation(table)
    alias = (table.alias or relation.name).lower()
    if any(side.alias == alias for side in rows.sides):
        raise error_at(table, f"{alias} is joined twice; give it another name, JOIN {relation.name} AS other")
    within = table.args.get("within")
    pairs = _equalities(join.args["on"])
    if relation.kind == "table":
        if within is not None:
            raise error_at(within, "WITHIN is for a join with a stream; a table has one row of each key")
        _join_table(reader, rows, join, relation, alias, pairs, how)
    else:
        if within is None:
            raise error_at(
                table,
                "a join of two streams must say how far apart the rows of a pair may be: JOIN "
                f"{relation.name} WITHIN 10 MINUTES ON …",
            )
        _join_stream(reader, rows, names, join, relation, alias, pairs, how, within)


def _sorted_pair(pair: Any, right: Relation, alias: str) -> tuple[Any, str]:
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
    reader: TopicReader,
    rows: QueryRows,
    join: Any,
    relation: Relation,
    alias: str,
    pairs: list[Any],
    how: str,
) -> None:
    if how == "outer":
        raise error_at(join.this, "a table is joined by INNER or LEFT JOIN: rows it has besides have no time")
    if len(pairs) != 1:
        raise error_at(
            pairs[1], f"{relation.name} is joined by its key {relation.key} alone; put the rest in WHERE"
        )
    left, right = _sorted_pair(pairs[0], relation, alias)
    if right != relation.key:
        raise error_at(pairs[0], f"{relation.name} is joined by its key, {alias}.{relation.key}, got {right}")
    on = rows.key_column(left)
    with errors_at(join.this):
        lookup = reader.lookup(relation)
    suffix = f"_{alias}"
    key_type = relation.columns[relation.key]
    text = (
        f".join(sg.LookupTable.from_kafka({relation.topic!r}, value={relation.decoder_source()}"
        + (f", key={type_source(key_type)}" if key_type != pl.String() else "")
        + reader.servers_text
        + f"), on={on!r}, how={how!r}, suffix={suffix!r})"
    )
    before = set(rows.draft.stream.columns)
    rows.draft.then(text, lambda stream: stream.join(lookup, on=on, how=how, suffix=suffix), join.this)
    columns = {name: name + suffix if name in before else name for name in relation.values}
    rows.sides.append(Side(relation, alias, {relation.key: on, **columns}))


def _join_stream(
    reader: TopicReader,
    rows: QueryRows,
    names: set[str],
    join: Any,
    relation: Relation,
    alias: str,
    pairs: list[Any],
    how: str,
    within: Any,
) -> None:
    other, columns = reader.draft(relation, names, relation.time, join.this)
    on = []
    for pair in pairs:
        left, right = _sorted_pair(pair, relation, alias)
        name = rows.key_column(left)
        if name != columns[right]:
            make = Scalars(other.stream.columns)
            with_columns(other, {name: make.column(columns[right])}, pair)
        on.append(name)
    length, suffix = duration_text(within.this), f"_{alias}"
    inner = "".join(f"\n        {line}" for line in other.lines[1:])
    text = f".join({other.lines[0]}{inner}, on={on!r}, within={length!r}, how={how!r}, suffix={suffix!r})"
    before = set(rows.draft.stream.columns)
    rows.draft.then(
        text,
        lambda stream: stream.join(other.stream, on=on, within=length, how=how, suffix=suffix),
        join.this,
    )
    own_names = {
        name: own + suffix if own in before and own not in on else own for name, own in columns.items()
    }
    rows.sides.append(Side(relation, alias, own_names))


def _equalities(node: Any) -> list[Any]:
    if isinstance(node, exp.Paren):
        return _equalities(node.this)
    if isinstance(node, exp.And):
        return [*_equalities(node.this), *_equalities(node.expression)]
    if not isinstance(node, exp.EQ):
        raise error_at(node, "ON must be equalities, a.column = b.column; put the rest in WHERE")
    return [node]
