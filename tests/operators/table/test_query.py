"""Answers of a table of sketches beside the exact ones."""

from __future__ import annotations

import polars as pl
import pytest

from streamgauge.operators.table.query import query
from streamgauge.operators.table.sketch_table import merge

from .posts import frame, table


def test_answers_lie_beside_the_exact_ones() -> None:
    rows = frame(3)
    answer = query(merge(table(rows), by=[], every="1h")).row(0, named=True)
    assert answer["posts"] == 4_000
    assert answer["m"] == pytest.approx(rows["x"].mean())
    assert answer["var"] == pytest.approx(rows["x"].var())
    assert answer["users"]["lower"] <= rows["user"].n_unique() <= answer["users"]["upper"]
    for quantile in answer["spread"]["quantiles"]:
        assert quantile["lower"] <= rows["x"].quantile(quantile["q"]) <= quantile["upper"]
    last_one = rows.filter(pl.col("at") == pl.col("at").max())["user"].max()
    assert answer["end"] == last_one
