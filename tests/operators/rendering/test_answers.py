"""Answers as people see them, of each kind that an aggregate gives."""

from __future__ import annotations

import polars as pl
import pytest

import streamgauge as sg


@pytest.mark.slow
def test_items_with_weights_are_shown_with_them() -> None:
    rows = pl.DataFrame({"item": ["x", "y"], "weight": [1.0, 2.5]})
    sampled = sg.Stream.from_frame(rows).agg(sampled=sg.stored.var_opt("item", weight="weight"))
    table = str(sampled.run(progress=False).table)
    assert "x (weight 1)" in table and "y (weight 2.5)" in table
