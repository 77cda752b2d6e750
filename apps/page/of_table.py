"""A page for a table without an app, with a drawing of each column's answers."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from ...operators.definition.aggregate import Aggregate
from ...operators.table.schema import aggregates_of, keys_of
from ...operators.table.windows import declared_windows
from ...queries.question.question_kinds import QUESTION_KINDS
from ...queries.views.view import ServedTable
from ..app import App, AppPart
from ..panels import LinesPanel, NumberPanel, Panel, RankedPanel, RowsPanel, SamplesPanel, SpreadPanel
from .served_app import ServedApp

_ADDED = ("count", "sum")


def of_table(table: ServedTable) -> ServedApp:
    """Make an app of one part, without rules, from the table. Raises `NotReady` until it has been read."""
    schema = table.view().schema
    part = AppPart(table.name, lambda rows: rows)
    app = App(table.name, f"The table {table.name}", (), (part,), panels=tuple(panels_of(table.name, schema)))
    windows = declared_windows(schema)
    return ServedApp(app, {table.name: table.name}, zone=None if windows is None else windows.zone)


def panels_of(part: str, schema: pa.Schema) -> Iterator[Panel]:
    """Return the panels: numbers, then lines by the first key, then other drawings, then all rows.

    >>> import polars as pl
    >>> import streamgauge as sg
    >>> from ...operators.table.schema import schema_of
    >>> columns = {"at": pl.Int64, "lang": pl.String, "user": pl.Int64}
    >>> rows = sg.Stream.from_schema(columns, time=pl.from_epoch("at"))
    >>> stream = rows.group_by("lang").tumbling("1m").agg(posts=sg.count(), users=sg.distinct("user"))
    >>> [(type(panel).__name__, panel.title) for panel in panels_of("posts", schema_of(stream))][:3]
    [('NumberPanel', 'posts'), ('NumberPanel', 'users'), ('LinesPanel', 'posts by lang')]
    """
    keys, columns, windows = keys_of(schema), aggregates_of(schema), declared_windows(schema)
    numbers = [name for name, aggregate in columns.items() if _is_number(aggregate, schema.field(name).type)]
    for name in numbers:
        if columns[name].name in _ADDED or QUESTION_KINDS["distinct"].fits(columns[name]):
            yield NumberPanel(name, part, name)
    for name in numbers if windows is None or not windows.all_time else ():
        title = f"{name} by {keys[0]}" if keys else f"{name} over time"
        yield LinesPanel(title, part, name, by=keys[0] if keys else "")
    for name, aggregate in columns.items():
        if QUESTION_KINDS["quantiles"].fits(aggregate):
            yield SpreadPanel(name, part, name)
        elif QUESTION_KINDS["top-k"].fits(aggregate):
            yield RankedPanel(name, part, name)
        elif QUESTION_KINDS["sample"].fits(aggregate):
            yield SamplesPanel(name, part, name)
    if keys:
        yield RowsPanel("All groups", part, (*keys, *numbers), f"-{numbers[0]}" if numbers else "")


def _is_number(aggregate: Aggregate, kind: pa.DataType) -> bool:
    """Whether an answer is one number: an exact number, or a count of distinct values."""
    if aggregate.family.exact:
        return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
    return QUESTION_KINDS["distinct"].fits(aggregate)
