"""Computing a query's answer from a table of sketches of closed windows: its columns, HAVING and order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from ....operators.formats.encode import json_rows, keys_bytes
from ....operators.kafka.outgoing_message import ANY_PARTITION, Outgoing
from ....operators.sinks.answers_to_kafka import answer_headers
from ....operators.sinks.sink import ClosedWindow, Origin, SinkTopic
from ....operators.table.query import query
from ....operators.table.schema import ArrowStream, aggregates_of, arrow_table
from ....sketches.core.answers import USUAL_QUANTILES, quantile_rows

RANKED = pl.Struct({"value": pl.Float64, "lower": pl.Float64, "upper": pl.Float64})
"""A quantile with its bounds."""


@dataclass(frozen=True)
class Output:
    """A column of a query's rows; `lower` and `upper` are its bounds if it is an estimate."""

    name: str
    value: pl.Expr
    lower: pl.Expr | None = None
    upper: pl.Expr | None = None


@dataclass(frozen=True)
class ResultSet:
    """A query's rows; for estimates also the bounds, a list of ``[lower, upper]`` per row.

    `warnings` say which messages are missing from them. With `more`, the rows of a query that ends come in
    parts, and this is not the last one.
    """

    rows: pl.DataFrame
    bounds: Mapping[str, Sequence[Sequence[Any]]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    more: bool = False


@dataclass(frozen=True)
class AnswerSelection:
    """What a query reads from the answers of windows.

    `ranks` are, by the aggregate's column, the ranks at which it is read: each is a column of the answers in
    addition to those of `query`, named by `ranked`. `order` has names of outputs, each with whether it is
    descending, and whether nulls come first. With `of_nothing` there is a row even without any window, in
    which COUNT(*) is 0.
    """

    outputs: tuple[Output, ...]
    having: pl.Expr | None = None
    ranks: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    order: tuple[tuple[str, bool, bool], ...] = ()
    limit: int | None = None
    of_nothing: bool = False

    def result(self, table: ArrowStream) -> ResultSet:
        """The rows of a table of sketches, and their bounds."""
        rows = self.selected(table)
        shown = rows.select(one.name for one in self.outputs)
        bounds = {
            one.name: rows.select(_bound(one.name, "lower"), _bound(one.name, "upper")).rows()
            for one in self.outputs
            if one.lower is not None
        }
        return ResultSet(shown, {name: [list(pair) for pair in pairs] for name, pairs in bounds.items()})

    def rows(self, table: ArrowStream) -> pl.DataFrame:
        """The rows without bounds."""
        return self.selected(table, bounds=False)

    def selected(self, table: ArrowStream, bounds: bool = True) -> pl.DataFrame:
        """The rows, followed by the bounds of estimates as columns if requested."""
        if self.of_nothing:
            whole = arrow_table(table)
            table = whole if whole.num_rows else _of_nothing(whole)
        answers = query(table)  # windows of a run are answered from live sketches, without serialising
        for name, ranks in self.ranks.items():
            answers = answers.with_columns(_at_ranks(arrow_table(table), name, ranks))
        if self.having is not None:
            answers = answers.filter(self.having)
        columns = []
        for one in self.outputs:
            columns.append(one.value.alias(one.name))
            if bounds and one.lower is not None and one.upper is not None:
                columns += [
                    one.lower.alias(_bound(one.name, "lower")),
                    one.upper.alias(_bound(one.name, "upper")),
                ]
        rows = answers.select(columns)
        if self.order:
            names, falling, nulls_first = map(list, zip(*self.order))
            nulls_last = [not first for first in nulls_first]
            rows = rows.sort(names, descending=falling, nulls_last=nulls_last, maintain_order=True)
        return rows if self.limit is None else rows.head(self.limit)


@dataclass(frozen=True)
class SelectedToKafka:
    """A sink for a query's rows: a JSON object per row, with the query's columns, each window exactly once.

    The message key contains the keys of the groups, as with `AnswersToKafka`; topic and the header `final`
    are also as there.
    """

    to: str
    selection: AnswerSelection
    keys: tuple[str, ...]

    def topic(self, origin: Origin) -> SinkTopic:
        """See `MessageSink`."""
        return SinkTopic(self.to, 1, {})

    def messages(self, window: ClosedWindow) -> Iterator[Outgoing]:
        """See `MessageSink`."""
        headers = answer_headers(window)
        shown = self.selection.rows(window.table)
        named = [name for name in self.keys if name in shown.columns]
        for key, value in zip(keys_bytes(shown, named), json_rows(shown)):
            yield Outgoing(self.to, ANY_PARTITION, value, headers, key)


def ranked(name: str, rank: float) -> str:
    """The column of the answers that contains an aggregate's value at a rank.

    >>> ranked("latency", 0.99)
    'latency @ 0.99'
    """
    return f"{name} @ {rank:g}"


def _bound(name: str, side: str) -> str:
    return f"{name} ({side} bound)"


def _of_nothing(table: pa.Table) -> pa.Table:
    """A table's only row if nothing was counted."""
    aggregates = aggregates_of(table.schema)
    columns = [
        aggregates[one.name].groups(1).to_arrow() if one.name in aggregates else pa.nulls(1, one.type)
        for one in table.schema
    ]
    return pa.table(columns, schema=table.schema)


def _at_ranks(table: pa.Table, name: str, ranks: tuple[float, ...]) -> list[pl.Series]:
    """The values at ranks, with bounds, from each row's sketch."""
    usual = list(USUAL_QUANTILES)
    if set(ranks) <= set(usual):
        answers = query(table.select([*table.schema.names[:2], name]))[name].struct.field("quantiles")
        columns = []
        for rank in ranks:
            one = answers.list.get(usual.index(rank), null_on_oob=True).struct
            parts = {part: one.field(part).cast(pl.Float64) for part in ("value", "lower", "upper")}
            columns.append(pl.DataFrame(parts).to_struct(ranked(name, rank)))
        return columns
    aggregate = aggregates_of(table.schema)[name]
    groups = aggregate.groups(table.num_rows)
    groups.merge(np.arange(table.num_rows), table.column(name).combine_chunks())
    rows = [quantile_rows(groups[number], list(ranks)) for number in range(table.num_rows)]
    made = []
    for at, rank in enumerate(ranks):
        values = [dict(zip(("value", "lower", "upper"), row[at][1:])) if row else None for row in rows]
        made.append(pl.Series(ranked(name, rank), values, dtype=RANKED))
    return made
