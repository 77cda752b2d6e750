"""Python's types, and the names of types, are answered with the type of Polars."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import polars as pl
import pytest

from streamgauge import csv, json

from ...cases import each


@each(
    ("given", "fitting"),
    [
        (str, "pl.String"),
        (int, "pl.Int64"),
        (float, "pl.Float64"),
        (bool, "pl.Boolean"),
        (bytes, "pl.Binary"),
        (datetime, 'pl.Datetime("us")'),
        ("str", "pl.String"),
        ("double", "pl.Float64"),
        ("whatever", "pl.String"),
        (list[str], "pl.List(pl.String)"),
        ([str], "pl.List(pl.String)"),
        (None, "pl.String"),
    ],
)
@each("form", [json, csv])
def test_a_column_of_no_polars_type_is_refused_with_which_to_write(
    form: Any, given: Any, fitting: str
) -> None:
    with pytest.raises(TypeError) as raised:
        form({"k": given})
    reported = f"{form.__name__}: 'k' must be of a Polars type, such as {fitting}"
    assert str(raised.value).startswith(reported) and str(raised.value).endswith(f"got {given!r}")


def test_polars_types_pass_by_class_and_by_instance() -> None:
    assert json({"k": pl.Int64, "l": pl.Int64()}).schema == {"k": pl.Int64, "l": pl.Int64}
