"""What changed between two definitions, in words."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from streamgauge.operators.definition.aggregates import count, distinct, top_k
from streamgauge.operators.definition.definition_diff import differences, rewritten
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json as json_text

from ...cases import each

ROWS = Stream.from_schema({"user": pl.String, "n": pl.Int64, "at": pl.Datetime("us")}, time="at")
KEPT = ROWS.filter(pl.col("n") > 1)
USERS = KEPT.group_by("user").tumbling("1m")
OLD = USERS.agg(posts=count())


@each(
    ("new", "lines"),
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
            ['step 1 changed from filter(col("n") > 1) to filter(col("n") > 2)'],
        ),
        (
            ROWS.group_by("user").tumbling("1m").agg(posts=count()),
            ['step 1 was removed: filter(col("n") > 1)'],
        ),
        (
            Stream(ROWS.source, None, OLD.steps, keys=OLD.keys, window=OLD.window).agg(posts=count()),
            ["the event time changed from", "to the messages' own timestamps"],
        ),
    ],
)
def test_each_change_is_one_sentence(new: Stream, lines: list[str]) -> None:
    result = differences(OLD.definition(), new.definition())
    assert len(result) == 1
    if len(lines) == 1:
        assert result == lines
    assert all(part in result[0] for part in lines)


def test_no_change_is_no_sentence_also_through_json() -> None:
    assert differences(OLD.definition(), json.loads(json.dumps(OLD.definition()))) == []


def test_every_change_of_a_source_is_named() -> None:
    from streamgauge.operators.formats.json.decoder import json as json_value

    one = Stream.from_kafka("a", value=json_value({"x": pl.Int64, "y": pl.String}))
    two = Stream.from_kafka("b", value=json_value({"x": pl.Float64, "z": pl.Int8}))
    assert differences(one.definition(), two.definition()) == [
        'the column "y" was removed: string',
        'the column "z" was added: int8',
        'the column "x" changed from int64 to float64',
        'the topic changed from "a" to "b"',
    ]


def test_a_decoder_and_unknown_parts_are_named_as_they_are() -> None:
    before: dict[str, Any] = {"source": {"value": {"decoder": "Lines", "separator": ";"}}, "later": 1}
    after: dict[str, Any] = {"source": {"value": {"decoder": "Lines", "separator": ","}}, "later": 2}
    assert differences(before, after) == [
        'the decoder changed from Lines(separator=";") to Lines(separator=",")',
        "later changed from 1 to 2",
    ]


def test_a_definition_of_another_form_is_named_as_such() -> None:
    old = {"steps": [["filter", {"BinaryExpr": {}}]], "source": {"value": "json"}}
    (reported,) = differences(old, OLD.definition())
    assert reported.startswith("it was written in format version None, by another version of streamgauge")
    (reported,) = differences({**OLD.definition(), "version": 2}, OLD.definition())
    assert "in format version 2, by another version" in reported
    assert rewritten(old, OLD.definition()) == []


def test_whatever_changes_what_is_kept_is_named_and_the_question_is_not() -> None:
    aggregates = {"a": top_k("user", k=5), "b": distinct("user", lg_k=10)}
    one = USERS.agg(**aggregates)
    for changed in ({"a": top_k("user", max_size=64)}, {"b": distinct("n", lg_k=10)}, {"c": count()}):
        two = USERS.agg(**{**aggregates, **changed})
        assert one.fingerprint() != two.fingerprint()
        assert len(differences(one.definition(), two.definition())) == 1
    other = USERS.agg(**{**aggregates, "a": top_k("user", k=6)})
    assert one.fingerprint() == other.fingerprint()
    assert differences(one.definition(), other.definition()) == []


def test_a_change_of_a_key_s_type_is_named() -> None:
    one, two = (
        ROWS.with_columns(key=pl.col("n").cast(kind)).group_by("key").tumbling("1m").agg(posts=count())
        for kind in (pl.Int64, pl.Int8)
    )
    result = differences({"keys": one.definition()["keys"]}, {"keys": two.definition()["keys"]})
    assert result == ['the type of the key "key" changed from int64 to int8']


def under(version: str, *steps: str, time: str = 'col("at")', python: str = "3.11") -> dict[str, Any]:
    """What a stream with such filters was written down as by a version of Polars."""
    by = {"polars": version, "python": python}
    return {
        **OLD.definition(),
        "written_by": by,
        "time": time,
        "steps": [["filter", reported] for reported in steps],
    }


SAME = 'col("n").is_between(1, 5)'
OTHERWISE = '(col("n") >= 1) & (col("n") <= 5)'


def test_other_words_of_another_polars_are_no_difference_but_are_named() -> None:
    before, after = under("1.36.1", SAME), under("2.1.0", OTHERWISE)
    assert differences(before, after) == []
    assert rewritten(before, after) == [f"step 1 had {SAME}, and has {OTHERWISE}"]
    before, after = under("1.36.1", time='col("at").cast(date)'), under("2.1.0", time='date(col("at"))')
    assert differences(before, after) == []
    assert rewritten(before, after)[0].startswith('the event time was col("at").cast(date), and is')


def test_other_words_of_the_same_polars_are_a_difference() -> None:
    before, after = under("2.1.0", SAME), under("2.1.0", OTHERWISE)
    assert differences(before, after) == [f"step 1 changed from filter({SAME}) to filter({OTHERWISE})"]
    assert rewritten(before, after) == []


@pytest.mark.parametrize(
    "after",
    [
        under("2.1.0", 'col("n").is_between(1, 6)'),
        under("2.1.0", 'col("m").is_between(1, 5)'),
        under("2.1.0", '(col("m") >= 1) & (col("m") <= 5)'),
        under("2.1.0"),
        under("2.1.0", SAME, SAME),
        under("2.1.0", SAME, time='col("created")'),
    ],
)
def test_what_no_other_polars_explains_is_a_difference(after: dict[str, Any]) -> None:
    assert len(differences(under("1.36.1", SAME), after)) == 1


def test_functions_are_compared_within_one_version_of_python() -> None:
    texts = ['col("n").map(twice #0123abcd)', 'col("n").map(twice #4567abcd)']
    for polars in ("2.1.0", "2.2.0"):
        before, after = under("2.1.0", texts[0]), under(polars, texts[1])
        assert len(differences(before, after)) == 1 and rewritten(before, after) == []
    before, after = under("2.1.0", texts[0]), under("2.1.0", texts[1], python="3.12")
    assert differences(before, after) == [] and len(rewritten(before, after)) == 1


def test_what_changed_in_one_of_several_merged_streams_is_said_of_that_one() -> None:
    def rows(topic: str) -> Stream:
        return Stream.from_kafka(topic, value=json_text({"user": pl.String, "n": pl.Int64}))

    def definition_of(*streams: Stream) -> dict[str, Any]:
        return streams[0].merge(*streams[1:]).tumbling("1m").agg(posts=count()).definition()

    a, b, c = rows("a"), rows("b"), rows("^c")
    before = definition_of(a, b.filter(pl.col("n") > 1))
    assert differences(before, json.loads(json.dumps(before))) == []
    assert differences(before, definition_of(b.filter(pl.col("n") > 1), a)) == []
    assert differences(before, definition_of(a, b.filter(pl.col("n") > 2), c)) == [
        'the stream of "^c" is merged now',
        'in the stream of "b", step 1 changed from filter(col("n") > 1) to filter(col("n") > 2)',
    ]
    assert differences(definition_of(a, b, c), definition_of(a, c)) == ['the stream of "b" was read before']
    alone = a.tumbling("1m").agg(posts=count()).definition()
    assert differences(alone, definition_of(a, c)) == ['the stream of "^c" is merged now']
    assert differences(definition_of(a, c), alone) == ['the stream of "^c" was read before']
    later = {
        **definition_of(a, b.filter(pl.col("n") + 1 > 2)),
        "written_by": {"polars": "9", "python": "3.99"},
    }
    assert differences(before, later) == []
    assert rewritten(before, later) == [
        'in the stream of "b", step 1 had col("n") > 1, and has (col("n") + 1) > 2'
    ]


def test_windows_of_dataframes_name_their_kind() -> None:
    reported = [{"window": {kind: "1m", "time": 'over "at"'}} for kind in ("size", "session")]
    assert differences(*reported) == ['the window changed from 1m over "at" to sessions of 1m over "at"']
