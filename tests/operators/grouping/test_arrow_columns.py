"""Polars columns become the arrays that Polars' own conversion gives."""

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.operators.grouping.arrow_columns import arrow_column

TEXTS = st.one_of(st.text(max_size=4), st.text(max_size=14), st.text(max_size=40))


@given(st.lists(TEXTS), st.data())
def test_texts_are_those_of_polars(texts, data):
    column = pl.concat(
        [pl.Series(["before"]), pl.Series(texts, dtype=pl.String)], rechunk=data.draw(st.booleans())
    )
    column = column.slice(data.draw(st.integers(0, len(column))), data.draw(st.integers(0, len(column))))
    array = arrow_column(column)
    assert array.type == pa.large_string() and array.offset == 0
    array.validate(full=True)
    assert array.to_pylist() == column.to_list()


@pytest.mark.parametrize(
    "column",
    [
        pl.Series(["a", None, "b"]),
        pl.Series([None, None], dtype=pl.String),
        pl.Series([], dtype=pl.String),
        pl.Series([b"\xff", b""]),
        pl.Series([1.5, None]),
        pl.Series([["a"], []]),
        pl.Series(["a", "b"], dtype=pl.Categorical),
    ],
)
def test_other_columns_are_converted_by_polars(column):
    expected = column.to_arrow(compat_level=pl.CompatLevel.oldest())
    assert arrow_column(column).equals(expected)
    assert arrow_column(column).type == expected.type
