"""Answers from a table of sketches: numbers with their bounds."""

from __future__ import annotations

import polars as pl

from .schema import ArrowStream
from .sketch_table import SketchTable


def query(table: ArrowStream) -> pl.DataFrame:
    """Return the answers of every window and group, in the table's order, like `SketchTable.answers`.

    Exact aggregates are plain columns. `distinct` becomes a struct (estimate, lower, upper), `quantiles` and
    `kll_quantiles` a struct (n, quantiles: a list of q, value, lower, upper), `top_k` a list of structs
    (item, estimate, lower, upper) and `sample` a struct (n, values, and the error at 95 % of a share
    estimated from the sample). Bounds hold with the confidence that the family states: always for `quantiles`
    and `top_k`, 95.4 % for `distinct`, 99 % for `kll_quantiles`. Raises `SketchError` for a table of anything
    but sketches.

    >>> import polars as pl
    >>> import streamgauge as sg
    >>> rows = sg.Stream.from_schema({"at": pl.Int64, "tag": pl.String}, time=pl.from_epoch("at"))
    >>> tester = sg.StreamTester(rows.tumbling("1m").agg(rows=sg.count(), tags=sg.top_k("tag", k=1)))
    >>> _ = tester.feed([{"at": 1_767_225_600, "tag": tag} for tag in ("a", "b", "a")])
    >>> sg.query(tester.finish().tables()).select("rows", "tags").to_dicts()
    [{'rows': 3, 'tags': [{'item': 'a', 'estimate': 2, 'lower': 2, 'upper': 2}]}]
    """
    return SketchTable(table).answers()
