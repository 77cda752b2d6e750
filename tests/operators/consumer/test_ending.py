"""A run ends in order however the program is told to end, and what killed ones left is removed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from streamgauge.operators.consumer.ending import as_interrupt
from streamgauge.operators.consumer.group import nameless
from streamgauge.operators.consumer.runner import run, start

SCRIPT = """
import sys, polars as pl
from streamgauge import Stream, count, json
source = Stream.from_kafka(sys.argv[1], value=json({"a": pl.Int64}), bootstrap_servers=sys.argv[2])
summary = source.tumbling("1m").agg(posts=count()).run(on_window=print)
print(summary.interrupted, summary.account.read)
"""


def until(condition: Callable[[], bool], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.05)


@pytest.fixture
def default() -> Iterator[None]:
    """The handlers of a plain script, whatever this one has."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_an_interrupt_once(default: None, number: signal.Signals) -> None:
    with as_interrupt():
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
            time.sleep(60)
        os.kill(os.getpid(), number)  # impatient
    assert signal.getsignal(number) is signal.SIG_DFL


def test_a_program_with_a_way_of_its_own_keeps_it(default: None) -> None:
    told: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: told.append(number))
    with as_interrupt():
        os.kill(os.getpid(), signal.SIGTERM)
    assert told == [signal.SIGTERM]


@pytest.mark.kafka
def test_sigterm_ends_a_script_in_order_and_nothing_is_left(kafka: Any, posts: Any) -> None:
    topic = posts(1)
    topic.send(10)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})

    def ours() -> list[str]:
        groups = [group.group_id for group in admin.list_consumer_groups().result(30).valid]
        return [name for name in [*admin.list_topics(timeout=30).topics, *groups] if "streamgauge-" in name]

    def of_topic() -> list[str]:
        return [name for name in ours() if name.startswith(f"{topic.topic}.")]

    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, topic.topic, kafka.bootstrap_servers], stdout=subprocess.PIPE
    )
    until(lambda: len(of_topic()) == 3)  # the table topic, the workers' group, the mergers'
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 0 and said.decode().split()[0] == "True"
    until(lambda: not of_topic())


@pytest.mark.kafka
def test_what_dead_runs_left_is_removed_and_nothing_else(
    kafka: Any, posts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = posts(1)
    topic.send(10)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    now = datetime.now(UTC)
    old, young = (nameless.group_name(topic.topic, now - timedelta(hours=h)) for h in (30, 20))
    named = f"{topic.topic}.mine.table.0"
    for name in (f"{old}.table.1", f"{young}.table.1", named):
        kafka.create_topic(name)
    run(topic.stream, until="latest")
    until(lambda: f"{old}.table.1" not in admin.list_topics(timeout=30).topics)
    alive = start(topic.stream)
    until(lambda: alive.assigned == 1)
    monkeypatch.setattr(nameless, "LEAST_AGE", timedelta(0))
    run(topic.stream, until="latest")
    until(lambda: f"{young}.table.1" not in admin.list_topics(timeout=30).topics)
    assert {named, alive.plan.table_topic} <= admin.list_topics(timeout=30).topics.keys()
    alive.stop()
    assert alive.wait(60).account.read == 10
