"""A worker waits for brokers that are away, reads to every end, and delivers nothing that failed half-way."""

from __future__ import annotations

import logging
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run, start
from streamgauge.operators.kafka.reader import NoAnswer, Reader

from ....waiting import until
from ..runs import DELIVERIES, Windows

pytestmark = pytest.mark.kafka


def kill_9(broker: Any) -> None:
    """End the broker as a power cut would; its watchdog ends by itself then."""
    children = Path(f"/proc/{broker.pid}/task/{broker.pid}/children")
    for pid in map(int, children.read_text().split()) if children.exists() else [broker.pid]:
        os.kill(pid, signal.SIGKILL)
    until(lambda: not broker.running)


@pytest.mark.soak
def test_a_broker_that_goes_away_is_waited_for(posts, same, tmp_path, caplog) -> None:
    from streamgauge.apps.dev.kafka.broker import EmbeddedKafka

    soon = {"group.min.session.timeout.ms": 1_000, "broker.session.timeout.ms": 3_000}
    with EmbeddedKafka(data=tmp_path / "kafka", settings=soon) as broker:
        topic, windows = posts(broker=broker), Windows()
        topic.send(3_000)
        options = {"group_id": topic.topic, "on_window": windows, "checkpoint_seconds": 0.1}
        running = start(topic.stream, RunOptions(**options))
        until(lambda: running.summary().account.read == 3_000)
        with caplog.at_level(logging.WARNING, "streamgauge.kafka"):
            kill_9(broker)
            until(lambda: "waiting" in caplog.text)
            broker.start()
        topic.send(3_000)
        until(lambda: running.summary().account.read == 6_000)
        assert running.running
        broker.stop()
        running.stop()
        running.wait(120)
        broker.start()
        summary = run(topic.stream, RunOptions(until="latest", **options))
        assert summary.account == topic.one_pass()[1]
        same(windows.table(), topic.one_pass()[0])


def test_ends_behind_markers_of_transactions_are_reached(posts, same) -> None:
    topic = posts(2)
    topic.send(1_000, transaction=True)
    summaries = [run(topic.stream, RunOptions(until="latest")) for _ in range(2)]
    table, account = topic.one_pass()
    assert summaries[0].account == account
    same(summaries[1].table, table)


@pytest.mark.slow
@pytest.mark.parametrize("delivery", DELIVERIES)
def test_what_failed_half_way_is_not_delivered(posts, same, monkeypatch, delivery: Any) -> None:
    topic = posts()
    topic.send(3_000)
    options = {"delivery": delivery, "group_id": topic.topic, "until": "latest"}
    second: Any = [*topic.stream.aggregates][1]
    groups = topic.stream.aggregates[second].family.groups_class()

    def fail(self: object, *columns: object, **inputs: object) -> None:
        raise SystemError("struck by lightning")

    with monkeypatch.context() as patch:
        patch.setattr(groups, "update", fail)
        with pytest.raises(SystemError, match="lightning"):
            run(topic.stream, RunOptions(**options))
    summary = run(topic.stream, RunOptions(**options))
    table, account = topic.one_pass()
    assert (summary.account, summary.duplicates, summary.overlaps) == (account, 0, 0)
    same(summary.table, table)


def test_a_worker_waits_where_no_broker_knows_its_topic(posts, monkeypatch) -> None:
    topic, real, failing = posts(2), Reader.partitions, [2]
    topic.send(500)

    def away(self: Reader, name: str) -> list[int]:
        if failing[0]:
            failing[0] -= 1
            raise NoAnswer("no broker answered")
        return real(self, name)

    monkeypatch.setattr(Reader, "partitions", away)
    assert run(topic.stream, RunOptions(until="latest")).account == topic.one_pass()[1]
    assert failing == [0]
