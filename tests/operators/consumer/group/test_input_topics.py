"""Several topics on a real broker: by pattern, merged, with topics and partitions that come and go."""

from __future__ import annotations

import os
import signal
import uuid
from collections import Counter
from json import dumps
from typing import Any

import polars as pl
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import NewPartitions

from streamgauge.operators.consumer.group.input_topics import input_topics
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run, start
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.definition_diff import DefinitionChanged
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.kafka.topics import TopicError, admin
from streamgauge.operators.sinks.answers_to_kafka import AnswersToKafka
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.table.query import query
from streamgauge.shared_runs import run_together, start_together

from ....faulty_proxy import IMPATIENT
from ....waiting import until
from ..runs import Windows, run_and_ask

pytestmark = pytest.mark.kafka

NOON = 1_767_225_600


class Topics:
    """Topics with a prefix of their own; each message says its second and counts in its topic's name."""

    def __init__(self, kafka: Any) -> None:
        self.kafka = kafka
        self.prefix = f"in{uuid.uuid4().hex[:8]}"
        self.servers = {"bootstrap.servers": kafka.bootstrap_servers}
        self.producer = Producer({**self.servers, "enable.idempotence": True})
        self.sent: Counter[tuple[str, int]] = Counter()

    def make(self, name: str, partitions: int = 2) -> str:
        self.kafka.create_topic(f"{self.prefix}.{name}", partitions=partitions)
        return f"{self.prefix}.{name}"

    def send(self, name: str, seconds: range, partitions: int = 2) -> None:
        """A message a second to each partition."""
        topic = f"{self.prefix}.{name}"
        for second in seconds:
            for partition in range(partitions):
                value = {"name": name, "at": NOON + second}
                self.producer.produce(topic, dumps(value), partition=partition)
                self.sent[name, second // 10 * 10] += 1
        assert self.producer.flush(120) == 0

    def stream(self, topic: str | list[str], name: str = "name") -> Stream:
        """Rows of a name, from the column of that name."""
        return Stream.from_kafka(
            topic,
            value=json({name: pl.String, "at": pl.Int64}),
            time=pl.from_epoch("at", time_unit="s"),
            bootstrap_servers=self.kafka.bootstrap_servers,
            config={**IMPATIENT, "topic.metadata.refresh.interval.ms": 300},
        )

    def counted(self, stream: Stream) -> Stream:
        return stream.group_by("name").tumbling("10s", delay="0s").agg(rows=count())


def counts(table: Any) -> Counter[tuple[str, int]]:
    rows = query(table).select(["window_start", "name", "rows"]).to_dicts()
    return Counter({(r["name"], int(r["window_start"].timestamp()) - NOON): r["rows"] for r in rows})


@pytest.fixture
def topics(kafka: Any) -> Topics:
    return Topics(kafka)


def messages(topics: Topics, topic: str, n: int) -> list[tuple[bytes | None, bytes | None]]:
    """The value and the header `topic` of the first `n` messages of a topic."""
    consumer = Consumer({**topics.servers, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    collected: list[Any] = []

    def read() -> bool:
        collected.extend(m for m in consumer.consume(10, 0.2) if m.error() is None)
        return len(collected) >= n

    until(read)
    consumer.close()
    return [(m.value(), dict(m.headers())["topic"]) for m in collected]


@pytest.mark.slow
def test_a_pattern_takes_up_topics_and_partitions_that_come_and_nothing_of_its_own(
    topics: Topics,
) -> None:
    topics.make("a")
    topics.make("b", 1)
    topics.make("other")
    stream = topics.counted(topics.stream(rf"^{topics.prefix}\.[a-d]"))
    group = f"{topics.prefix}.c.group"
    topics.send("a", range(30))
    topics.send("other", range(30))
    options = {"group_id": group, "checkpoint_seconds": 0.1, "idle_seconds": 600.0}
    windows = Windows()
    running = start(stream, RunOptions(on_window=windows, **options))
    until(lambda: running.summary().account.read == 60)
    # b has given nothing, and is not silent for long enough.
    assert running.summary().account == Account(read=60, counted=60) and not windows.tables
    topics.make("d")
    topics.send("d", range(15))
    topics.producer.produce(f"{topics.prefix}.d", b"oops", partition=0)
    assert topics.producer.flush(120) == 0
    until(lambda: running.summary().account.read == 91)
    assert running.summary().account.dead_lettered == 1
    client = admin(topics.servers)
    client.create_partitions([NewPartitions(f"{topics.prefix}.b", 2)])[f"{topics.prefix}.b"].result(120)
    until(lambda: {(f"{topics.prefix}.b", 1), (f"{topics.prefix}.d", 0)} <= {*running._only.inputs})
    topics.send("b", range(30))
    until(lambda: running.summary().account.read == 151)
    until(lambda: len(windows.tables) == 1)  # d is not past the second yet
    read = Counter({key: n for key, n in topics.sent.items() if key[0] != "other"})
    assert counts(windows.table()) == Counter({key: n for key, n in read.items() if key[1] < 10})
    running.stop()
    running.wait(120)
    assert messages(topics, f"{topics.prefix}.d.dead-letters", 1) == [
        (b"oops", f"{topics.prefix}.d".encode())
    ]
    # The topics of dead letters and the table topic match, too, and are left alone.
    result = run_and_ask(stream, RunOptions(until="latest", on_window=windows, **options))
    assert (result.account, result.lag) == (Account(read=151, counted=150, dead_lettered=1), 0)
    assert counts(windows.table()) == read


@pytest.mark.slow
def test_a_topic_that_goes_ends_the_run_and_the_next_goes_on_without_it(topics: Topics, caplog: Any) -> None:
    for name in "ab":
        topics.make(name)
        topics.send(name, range(15))
    stream = topics.counted(topics.stream(rf"^{topics.prefix}\.[ab]$"))
    windows = Windows()
    options = {
        "group_id": topics.prefix,
        "checkpoint_seconds": 0.1,
        "idle_seconds": 600.0,
        "on_window": windows,
    }
    running = start(stream, RunOptions(**options))
    until(lambda: running.summary().account.read == 60 and len(windows.tables) == 1)
    gone = f"{topics.prefix}.b"
    admin(topics.servers).delete_topics([gone])[gone].result(120)
    with pytest.raises(TopicError, match=rf"the topic '{gone}' was deleted while a run used it"):
        running.wait(120)
    topics.send("a", range(15, 35))
    again = start(stream, RunOptions(**options))
    until(lambda: len(windows.tables) == 3)
    again.stop()
    assert again.wait(120).account == Account(read=100, counted=100)
    assert f"the topic {gone} was deleted; the run continues" in caplog.text
    assert counts(windows.table()) == Counter({k: n for k, n in topics.sent.items() if k[1] < 30})


@pytest.mark.slow
@pytest.mark.parametrize(
    "delivery", ["exactly_once", pytest.param("effectively_once", marks=pytest.mark.soak)]
)
def test_merged_topics_count_each_message_once_while_a_worker_is_killed(
    topics: Topics, delivery: Any
) -> None:
    clicks, orders = topics.make("clicks"), topics.make("orders", 3)
    both = topics.stream(clicks).merge(topics.stream([orders]).filter(pl.col("at") >= 0))
    stream, windows = topics.counted(both), Windows()
    options = {
        "group_id": topics.prefix,
        "checkpoint_seconds": 0.1,
        "on_window": windows,
        "delivery": delivery,
    }
    running = start(stream, RunOptions(workers=2, **options))
    for low in range(0, 100, 10):
        topics.send("clicks", range(low, low + 10))
        topics.send("orders", range(low, low + 10), 3)
        if low == 40:
            until(lambda: running.summary().account.read > 0)
            os.kill(running.worker_pids[0], signal.SIGKILL)
    until(lambda: running.summary().account.read == 500)
    running.stop()
    assert running.wait(120).account == Account(read=500, counted=500)
    topics.send("orders", range(100, 110), 3)
    result = run_and_ask(stream, RunOptions(until="latest", **options))
    assert (result.account, result.overlaps, result.lag) == (Account(read=530, counted=530), 0, 0)
    assert counts(windows.table()) == topics.sent
    changed = topics.stream(clicks).merge(topics.stream([orders]).filter(pl.col("at") >= 1))
    with pytest.raises(DefinitionChanged, match=rf'in the stream of "{orders}", step 1 changed from filter'):
        run(topics.counted(changed), RunOptions(until="latest", **options))


@pytest.mark.soak
def test_streams_of_different_topics_run_together_and_take_up_what_begins_to_match(topics: Topics) -> None:
    names = {"a": topics.make("a"), "b": topics.make("b", 1)}
    requested = {
        "one": topics.stream(names["a"]),
        "both": topics.stream(names["a"]).merge(topics.stream(names["b"]).filter(pl.col("at") >= 0)),
        "all": topics.stream(rf"^{topics.prefix}\.[a-d]$"),
    }
    streams = {name: topics.counted(rows) for name, rows in requested.items()}
    windows = {name: Windows() for name in streams}
    options = {"group_id": topics.prefix, "checkpoint_seconds": 0.1, "on_window": windows}
    topics.send("a", range(25))
    running = start_together(streams, idle_seconds=600.0, **options)
    until(lambda: all(running[name].account.read == 50 for name in streams))
    until(lambda: len(windows["one"].tables) == 2)
    assert not windows["both"].tables and not windows["all"].tables  # they wait for b
    topics.make("d")
    topics.send("d", range(15))
    until(lambda: running["all"].account.read == 80)
    topics.send("b", range(35), 1)
    until(lambda: (running["both"].account.read, running["all"].account.read) == (85, 115))
    running.stop()
    result = running.wait(120)
    assert {name: own.account.read for name, own in result.items()} == {"one": 50, "both": 85, "all": 115}
    topics.send("a", range(25, 40))
    result = run_together(streams, until="latest", progress=False, **options)
    read = {"one": "a", "both": "ab", "all": "abd"}
    for name, its in read.items():
        wanted = Counter({key: n for key, n in topics.sent.items() if key[0] in its})
        assert result[name].account == Account(read=wanted.total(), counted=wanted.total())
        assert (counts(windows[name].table()), result[name].lag) == (wanted, 0)


def test_what_is_not_there_or_read_twice_is_said(topics: Topics) -> None:
    name, client = topics.make("a"), admin(topics.servers)
    for requested, message in (
        ([rf"^{topics.prefix}\.no"], "no topic at .* matches .* yet"),
        ([[name, "nothing"]], "there is no topic 'nothing'"),
        ([rf"^{topics.prefix}\.", r"^in[0-9a-f]+\.a"], "matches the patterns of two of the merged streams"),
    ):
        sources = [topics.stream(one).reading.kafka_source for one in requested]
        with pytest.raises(TopicError, match=message):
            input_topics(client, sources)
    for sinks, letters in (([AnswersToKafka(f"{topics.prefix}.out")], ""), ([], name)):
        with pytest.raises(ValueError, match="it would read its own output"):
            stream = topics.counted(topics.stream([rf"^{topics.prefix}\.", name]))
            run(stream, RunOptions(until="latest", sinks=sinks, dead_letters=letters))
    sources = [topics.stream(one).reading.kafka_source for one in (rf"^{topics.prefix}\.", name)]
    assert input_topics(client, sources).partitions == {name: 2}
