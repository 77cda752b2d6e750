"""Each id counts once on a real broker: workers killed, runs started again, partitions handed over."""

from __future__ import annotations

import json as plain_json
import logging
import os
import signal
import uuid
from typing import Any

import polars as pl
import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient

from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run, start
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.table.query import query

from ...faulty_proxy import IMPATIENT
from ...waiting import until
from ..consumer.runs import Windows
from .orders import SCHEMA, START_US, expected, orders, random_orders

pytestmark = pytest.mark.kafka

NOW_US = START_US + 10 * 60 * 1_000_000
N = 1_500


class Topic:
    """Orders on a topic of two partitions, sent piece by piece."""

    def __init__(self, kafka: Any) -> None:
        self.name = f"orders-{uuid.uuid4().hex[:8]}"
        self.address = kafka.bootstrap_servers
        kafka.create_topic(self.name, partitions=2)
        self.rows = [random_orders(50 + partition, N) for partition in range(2)]
        self.producer = Producer({"bootstrap.servers": self.address, "enable.idempotence": True})

    @property
    def stream(self) -> Stream:
        time = pl.from_epoch("at", time_unit="us")
        value = json(SCHEMA)
        return orders(
            Stream.from_kafka(
                self.name, value=value, time=time, bootstrap_servers=self.address, config=IMPATIENT
            )
        )

    def send(self, low: int, high: int) -> None:
        for partition, rows in enumerate(self.rows):
            for row in rows[low:high]:
                value = plain_json.dumps(row).encode()
                self.producer.produce(self.name, value, partition=partition, timestamp=NOW_US // 1_000)
        assert self.producer.flush(120) == 0

    def check(self, windows: Windows, account: Account) -> None:
        wanted = [expected(rows, NOW_US) for rows in self.rows]
        assert account == sum((one.account for one in wanted), Account())
        answers = query(windows.table())
        result = dict(zip(answers["window_start"].dt.epoch("us"), answers.select("rows", "total").rows()))
        starts = {start for one in wanted for start in one.windows}
        assert result == {
            start: tuple(map(sum, zip(*(one.windows.get(start, (0, 0)) for one in wanted))))
            for start in starts
        }


def _hand_over(topic: Topic, options: dict[str, Any]) -> None:
    """One run of the group, a second one beside it, and the second one by itself."""
    one = start(topic.stream, RunOptions(**options))
    topic.send(900, 1_100)
    until(lambda: one.summary().account.read == 2_200)
    two = start(topic.stream, RunOptions(**options))
    until(lambda: two.assigned == 1)
    topic.send(1_100, 1_200)
    until(lambda: max(one.summary().account.read, two.summary().account.read) == 2_400)
    one.stop()
    one.wait(120)
    topic.send(1_200, 1_300)
    until(lambda: two.summary().account.read == 2_600)
    two.stop()
    two.wait(120)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("delivery", "moves"),
    [
        ("exactly_once", False),
        pytest.param("exactly_once", True, marks=pytest.mark.soak),
        pytest.param("effectively_once", False, marks=pytest.mark.soak),
    ],
)
def test_each_id_counts_once_while_workers_are_killed_and_partitions_handed_over(
    kafka: Any, delivery: Any, moves: bool
) -> None:
    topic, windows = Topic(kafka), Windows()
    options: dict[str, Any] = {
        "delivery": delivery,
        "group_id": topic.name,
        "on_window": windows,
        "checkpoint_seconds": 0.1,
        "idle_seconds": 600.0,
    }
    running = start(topic.stream, RunOptions(workers=2, **options))
    for at in range(0, 900, 300):
        topic.send(at, at + 300)
        until(lambda at=at: running.summary().account.read > 2 * at)
        if at == 300:
            os.kill(running.worker_pids[0], signal.SIGKILL)
    until(lambda: running.summary().account.read == 1_800)
    running.stop()
    running.wait(120)
    if moves:
        _hand_over(topic, options)
    else:
        topic.send(900, 1_300)
    topic.send(1_300, N)
    summary = run(topic.stream, RunOptions(until="latest", **options))
    topic.check(windows, summary.account)


def test_ids_that_the_topic_no_longer_holds_are_warned_of(kafka: Any, caplog: Any) -> None:
    topic = Topic(kafka)
    options: dict[str, Any] = {"group_id": topic.name, "until": "latest"}
    topic.send(0, 100)
    assert run(topic.stream, RunOptions(**options)).account.read == 200
    admin = AdminClient({"bootstrap.servers": topic.address})
    for done in admin.delete_records([KafkaPartition(topic.name, 0, 100)]).values():
        done.result(120)
    topic.send(100, 110)
    with caplog.at_level(logging.WARNING, "streamgauge.kafka"):
        assert run(topic.stream, RunOptions(**options)).account.read == 220
    output = [
        record.getMessage() for record in caplog.records if "may be counted twice" in record.getMessage()
    ]
    assert len(output) == 1 and output[0].startswith(
        f"{topic.name}[0] was trimmed: ids last seen at its offsets"
    )
    assert "… 99 may" in output[0]
