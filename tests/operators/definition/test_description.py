"""The fingerprint: of what decides whether state can be merged, and of nothing that an upgrade changes."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from streamgauge.operators.definition import expression_tree, steps
from streamgauge.operators.definition.aggregates import count, distinct, quantiles, top_k
from streamgauge.operators.definition.definition_diff import differences, rewritten
from streamgauge.operators.definition.description import VERSION
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json as json_value

COLUMNS = {"user": pl.String, "at": pl.Datetime("us"), "tags": pl.List(pl.String), "x": pl.Int32}
POSTS = Stream.from_schema(COLUMNS, time="at")
KEPT = POSTS.filter(pl.col("x") > 0)


def posts(stream: Stream = KEPT, every: str = "1m", **window: Any) -> Stream:
    return stream.group_by("user").tumbling(every, **window).agg(posts=count(), tags=top_k("tags"))


def kafka(topic: str = "posts", **columns: Any) -> Stream:
    source = Stream.from_kafka(topic, value=json_value(columns or {"user": pl.String}))
    return source.tumbling("1m").agg(posts=count())


def test_what_decides_whether_state_can_be_merged_is_in_the_fingerprint() -> None:
    streams = [
        posts(),
        posts(every="2m"),
        posts(delay="0s"),
        posts(max_ahead=None),
        KEPT.tumbling("1m").agg(posts=count(), tags=top_k("tags")),
        KEPT.group_by("user").tumbling("1m").agg(posts=count(), tags=top_k("tags", max_size=64)),
        KEPT.group_by("user").tumbling("1m").agg(posts=count(), tags=distinct("tags")),
        KEPT.group_by("user").tumbling("1m").agg(posts=count(), tag=top_k("tags")),
        POSTS.tumbling("1m").agg(x=quantiles("x")),
        kafka(),
        kafka("others"),
        kafka(user=pl.Int64),
        kafka(user=pl.Struct({"id": pl.Int64})),
        kafka(user=pl.Struct({"id": pl.Int32})),
    ]
    assert len({stream.fingerprint() for stream in streams}) == len(streams)
    assert posts().fingerprint() == posts().fingerprint()
    assert POSTS.group_by("user", "x").fingerprint() != POSTS.group_by("x", "user").fingerprint()


def test_the_question_and_the_row_expressions_are_not() -> None:
    aggregates = {"posts": count(), "tags": top_k("tags", k=3)}
    assert KEPT.group_by("user").tumbling("1m").agg(**aggregates).fingerprint() == posts().fingerprint()
    assert posts(POSTS.filter(pl.col("x") > 1)).fingerprint() == posts().fingerprint()
    assert differences(posts().definition(), posts(POSTS.filter(pl.col("x") > 1)).definition()) == [
        'step 1 changed from filter(col("x") > 0) to filter(col("x") > 1)'
    ]


def test_the_form_of_the_fingerprint_stays() -> None:
    """A fingerprint that changes hides all groups' state: then `VERSION` must be another, too."""
    assert (VERSION, posts().fingerprint(), kafka().fingerprint()) == (
        1,
        "465dea5806808bb1",
        "8a0c7833601d2843",
    )


def lowered(result: Any) -> Any:
    """Polars' form of an expression as a version could have it that makes ``a > b`` of ``not (a <= b)``."""
    if isinstance(result, dict) and (both := result.get("BinaryExpr")) and both["op"] == "Gt":
        less = {"BinaryExpr": {**{side: lowered(both[side]) for side in ("left", "right")}, "op": "LtEq"}}
        return {"Function": {"input": [less], "function": {"Boolean": "Not"}}}
    if isinstance(result, dict):
        return {key: lowered(value) for key, value in result.items()}
    return [lowered(value) for value in result] if isinstance(result, list) else result


def test_another_polars_changes_neither_fingerprint_nor_state(monkeypatch: pytest.MonkeyPatch) -> None:
    before, fingerprint = posts().definition(), posts().fingerprint()
    serialised = expression_tree._serialised
    monkeypatch.setattr(expression_tree, "_serialised", lambda expression: lowered(serialised(expression)))
    monkeypatch.setattr(pl, "__version__", "2.9.0")
    after = json.loads(json.dumps(posts(POSTS.filter(pl.col("x") > 0)).definition()))
    assert after["steps"] != before["steps"]
    assert posts(POSTS.filter(pl.col("x") > 0)).fingerprint() == fingerprint
    assert differences(before, after) == []
    assert rewritten(before, after) == ['step 1 had col("x") > 0, and has (col("x") <= 0).not_()']
    really = posts(POSTS.filter(pl.col("user") == "ann")).definition()
    assert differences(before, really) == [
        'step 1 changed from filter(col("x") > 0) to filter(col("user") == "ann")'
    ]


def test_the_expressions_of_a_step_are_put_into_words_once(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    text = steps.expression_text
    monkeypatch.setattr(steps, "expression_text", lambda one: written.append(text(one)) or written[-1])
    rows = POSTS.filter(pl.col("x") > 2)
    streams = [posts(rows), posts(rows, every="2m")]
    assert len({stream.fingerprint() for stream in streams for _ in range(3)}) == 2
    assert written == ['col("x") > 2']
