"""A group under another definition: no window of either lacks a row or has one twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from streamgauge.operators.consumer import migration
from streamgauge.operators.consumer.group.reset import GroupInUse
from streamgauge.operators.consumer.migration import migrate
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run, start
from streamgauge.operators.definition.aggregates import count, distinct
from streamgauge.operators.definition.definition_diff import DefinitionChanged
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.kafka.topics import admin

from ...waiting import until

pytestmark = pytest.mark.kafka


def closed_rows(tables: Any) -> dict[tuple[Any, ...], int]:
    """The count of each group of the windows that closed for good."""
    counts: dict[tuple[Any, ...], int] = {}
    for table in tables:
        if getattr(table, "is_final", None) is False:
            continue
        keys = [name for name in table.column_names if name not in ("posts", "users")]
        for row in table.to_pylist():
            key = tuple(row[name] for name in keys)
            assert key not in counts, "a window was handed over twice"
            counts[key] = row["posts"]
    return counts


def definitions(topic: Any) -> dict[str, Stream]:
    rows = Stream(topic.stream.source, topic.stream.time)
    few = rows.filter(pl.col("user") != 13)
    return {
        "tumbling": few.tumbling("10s", delay="2s").agg(posts=count(), users=distinct("user")),
        "keyed": few.group_by("user").tumbling("10s", delay="2s").agg(posts=count()),
        "shorter": few.tumbling("5s", delay="1s").agg(posts=count()),
        "hopping": few.hopping("10s", every="5s", delay="2s").agg(posts=count()),
        "filtered": few.tumbling("10s", delay="2s").agg(posts=count()),
        "unfiltered": rows.tumbling("10s", delay="2s").agg(posts=count()),
    }


@pytest.mark.slow
@pytest.mark.parametrize("partitions", [1, 3])
def test_no_window_of_old_and_new_lacks_or_doubles_a_row(kafka: Any, posts: Any, partitions: int) -> None:
    topic = posts(partitions)
    streams = definitions(topic)
    random = np.random.default_rng(partitions)
    ends, handed_over, summaries = {}, {}, []
    order = ["hopping", "tumbling", "keyed", "unfiltered", "filtered", "shorter"]
    for turn, name in enumerate(order):
        topic.send(int(random.integers(2_000, 3_500)))
        if turn:
            done = migrate(topic.topic, streams[name])
            assert done.end is not None and done.changes and len(done.starts) == partitions
            ends[turn] = done.end
        tables: list[Any] = []
        options: Any = {"group_id": topic.topic, "until": "latest", "table_partitions": partitions}
        summaries.append(run(streams[name], RunOptions(**options, on_window=tables.append)))
        assert summaries[-1].account.balanced
        handed_over[turn] = closed_rows(tables)
    for turn, name in enumerate(order[1:], 1):
        table, _ = topic.one_pass(streams[name])
        last = max(end for _, end, *_ in handed_over[turn])
        first, end = ends.get(turn), ends.get(turn + 1, last)
        wanted = {
            key: n
            for key, n in closed_rows([table]).items()
            if key[1] <= end and (not first or key[1] > first)
        }
        assert handed_over[turn] == wanted, (turn, name)
        assert wanted, "no window closed between two migrations"


@pytest.mark.slow
def test_what_can_not_follow_is_refused_and_changes_nothing(kafka: Any, posts: Any) -> None:
    topic = posts(1)
    streams = definitions(topic)
    options: Any = {"group_id": topic.topic, "until": "latest"}
    topic.send(2_500)
    client = admin({"bootstrap.servers": kafka.bootstrap_servers})
    with pytest.raises(ValueError, match="has no offsets"):
        migrate(topic.topic, streams["keyed"])
    run(streams["tumbling"], RunOptions(**options))
    rows = Stream(topic.stream.source, topic.stream.time).filter(pl.col("user") != 13)
    other_time = Stream(topic.stream.source, pl.from_epoch(pl.col("at") + 1, time_unit="us"))
    refused = {
        "nothing needs to be migrated": streams["tumbling"],
        "continues with its open windows": rows.tumbling("10s", delay="3s").agg(
            posts=count(), users=distinct("user")
        ),
        "it would share rows with windows that were handed over": rows.tumbling("1h").agg(posts=count()),
        "windows of the kind 'session'": rows.group_by("user").session("1s").agg(posts=count()),
        "the event time changed": other_time.tumbling("10s").agg(posts=count()),
        "one definition has windows": rows.rows_to_kafka(f"{topic.topic}.rows"),
    }
    topics = set(client.list_topics(timeout=60).topics)
    for words, stream in refused.items():
        with pytest.raises(ValueError, match=words):
            migrate(topic.topic, stream)
    with pytest.raises(ValueError, match="start must be left out"):
        migrate(topic.topic, streams["keyed"], start="earliest")
    with pytest.raises(ValueError, match="start must be at or before the first row of an open window"):
        migrate(topic.topic, streams["unfiltered"], start="latest")
    with pytest.raises(
        DefinitionChanged, match=f"streamgauge kafka groups migrate {topic.topic} MODULE:STREAM"
    ):
        run(streams["keyed"], RunOptions(**options))
    planned = migrate(topic.topic, streams["keyed"], dry_run=True)
    assert set(client.list_topics(timeout=60).topics) == topics
    topic.send(100)
    assert run(streams["tumbling"], RunOptions(**options)).account == topic.one_pass(streams["tumbling"])[1]

    running = start(streams["tumbling"], RunOptions(group_id=topic.topic, checkpoint_seconds=0.1))
    until(lambda: running.summary().account.read == 2_600)
    with pytest.raises(GroupInUse):
        migrate(topic.topic, streams["keyed"])
    running.stop()
    running.wait(120)
    assert migrate(topic.topic, streams["keyed"]).starts == planned.starts


@pytest.mark.slow
@pytest.mark.parametrize("step", ["write_to_log", "alter_offsets", "wait_until_gone"])
def test_one_that_is_interrupted_is_run_again(
    kafka: Any, posts: Any, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    topic = posts(2)
    streams = definitions(topic)
    options: Any = {"group_id": topic.topic, "until": "latest"}
    topic.send(2_500)
    run(streams["tumbling"], RunOptions(**options))

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    removed: list[Any] = []
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(migration, "remove", lambda _, topics, groups: removed.append(topics))
        patch.setattr(migration, step, interrupt)
        migrate(topic.topic, streams["keyed"])
    for name in ("tumbling", "keyed"):
        with pytest.raises(DefinitionChanged):
            run(streams[name], RunOptions(**options))
    migrate(topic.topic, streams["keyed"])
    topic.send(1_000)
    tables: list[Any] = []
    run(streams["keyed"], RunOptions(**options, on_window=tables.append))
    wanted = closed_rows([topic.one_pass(streams["keyed"])[0]])
    rows = closed_rows(tables)
    assert rows and all(wanted[key] == n for key, n in rows.items())


def test_rows_that_are_sent_on_go_on_where_they_ended(kafka: Any, posts: Any) -> None:
    topic = posts(2)
    rows = Stream(topic.stream.source, topic.stream.time)
    options: Any = {"group_id": topic.topic, "until": "latest"}
    topic.send(500)
    run(rows.rows_to_kafka(f"{topic.topic}.rows"), RunOptions(**options))
    few = rows.filter(pl.col("user") != 13).rows_to_kafka(f"{topic.topic}.rows")
    assert dict(migrate(topic.topic, few).starts) == {(topic.topic, p): 250 for p in (0, 1)}
    topic.send(300)
    account = run(few, RunOptions(**options)).account
    assert (account.read, account.balanced) == (300, True)
