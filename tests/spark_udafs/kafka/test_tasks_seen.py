"""Each id counts once on Spark: the same as row by row in plain Python, whichever worker comes next."""

from __future__ import annotations

import json as plain_json
import logging
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql.streaming.datasource import ReadMaxRows

from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.spark_udafs.kafka import workers
from streamgauge.spark_udafs.kafka.source import bound

from ...operators.steps.orders import SCHEMA, START_US, expected, orders, random_orders
from .planned import Query, account, rows

pytestmark = pytest.mark.kafka

NOW_US = START_US + 10 * 60 * 1_000_000
LAST = 60


def stream_of(kafka: Any, topic: str, last: int | None = LAST) -> Stream:
    time = pl.from_epoch("at", time_unit="us")
    source = Stream.from_kafka(
        topic, value=json(SCHEMA), time=time, bootstrap_servers=kafka.bootstrap_servers
    )
    return orders(source, last)


@pytest.mark.slow
@pytest.mark.parametrize("last", [LAST, None])
def test_each_id_counts_once_wherever_ranges_are_cut_and_whoever_reads_them(
    kafka: Any, topic: Callable[..., str], send: Callable[..., None], last: int | None
) -> None:
    name, sent = topic(), random_orders(77, 900)
    send(name, [plain_json.dumps(row).encode() for row in sent], timestamp=NOW_US // 1_000)
    wanted = expected(sent, NOW_US, last)
    query, counted, number = Query(kafka, stream=stream_of(kafka, name, last)), 0, 0
    while (batches := query.batch(ReadMaxRows(70))) is not None:
        number += 1
        if number % 3 == 0:
            # Another process has the range: it has seen nothing.
            workers._seen = type(workers._seen)(8, lambda seen: None)
            again = query.read(number)
            assert account(again) == account(batches) and rows(again) == rows(batches)
        if number % 5 == 0:
            # A batch that is made again comes to a process that is ahead of it.
            again = query.read(number)
            assert account(again) == account(batches) and rows(again) == rows(batches)
        counted += rows(batches)
        result = account(batches)
    reported = wanted.account
    assert result == {name: getattr(reported, name) for name in result}
    assert reported.filtered > 150 and number > 10
    assert counted == sum(n for n, _ in wanted.windows.values())


def test_ids_that_the_topic_no_longer_holds_are_warned_of(
    kafka: Any, topic: Callable[..., str], send: Callable[..., None], caplog: Any
) -> None:
    name = topic()
    message = b'{"id":%d,"n":1,"at":%d}'
    send(name, [message % (n, START_US) for n in range(100)], timestamp=NOW_US // 1_000)
    query = Query(kafka, stream=stream_of(kafka, name))
    query.batch()
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    for done in admin.delete_records([TopicPartition(name, 0, 100)]).values():
        done.result(120)
    workers._seen = type(workers._seen)(8, lambda seen: None)
    send(name, [message % (n, START_US) for n in (98, 99, 200)], timestamp=NOW_US // 1_000)
    with caplog.at_level(logging.WARNING, "streamgauge.kafka"):
        batches = query.batch()
    assert batches is not None and account(batches)["counted"] == 103
    (output,) = [
        record.getMessage() for record in caplog.records if "may be counted twice" in record.getMessage()
    ]
    assert output.startswith(f"{name}-0 was trimmed: ids last seen at its offsets") and "… 99 may" in output


def test_rows_one_by_one_are_refused() -> None:
    source = Stream.from_kafka("t", value=json(SCHEMA), bootstrap_servers="nowhere:9092")
    stream = source.deduplicate("id", last=9)
    with pytest.raises(ValueError, match="knows rows before where they are sketched"):
        bound(stream, {})({"kafka.bootstrap.servers": "nowhere:9092", "emit": "rows"}).schema()
