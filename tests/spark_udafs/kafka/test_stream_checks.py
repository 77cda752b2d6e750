"""What a stream of several topics may be given beside them, and what it writes to."""

from __future__ import annotations

import polars as pl
import pytest

from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.spark_udafs.kafka.options import EACH, KafkaOptions
from streamgauge.spark_udafs.kafka.source import bound


def of(topic: str | list[str]) -> Stream:
    return Stream.from_kafka(topic, value=json({"user": pl.String}))


def counting(rows: Stream) -> Stream:
    return rows.tumbling("1m").agg(n=count())


SEVERAL = [of(["posts", "likes"]), of("posts").merge(of("likes")), of("^posts")]


@pytest.mark.parametrize("rows", SEVERAL)
def test_a_stream_names_its_topics_itself(rows: Stream) -> None:
    options = KafkaOptions.parse({}, counting(rows), {"bootstrap.servers": "box:9092"})
    assert sorted(options.topics) == sorted(rows.reading.in_words().replace(" and ", ", ").split(", "))
    with pytest.raises(ValueError, match=r"subscribe can't be given for a stream that names its topics, "):
        KafkaOptions.parse({"subscribe": "others"}, counting(rows), {"bootstrap.servers": "box:9092"})


def test_each_topic_has_its_own_dead_letters_where_the_option_says_so() -> None:
    given = {"kafka.bootstrap.servers": "box:9092", "subscribe": "a,b"}
    options = KafkaOptions.parse({**given, "deadLetterTopic": f"{EACH}.dead-letters"})
    assert [options.letters_of(topic) for topic in ("a", "b")] == ["a.dead-letters", "b.dead-letters"]
    assert KafkaOptions.parse({**given, "deadLetterTopic": "bad"}).letters_of("a") == "bad"
    assert KafkaOptions.parse(given).letters_of("a") is None


@pytest.mark.parametrize("rows", [of("posts"), of("^posts"), of(["posts", "likes"])])
def test_what_it_writes_must_not_come_back(rows: Stream) -> None:
    from streamgauge.spark_udafs.streaming.run import on_spark

    with pytest.raises(ValueError, match="this run writes to the topic 'posts' and reads"):
        on_spark(counting(rows), None, dead_letters="posts", close_at_end=True)


def test_rows_from_frames_are_no_topic() -> None:
    frames = Stream.from_schema({"at": pl.Datetime("us")}, time="at")
    with pytest.raises(TypeError, match="rows come from frames"):
        bound(counting(frames), {})
