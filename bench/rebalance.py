"""How long a dead worker's partitions wait, beyond the session time-out that the group waits anyway.

A run with two worker processes counts a topic into which 2,000 messages a second go; one worker is killed.
Reported is the time from then to the first delta of the last of the partitions, as the table topic's readers
see it, less the session time-out. Open windows hold few groups in one run and many in the other: workers keep
no state, so that should make no difference. The figure is the median of three deaths.
"""

from __future__ import annotations

import os
import signal
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import polars as pl
from confluent_kafka import Consumer, Producer, TopicPartition

from streamgauge import Stream, count, distinct
from streamgauge import json as json_value
from streamgauge.apps.dev.kafka.broker import EmbeddedKafka

from .measure import line

GROUPS = 1_000, int(os.environ.get("KEYS", 1_000_000))
"""The larger one can be set smaller, to try the script."""
DEATHS = 3
PARTITIONS = 4
SESSION_SECONDS = 6.0
EVERY_SECONDS = 0.2
A_SECOND = 2_000
MOST_SECONDS = 120.0


class Feed:
    """Messages in the order of the groups, so that after as many of them each group has one."""

    def __init__(self, bootstrap: str, topic: str, groups: int) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "compression.type": "lz4"})
        self._topic, self._groups, self._sent = topic, groups, 0
        self._stop = threading.Event()

    def send(self, n: int) -> None:
        for number in range(self._sent, self._sent + n):
            value = b'{"key":%d,"user":%d}' % (number % self._groups, number)
            while True:
                try:
                    self._producer.produce(self._topic, value, partition=number % PARTITIONS)
                    break
                except BufferError:
                    self._producer.poll(0.05)
        self._producer.poll(0)
        self._sent += n

    @contextmanager
    def going_on(self) -> Iterator[None]:
        def go_on() -> None:
            while not self._stop.wait(0.05):
                self.send(A_SECOND // 20)

        thread = threading.Thread(target=go_on)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()


class Deltas:
    """When the newest delta of each input partition was seen in the table topic, by the wall clock here."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "deltas"})
        self._consumer.assign([TopicPartition(topic, 0, -1)])

    def see_all(self) -> None:
        """Wait until a delta with messages was seen of every partition."""
        deadline, left = time.monotonic() + MOST_SECONDS, set(range(PARTITIONS))
        while left and time.monotonic() < deadline:
            for message in self._consumer.consume(500, 0.005):
                headers = dict(message.headers() or ())
                if message.error() is None and "next" in headers and headers["next"] != headers["first"]:
                    left.discard(int(headers["partition"]))
        assert not left, f"no delta of the partitions {left} after {MOST_SECONDS:.0f} s"

    def skip(self, seconds: float) -> None:
        """Leave out what comes within some seconds."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._consumer.consume(500, 0.01)


def waited(bootstrap: str, broker: EmbeddedKafka, groups: int) -> float:
    """The median seconds beyond the session time-out, with so many groups in open windows."""
    topic = f"posts-{groups}"
    broker.create_topic(topic, PARTITIONS)
    stream = (
        Stream.from_kafka(
            topic,
            value=json_value({"key": pl.Int64, "user": pl.Int64}),
            bootstrap_servers=bootstrap,
            config={"session.timeout.ms": int(1000 * SESSION_SECONDS)},
        )
        .group_by("key")
        .tumbling("1d")
        .agg(posts=count(), users=distinct("user"))
    )
    feed = Feed(bootstrap, topic, groups)
    feed.send(groups)
    run = stream.start(group_id=topic, workers=2, checkpoint_seconds=EVERY_SECONDS)
    collected = []
    try:
        while run.summary().account.counted < groups:
            time.sleep(0.1)
        deltas = Deltas(bootstrap, run.plan.table_topic)
        with feed.going_on():
            for number in range(DEATHS):
                for _ in range(3):
                    deltas.see_all()  # both workers are at it
                os.kill(run.worker_pids[number % 2], signal.SIGKILL)
                died = time.monotonic()
                deltas.skip(2 * EVERY_SECONDS)  # its last ones
                deltas.see_all()
                collected.append(time.monotonic() - died - SESSION_SECONDS)
    finally:
        run.stop()
        run.wait()
    return statistics.median(collected)


def main() -> list[dict[str, Any]]:
    with EmbeddedKafka() as broker:
        few, many = (waited(broker.bootstrap_servers, broker, groups) for groups in GROUPS)
    reported = [
        f"{seconds:.2f} s with {groups:,} groups" for seconds, groups in zip((many, few), GROUPS[::-1])
    ]
    return [
        line("a worker's death to its partitions' next delta, beyond the session", *reported, "", "< 1 s")
    ]
