"""Spark's functions for frequent items, which PySpark lacks; our functions read and write their structs.

`from_spark_top_k` reads the struct of `approx_top_k_accumulate`; `to_spark_top_k_string` and `_long` write
one for `approx_top_k_combine` and `approx_top_k_estimate`.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

ColumnOrName = Column | str


def approx_top_k(column: ColumnOrName, k: int = 5, max_items_tracked: int = 10_000) -> Column:
    """Spark's SQL function of this name: the `k` most frequent items of a group."""
    return F.call_function("approx_top_k", _column(column), F.lit(k), F.lit(max_items_tracked))


def approx_top_k_accumulate(column: ColumnOrName, max_items_tracked: int = 10_000) -> Column:
    """Spark's SQL function of this name: a group's frequent items as a struct that can be merged."""
    return F.call_function("approx_top_k_accumulate", _column(column), F.lit(max_items_tracked))


def approx_top_k_combine(state: ColumnOrName, max_items_tracked: int | None = None) -> Column:
    """Spark's SQL function of this name: merges the structs of a group."""
    more = [] if max_items_tracked is None else [F.lit(max_items_tracked)]
    return F.call_function("approx_top_k_combine", _column(state), *more)


def approx_top_k_estimate(state: ColumnOrName, k: int = 5) -> Column:
    """Spark's SQL function of this name: the `k` most frequent items of a struct."""
    return F.call_function("approx_top_k_estimate", _column(state), F.lit(k))


def _column(column: ColumnOrName) -> Column:
    return F.col(column) if isinstance(column, str) else column
