"""What is said of a stream's messages, once: that most can't be counted, which fields none of them has."""

from __future__ import annotations

import json as plain_json
import logging
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.decode import Decoded
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.formats.messages import Messages
from streamgauge.operators.sketching.message_warnings import Remarks
from streamgauge.operators.sketching.partition_buffer import PartitionBuffer
from streamgauge.operators.sketching.partition_state import PartitionState

PERSON = pl.Struct({"name": pl.String, "city": pl.String})


def intake(schema: Any, time: str | None = None) -> PartitionBuffer:
    source = Stream.from_kafka("posts", value=json(schema), time=time)
    stream = source.tumbling("1m", max_ahead=None).agg(n=count())
    schema = stream.reading.kafka_source.value.schema
    result = PartitionBuffer(Remarks("posts", schema, "posts.dead-letters"))
    result.add_partition(PartitionState(stream, "posts", 0, 0), [])
    return result


def take(accepted: PartitionBuffer, messages: Messages) -> None:
    accepted.sketch(accepted.progress["posts", 0].stream.reading.kafka_source, messages)


def batch(values: list[Any], first: int = 0) -> Messages:
    texts = [value if isinstance(value, bytes) else plain_json.dumps(value).encode() for value in values]
    return Messages.of(texts, topic="posts", first_offset=first, timestamps=[1_000] * len(texts))


def test_a_stream_whose_times_cannot_be_read_is_warned_of_once_with_reason_and_example(
    caplog: pytest.LogCaptureFixture,
) -> None:
    accepted = intake({"at": pl.String}, "at")
    with caplog.at_level(logging.WARNING, "streamgauge.kafka"):
        for start in range(0, 90, 30):
            take(
                accepted,
                batch([{"at": f"0{n % 9}.07.2013"} for n in range(start, start + 29)] + [b"oops"], start),
            )
    (reported,) = accepted.remarks.texts
    assert [record.getMessage() for record in caplog.records] == [reported]
    assert reported == (
        "30 of the first 30 messages of 'posts' can't be counted; they go to the topic 'posts.dead-letters'. "
        "29 for this reason: no event time: \"at\" is '00.07.2013', not a time in ISO 8601. "
        'The first of these, at posts[0] offset 0: \'{"at": "00.07.2013"}\''
    )


def test_few_messages_are_warned_of_at_the_end_alone() -> None:
    accepted = intake({"x": pl.Int64})
    take(accepted, batch([b"oops", b"oops", {"x": 1}]))
    assert accepted.remarks.texts == []
    accepted.remarks.report_due(1, 1)
    (reported,) = accepted.remarks.texts
    assert reported.startswith("2 of the first 3 messages of 'posts' can't be counted")


def test_some_bad_messages_are_nothing_to_speak_of() -> None:
    accepted = intake({"x": pl.Int64})
    take(accepted, batch([{"x": 1}, b"oops"] * 500))
    accepted.remarks.report_due(1, 1)
    assert accepted.remarks.texts == []


def test_fields_that_no_message_has_are_named_beside_those_there_are() -> None:
    accepted = intake({"usr": pl.String, "x": pl.Int64, "from": PERSON})
    rows = [
        {"user": "ann", "x": None if n else 7, "from": {"name": "bo", "town": "Ulm"}} for n in range(1_000)
    ]
    take(accepted, batch(rows[:999]))
    assert accepted.remarks.texts == []
    take(accepted, batch(rows[999:], 999))
    take(accepted, batch(rows, 1_000))
    assert accepted.remarks.texts == [
        'the fields "from.city", "usr" were in none of the first 1,000 rows of \'posts\'; '
        'the messages have "user", "x", "from", "from.name", "from.town"'
    ]


class Nothing:
    """A decoder that finds nothing in any message."""

    schema = pl.Schema({"x": pl.Int64})

    def decode(self, messages: Messages) -> Decoded:
        return Decoded(pl.DataFrame({"x": [None] * len(messages)}, schema=self.schema))


def test_fields_are_looked_for_in_messages_however_deep() -> None:
    stream = Stream.from_kafka("posts", value=Nothing()).tumbling("1m").agg(n=count())
    accepted = PartitionBuffer(Remarks("posts", stream.reading.kafka_source.value.schema))
    accepted.add_partition(PartitionState(stream, "posts", 0, 0), [])
    take(accepted, batch([b'{"a":' * 50_000 + b"1" + b"}" * 50_000]))
    accepted.remarks.report_due(1, 1)
    assert accepted.remarks.texts == ["the field \"x\" was in none of the first 1 rows of 'posts'"]


