"""Logs that lose messages which were counted: the run ends and names them, or accounts for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from confluent_kafka import Consumer, TopicPartition

from streamgauge.apps.dev.kafka.broker import EmbeddedKafka
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run, start
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.kafka.reader import LogTruncated
from streamgauge.operators.sketching.account import Account

from ....waiting import until
from ...kafka.lost_tail import lose_tail, send_numbers

pytestmark = pytest.mark.kafka


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(data=tmp_path / "data") as broker:
        yield broker


def counting(broker: EmbeddedKafka, topic: str) -> Stream:
    broker.create_topic(topic)
    source: Any = Stream.from_kafka(
        topic, value=json({"n": pl.Int64}), bootstrap_servers=broker.bootstrap_servers
    )
    return source.tumbling("1d").agg(posts=count())


@pytest.mark.slow
def test_a_log_that_was_truncated_while_no_run_was_there(broker: EmbeddedKafka) -> None:
    stream = counting(broker, "posts")
    send_numbers(broker, "posts", range(150))
    options: dict[str, Any] = {"group_id": "by-day", "until": "latest"}
    run(stream, RunOptions(**options))
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "by-day"})
    (committed,) = consumer.committed([TopicPartition("posts", 0)], timeout=60)
    consumer.close()
    assert committed.offset == 150 and committed.leader_epoch is not None

    lose_tail(broker, "posts", 100)
    send_numbers(broker, "posts", range(1_000, 1_200))
    for _ in range(2):
        with pytest.raises(LogTruncated, match=r"posts\[0\] was truncated.* 50 messages that were counted "):
            run(stream, RunOptions(**options))
    summary = run(stream, RunOptions(**options, truncated="continue"))
    assert summary.account == Account(read=350, counted=350, truncated=50)
    assert "50 truncated" in repr(summary)
    # From here on the group is where the log is.
    send_numbers(broker, "posts", range(10))
    again = start(stream, RunOptions(**options))
    assert again.wait(120).account == Account(read=360, counted=360, truncated=50)
    assert again.table().answers()["posts"].sum() == 360


@pytest.mark.slow
def test_a_log_that_is_truncated_under_a_run(broker: EmbeddedKafka) -> None:
    stream = counting(broker, "posts")
    options: dict[str, Any] = {"group_id": "by-day", "checkpoint_seconds": 0.1}
    running = start(stream, RunOptions(**options, truncated="continue"))
    send_numbers(broker, "posts", range(150))
    until(lambda: running.summary().account.read == 150)
    lose_tail(broker, "posts", 100)
    send_numbers(broker, "posts", range(1_000, 1_200))
    until(lambda: running.summary().account.read == 350)
    running.stop()
    assert running.wait(120).account == Account(read=350, counted=350, truncated=50)
