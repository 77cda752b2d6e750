"""Streams, some of them joined from two topics, share one reading, and each is what it would be alone."""

from __future__ import annotations

import os
import signal
from typing import Any

import polars as pl
import pytest

from streamgauge.operators.consumer.worker import worker
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.joining import MOST_ROWS
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.formats.text.plain import raw
from streamgauge.operators.sketching.account import Account
from streamgauge.shared_runs import run_together, start_together

from ...waiting import until
from ..steps.test_join_state_kafka import N, Topics
from .runs import Windows


class StreamPair:
    """Two joins of the same topics, and the lines of one of these topics, which decode otherwise."""

    def __init__(self, kafka: Any, limit: int = MOST_ROWS) -> None:
        self.outer = Topics(kafka, "outer", limit)
        source = self.outer.stream.reading.kafka_sources[0]
        lines = Stream.from_kafka(
            source.topic,
            value=raw("line", pl.String),
            bootstrap_servers=self.outer.address,
            config=dict(source.config),
        )
        self.streams = {"lines": lines.tumbling("1h").agg(n=count()), "outer": self.outer.stream}
        self.outer.how = "inner"
        self.streams["inner"] = self.outer.stream
        self.windows = {name: Windows() for name in self.streams}

    def check(self, result: dict[str, Any]) -> None:
        for self.outer.how in ("outer", "inner"):
            self.outer.check(self.windows[self.outer.how], result[self.outer.how].account)
        lines = sum(len(sides[0]) for sides in self.outer.rows)
        assert result["lines"].account == Account(read=lines, counted=lines)
        assert [(own.duplicates, own.overlaps) for own in result.values()] == [(0, 0)] * 3


@pytest.mark.slow
@pytest.mark.kafka
def test_joins_share_a_reading_run_after_run(kafka: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second run knows rows of the first again; with so little in a batch, one side waits."""
    monkeypatch.setattr(worker, "_BATCH_MESSAGES", 100)
    requested = StreamPair(kafka, limit=200)
    for left, right in requested.outer.rows:
        del left[N // 4 :], right[N // 4 :]
        left[:] = [one for row in left for one in (row, *[{**row, "n": 3}] * 4)]
    options = {"group_id": requested.outer.names[0], "on_window": requested.windows, "idle_seconds": 600.0}
    requested.outer.send(0.5)
    run_together(requested.streams, until="latest", progress=False, **options)
    requested.outer.send(1.0)
    requested.check(run_together(requested.streams, until="latest", progress=False, **options))


@pytest.mark.kafka
@pytest.mark.soak
def test_joins_share_a_reading_while_workers_are_killed(kafka: Any) -> None:
    requested = StreamPair(kafka)
    options = {"group_id": requested.outer.names[0], "on_window": requested.windows, "idle_seconds": 600.0}
    running = start_together(requested.streams, workers=2, checkpoint_seconds=0.1, **options)
    for share in (0.3, 0.5):
        sent = requested.outer.send(share)
        until(lambda sent=sent: all(running[name].account.read == sent for name in ("outer", "inner")))
        os.kill(running.worker_pids[0], signal.SIGKILL)
    running.stop()
    running.wait(120)
    requested.outer.send(1.0)
    requested.check(run_together(requested.streams, until="latest", progress=False, **options))


def test_joins_that_would_wait_in_a_ring_are_refused_before_a_broker_is_asked() -> None:
    ads, clicks, sales = (
        Stream.from_kafka(topic, value=json({"id": pl.Int64}), bootstrap_servers="localhost:1")
        for topic in ("ads", "clicks", "sales")
    )
    one, two = (
        ads.join(other, on="id", within="1m").tumbling("1m").agg(n=count()) for other in (clicks, sales)
    )
    with pytest.raises(ValueError, match=r"'one' and 'two' both join 'ads', but each with another topic"):
        start_together({"one": one, "two": two})
