"""Compare sets of distinct values: how many are in either, in both, in one only, and how alike they are.

    both = compare(table, "buyers", "visitors")                       # two columns of one table
    stayed = compare(today, "users", "users", yesterday, by=["lang"])  # one column of two tables

The columns are those of `distinct_set`, made by the consumer or Spark, or Theta sketches that were stored
before. Spark's own `theta_union`, `theta_intersection` and `theta_difference` do the same without bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from ...sketches.core.protocol import SketchError
from ...sketches.theta import Theta
from .merge import merge
from .schema import END, START, aggregates_of, keys_of


def compare(
    table: pa.Table,
    one: str,
    other: str,
    other_table: pa.Table | None = None,
    by: Sequence[str] | None = None,
) -> pl.DataFrame:
    """Union, intersection, difference and likeness of two columns of sets, by group, with bounds at 95.4 %.

    `other` is a column of `other_table` if one is given. Groups are the windows and keys of `table`, or the
    keys (or `window_start` and `window_end`) that `by` names, all else merged: name keys alone to compare
    different windows. A group that only one table has is compared with the empty set.

    Gives the columns of the group and, each a struct of estimate, lower and upper: `union`, `intersection`,
    `difference` (in `one`, not in `other`) and `jaccard` (the share of the union that both have). Exact up to
    2^lg_k different values; beyond, the relative standard error of an intersection or difference is that of a
    count times √(union / result). Raises `SketchError` for columns that aren't a `distinct_set`, and
    `ValueError` for groups that the tables don't have.

    >>> from datetime import datetime
    >>> from ..definition.aggregates import distinct_set
    >>> from ..sketching.lateness import PartitionTime
    >>> from ..sketching.sketcher import Sketcher
    >>> from ..definition.stream import Stream
    >>> columns = {"at": pl.Datetime("us"), "seen": pl.String, "bought": pl.String}
    >>> rows = Stream.from_batches(columns, time="at")
    >>> asked = {"visitors": distinct_set("seen"), "buyers": distinct_set("bought")}
    >>> sketcher = Sketcher(rows.tumbling("1m").agg(**asked))
    >>> at = [datetime(2026, 1, 1)] * 3
    >>> frame = pl.DataFrame({"at": at, "seen": ["ann", "bob", "cat"], "bought": ["bob", None, None]})
    >>> _ = sketcher.add(frame, PartitionTime())
    >>> found = compare(sketcher.take(), "visitors", "buyers")
    >>> found["intersection"][0]["estimate"], found["difference"][0]["estimate"]
    (1.0, 2.0)
    """
    other_table = table if other_table is None else other_table
    if by is None:
        by = [START, END, *keys_of(table.schema)]
    names = list(by)
    left, right = _sets(table, one, names, "one"), _sets(other_table, other, names, "other")
    on = names or ["everything"]
    pairs = left.join(right, on=on, how="full", nulls_equal=True, coalesce=True, maintain_order="left_right")
    sizes = [aggregates_of(t.schema)[c].params["lg_k"] for t, c in ((table, one), (other_table, other))]
    found = [
        compared(
            *(Theta(k) if image is None else Theta.from_bytes(image, k) for image, k in zip(pair, sizes))
        )
        for pair in zip(pairs["one"], pairs["other"])
    ]
    columns = [pl.Series(name, [row[name] for row in found], _BOUNDED) for name in _NAMES]
    return pairs.select(names).with_columns(columns) if names else pl.DataFrame(columns)


_NAMES = ("union", "intersection", "difference", "jaccard")
_BOUNDED = pl.Struct({"estimate": pl.Float64, "lower": pl.Float64, "upper": pl.Float64})


def _sets(table: pa.Table, column: str, by: list[str], name: str) -> pl.DataFrame:
    """The groups `by`, and the image of each group's set in a column called `name`."""
    asked = aggregates_of(table.schema).get(column)
    if asked is None or asked.name != "distinct_set":
        told = "not an aggregate of this table" if asked is None else f"a {asked.name}"
        raise SketchError(f"compare: {column!r} is {told}, expected a distinct_set")
    keys, windows = keys_of(table.schema), [START, END]
    unknown = [key for key in by if key not in [*windows, *keys]]
    if unknown or any(key in by for key in windows) != all(key in by for key in windows):
        raise ValueError(f"compare: by= takes {START} together with {END}, and keys of {keys}; got {by}")
    wanted = table.select([START, END, *keys, column])
    kept = [key for key in keys if key in by]
    found = merge(wanted, by=kept) if START in by else merge(_in_one_window(wanted), by=kept)
    sets = pl.DataFrame(pl.from_arrow(found.select([*by, column]))).rename({column: name})
    return sets if by else sets.with_columns(everything=pl.lit(0))


def _in_one_window(table: pa.Table) -> pa.Table:
    """The rows with the first row's window given to all of them."""
    for at, name in enumerate((START, END)):
        first: Any = table.column(name).take([0] * table.num_rows) if table.num_rows else table.column(name)
        table = table.set_column(at, table.schema.field(name), first)
    return table


def compared(one: Theta, other: Theta) -> dict[str, dict[str, float]]:
    """Union, intersection, difference and Jaccard index of two sets, each with its bounds."""
    lower, estimate, upper = one.jaccard(other)
    return {
        "union": (one | other).answer(),
        "intersection": (one & other).answer(),
        "difference": (one - other).answer(),
        "jaccard": {"estimate": estimate, "lower": lower, "upper": upper},
    }
