"""A table topic that loses its last messages: no window goes without them in silence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from streamgauge.apps.dev.kafka.broker import EmbeddedKafka
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run, start
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.kafka.log_faults import DeltaError
from streamgauge.operators.kafka.topics import admin, high_watermarks

from ....waiting import until
from ...kafka.lost_tail import lose_tail, send_numbers

pytestmark = pytest.mark.kafka


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(data=tmp_path / "data") as broker:
        broker.create_topic("posts")
        yield broker


def counting(broker: EmbeddedKafka) -> Stream:
    source: Any = Stream.from_kafka(
        "posts",
        value=json({"n": pl.Int64}),
        time=pl.from_epoch("n"),
        bootstrap_servers=broker.bootstrap_servers,
    )
    return source.tumbling("60s").agg(posts=count())


def log_end(broker: EmbeddedKafka, table: str) -> int:
    client = admin({"bootstrap.servers": broker.bootstrap_servers})
    return high_watermarks(client, [(table, 0)])[table, 0]


@pytest.mark.slow
def test_state_that_was_committed_and_is_gone(broker: EmbeddedKafka) -> None:
    stream = counting(broker)
    table = f"by-minute.table.{stream.fingerprint()}"
    options: Any = {"group_id": "by-minute", "until": "latest"}
    ends = []
    for low in (0, 90):
        send_numbers(broker, "posts", range(low, low + 90))
        run(stream, RunOptions(**options))
        ends.append(log_end(broker, table))
    lose_tail(broker, table, ends[1] - 1)
    for _ in range(2):
        with pytest.raises(DeltaError, match=r"was truncated.*merger's state at offset .* no longer exists"):
            run(stream, RunOptions(**options))


@pytest.mark.slow
def test_deltas_that_were_committed_and_are_gone(broker: EmbeddedKafka) -> None:
    stream = counting(broker)
    table = f"by-minute.table.{stream.fingerprint()}"
    send_numbers(broker, "posts", range(90))
    run(stream, RunOptions(group_id="by-minute", until="latest"))
    end = log_end(broker, table)
    running = start(stream, RunOptions(group_id="by-minute", checkpoint_seconds=0.1))
    send_numbers(broker, "posts", range(90, 100))
    until(lambda: running.summary().account.read == 100)
    # The merger's place is older than the lost deltas, as after a kill, and no message follows.
    running.stop()
    running.wait(120)
    client = admin({"bootstrap.servers": broker.bootstrap_servers})
    client.delete_consumer_groups(["by-minute.merger"])["by-minute.merger"].result(60)
    lose_tail(broker, table, end)
    with pytest.raises(DeltaError, match=r"the deltas of 10 offsets of posts\[0\] .*\(90 … 99\) no longer"):
        run(stream, RunOptions(group_id="by-minute", until="latest"))


@pytest.mark.slow
def test_a_log_that_is_truncated_under_its_merger(broker: EmbeddedKafka) -> None:
    stream = counting(broker)
    table = f"by-minute.table.{stream.fingerprint()}"
    running = start(stream, RunOptions(group_id="by-minute", checkpoint_seconds=0.1))
    send_numbers(broker, "posts", range(90))
    until(lambda: running.summary().account.read == 90)
    end = log_end(broker, table)
    send_numbers(broker, "posts", range(90, 200))
    until(lambda: running.summary().account.read == 200)
    lose_tail(broker, table, end)
    send_numbers(broker, "posts", range(200, 300))
    with pytest.raises(DeltaError, match=r"was truncated|has lost those before"):
        running.wait(120)
