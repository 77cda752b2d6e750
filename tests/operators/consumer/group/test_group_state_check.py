"""A group goes on only with what it began with; what its earlier runs left is found wherever it stands."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewPartitions

from streamgauge.operators.consumer.group.group_state_check import GroupState
from streamgauge.operators.consumer.log.merger_state import EMPTY_STATE
from streamgauge.operators.consumer.log.snapshots import Snapshot
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run, start
from streamgauge.operators.definition import expression_tree
from streamgauge.operators.definition.aggregates import count, distinct, top_k
from streamgauge.operators.definition.definition_diff import DefinitionChanged
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.kafka.topics import TopicError, admin, ensure_topic
from streamgauge.operators.table.query import query

from ....waiting import until
from ..runs import Windows, run_and_ask

pytestmark = pytest.mark.kafka


def recreate(client: Any, kafka: Any, topic: str, partitions: int) -> None:
    client.delete_topics([topic])[topic].result(120)
    until(lambda: topic not in client.list_topics(timeout=120).topics)
    kafka.create_topic(topic, partitions=partitions)


FILTERED = re.escape('step 1 changed from filter(col("user") != 13) to filter(col("user") != 14)')


def filtered(topic: Any) -> Stream:
    """The topic's stream with another filter: state of both could be merged, but their rows not."""
    own = topic.stream
    changed = Stream(own.source, own.time).filter(pl.col("user") != 14).tumbling("10s", delay="2s")
    return changed.agg(**own.aggregates)


@pytest.mark.slow
def test_another_definition_is_refused_with_the_difference_and_the_own_one_goes_on(posts, same) -> None:
    topic = posts()
    topic.send(2_000)
    options = {"group_id": topic.topic, "until": "latest"}
    run(topic.stream, RunOptions(**options))
    changed = Stream(topic.stream.source, topic.stream.time, topic.stream.steps).tumbling("20s", delay="2s")
    changed = changed.agg(**{**topic.stream.aggregates, "more": count()})
    with pytest.raises(DefinitionChanged) as raised:
        run(changed, RunOptions(**options))
    assert "the window changed from tumbling 10s to tumbling 20s" in str(raised.value)
    assert 'the aggregate "more" was added' in str(raised.value) and "another group_id" in str(raised.value)
    with pytest.raises(DefinitionChanged, match=FILTERED):
        run(filtered(topic), RunOptions(**options))
    topic.send(2_000)
    running = start(topic.stream, RunOptions(group_id=topic.topic))
    with pytest.raises(DefinitionChanged, match="20s"):
        start(changed, RunOptions(group_id=topic.topic))
    with pytest.raises(DefinitionChanged, match=FILTERED):
        start(filtered(topic), RunOptions(group_id=topic.topic))
    until(lambda: running.summary().account.read == 4_000)
    running.stop()
    running.wait(120)
    assert running.summary().account == topic.one_pass()[1]


@pytest.mark.slow
def test_a_group_goes_on_under_a_definition_that_leaves_its_state_as_it_is(posts, same, caplog) -> None:
    """Open windows continue with a column more that nothing reads, another question, and another delay."""
    topic, windows = posts(2), Windows()
    options = {"group_id": topic.topic, "until": "latest", "on_window": windows}
    own = topic.stream

    def changed(delay: str, **columns: Any) -> Stream:
        schema = {"user": pl.Int64, "at": pl.Int64, "tags": pl.List(pl.String), **columns}
        source = replace(own.source, value=json(schema))
        rows = Stream(source, own.time).filter(pl.col("user") != 13).tumbling("10s", delay=delay)
        return rows.agg(posts=count(), users=distinct("user"), tags=top_k("tags", k=9))

    topic.send(1_500)
    run(own, RunOptions(**options))
    topic.send(1_500)
    more = changed("2s", lang=pl.String)
    assert more.fingerprint() != own.fingerprint()
    assert run(more, RunOptions(**options)).account == topic.one_pass()[1]
    assert (
        'continues with its open windows under a changed definition: the column "lang" was added'
        in caplog.text
    )
    same(windows.table(), topic.one_pass()[0])
    with pytest.raises(DefinitionChanged, match='the column "tags" changed from'):
        run(changed("2s", tags=pl.List(pl.Int64)), RunOptions(**options))
    # Another delay closes windows at another time; all messages count somewhere, and the first may come back.
    for stream in (changed("7s", lang=pl.String), own):
        topic.send(500)
        account = run(stream, RunOptions(**options)).account
        assert account.balanced and account.read == topic.one_pass()[1].read
    client = admin(topic.stream.source.settings)
    tables = [
        name for name in client.list_topics(timeout=120).topics if name.startswith(f"{topic.topic}.table.")
    ]
    assert tables == [f"{topic.topic}.table.{own.fingerprint()}"]


