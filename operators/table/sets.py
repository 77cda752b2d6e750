"""Compare sets of distinct values: union, intersection, difference and Jaccard index.

    both = compare(table, "buyers", "visitors")                       # two columns of one table
    stayed = compare(today, "users", "users", yesterday, by=["lang"])  # one column of two tables

The columns are `distinct_set` aggregates from the consumer or Spark, or stored Theta sketches. Spark's own
`theta_union`, `theta_intersection` and `theta_difference` do the same without bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import pyarrow as pa

from ...sketches.core.lazy import pl
from ...sketches.core.protocol import SketchError
from ...sketches.core.values.item_kinds import joint_kind
from ...sketches.theta import Theta
from .merge import merge_tables
from .schema import END, START, ArrowStream, aggregates_of, arrow_table, keys_of
from .windows import declared_windows


def compare(
    table: ArrowStream,
    one: str,
    other: str,
    other_table: ArrowStream | None = None,
    by: Sequence[str] | None = None,
) -> pl.DataFrame:
    """Union, intersection, difference and Jaccard index of two columns of sets, by group, with bounds at 95.4
    %.

    `other` is a column of `other_table` if one is given. Groups are the windows and keys of `table`, or only
    the keys (or `window_start` and `window_end`) in `by`, with everything else merged: name only keys to
    compare different windows. A group that only one table has is compared with the empty set.

    Returns the columns of the group and, each a struct of estimate, lower and upper: `union`, `intersection`,
    `difference` (in `one`, not in `other`) and `jaccard` (intersection / union). Exact up to 2^lg_k distinct
    values; beyond that, the relative standard error of an intersection or difference is that of a count times
    √(union / result). Raises `SketchError` for columns that aren't a `distinct_set`, and `ValueError` for
    groups that the tables don't have.

    >>> from datetime import datetime
    >>> import polars as pl
    >>> import streamgauge as sg
    >>> columns = {"at": pl.Datetime("us"), "seen": pl.String, "bought": pl.String}
    >>> rows = sg.Stream.from_schema(columns, time="at").tumbling("1m")
    >>> tester = sg.StreamTester(rows.agg(visitors=sg.distinct_set("seen"), buyers=sg.distinct_set("bought")))
    >>> at = [datetime(2026, 1, 1)] * 3
    >>> seen, bought = ["ann", "bob", "cat"], ["bob", None, None]
    >>> _ = tester.feed(pl.DataFrame({"at": at, "seen": seen, "bought": bought}))
    >>> overlap = sg.compare(tester.finish().tables(), "visitors", "buyers")
    >>> overlap["intersection"][0]["estimate"], overlap["difference"][0]["estimate"]
    (1.0, 2.0)
    """
    first = arrow_table(table)
    second = first if other_table is None else arrow_table(other_table)
    names = [*_times(first), *keys_of(first.schema)] if by is None else list(by)
    left, right = _sets(first, one, names, "one"), _sets(second, other, names, "other")
    on = names or ["everything"]
    pairs = left.join(right, on=on, how="full", nulls_equal=True, coalesce=True, maintain_order="left_right")
    aggregates = [aggregates_of(t.schema)[c] for t, c in ((first, one), (second, other))]
    joint_kind(aggregates[0].item_kind, aggregates[1].item_kind, f"{one} and {other}", "compare")
    rows = [
        compared(*(_set(image, one.params["lg_k"]) for image, one in zip(pair, aggregates)))
        for pair in zip(pairs["one"], pairs["other"])
    ]
    columns = [pl.Series(name, [row[name] for row in rows], _bounded()) for name in _NAMES]
    return pairs.select(names).with_columns(columns) if names else pl.DataFrame(columns)


_NAMES = ("union", "intersection", "difference", "jaccard")


@cache
def _bounded() -> pl.Struct:
    return pl.Struct({"estimate": pl.Float64, "lower": pl.Float64, "upper": pl.Float64})


def _set(image: bytes | None, lg_k: int) -> Theta:
    return Theta(lg_k) if image is None else Theta.from_bytes(image, lg_k)


def _sets(table: pa.Table, column: str, by: list[str], name: str) -> pl.DataFrame:
    """The groups `by`, and the image of each group's set in a column called `name`."""
    aggregate = aggregates_of(table.schema).get(column)
    if aggregate is None or aggregate.name != "distinct_set":
        kind = "not an aggregate of this table" if aggregate is None else f"a {aggregate.name}"
        raise SketchError(f"compare: {column!r} is {kind}; name a distinct_set")
    keys, windows = keys_of(table.schema), _times(table)
    unknown = [key for key in by if key not in [*windows, *keys]]
    if unknown or (START in by) != (END in by):
        raise ValueError(f"compare: by= takes {START} together with {END}, and keys of {keys}; got {by}")
    wanted = table.select([START, END, *keys, column])
    kept = [key for key in keys if key in by]
    merged = merge_tables([wanted if START in by else _in_one_window(wanted)], by=kept)
    sets = pl.DataFrame(pl.from_arrow(merged.select([*by, column]))).rename({column: name})
    return sets if by else sets.with_columns(everything=pl.lit(0))


def _times(table: pa.Table) -> list[str]:
    """The columns of a table's windows, if it has any."""
    windows = declared_windows(table.schema)
    return [] if windows is not None and windows.all_time else [START, END]


def _in_one_window(table: pa.Table) -> pa.Table:
    """The rows with the first row's window assigned to all of them."""
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
