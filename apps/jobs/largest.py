"""The rows of a table that have the most of something, window by window."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from ...operators.table.query import query
from ...operators.table.schema import END, START, keys_of


def largest(table: pa.Table, by: str, most: int) -> pa.Table:
    """The `most` rows of each window, and of each value of the first key, whose answer `by` is the largest.

    Of rows that have the same, those come first whose keys do.
    """
    keys = list(keys_of(table.schema))
    rows = query(table.select([START, END, *keys, by])).with_row_index("row")
    if isinstance(rows.schema[by], pl.Struct):
        rows = rows.with_columns(pl.col(by).struct.field("estimate"))
    rows = rows.sort(by, *keys, descending=[True, *([False] * len(keys))], nulls_last=True)
    kept = rows.group_by(START, END, *keys[:1], maintain_order=True).head(most)
    return table.take(kept["row"].sort().to_arrow())
