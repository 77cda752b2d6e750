"""Expressions of Polars over messages."""

from __future__ import annotations

import pytest

from streamgauge.agents.ingest.batch import Batch
from streamgauge.agents.ingest.interceptors.expression import Expression

VALUES = [b'{"user": "ann", "n": 1}', b'{"user": "bob", "n": 2}', b"\xff", "é".encode(), b""]


def test_filter_value_and_key() -> None:
    batch = Batch.of(VALUES)
    expression = Expression(
        filter="LENGTH(value) > 1",
        key="""regexp_like(value, 'ann')""",
        value="upper(value)",
    )
    result = expression.open(None).apply(batch)
    assert result.values() == [VALUES[0].upper(), VALUES[1].upper()]
    assert result.keys == [b"true", b"false"]
    assert [line.value for line in result.dead] == [b"\xff"] and result.dropped == {"filter": 2}
    assert result.read == 5


def test_a_value_of_null_is_a_dead_letter() -> None:
    result = Expression(value="CASE WHEN value = 'a' THEN value END").open(None).apply(Batch.of([b"a", b"b"]))
    assert result.values() == [b"a"] and [line.value for line in result.dead] == [b"b"]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, "set filter, value or key to an expression"),
        ({"filter": "value ="}, "filter must be an expression of Polars' SQL over value, got 'value ='"),
        ({"filter": "upper(value)"}, "filter must be true or false"),
        ({"key": "nothing"}, "key must be an expression"),
    ],
)
def test_wrong_expressions_are_refused(settings: dict[str, str], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Expression(**settings)
