"""A query of rows one by one: a stream that ends in what its SELECT names."""

from __future__ import annotations

from typing import Any

import polars as pl
from sqlglot import exp

from ..errors import error_at
from ..parse.grammar import check_arguments
from ..scalars.scalars import Scalar, Scalars
from .logical_plan import QueryPlan
from .stream_builder import named_text, source_text, with_columns
from .unresolved_rows import QueryRows, is_explode


def row_plan(rows: QueryRows, items: list[Any], push: str, limit: int | None) -> QueryPlan:
    """The plan of a query of rows."""
    draft = rows.draft
    rows.explode_items(items)
    outputs: dict[str, Scalar] = {}
    beside = rows.sides[1:]
    first = rows.sides[0].relation
    assert first is not None
    alone = all(one.relation is None or one.relation.kind == "table" for one in beside)
    time = first.time if alone else ""
    new_time = ""
    for item in items:
        node = item.this if isinstance(item, exp.Alias) else item
        if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
            check_arguments(node.this if isinstance(node, exp.Column) else node, "item")
            more = rows.all_columns(node)
        else:
            more = {rows.output_name(item, outputs): _scalar(rows, node)}
        if twice := [name for name in more if name in outputs]:
            raise error_at(item, f"{twice[0]} is selected twice; give one another name, AS …")
        outputs |= more
    texts = {one.text: name for name, one in reversed(outputs.items())}
    if alone:
        new_time = texts.get(f"pl.col({time!r})") or texts.get("pl.col('ROWTIME')") or ""
    if not any(one.expr.meta.root_names() for one in outputs.values()):
        # A selection of constants alone would be one row of each batch: here each row has them.
        own = {name: rows.new_name(name) for name in outputs}
        with_columns(draft, {own[name]: one for name, one in outputs.items()}, items[0])
        make = Scalars(draft.stream.columns)
        outputs = {name: make.column(own[name]) for name in outputs}
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
    return QueryPlan(
        draft.stream,
        None,
        columns,
        (),
        push,
        limit,
        source_text(draft.lines),
        new_time,
        first.time_format if columns.get(new_time) == pl.String() else "",
        "" if new_time else first.time or first.lost_time or "ROWTIME",
    )


def _scalar(rows: QueryRows, node: Any) -> Scalar:
    if is_explode(node):
        return Scalars(rows.draft.stream.columns).column(rows.exploded[node.sql()])
    return rows.expressions().scalar(node)
