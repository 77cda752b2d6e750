"""Answers from a table of sketches: numbers with their bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from ..definition.aggregate import Aggregate
from .schema import END, START, aggregates_of, keys_of


def query(table: pa.Table) -> pl.DataFrame:
    """The answers of every window and group, in the table's order.

    Exact aggregates are plain columns. `distinct` becomes a struct (estimate, lower, upper), `quantiles` and
    `kll_quantiles` a struct (n, quantiles: a list of q, value, lower, upper), `top_k` a list of structs
    (item, estimate, lower, upper) and `sample` a struct (n, values, and the error at 95 % of a share read
    off the sample).
    Bounds hold with the confidence that the family states: always for `quantiles` and `top_k`, 95.4 % for
    `distinct`, 99 % for `kll_quantiles`. Raises `SketchError` for a table of something else.

    >>> import polars as pl
    >>> from streamgauge import Stream, StreamTester, count, top_k
    >>> rows = Stream.from_batches({"at": pl.Int64, "tag": pl.String}, time=pl.from_epoch("at"))
    >>> tester = StreamTester(rows.tumbling("1m").agg(rows=count(), tags=top_k("tag", k=1)))
    >>> _ = tester.feed([{"at": 1_767_225_600, "tag": tag} for tag in ("a", "b", "a")])
    >>> query(tester.finish().tables()).select("rows", "tags").to_dicts()
    [{'rows': 3, 'tags': [{'item': 'a', 'estimate': 2, 'lower': 2, 'upper': 2}]}]
    """
    names = [START, END, *keys_of(table.schema)]
    found = pl.DataFrame(pl.from_arrow(table.select(names)))
    columns = [
        pl.Series(name, answers(asked, table.column(name)))
        for name, asked in aggregates_of(table.schema).items()
    ]
    return found.with_columns(columns)


def answers(asked: Aggregate, column: pa.Array | pa.ChunkedArray) -> Any:
    """The answer for each sketch in an aggregate's column, in order: an Arrow array or a list."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    groups = asked.groups(len(column))
    groups.merge(np.arange(len(column)), column)
    return groups.answers(**asked.answer)
