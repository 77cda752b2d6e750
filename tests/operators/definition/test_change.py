"""What changed between two definitions, in words."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from streamgauge.operators.definition.aggregates import count, distinct, top_k
from streamgauge.operators.definition.change import differences
from streamgauge.operators.definition.stream import Stream

ROWS = Stream.from_batches({"user": pl.String, "n": pl.Int64, "at": pl.Datetime("us")}, time="at")
KEPT = ROWS.filter(pl.col("n") > 1)
USERS = KEPT.group_by("user").tumbling("1m")
OLD = USERS.agg(posts=count())


@pytest.mark.parametrize(
    ("new", "told"),
    [
        (
            KEPT.group_by("user").tumbling("2m").agg(posts=count()),
            ["the window changed from tumbling 1m to tumbling 2m"],
        ),
        (
            KEPT.group_by("user").tumbling("1m", delay="5s").agg(posts=count()),
            ["the delay changed from 10s to 5s"],
        ),
        (
            KEPT.group_by("user").tumbling("1m", max_ahead=None).agg(posts=count()),
            ["max_ahead changed from 1h to no limit"],
        ),
        (KEPT.tumbling("1m").agg(posts=count()), ['the grouping changed from "user" to no keys']),
        (USERS.agg(messages=count()), ['the aggregate "posts" was renamed to "messages"']),
        (
            USERS.agg(posts=count(), users=distinct("user")),
            ['the aggregate "users" was added: distinct("user", lg_k=12)'],
        ),
        (
            USERS.agg(posts=count("n")),
            ['the aggregate "posts" changed from count() to count("n")'],
        ),
        (
            ROWS.filter(pl.col("n") > 2).group_by("user").tumbling("1m").agg(posts=count()),
            [f"step 1 changed from filter({pl.col('n') > 1}) to filter({pl.col('n') > 2})"],
        ),
        (
            ROWS.group_by("user").tumbling("1m").agg(posts=count()),
            [f"step 1 was removed: filter({pl.col('n') > 1})"],
        ),
        (
            Stream(ROWS.source, None, OLD.steps, OLD.keys, OLD.window).agg(posts=count()),
            ["the event time changed from", "to the messages' own timestamps"],
        ),
    ],
)
def test_each_change_is_one_sentence(new: Stream, told: list[str]) -> None:
    found = differences(OLD.definition(), new.definition())
    assert len(found) == 1
    if len(told) == 1:
        assert found == told
    assert all(part in found[0] for part in told)


def test_no_change_is_no_sentence_also_through_json() -> None:
    assert differences(OLD.definition(), json.loads(json.dumps(OLD.definition()))) == []


def test_every_change_of_a_source_is_told() -> None:
    from streamgauge.operators.formats.json import json as json_value

    one = Stream.from_kafka("a", value=json_value({"x": pl.Int64, "y": pl.String}))
    two = Stream.from_kafka("b", value=json_value({"x": pl.Float64, "z": pl.Int8}))
    assert differences(one.definition(), two.definition()) == [
        'the column "y" was removed: String',
        'the column "z" was added: Int8',
        'the column "x" changed from Int64 to Float64',
        'the topic changed from "a" to "b"',
    ]


def test_expressions_of_another_polars_and_unknown_parts_are_told_as_they_are() -> None:
    before: dict[str, Any] = {"steps": [["filter", {"Alien": 1}]], "later": 1}
    after: dict[str, Any] = {"steps": [["filter", {"Alien": 2}]], "later": 2}
    assert differences(before, after) == [
        'step 1 changed from filter({"Alien": 1}) to filter({"Alien": 2})',
        "later changed from 1 to 2",
    ]


def test_whatever_changes_the_fingerprint_is_told() -> None:
    asked = {"a": top_k("user", k=5), "b": distinct("user", lg_k=10)}
    for changed in ({"a": top_k("user", k=6)}, {"b": distinct("n", lg_k=10)}, {"c": count()}):
        one, two = USERS.agg(**asked), USERS.agg(**{**asked, **changed})
        assert one.fingerprint() != two.fingerprint()
        assert len(differences(one.definition(), two.definition())) == 1
