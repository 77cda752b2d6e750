"""A page of a table that is of no app: what each of its columns can be asked, drawn."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from ...operators.definition.aggregate import Aggregate
from ...operators.serving.asked import ASKED
from ...operators.serving.view import ServedTable
from ...operators.table.schema import aggregates_of, keys_of
from ..app import App, AppPart
from .panels import LinesPanel, NumberPanel, Panel, RankedPanel, RowsPanel, SamplesPanel, SpreadPanel
from .served_app import ServedApp

_ADDED = ("count", "sum")


def of_table(table: ServedTable) -> ServedApp:
    """The table as an app of one part, without rules. Raises `NotReady` while nothing is known of it."""
    schema = table.view().schema
    part = AppPart(table.name, lambda rows: rows)
    app = App(table.name, f"The table {table.name}", (), (part,), panels=tuple(panels_of(table.name, schema)))
    return ServedApp(app, {table.name: table.name})


def panels_of(part: str, schema: pa.Schema) -> Iterator[Panel]:
    """Numbers first, then lines by the first key, then what else can be drawn, then all rows.

    >>> import polars as pl
    >>> from streamgauge import Stream, count, distinct
    >>> from ...operators.table.schema import schema_of
    >>> columns = {"at": pl.Int64, "lang": pl.String, "user": pl.Int64}
    >>> rows = Stream.from_batches(columns, time=pl.from_epoch("at"))
    >>> stream = rows.group_by("lang").tumbling("1m").agg(posts=count(), users=distinct("user"))
    >>> [(type(panel).__name__, panel.title) for panel in panels_of("posts", schema_of(stream))][:3]
    [('NumberPanel', 'posts'), ('NumberPanel', 'users'), ('LinesPanel', 'posts by lang')]
    """
    keys, columns = keys_of(schema), aggregates_of(schema)
    numbers = [name for name, asked in columns.items() if _is_number(asked, schema.field(name).type)]
    for name in numbers:
        if columns[name].name in _ADDED or ASKED["distinct"].fits(columns[name]):
            yield NumberPanel(name, part, name)
    for name in numbers:
        title = f"{name} by {keys[0]}" if keys else f"{name} over time"
        yield LinesPanel(title, part, name, by=keys[0] if keys else "")
    for name, asked in columns.items():
        if ASKED["quantiles"].fits(asked):
            yield SpreadPanel(name, part, name)
        elif ASKED["top-k"].fits(asked):
            yield RankedPanel(name, part, name)
        elif ASKED["sample"].fits(asked):
            yield SamplesPanel(name, part, name)
    if keys:
        yield RowsPanel("All groups", part, (*keys, *numbers), f"-{numbers[0]}" if numbers else "")


def _is_number(asked: Aggregate, kind: pa.DataType) -> bool:
    """Whether an answer is one number: an exact one, or how many are distinct."""
    if asked.family.exact:
        return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
    return ASKED["distinct"].fits(asked)
