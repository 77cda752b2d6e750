"""Select the rows of a table with the largest values, window by window."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from ...operators.table.query import query
from ...operators.table.schema import END, START, keys_of


def largest(table: pa.Table, by: str, most: int) -> pa.Table:
    """Select the `most` rows with the largest answer `by` in each window, for each value of the first key.

    Ties are ordered by key.
    """
    keys = list(keys_of(table.schema))
    rows = query(table.select([START, END, *keys, by])).with_row_index("row")
    if isinstance(rows.schema[by], pl.Struct):
        rows = rows.with_columns(pl.col(by).struct.field("estimate"))
    rows = rows.sort(by, *keys, descending=[True, *([False] * len(keys))], nulls_last=True)
    kept = rows.group_by(START, END, *keys[:1], maintain_order=True).head(most)
    return table.take(kept["row"].sort().to_arrow())
