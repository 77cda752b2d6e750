"""A stream joined with itself on a real broker: in several runs, with several workers; and on Spark."""

from __future__ import annotations

import json as plain_json
import uuid
from typing import Any

import pytest
from confluent_kafka import Producer

from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.table.query import query

from ..consumer.runs import Windows
from .pairs import random_rows
from .test_join_state import NOW_US
from .test_self_join import answer, joined

pytestmark = pytest.mark.kafka


class Topic:
    """A topic of two partitions, sent piece by piece."""

    def __init__(self, kafka: Any) -> None:
        self.name = f"pairs-{uuid.uuid4().hex[:8]}"
        self.address = kafka.bootstrap_servers
        kafka.create_topic(self.name, partitions=2)
        self.rows = [random_rows(90 + partition, 900)[0] for partition in range(2)]
        self.sent = [0, 0]
        self.producer = Producer({"bootstrap.servers": self.address, "enable.idempotence": True})

    def send(self, share: float) -> None:
        for partition, rows in enumerate(self.rows):
            end = int(share * len(rows))
            for row in rows[self.sent[partition] : end]:
                value = plain_json.dumps(row).encode()
                self.producer.produce(self.name, value, partition=partition, timestamp=NOW_US // 1_000)
            self.sent[partition] = end
        assert self.producer.flush(120) == 0

    def answer(self, how: Any) -> tuple[dict[int, tuple[int, ...]], Account]:
        parts = [answer(rows[:end], how, ended=True) for rows, end in zip(self.rows, self.sent)]
        starts = {at for one in parts for at in one.windows}
        windows = {
            at[0]: tuple(map(sum, zip(*(one.windows.get(at, (0, 0, 0)) for one in parts)))) for at in starts
        }
        return windows, sum((one.account for one in parts), Account())


def cells(table: Any) -> dict[int, tuple[int, ...]]:
    rows = query(table).select("window_start", "rows", "n", "m").iter_rows()
    return {int(start.timestamp() * 1e6): (count, n or 0, m or 0) for start, count, n, m in rows}


@pytest.mark.slow
@pytest.mark.parametrize("how", ["inner", pytest.param("outer", marks=pytest.mark.soak)])
def test_a_run_goes_on_where_another_ended(kafka: Any, how: Any) -> None:
    topic, windows = Topic(kafka), Windows()
    stream = joined(how, topic=topic.name, bootstrap_servers=topic.address)
    options = {"group_id": topic.name, "on_window": windows, "until": "latest", "workers": 2}
    for share in (0.5, 1.0):
        topic.send(share)
        account = run(stream, RunOptions(**options)).account
        assert (cells(windows.table()), account) == topic.answer(how)
    topics = {part.topics[0] for part in stream.reading.parts()}
    assert topics == {topic.name}


@pytest.mark.spark
@pytest.mark.parametrize("how", ["left", pytest.param("inner", marks=pytest.mark.soak)])
def test_spark_gives_the_same(kafka: Any, spark: Any, how: Any) -> None:
    from streamgauge.spark_udafs.frames.tables import as_table
    from streamgauge.spark_udafs.streaming.run import on_spark

    topic = Topic(kafka)
    topic.send(1.0)
    stream = joined(how, topic=topic.name, bootstrap_servers=topic.address)
    assert cells(as_table(on_spark(stream, spark, streaming=False))) == topic.answer(how)[0]