def test_two_definitions_that_begin_a_group_at_once_do_not_both_run(kafka, posts) -> None:
    topic = posts(2)
    client = admin({"bootstrap.servers": kafka.bootstrap_servers})
    plain = Stream(topic.stream.source, topic.stream.time, topic.stream.steps)
    streams = [plain.tumbling(every).agg(posts=count()) for every in ("10s", "20s")]
    one, other = (
        GroupState(
            client,
            {"bootstrap.servers": kafka.bootstrap_servers},
            topic.topic,
            stream,
            {topic.topic: 2},
            {topic.topic: ""},
        )
        for stream in streams
    )
    for history in (one, other):
        history.read()
    for history in (one, other):
        ensure_topic(client, history.table_topic, 1)
    with pytest.raises(DefinitionChanged, match="another definition"):
        one.claim()
    until(lambda: one.table_topic not in client.list_topics(timeout=120).topics)
    other.claim()


def test_of_two_that_treat_rows_otherwise_the_first_to_begin_has_the_group(kafka, posts) -> None:
    topic = posts(2)
    config = {"bootstrap.servers": kafka.bootstrap_servers}
    client = admin(config)
    one, other = (
        GroupState(client, config, topic.topic, stream, {topic.topic: 2}, {topic.topic: ""})
        for stream in (topic.stream, filtered(topic))
    )
    assert one.table_topic == other.table_topic
    for history in (one, other):
        history.read()
    ensure_topic(client, one.table_topic, 1)
    one.claim()
    with pytest.raises(DefinitionChanged, match=FILTERED):
        other.claim()
    again = GroupState(client, config, topic.topic, topic.stream, {topic.topic: 2}, {topic.topic: ""})
    again.read()
    assert again.new


@pytest.mark.slow
def test_another_polars_and_another_question_go_on_with_all_rows(posts, same, monkeypatch, caplog) -> None:
    topic = posts(2)
    topic.send(2_000)
    options = {"group_id": topic.topic, "until": "latest"}
    before = start(topic.stream, RunOptions(**options))
    before.wait(120)  # and leaves windows open
    serialised = expression_tree._serialised

    def otherwise(expression: pl.Expr) -> Any:
        result = serialised(expression)
        if both := result.get("BinaryExpr"):
            assert both["op"] == "NotEq"
            equal = {"BinaryExpr": {**both, "op": "Eq"}}
            return {"Function": {"input": [equal], "function": {"Boolean": "Not"}}}
        return result

    monkeypatch.setattr(expression_tree, "_serialised", otherwise)
    monkeypatch.setattr(pl, "__version__", "2.9.0")
    topic.send(2_000)
    stream = topic.stream
    stream = replace(stream, aggregates={**stream.aggregates, "tags": top_k("tags", k=1).typed(pa.string())})
    after = start(stream, RunOptions(**options))
    results = after.wait(120)
    table, account = topic.one_pass()
    assert after.plan.table_topic == before.plan.table_topic
    assert (results.account, results.duplicates) == (account, 0)
    output = caplog.text
    assert "continues with another version of Polars" in output
    assert 'step 1 had col("user") != 13, and has (col("user") == 13).not_()' in output
    counted = {row["window_start"]: row for row in query(table).to_dicts()}
    rows = results.windows().to_dicts()
    assert len(rows) > 1
    assert all(row["posts"] == counted[row["window_start"]]["posts"] for row in rows)
    assert all(row["tags"] == counted[row["window_start"]]["tags"][:1] for row in rows)


