"""The output of a query: its rows with the edges of their windows, and the sinks for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from ....operators.formats.encode import as_json
from ....operators.sinks.sketches_to_parquet import SketchesToParquet
from ....operators.table.schema import END, START
from ..errors import error_at, errors_at
from ..parse.statements import CreateAs, Word
from ..plan.logical_plan import LogicalPlan
from ..plan.selection import Output, SelectedToKafka
from ..scalars.scalars import map_places


def sinks_of(plan: LogicalPlan, topic: str) -> list[Any]:
    """The sinks that write a query's rows; empty for forwarded rows."""
    if plan.sinks:
        return list(plan.sinks)
    return [] if plan.selection is None else [SelectedToKafka(topic, plan.selection, plan.keys)]


def keeping(node: CreateAs, plan: LogicalPlan) -> list[Any]:
    """The sink of a CREATE TABLE … WITH (SKETCHES='folder', KEEP='30d'), which stores its closed windows."""
    folder, keep = node.options.get("SKETCHES"), node.options.get("KEEP")
    if keep is not None and folder is None:
        raise error_at(keep, "KEEP is how long the windows in a folder are kept: write SKETCHES='folder' too")
    if folder is None:
        return []
    if plan.selection is None:
        raise error_at(folder, "SKETCHES keeps closed windows: a stream of rows has none; leave it out")
    if not str(folder):
        raise error_at(folder, "SKETCHES must not be empty")
    with errors_at(folder if keep is None else keep):
        return [SketchesToParquet(str(folder), None if keep is None else str(keep), compacted=True)]


def with_edges(plan: LogicalPlan, at: Word) -> LogicalPlan:
    """A plan whose rows contain the edges of their windows, which stored rows need.

    Raises `SqlError` for another column with the name of an edge.
    """
    selection = plan.selection
    if selection is None:
        return plan
    edges = [name for name in (START, END) if name not in plan.columns]
    own = {name: pl.col(name).dt.replace_time_zone(None) for name in (START, END)}
    for one in selection.outputs:
        if one.name in own and not one.value.meta.eq(own[one.name]):
            raise error_at(at, f"{one.name} of {at} is the window's own: give the column another name, AS …")
    outputs = [Output(name, own[name]) for name in edges]
    columns = {**dict.fromkeys(edges, pl.Datetime("us")), **plan.columns}
    selected = replace(selection, outputs=(*outputs, *selection.outputs))
    return replace(plan, selection=selected, columns=columns)


def check_kind(node: CreateAs, plan: LogicalPlan) -> None:
    """Raise `SqlError` for a STREAM of windows or a TABLE of rows."""
    kind = "stream" if plan.selection is None else "table"
    if node.kind != kind:
        what = "rows one by one are a STREAM" if kind == "stream" else "answers of windows are a TABLE"
        raise error_at(node.name, f"{what}: write CREATE {kind.upper()} {node.name} AS SELECT …")


def writing(
    plan: LogicalPlan, topic: str, keys: tuple[str, ...], at: Word, columns: Mapping[str, pl.DataType]
) -> LogicalPlan:
    """The plan whose rows go to a topic with these columns.

    Raises `SqlError` for a query that ends, or that is sorted.
    """
    if plan.selection is not None and plan.selection.order:
        raise error_at(at, "ORDER BY: windows are written as they close; leave it out, and sort what is read")
    if plan.limit is not None:
        raise error_at(at, "LIMIT ends a query: a stream that is written continues; leave it out")
    if plan.selection is not None:
        return plan
    maps = [(name, *place) for name in plan.columns for place in map_places(columns[name])]
    with errors_at(at):
        stream = plan.stream.rows_to_kafka(
            topic, key=keys[0] if len(keys) == 1 else keys, value=as_json(entries=maps)
        )
    key = f", key={keys[0]!r}" if keys else ""
    value = f", value=sg.as_json(entries={[list(one) for one in maps]!r})" if maps else ""
    text = f"    .rows_to_kafka({topic!r}{key}{value})\n)"
    head = plan.source[: plan.source.rindex("\n)")]
    return replace(plan, stream=stream, source=f"{head}\n{text}")
