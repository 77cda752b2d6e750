"""A group's table topic followed on a real broker: live, from its middle, after restarts of either side."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from confluent_kafka import Producer

from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import start
from streamgauge.operators.definition.aggregates import count, distinct, top_k
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json as decoder
from streamgauge.operators.sinks.sketches_to_kafka import SketchesToKafka
from streamgauge.queries.views.live import LiveTable
from streamgauge.queries.views.table_follower import TableFollower
from streamgauge.queries.views.table_snapshot import TableSnapshot
from streamgauge.queries.views.view import NotReady

from ...waiting import until
from ..logs import START

pytestmark = pytest.mark.kafka


class Posts:
    """A topic of posts, and a stream that counts them in windows of a second by language."""

    def __init__(self, kafka: Any, topic: str) -> None:
        self.kafka, self.topic, self.sent = kafka, topic, 0
        kafka.create_topic(topic, 2)
        self.config = {"bootstrap.servers": kafka.bootstrap_servers}
        rows = Stream.from_kafka(
            topic,
            value=decoder({"user": pl.Int64, "lang": pl.String, "at": pl.String}),
            time="at",
            bootstrap_servers=kafka.bootstrap_servers,
        )
        self.stream = (
            rows.group_by("lang")
            .tumbling("1s", delay="0s", max_ahead=None)
            .agg(posts=count(), users=distinct("user"), top=top_k("user"))
        )

    def send(self, seconds: int, a_second: int = 20) -> None:
        """Posts of the next seconds of event time, each second's to both partitions."""
        producer = Producer(self.config)
        for number in range(seconds * a_second):
            at = START + timedelta(seconds=(self.sent + number) / a_second)
            row = {"user": number % 17, "lang": "ed"[number % 3 % 2], "at": at.isoformat()}
            producer.produce(self.topic, json.dumps(row), partition=number % 2)
        assert producer.flush(120) == 0
        self.sent += seconds * a_second

    def run(self, **options: Any) -> Any:
        return start(
            self.stream,
            RunOptions(
                group_id=self.topic, table_partitions=2, checkpoint_seconds=0.1, idle_seconds=600, **options
            ),
        )


@contextmanager
def following(posts: Posts, folder: Path | None = None) -> Iterator[LiveTable]:
    table = LiveTable(posts.topic)
    follower = TableFollower(
        posts.topic, posts.config, table, None if folder is None else TableSnapshot(folder)
    )
    try:
        yield table
    finally:
        follower.close()


def counted(table: LiveTable) -> int:
    try:
        return sum(sum(window.table["posts"].to_pylist()) for window in table.view().windows)
    except NotReady:
        return 0


def in_order(tables: list[pa.Table]) -> list[Any]:
    result = [row for table in tables for row in table.to_pylist()]
    return sorted(result, key=lambda row: (row["window_start"], row["lang"]))


def content(table: LiveTable, begin: int = 0) -> list[Any]:
    return in_order([window.table for window in table.view().windows if window.start >= begin])


@pytest.mark.slow
def test_a_server_has_what_the_run_has_and_says_what_was_gone(kafka: Any, tmp_path: Path) -> None:
    posts = Posts(kafka, "served")
    with following(posts, tmp_path) as table:
        with pytest.raises(NotReady):
            table.view()
        until(lambda: "no table topic served.table" in table.describe()["waiting"])
        running = posts.run(sinks=[SketchesToKafka()])
        posts.send(20)
        until(lambda: counted(table) == posts.sent)
        posts.send(10)
        until(lambda: counted(table) == posts.sent and table.view().lag == 0)
        view = table.view()
        # Of a run that had deleted its first deltas before they were read here, nobody knows where it began.
        assert all(gap.until <= view.windows[0].start for gap in view.gaps)
        assert view.stale is None and view.ready
        assert sum(window.open for window in view.windows) < len(view.windows)
        until(lambda: running.summary().account.counted == posts.sent)
        assert content(table) == in_order([running.table()])
        # The run's merger has deleted what it needs no more: what is left begins at its open windows. Those
        # before are on the topic of closed windows.
        until(lambda: table.known().places[0][0] > 0)
        with following(posts) as late:
            until(lambda: counted(late) == posts.sent)
            assert content(late) == content(table)
            two = late.view()
            assert all(gap.until <= view.windows[0].start for gap in two.gaps)
            posts.send(3)
            until(lambda: counted(late) == counted(table) == posts.sent)
            assert content(late) == content(table)
    # A later server goes on where the first one was, with what the run emitted meanwhile.
    posts.send(3)
    until(lambda: running.summary().account.counted == posts.sent)
    with following(posts, tmp_path) as again:
        until(lambda: counted(again) == posts.sent)
        assert content(again) == in_order([running.table()])
        assert all(gap.until <= again.view().windows[0].start for gap in again.view().gaps)
    running.stop()
    running.wait(120)


@pytest.mark.soak
def test_brokers_that_are_away_make_it_stale_and_back_it_goes_on(own_broker: Any) -> None:
    posts = Posts(own_broker, "away")
    running = posts.run(sinks=[SketchesToKafka()])  # it may delete its first deltas before they are read here
    posts.send(5)
    with following(posts) as table:
        until(lambda: counted(table) == posts.sent and table.view().lag == 0)
        own_broker.stop()
        until(lambda: table.view().stale is not None)
        assert counted(table) == posts.sent and table.view().lag is None
        own_broker.start()
        until(lambda: table.view().stale is None)
        posts.send(5)
        until(lambda: counted(table) == posts.sent)
        until(lambda: running.summary().account.counted == posts.sent)
        assert content(table) == in_order([running.table()])
    running.stop()
    running.wait(120)
