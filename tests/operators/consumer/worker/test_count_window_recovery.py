"""Windows by count on a real broker: workers killed, runs started again, each window exactly so many rows."""

from __future__ import annotations

import json as plain_json
import os
import signal
import uuid
from typing import Any

import polars as pl
import pytest
from confluent_kafka import Producer

from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run, start
from streamgauge.operators.definition.aggregates import count, distinct
from streamgauge.operators.definition.aggregates import sum as total
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.kafka.topics import admin
from streamgauge.queries.views.log_start import find_start

from ....faulty_proxy import IMPATIENT
from ....waiting import until
from ..merge.counted import SIZE, SOURCE, Rows, given, rows_of, windows_of

pytestmark = pytest.mark.kafka

EACH = 1_200


class Topic:
    """Rows on a topic of three partitions, sent piece by piece."""

    def __init__(self, kafka: Any) -> None:
        self.name = f"counted-{uuid.uuid4().hex[:8]}"
        self.config = {"bootstrap.servers": kafka.bootstrap_servers}
        kafka.create_topic(self.name, partitions=3)
        self.rows: list[Rows] = rows_of(11, 3, EACH)
        self._producer = Producer({**self.config, "enable.idempotence": True})

    @property
    def stream(self) -> Stream:
        source = Stream.from_kafka(
            self.name,
            value=json(dict(SOURCE.columns)),
            time=pl.from_epoch("at", "us"),
            bootstrap_servers=self.config["bootstrap.servers"],
            config=IMPATIENT,
        )
        aggregates = {"rows": count(), "sum": total("n"), "different": distinct("n")}
        return source.group_by("key").count_window(SIZE).agg(**aggregates)

    def send(self, low: int, high: int) -> None:
        for partition, rows in enumerate(self.rows):
            for row in rows[low:high]:
                value = plain_json.dumps(dict(zip(("at", "key", "n"), row))).encode()
                self._producer.produce(self.name, value, partition=partition)
        assert self._producer.flush(120) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "delivery",
    [
        "exactly_once",
        *(
            pytest.param(delivery, marks=pytest.mark.soak)
            for delivery in ("effectively_once", "at_least_once", "at_most_once")
        ),
    ],
)
def test_each_window_holds_so_many_rows_whoever_is_killed(
    kafka: Any, missed: list[Any], delivery: Any
) -> None:
    topic, tables = Topic(kafka), []
    options: dict[str, Any] = {
        "delivery": delivery,
        "group_id": topic.name,
        "on_window": tables.append,
        "checkpoint_seconds": 0.1,
        "table_partitions": 2,
    }
    running = start(topic.stream, RunOptions(workers=2, **options))
    for at in range(0, 900, 150):
        topic.send(at, at + 150)
        until(lambda at=at: running.summary().account.read > 3 * at)
        if at == 450:
            os.kill(running.worker_pids[0], signal.SIGKILL)
    if delivery != "at_most_once":
        until(lambda: running.summary().account.read == 2_700)
    running.drain(300)
    topic.send(900, EACH)
    summary = run(topic.stream, RunOptions(until="latest", **options))
    with pytest.raises(ValueError, match="has windows by count, which have no span of time"):
        find_start(admin(topic.config), topic.config, topic.name)
    full, left = windows_of(topic.rows, topic=topic.name)
    result = given([table for table in tables if table.is_final], bool(missed))
    if delivery == "at_most_once":
        assert all(rows <= SIZE for _, _, rows, *_ in result.values())
        assert summary.account.balanced and summary.account.counted <= 3 * EACH
        return
    assert summary.account.read == summary.account.counted == 3 * EACH
    assert result == full
    assert given([table for table in tables if not table.is_final], bool(missed)) == left
