"""A table of sketches in, numbers with their bounds out."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from ..definition.aggregates import Aggregate
from .schema import END, START, aggregates_of, keys_of


def query(table: pa.Table) -> pl.DataFrame:
    """The answers of every window and group, in the table's order.

    Exact aggregates are plain columns. Of the others, `distinct` is a struct (estimate, lower, upper),
    `quantiles` and `kll_quantiles` a struct (n, quantiles: a list of q, value, lower, upper), `top_k` a list
    of structs (item, estimate, lower, upper) and `sample` a struct (n, values, and the error of a share at
    95 %); bounds are those the family states.
    """
    names = [START, END, *keys_of(table.schema)]
    found = pl.DataFrame(pl.from_arrow(table.select(names)))
    columns = [
        pl.Series(name, answers(asked, table.column(name)))
        for name, asked in aggregates_of(table.schema).items()
    ]
    return found.with_columns(columns)


def answers(asked: Aggregate, column: pa.Array | pa.ChunkedArray) -> Any:
    """The answer of each value of an aggregate's column: an Arrow array or a list, in order."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    groups = asked.groups(len(column))
    groups.merge(np.arange(len(column)), column)
    return groups.answers(**asked.answer)
