"""DataFrames written to topics: once, whatever is killed and repeated; what can't be written is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from streamgauge.operators.definition import aggregates as ask
from streamgauge.operators.kafka.outgoing_message import ANY_PARTITION, Outgoing
from streamgauge.operators.kafka.topics import TopicError, admin
from streamgauge.operators.table.query import query
from streamgauge.sketches.core.protocol import SketchError
from streamgauge.spark_udafs.frames.frames import sketch
from streamgauge.spark_udafs.frames.tables import as_table
from streamgauge.spark_udafs.functions.registering import register
from streamgauge.spark_udafs.kafka.sink import (
    KafkaBatchWriter,
    KafkaStreamWriter,
    SinkOptions,
    TaskMessages,
)

from ...cases import each
from ...waiting import readable
from ..conftest import skip_if_one_batch
from ..queries import read_topic

pytestmark = pytest.mark.kafka


def of(**columns: str) -> StructType:
    made = StructType()
    for name, kind in columns.items():
        made.add(name, kind)
    return made


VALUES = of(key="string", value="string")
COUNTS = of(site="string", n="long")


def options(kafka: Any, **more: str) -> SinkOptions:
    return SinkOptions.parse({"kafka.bootstrap.servers": kafka.bootstrap_servers, **more})


def committed(kafka: Any, topic: str, partitions: int = 2) -> list[Any]:
    """The messages that readers of committed ones see, by partition and in order."""
    readable(kafka.bootstrap_servers, topic)
    settings = {"group.id": "x", "enable.partition.eof": True, "log_level": 0}
    reader = Consumer({**settings, "bootstrap.servers": kafka.bootstrap_servers})
    messages = []
    for partition in range(partitions):
        reader.assign([TopicPartition(topic, partition, 0)])
        while (message := reader.poll(120)) is not None and message.error() is None:
            messages.append(message)
        assert message is not None and message.error().code() == KafkaError._PARTITION_EOF
    reader.close()
    return messages


@pytest.mark.slow
def test_a_repeated_batch_is_sent_once_though_a_writer_was_killed_within_its_commit(
    kafka: Any, topic: Callable[..., str]
) -> None:
    name = topic(2)
    query_id = f"q{name}"

    def messages(*values: str) -> list[TaskMessages]:
        return [TaskMessages(query_id, [Outgoing(name, ANY_PARTITION, value.encode())]) for value in values]

    writer = KafkaStreamWriter(options(kafka, topic=name), VALUES)
    writer.commit(messages("a", "b"), 0)
    # As Spark repeats it: its rows are in other tasks.
    KafkaStreamWriter(options(kafka, topic=name), VALUES).commit([*messages("b"), None, *messages("a")], 0)
    # What a killed process had sent of the next batch, without its end.
    settings = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "transactional.id": f"streamgauge-sink-{query_id}-{name}",
    }
    killed = Producer(settings)
    killed.init_transactions(60)
    killed.begin_transaction()
    killed.produce(name, b"c")
    assert killed.flush(60) == 0
    for _ in range(2):
        KafkaStreamWriter(options(kafka, topic=name), VALUES).commit(messages("c", "d"), 1)
    writer.commit([TaskMessages(query_id)], 2)  # nothing to send
    writer.commit(messages("e"), 3)
    # The query is down for a week, after which brokers have forgotten its group (offsets.retention.minutes).
    client, group = admin({"bootstrap.servers": kafka.bootstrap_servers}), f"streamgauge-sink-{query_id}"
    client.delete_consumer_groups([group])[group].result(120)
    KafkaStreamWriter(options(kafka, topic=name), VALUES).commit(messages("e"), 3)
    writer.commit(messages("f"), 4)
    assert sorted(message.value() for message in committed(kafka, name)) == [
        b"a", b"b", b"c", b"d", b"e", b"f"
    ]  # fmt: skip


@each(
    "what, columns, given",
    [
        pytest.param("did you mean topic", VALUES, {"topics": "t"}, id="misspelt"),
        pytest.param('did you mean "linger.ms"', VALUES, {"topic": "t", "kafka.lingr.ms": "5"}, id="Kafka's"),
        pytest.param("emit must be messages, answers", VALUES, {"topic": "t", "emit": "rows"}, id="emit"),
        pytest.param("delivery must be exactly", VALUES, {"topic": "t", "delivery": "never"}, id="delivery"),
        pytest.param("or a column topic", VALUES, {}, id="no topic"),
        pytest.param("a stream needs", of(topic="string", value="string"), {}, id="the stream's topic"),
        pytest.param("a column value .* has site, n", COUNTS, {"topic": "t"}, id="no value"),
        pytest.param("no column 'n'", of(value="string", n="integer"), {"topic": "t"}, id="another column"),
        pytest.param("value must be string or bin", of(value="long"), {"topic": "t"}, id="type"),
        pytest.param("not a table of", COUNTS, {"topic": "t", "emit": "answers"}, id="no table"),
        pytest.param("emit 'sketches' needs", COUNTS, {"emit": "sketches"}, id="sketches without a topic"),
        pytest.param("bootstrap", VALUES, {"topic": "t", "kafka.bootstrap.servers": ""}, id="no brokers"),
    ],
)
def test_what_cannot_be_written_is_named(what: str, columns: StructType, given: dict[str, str]) -> None:
    with pytest.raises((ValueError, SketchError), match=what):
        KafkaStreamWriter(SinkOptions.parse({"kafka.bootstrap.servers": "localhost:1", **given}), columns)


def test_a_topic_that_is_not_there_is_named(kafka: Any) -> None:
    with pytest.raises(TopicError, match="no topic 'nowhere'"):
        writer = KafkaBatchWriter(options(kafka, topic="nowhere"), VALUES)
        writer.commit([TaskMessages(None, [Outgoing("nowhere", ANY_PARTITION, b"a")])])


@pytest.mark.slow
@pytest.mark.spark
def test_answers_sketches_and_messages_of_batches_and_streams(
    spark: Any, kafka: Any, topic: Callable[..., str], tmp_path: Path
) -> None:
    register(spark)
    servers = {"kafka.bootstrap.servers": kafka.bootstrap_servers}
    folder = str(tmp_path / "rows")
    rows = spark.sql(
        "SELECT id % 50 AS user, id % 3 AS site, timestamp_seconds(1767225600 + id) AS at FROM range(120)"
    )
    last = spark.sql("SELECT 7L AS user, 0L AS site, timestamp'2026-01-01 09:00:00 UTC' AS at")
    rows.coalesce(1).write.parquet(folder)
    table = (
        sketch(rows)
        .groupBy("site", F.window("at", "1 minute"))
        .agg(n=F.count("*"), users=ask.distinct("user"))
    )
    expected = query(as_table(table)).sort("window_start", "site")

    def write(frame: Any, **given: str) -> None:
        frame.write.format("streamgauge-kafka").options(**servers, **given).mode("append").save()

    sketches, plain = topic(2), topic(2)
    write(table, topic=sketches, emit="sketches")
    sent = pl.concat([query(part) for part in read_topic(kafka, sketches)]).sort("window_start", "site")
    assert sent.equals(expected)
    made = rows.selectExpr(
        "cast(site as string) AS key", "to_json(struct(user, at)) AS value", "1 AS partition",
        "array(struct('of' AS key, cast('test' AS binary) AS value)) AS headers",
    ).limit(5)  # fmt: skip
    write(made, topic=plain)
    write(made.select("value"), topic=plain, delivery="at_least_once")
    messages = committed(kafka, plain)
    with_headers = [one for one in messages if one.headers()]
    assert len(messages) == 10 and len(with_headers) == 5
    assert {(one.partition(), *one.headers()) for one in with_headers} == {(1, ("of", b"test"))}
    assert json.loads(with_headers[0].value()).keys() == {"user", "at"}

    skip_if_one_batch(spark)
    # A stream of answers, started once more after its last micro-batch was sent and not yet noted.
    last.coalesce(1).write.mode("append").parquet(folder)
    stream = spark.readStream.schema(rows.schema).option("maxFilesPerTrigger", 1).parquet(folder)
    minutes = sketch(stream).withWatermark("at", "1 second").groupBy("site", F.window("at", "1 minute"))
    answered = topic(2)
    for _ in range(2):
        running = (
            minutes.agg(n=F.count("*"), users=ask.distinct("user"))
            .writeStream.format("streamgauge-kafka")
            .options(
                **servers, topic=answered, emit="answers", checkpointLocation=str(tmp_path / "checkpoint")
            )
            .trigger(availableNow=True)
            .start()
        )
        assert running.awaitTermination(600)
        newest = max((tmp_path / "checkpoint" / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
        newest.unlink()
        newest.with_name(f".{newest.name}.crc").unlink()
    messages = committed(kafka, answered)
    values = sorted(
        (json.loads(one.value()) for one in messages), key=lambda row: (row["window_start"], row["site"])
    )
    assert [row["n"] for row in values] == expected["n"].to_list()
    assert sorted(one.key() for one in messages) == sorted(str(row["site"]).encode() for row in values)