def test_of_an_object_that_is_missing_its_fields_are_not_named_too() -> None:
    accepted = intake({"x": pl.Int64, "of": PERSON})
    take(accepted, batch([{"x": 1}] * 3))
    accepted.remarks.report_due(1, 1)
    assert accepted.remarks.texts == [
        'the field "of" was in none of the first 3 rows of \'posts\'; the messages have "x"'
    ]


def test_a_field_that_is_null_in_so_many_words_is_there() -> None:
    accepted = intake({"x": pl.Int64, "of": PERSON})
    take(accepted, batch([{"x": None, "of": {"name": None, "city": None}}] * 2_000))
    assert accepted.remarks.texts == []


def test_many_late_rows_are_warned_of_once_with_whose_they_are() -> None:
    accepted = intake({"at": pl.String}, "at")
    for start in range(0, 120, 40):
        rows = [(n, b"right") if n % 2 else (n - 20, b"slow") for n in range(start, start + 40)]
        values = [f'{{"at": "2026-06-01T{12 + minute // 60:02}:{minute % 60:02}:00Z"}}' for minute, _ in rows]
        batch_of_keys = Messages.of(
            [value.encode() for value in values],
            [key for _, key in rows],
            topic="posts",
            first_offset=start,
            timestamps=[1_000] * len(rows),
        )
        take(accepted, batch_of_keys)
    assert accepted.remarks.texts == [
        "39 of the first 80 rows of 'posts' came too late, by up to 1,070 s, and are dropped, most of them "
        "of the keys 'slow' 39; a longer delay waits for them"
    ]


def test_on_spark_one_process_says_it_once_from_task_to_task(monkeypatch: pytest.MonkeyPatch) -> None:
    from streamgauge.operators.watermarks.position import Position
    from streamgauge.spark_udafs.kafka import tasks as kafka_tasks
    from streamgauge.spark_udafs.kafka import workers as kafka_workers
    from streamgauge.spark_udafs.kafka.offsets import Known
    from streamgauge.spark_udafs.kafka.options import KafkaOptions

    stream = (
        Stream.from_kafka("posts", value=json({"at": pl.String}), time="at").tumbling("1m").agg(n=count())
    )
    given = {"kafka.bootstrap.servers": "box:9092", "subscribe": "posts"}
    options = KafkaOptions.parse(given, stream)
    monkeypatch.setattr(kafka_workers, "_remarks", {})
    monkeypatch.setattr(
        kafka_tasks,
        "reading",
        lambda _, place, start, end, most: [batch([{"at": "soon"}] * (end - start), start)],
    )
    for start in (0, 5):
        part = kafka_tasks.Range(("posts", 0), start, start + 5, Known(Position(start)))
        task = kafka_tasks.Task((part,), 0, clock_us=1_800_000_000_000_000, query="g")
        kafka_tasks._read_range(options, stream, part, task, kafka_workers.Letters(options))
    (reported,) = kafka_workers.remarks_on(options, "posts").texts
    assert reported.startswith("5 of the first 5 messages of 'posts' can't be counted; they are dropped")


def test_a_summary_reads_as_a_line_and_its_remarks() -> None:
    from streamgauge.operators.consumer.summary import Summary
    from streamgauge.operators.sketching.account import Account

    account = Account(read=10_000, counted=2, dead_lettered=9_998)
    result = Summary(
        account, pa.table({"window_start": [1, 2]}), 2.5, 4_000.0, 0, remarks=("9,998 of 10,000 …",)
    )
    assert repr(result).splitlines() == [
        "Summary(10,000 messages read in 2.5 s: 2 counted, 0 filtered, 0 late, 9,998 dead-lettered; lag 0; "
        "2 rows of closed windows)",
        "  9,998 of 10,000 …",
    ]


def test_streams_of_the_same_messages_log_what_is_wrong_with_them_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    logged = set[tuple[str, str]]()
    several = [Remarks(topic, {}, logged=logged) for topic in ("posts", "posts", "likes")]
    with caplog.at_level(logging.WARNING, "streamgauge.kafka"):
        for number, remarks in enumerate(several):
            rows = list(range(30 + number))
            remarks.late(batch([{}] * len(rows)), rows, np.full(len(rows), 5_000_000))
            remarks.report_due()
            assert [text.partition(" ")[0] for text in remarks.texts] == [str(len(rows))]
    assert [message.partition(" came")[0] for message in caplog.messages] == [
        "30 of the first 0 rows of 'posts'",
        "32 of the first 0 rows of 'likes'",
    ]
