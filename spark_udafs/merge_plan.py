"""Partial tables of sketches in, one table of sketches out, merged by Catalyst's own aggregates."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ..operators.lateness import YEAR_1, YEAR_10000
from ..operators.table import END, START
from .forms import definition, key_column, quoted
from .partials import ACCOUNT, AHEAD, Partials, real_rows

OBSERVED = "streamgauge"
"""The name of the account among a query's observed metrics."""


def merge_announced(partials: DataFrame, plan: Partials) -> DataFrame:
    """The table of sketches of partial rows whose source announces how far event time is complete.

    Each micro-batch's account is among the query's observed metrics, under the name "streamgauge".
    """
    account = [F.sum(F.col(f"__{name}")).alias(name) for name in ACCOUNT]
    rows = partials.observe(OBSERVED, *account)
    if partials.isStreaming:
        rows = rows.withWatermark(END, AHEAD)
    # Below the watermark, so that announcing rows move it and then vanish.
    return _merged(rows.filter(real_rows()), plan, [F.col(START), F.col(END)])


def merge_timed(partials: DataFrame, plan: Partials, window: Column) -> DataFrame:
    """The table of sketches of partial rows that Spark cuts into windows itself, by `window`."""
    merged = _merged(partials, plan, [window.alias("__window")])
    ends = [F.col("__window")["start"].alias(START), F.col("__window")["end"].alias(END)]
    return merged.select(*ends, *(quoted(name) for name in merged.columns[1:]))


def merge_whole(partials: DataFrame, plan: Partials) -> DataFrame:
    """The table of sketches of partial rows that are all in one window, from the year 1 to 9999-12-31."""
    # Midnight after the last day of 9999 is a time that Python doesn't have.
    ends = {START: YEAR_1, END: YEAR_10000 - 86_400_000_000}
    merged = _merged(partials, plan, [])
    windows = [F.timestamp_micros(F.lit(end)).alias(name) for name, end in ends.items()]
    return merged.select(*windows, *map(quoted, merged.columns))


def _merged(rows: DataFrame, plan: Partials, windows: list[Column]) -> DataFrame:
    keys = [F.col(quoted(key)) for key in plan.keys]
    aggregates = [F.expr(sql).alias(name) for form in plan.forms for name, sql in form.merged().items()]
    merged = rows.groupBy(*windows, *keys).agg(*aggregates)
    named = merged.columns[: len(windows)]
    columns = [form.final().alias(form.name, metadata=definition(form.asked)) for form in plan.forms]
    typed = [key_column(plan.table.field(key)) for key in plan.keys]
    return merged.select(*named, *typed, *columns)
