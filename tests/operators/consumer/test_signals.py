"""A run ends in order however the program's end is requested."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from streamgauge.operators.consumer.signals import as_interrupt

from ...waiting import until

SCRIPT = """
import sys, polars as pl
from streamgauge import Stream, count, json
source = Stream.from_kafka(sys.argv[1], value=json({"a": pl.Int64}), bootstrap_servers=sys.argv[2])
summary = source.tumbling("1m").agg(posts=count()).run(on_window=print)
print(summary.interrupted, summary.account.read)
"""


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
    collected: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: collected.append(number))
    with as_interrupt():
        os.kill(os.getpid(), signal.SIGTERM)
    assert collected == [signal.SIGTERM]


@pytest.mark.slow
@pytest.mark.kafka
def test_sigterm_ends_a_script_in_order_and_nothing_is_left(kafka: Any, posts: Any) -> None:
    topic = posts(1)
    topic.send(10)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})

    def ours() -> list[str]:
        groups = [group.group_id for group in admin.list_consumer_groups().result(120).valid]
        return [name for name in [*admin.list_topics(timeout=120).topics, *groups] if "streamgauge-" in name]

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
