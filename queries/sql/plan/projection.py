"""A query of rows: a stream that ends with the columns of its SELECT."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
from sqlglot import exp

from ..errors import error_at
from ..parse.grammar import check_arguments
from ..scalars.scalars import Scalar, Scalars
from .logical_plan import LogicalPlan
from .scope import Scope, is_explode
from .stream_builder import named_text, source_text, with_columns


def projection_plan(
    scope: Scope, items: list[Any], push: str, limit: int | None, partition_by: list[Any]
) -> LogicalPlan:
    """The plan of a query of rows; `partition_by` are the columns of PARTITION BY, each one of the items."""
    builder = scope.builder
    scope.explode_items(items)
    outputs: dict[str, Scalar] = {}
    beside = scope.sides[1:]
    first = scope.sides[0].relation
    assert first is not None
    alone = all(one.relation is None or one.relation.kind == "table" for one in beside)
    time = first.time if alone else ""
    new_time = ""
    for item in items:
        node = item.this if isinstance(item, exp.Alias) else item
        if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
            check_arguments(node.this if isinstance(node, exp.Column) else node, "item")
            more = scope.all_columns(node, outputs)
        else:
            more = {scope.output_name(item, outputs): _scalar(scope, node)}
        if twice := [name for name in more if name in outputs]:
            raise error_at(item, f"{twice[0]} is selected twice; give one another name, AS …")
        outputs |= more
    texts = {one.text: name for name, one in reversed(outputs.items())}
    if alone:
        new_time = texts.get(f"pl.col({time!r})") or texts.get("pl.col('ROWTIME')") or ""
    partition = [_selected(scope, node, texts) for node in partition_by]
    if not any(one.expr.meta.root_names() for one in outputs.values()):
        # A selection of only constants would be one row per batch: here each row has them.
        own = {name: scope.new_name(name) for name in outputs}
        with_columns(builder, {own[name]: one for name, one in outputs.items()}, items[0])
        make = Scalars(builder.columns)
        outputs = {name: make.column(own[name]) for name in outputs}
    plain = all(one.text == f"pl.col({name!r})" for name, one in outputs.items())
    if not (plain and list(outputs) == list(builder.stream.columns)):
        if plain:
            text = ", ".join(map(repr, outputs))
            builder.then(f".select({text})", lambda stream: stream.select(*outputs), items[0])
        else:
            text = named_text(outputs)
            named = {name: one.expr for name, one in outputs.items()}
            builder.then(f".select({text})", lambda stream: stream.select(**named), items[0])
    builder.note({name: one.type for name, one in outputs.items()})
    columns = {name: builder.columns[name] for name in outputs}
    return LogicalPlan(
        builder.stream,
        None,
        columns,
        (),
        push,
        limit,
        source_text(builder.lines),
        new_time,
        first.time_format if columns.get(new_time) == pl.String() else "",
        "" if new_time else (first.time or first.lost_time or "ROWTIME") if alone else _later(scope),
        partition=tuple(dict.fromkeys(partition)),
    )


def _later(scope: Scope) -> str:
    """The event time of rows of two joined streams, which is in no column."""
    streams = [side for side in scope.sides if side.relation is not None and side.relation.kind == "stream"]
    return f"GREATEST({', '.join(f'{side.alias}.ROWTIME' for side in streams)})"


def _selected(scope: Scope, node: Any, names: Mapping[str, str]) -> str:
    """The column of the SELECT that a part of PARTITION BY refers to."""
    name = names.get(_scalar(scope, node).text)
    if name is None:
        raise error_at(node, "PARTITION BY must be what the SELECT gives: add it to the SELECT")
    return name


def _scalar(scope: Scope, node: Any) -> Scalar:
    if is_explode(node):
        return Scalars(scope.builder.columns).column(scope.exploded[node.sql()])
    return scope.expressions().scalar(node)
