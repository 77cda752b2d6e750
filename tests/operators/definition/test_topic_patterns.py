"""Which topics are requested, and which existing ones a pattern matches."""

from __future__ import annotations

import polars as pl
import pytest

from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.definition.topic_patterns import matches
from streamgauge.operators.formats.json.decoder import json


def of(topic: object) -> Stream:
    return Stream.from_kafka(topic, value=json({"n": pl.Int64}))


@pytest.mark.parametrize(
    ("topic", "kind", "message"),
    [
        ("", TypeError, "topic must be a name, a list of names"),
        ([], TypeError, "a list of names"),
        (["posts", 5], TypeError, "a list of names"),
        (["posts", "posts"], ValueError, "a topic is named twice in posts, posts"),
        ("posts,likes", ValueError, "'posts,likes' can't be a topic's name"),
        ("metrics.*", ValueError, r'a pattern begins with "\^"'),
        ("^metrics.(", ValueError, r"'\^metrics\.\(' is not a regular expression: missing \)"),
    ],
)
def test_what_can_be_no_topic_is_refused_with_what_to_write(topic: object, kind: type, message: str) -> None:
    with pytest.raises(kind, match=message):
        of(topic)


def test_a_pattern_takes_what_it_matches_from_the_beginning_but_nothing_that_streams_write() -> None:
    own = ["m.1.dead-letters", "m.group.table.0123456789abcdef", "m.g.windows.0123456789abcdef", "__m"]
    assert [topic for topic in ("m.1", "m.cpu.load", "x.m.1", "m", *own) if matches([r"^m\..+"], topic)] == [
        "m.1",
        "m.cpu.load",
    ]
    assert not matches(["^.*"], "__consumer_offsets")
    assert matches(["m.1.dead-letters"], "m.1.dead-letters")


def test_one_topic_is_written_down_as_it_always_was_and_several_as_a_list() -> None:
    assert of("posts").source.definition()["topic"] == of(["posts"]).source.definition()["topic"] == "posts"
    assert of(["likes", "posts"]).source.definition()["topic"] == ["likes", "posts"]
    assert [
        of(topic).reading.reads_several for topic in ("posts", ["posts"], "^posts", ["likes", "posts"])
    ] == [
        False,
        False,
        True,
        True,
    ]
