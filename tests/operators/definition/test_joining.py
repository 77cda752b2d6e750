"""What a join of two streams is, and which can't be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.definition_diff import differences
from streamgauge.operators.definition.described_stream import described_stream
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.definition.tables import LookupTable
from streamgauge.operators.formats.json.decoder import json

from ...cases import each

LEFT = {"id": pl.Int64, "kind": pl.String, "n": pl.Int64, "at": pl.Int64}
RIGHT = {"id": pl.Int64, "kind": pl.String, "m": pl.Float64, "at": pl.Int64}


def rows(topic: str = "ads", schema: dict[str, Any] = LEFT, **where: Any) -> Stream:
    return Stream.from_kafka(topic, value=json(schema), time=pl.from_epoch("at", time_unit="us"), **where)


def clicks(**where: Any) -> Stream:
    return rows("clicks", RIGHT, **where)


def test_a_pair_has_the_columns_of_both_and_those_of_the_key_once() -> None:
    joined = rows().join(clicks(), on="id", within="1m")
    assert joined.columns == pl.Schema(
        {**LEFT, "kind_right": pl.String, "m": pl.Float64, "at_right": pl.Int64}
    )
    joined = rows().join(clicks(), on=["id", "kind"], within="1m", suffix="_2", how="outer")
    assert joined.columns == pl.Schema({**LEFT, "m": pl.Float64, "at_2": pl.Int64})
    assert joined.reading.joined is not None and joined.reading.in_words() == "ads and clicks"
    pairs = joined.reading.joined.paired(
        pl.DataFrame([(1, "a", 2, 3)], schema=LEFT, orient="row"),
        pl.DataFrame([(1, "a", 0.5, 4)], schema=RIGHT, orient="row"),
    )
    assert pairs.schema == joined.columns and pairs.rows() == [(1, "a", 2, 3, 0.5, 4)]
    one, two = (
        joined.reading.joined.alone(
            pl.DataFrame([(1, "a", 2, 3)], schema=schema, orient="row", strict=False), side
        )
        for side, schema in enumerate((LEFT, RIGHT))
    )
    assert one.schema == two.schema == joined.columns
    assert one.rows() == [(1, "a", 2, 3, None, None)] and two.rows() == [(1, "a", None, None, 2.0, 3)]


@each(
    ("make", "reported"),
    [
        (lambda: rows().join(5, on="id", within="1m"), "not a table, nor a stream"),
        (lambda: rows().join(clicks(), on="id"), "set the largest distance"),
        (lambda: rows().join(clicks(), on="id", within="soon"), "not a duration"),
        (lambda: rows().join(clicks(), on="n", within="1m"), "no column 'n' .* of the right stream"),
        (lambda: rows().join(clicks(), on="m", within="1m"), "no column 'm' .* of the left stream"),
        (lambda: rows().join(clicks(), on=[], within="1m"), "name the column that both streams have"),
        (lambda: rows().join(clicks(), on=5, within="1m"), "on must name a column of both streams, .* got 5"),
        (lambda: rows().join(clicks(), on="id", within="1m", how="right"), '"inner", "left" or "outer"'),
        (
            lambda: rows().join(clicks(), on="id", within="1m", suffix=1),
            "suffix must be a string to append",
        ),
        (lambda: rows().join(clicks(), on="id", within="1m", suffix=""), "choose another suffix"),
        (lambda: rows().join(clicks(), on="id", within="1m", limit=0), "limit must be an integer ≥ 1, got 0"),
        (
            lambda: rows().join(Stream.from_kafka("ads", value=json(LEFT)), on="id", within="1m"),
            "both streams read the topic 'ads', with different decoders or event times",
        ),
        (
            lambda: rows().join(clicks(bootstrap_servers="b:1"), on="id", within="1m"),
            "from different brokers",
        ),
        (lambda: rows("^ads").join(clicks(), on="id", within="1m"), "one topic by its name"),
        (lambda: rows(["a", "b"]).join(clicks(), on="id", within="1m"), "one topic by its name"),
        (lambda: rows().merge(rows("b")).join(clicks(), on="id", within="1m"), "one topic by its name"),
        (lambda: rows().join(clicks().select("id", "at"), on="at", within="1m").merge(rows()), "is joined"),
        (
            lambda: rows().join(clicks(), on="id", within="1m").join(rows("c"), on="id", within="1m"),
            "of ads and clicks are joined already",
        ),
        (
            lambda: rows("c").join(rows().join(clicks(), on="id", within="1m"), on="id", within="1m"),
            "of ads and clicks are joined already",
        ),
        (
            lambda: rows().join(clicks(), on="id", within="1m").count_window(3),
            "has a join with another stream",
        ),
        (lambda: rows().with_columns(id=pl.lit("a")).join(clicks(), on="id", within="1m"), "cast one"),
        (lambda: rows().deduplicate("id", within="1m").join(clicks(), on="id", within="1m"), "deduplicate"),
        (lambda: rows().join(clicks(), on="id", within="1m").deduplicate("id", within="1m"), "never dupl"),
        (lambda: rows().tumbling("1m").join(clicks(), on="id", within="1m"), "windows already"),
        (lambda: rows().join(clicks().tumbling("1m"), on="id", within="1m"), "windows already"),
        (lambda: rows().join(TABLE, on="id").join(clicks(), on="id", within="1m"), "whose rows change"),
        (lambda: rows().join(TABLE, on="id", within="1m"), "within= is for a stream"),
        (lambda: rows().join(TABLE, on="id", limit=10), "limit= is for a stream"),
        (lambda: rows().join(TABLE, on="id", how="outer"), 'with a table how must be "inner" or "left", got'),
        (lambda: FRAMES.join(clicks(), on="id", within="1m"), "come from frames"),
    ],
)
def test_what_can_not_be_joined_is_refused_where_it_is_written(
    make: Callable[[], Any], reported: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=reported):
        make()


TABLE = LookupTable.from_kafka("kinds", value=json({"label": pl.String}), key=pl.Int64)
FRAMES = Stream.from_schema(LEFT, time=pl.from_epoch("at"))


def joined(**how: Any) -> Stream:
    joined = rows().join(clicks(), **{"on": "id", "within": "1m", **how})
    return joined.join(TABLE, on="id", how="left").tumbling("1m").agg(n=count())


def test_a_join_is_part_of_the_definition() -> None:
    plain, before = rows().tumbling("1m").agg(n=count()), joined().definition()
    assert differences(before, joined(on=["id", "kind"], within="2m", how="left").definition()) == [
        'on= of the join changed from ["id"] to ["id", "kind"]',
        'within= of the join changed from "1m" to "2m"',
        'how= of the join changed from "inner" to "left"',
    ]
    assert "were joined before" in differences(before, plain.definition())[0]
    assert "are joined now" in differences(plain.definition(), before)[0]
    assert differences(before, joined(limit=5).definition()) == []
    assert len({one.fingerprint() for one in (joined(), joined(within="2m"), joined(how="left"), plain)}) == 4


@pytest.mark.parametrize("how", ["inner", "left", "outer"])
def test_who_knows_only_the_description_closes_windows_at_the_same_time(how: str) -> None:
    stream = joined(how=how)
    assert described_stream(stream.definition()).closing_delay_us == stream.closing_delay_us
    assert stream.closing_delay_us == (10 if how == "inner" else 130) * 1_000_000
