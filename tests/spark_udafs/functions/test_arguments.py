"""Arguments of a call in SQL: by place and by name, and constants in the types that SQL gives them."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from math import inf, nan
from typing import Any

import pyarrow as pa
import pytest

from streamgauge.sketches.core.protocol import SketchError
from streamgauge.spark_udafs.functions.arguments import bound, constant, converted


def test_by_place_and_by_name() -> None:
    accepted = ("f", ["column", "time"], {"k": 5, "p": 0.5})
    assert bound(*accepted, ["a", "b", 7], {"p": 1}) == {"column": "a", "time": "b", "k": 7, "p": 1}
    with pytest.raises(
        TypeError, match=r"f\(column, time, k=5, p=0.5\): missing a required argument: 'time'"
    ):
        bound(*accepted, ["a"], {})
    with pytest.raises(TypeError, match="unexpected keyword argument 'q'"):
        bound(*accepted, ["a", "b"], {"q": 1})
    with pytest.raises(TypeError, match="too many positional arguments"):
        bound(*accepted, ["a"] * 5, {})


@pytest.mark.parametrize(
    ("given", "like", "result"),
    [
        (Decimal("0.01"), 0.5, 0.01),
        (1, 0.5, 1.0),
        (Decimal(11), 12, 11),
        (11.0, 12, 11),
        (timedelta(minutes=10), 3600.0, 600.0),
        (True, False, True),
        ("sum", "max", "sum"),
    ],
)
def test_constants_become_what_the_default_is(given: Any, like: Any, result: Any) -> None:
    value = constant("f", "k", pa.array([given] * 3), like)
    assert (value, type(value)) == (result, type(like))


@pytest.mark.parametrize(
    ("given", "like"),
    [("11", 12), (11.5, 12), (inf, 12), (nan, 12), (True, 12), (1, True), (1, "sum"), (None, 1)],
)
def test_what_is_another_kind_is_refused(given: Any, like: Any) -> None:
    with pytest.raises(SketchError, match="f: k must be of the same type as its default"):
        converted("f", "k", given, like)


@pytest.mark.parametrize(
    ("values", "reported"), [([1, 2], "2 values"), ([None, None], "null"), ([1, None], "2 values")]
)
def test_an_option_is_one_constant(values: list[Any], reported: str) -> None:
    with pytest.raises(
        SketchError, match=f"f: k must be one constant for all rows of a group, got {reported}"
    ):
        constant("f", "k", pa.array(values), 1)