def test_state_of_an_unknown_form_is_refused_by_name(kafka, posts) -> None:
    topic = posts(1)
    name = f"{topic.topic}.table.0123456789abcdef"
    ensure_topic(admin({"bootstrap.servers": kafka.bootstrap_servers}), name, 1)
    reported = {"source": {"topic": topic.topic, "value": "json"}, "steps": [["filter", {"Column": "user"}]]}
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    for message in Snapshot("0123456789abcdef", {}, 0, EMPTY_STATE, reported).outgoing(name, 0):
        producer.produce(message.topic, message.value, headers=list(message.headers))
    assert producer.flush(120) == 0
    with pytest.raises(
        DefinitionChanged, match=r"in format version None, by another version of streamgauge.*group_id"
    ):
        run(topic.stream, RunOptions(group_id=topic.topic, until="latest"))


def test_lost_offsets_are_found_in_the_table_topic_and_other_topics_are_refused(
    kafka, posts, same, caplog: pytest.LogCaptureFixture
) -> None:
    topic = posts(2)
    topic.send(2_000)
    client = admin({"bootstrap.servers": kafka.bootstrap_servers})
    tables = {}

    def emit(table: Any) -> None:
        tables[table.column("window_start")[0].as_py()] = table.column("posts")[0].as_py()

    options = {"group_id": topic.topic, "until": "latest", "on_window": emit}
    table_topic = start(topic.stream, RunOptions(**options))
    table_topic.wait(120)
    # As after offsets.retention.minutes without a member.
    for group in (topic.topic, f"{topic.topic}.merger"):
        client.delete_consumer_groups([group])[group].result(120)
    topic.send(2_000)
    result = run_and_ask(topic.stream, RunOptions(**options))
    table, account = topic.one_pass()
    assert (result.account, result.duplicates, result.lag) == (account, 0, 0)
    assert ["has lost its offsets" in said for said in caplog.messages].count(True) == 1
    starts = table.column("window_start").to_pylist()
    assert tables == dict(zip(starts, table.column("posts").to_pylist(), strict=True))

    name = table_topic.plan.table_topic
    client.delete_topics([name])[name].result(120)
    until(lambda: name not in client.list_topics(timeout=120).topics)
    with pytest.raises(TopicError, match=rf"table topic '{name}' .*was deleted.*new group_id"):
        run(topic.stream, RunOptions(**options))


def test_a_topic_that_is_recreated_is_refused_at_the_start_and_while_running(kafka, posts) -> None:
    topic = posts(2)
    topic.send(500)
    client = admin({"bootstrap.servers": kafka.bootstrap_servers})
    options = {"group_id": topic.topic, "checkpoint_seconds": 0.1}
    running = start(topic.stream, RunOptions(**options))
    until(lambda: running.summary().account.read == 500)
    recreate(client, kafka, topic.topic, 2)
    topic.send(1_000)
    with pytest.raises(TopicError, match=f"'{topic.topic}' was deleted"):
        running.wait(120)
    with pytest.raises(TopicError, match=f"'{topic.topic}' was deleted and recreated.*new group_id"):
        run(topic.stream, RunOptions(until="latest", **options))


def test_from_latest_on_is_decided_once_and_added_partitions_are_read_whole(kafka, posts) -> None:
    topic = posts(1, **{"topic.metadata.refresh.interval.ms": 300})
    topic.send(100)
    options = {"group_id": topic.topic, "start": "latest", "checkpoint_seconds": 0.1}
    first = start(topic.stream, RunOptions(**options))
    first.stop()
    first.wait(120)
    topic.send(50)  # while nobody runs
    running = start(topic.stream, RunOptions(**options))
    client = admin({"bootstrap.servers": kafka.bootstrap_servers})
    client.create_partitions([NewPartitions(topic.topic, 2)])[topic.topic].result(120)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    until(lambda: len(producer.list_topics(topic.topic, timeout=120).topics[topic.topic].partitions) == 2)
    for value in topic.sent[0][:30]:
        producer.produce(topic.topic, value, partition=1)
    assert producer.flush(120) == 0
    until(lambda: running.summary().account.read == 80 and running.summary().lag == 0)
    running.stop()
    assert running.wait(120).account.read == 80
