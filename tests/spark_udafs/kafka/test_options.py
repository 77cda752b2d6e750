"""The source's options: named as Spark's, checked by name."""

from __future__ import annotations

import pytest
from pyspark.sql.types import StructType

from streamgauge.spark_udafs.kafka.options import KafkaOptions
from streamgauge.spark_udafs.kafka.source import KafkaSketchSource

from ...cases import each

GIVEN = {"kafka.bootstrap.servers": "box:9092", "subscribe": "posts"}


def test_defaults_are_those_of_spark_s_own_source() -> None:
    options = KafkaOptions.parse(GIVEN)
    assert options.topics == ("posts",)
    assert options.starting is None
    assert options.fail_on_data_loss
    assert (options.emit, options.max_per_trigger) == ("messages", None)


def test_names_in_any_case_and_settings_of_the_client_pass_through() -> None:
    options = KafkaOptions.parse(
        {
            "KAFKA.bootstrap.servers": "box:9092",
            "Subscribe": " posts, likes ,posts",
            "MAXOFFSETSPERTRIGGER": "10",
            "failondataloss": "FALSE",
            "kafka.security.protocol": "SSL",
            "startingOffsets": '{"posts":{"0":23,"1":-2},"likes":{"0":-1}}',
        }
    )
    assert options.topics == ("posts", "likes")
    assert options.config == {"bootstrap.servers": "box:9092", "security.protocol": "SSL"}
    assert (options.max_per_trigger, options.fail_on_data_loss) == (10, False)
    assert options.starting == {"posts": {"0": 23, "1": -2}, "likes": {"0": -1}}


def test_partitions_can_be_assigned() -> None:
    given = {"kafka.bootstrap.servers": "box:9092", "assign": '{"posts":[0,2]}'}
    assert KafkaOptions.parse(given).assigned == (("posts", 0), ("posts", 2))


@each(
    ("more", "complaint"),
    [
        ({"kafka.bootstrap.servers": ""}, "needs .*kafka.bootstrap.servers"),
        ({"subscribePattern": "p.*"}, "exactly one of subscribe, subscribePattern and assign"),
        ({"subscribe": " , "}, "subscribe names no topic"),
        (
            {"startingOfsets": "earliest"},
            "no option 'startingofsets'; did you mean startingOffsets\\? It has",
        ),
        ({"nonsense": "1"}, "no option 'nonsense'; it has subscribe,"),
        ({"startingOffsets": "first"}, "startingOffsets must be earliest, latest or like"),
        ({"startingOffsets": "[1]"}, "startingOffsets must be earliest, latest or like"),
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger must be a whole number of at least 1, got '0'"),
        ({"minPartitions": "two"}, "minPartitions must be a whole number"),
        ({"maxTriggerDelay": "soon"}, "maxTriggerDelay must be a length of time such as 30s"),
        ({"startingTimestamp": "2026-01-01"}, "startingTimestamp must be milliseconds since 1970"),
        ({"endingOffsetsByTimestamp": '{"posts":{"0":-1}}'}, "endingOffsetsByTimestamp must be like"),
        ({"startingOffsetsByTimestamp": "latest"}, "startingOffsetsByTimestamp must be like"),
        ({"startingOffsetsByTimestampStrategy": "end"}, "must be error or latest, got 'end'"),
        (
            {"kafka.sasl.jaas.config": "x"},
            "librdkafka has no JAAS; set kafka.sasl.mechanism, kafka.sasl.username and kafka.sasl.password",
        ),
        ({"kafkaConsumer.pollTimeoutMs": "512"}, "brokers that are away are waited for here; leave it out"),
        ({"failOnDataLoss": "maybe"}, "failOnDataLoss must be true or false, got 'maybe'"),
        ({"kafka.auto.offset.reset": "latest"}, "kafka.auto.offset.reset can't be set: use startingOffsets"),
        ({"kafka.enable.auto.commit": "true"}, "Spark's checkpoint holds the offsets"),
        ({"emit": "sketches"}, "needs the stream whose sketches are to be emitted"),
        (
            {"kafka.ssl.key.pem": "x"},
            "would show the value of kafka.ssl.key.pem in its plans; name a file",
        ),
    ],
)
def test_a_wrong_option_is_named(more: dict[str, str], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        KafkaOptions.parse({**GIVEN, **more})


@pytest.mark.parametrize("text", ["{}", '{"posts":[]}', '{"posts":[-1]}', "posts:0", ""])
def test_assigned_partitions_that_are_none_are_named(text: str) -> None:
    with pytest.raises(ValueError, match=r'assign must name partitions, like \{"posts":'):
        KafkaOptions.parse({"kafka.bootstrap.servers": "box:9092", "assign": text})


def test_a_pattern_that_is_none_is_named() -> None:
    given = {"kafka.bootstrap.servers": "box:9092", "subscribePattern": "p[*"}
    with pytest.raises(ValueError, match=r"subscribePattern 'p\[\*' is not a regular expression"):
        KafkaOptions.parse(given)
    with pytest.raises(ValueError, match="subscribePattern is empty"):
        KafkaOptions.parse({**given, "subscribePattern": " "})


def test_lengths_of_time_are_spark_s() -> None:
    def of(text: str) -> float:
        return KafkaOptions.parse({**GIVEN, "maxTriggerDelay": text}).max_delay_seconds

    assert [of(text) for text in ("1500", "20s", "2m", "1min", "1h")] == [1.5, 20.0, 120.0, 60.0, 3600.0]
    assert KafkaOptions.parse(GIVEN).max_delay_seconds == 15 * 60


def test_a_least_size_beyond_the_most_is_refused() -> None:
    given = {**GIVEN, "minOffsetsPerTrigger": "20", "maxOffsetsPerTrigger": "10"}
    with pytest.raises(ValueError, match="minOffsetsPerTrigger is 20, more than maxOffsetsPerTrigger"):
        KafkaOptions.parse(given).unbounded()


def test_bounded_and_unbounded_reads_have_different_ends() -> None:
    ends = KafkaOptions.parse({**GIVEN, "endingOffsets": '{"posts":{"0":5}}'})
    assert ends.bounded() is ends
    for more in ('{"posts":{"0":5}}', "latest"):
        requested = KafkaOptions.parse({**GIVEN, "endingOffsets": more})
        with pytest.raises(ValueError, match=r"endingOffsetsByTimestamp are for spark\.read; end a"):
            requested.unbounded()
    with pytest.raises(ValueError, match="would read nothing"):
        KafkaOptions.parse({**GIVEN, "startingOffsets": "latest"}).bounded()


def test_a_misspelt_kafka_setting_is_named_before_anything_is_read() -> None:
    options = KafkaOptions.parse({**GIVEN, "kafka.sasl.usernmae": "me"})
    for bounds in (options.bounded, options.unbounded):
        with pytest.raises(ValueError, match=r'"sasl\.usernmae"; did you mean "sasl\.username"'):
            bounds()


def test_a_stream_s_wrong_options_are_named_where_spark_shows_it() -> None:
    reader = KafkaSketchSource({**GIVEN, "endingOffsets": "latest"}).streamReader(StructType())
    with pytest.raises(ValueError, match=r"are for spark\.read; end a stream by its trigger or stop"):
        reader.initialOffset()
