"""Aggregates by their names, and sizes of deltas as the table topic has them."""

from __future__ import annotations

import pytest

from streamgauge.apps.sizing.synthetic import aggregates_of, delta_bytes, delta_of, frame_of, stream_of
from streamgauge.operators.consumer.log.messages import encode
from streamgauge.operators.families import FAMILIES


def test_every_public_aggregate_can_be_named() -> None:
    names = [name for name, own in FAMILIES.items() if not own.stored]
    assert [*aggregates_of(",".join(names))] == names


def test_a_repeated_aggregate_gets_a_column_of_its_own() -> None:
    assert [*aggregates_of("sum,sum, sum,sample")] == ["sum", "sum_2", "sum_3", "sample"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nope", "no aggregate is called 'nope'"),
        ("cpc", "no aggregate is called 'cpc'"),
        ("distinct:k=3", "distinct has no parameter 'k'; it has lg_k"),
        ("distinct:lg_k=big", "lg_k must be a number, got 'big'"),
        ("distinct:lg_k=99", "lg_k"),
        ("", "no aggregate is called ''"),
    ],
)
def test_what_can_not_be_sized_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        stream_of(aggregates_of(text))


def test_bytes_are_those_of_messages_of_the_table_topic() -> None:
    delta = delta_of(stream_of(aggregates_of("count,sum")), frame_of(2_000, 100))
    empty, row = delta_bytes(delta)
    [message] = encode(delta, "table", 1)
    headers = sum(len(name) + len(value) for name, value in message.headers)
    assert delta.table.num_rows == 100
    assert empty + 100 * row == pytest.approx(len(message.value) + headers)
