"""Lines, dead letters and positions in one transaction, whatever becomes of it."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from confluent_kafka import Producer

from streamgauge.agents.ingest.batch import Batch, DeadLine, IngestError
from streamgauge.agents.ingest.component import Place
from streamgauge.agents.ingest.kafka_positions import TOPIC, KafkaPositions
from streamgauge.agents.ingest.sinks.kafka import KafkaSink, KafkaTopic
from streamgauge.apps.dev.kafka.broker import EmbeddedKafka
from streamgauge.apps.dev.kafka.node import free_port
from streamgauge.operators.kafka.topics import admin, high_watermarks

from ....faulty_proxy import FaultyProxy, Request
from ....waiting import until
from ..agents import fresh, messages, values

pytestmark = pytest.mark.kafka


def opened(kafka: Any, topic: str, tmp_path: Path, *, proxied: bool = False, **settings: Any) -> KafkaSink:
    servers = kafka.proxied if proxied else kafka.bootstrap_servers
    place = Place(settings.pop("name", topic), "source", tmp_path)
    return KafkaTopic(topic=topic, bootstrap_servers=servers, **settings).open(place)


def deliver(sink: KafkaSink, *batches: Batch) -> tuple[int, int]:
    for batch in batches:
        sink.write(batch)
    delivered = sink.commit(batches)
    return delivered.sent, delivered.dead_lettered


def test_messages_go_with_their_position(kafka: Any, tmp_path: Path) -> None:
    topic = fresh()
    sink = opened(kafka, topic, tmp_path)
    assert dict(sink.positions) == {}
    batch = Batch.of([b"one", b"", b"three"], positions={"file": {"offset": 9}, "gone": None})
    assert deliver(sink, batch) == (3, 0)
    sink.close()
    assert values(kafka, topic) == [b"one", b"", b"three"]
    again = opened(kafka, topic, tmp_path)
    assert again.positions["file"] == {"offset": 9} and "gone" not in again.positions
    again.close()
    of_another = opened(kafka, topic, tmp_path, name=fresh())
    assert dict(of_another.positions) == {}
    of_another.close()


def test_functions_in_settings_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r'"oauth_cb" must be a string or a number.*sasl\.oauthbearer\.method": "oidc"'
    ):
        KafkaTopic(topic="posts", config={"oauth_cb": lambda _: ("token", 1e9)})
    with pytest.raises(ValueError, match=r'"error_cb" must be a string or a number.*leave it out'):
        KafkaTopic(topic="posts", config={"error_cb": print})


@pytest.mark.slow
def test_brokers_that_move_are_found_by_their_names(tmp_path: Path) -> None:
    broker = EmbeddedKafka(data=tmp_path / "data").start()
    proxy = FaultyProxy(broker.port)
    try:
        topic = fresh()
        settings = KafkaTopic(
            topic=topic, bootstrap_servers=proxy.address, config={"transaction.timeout.ms": 600_000}
        )
        sink = settings.open(Place(topic, "source", tmp_path))
        assert deliver(sink, Batch.of([b"one"])) == (1, 0)
        broker.stop()
        broker = EmbeddedKafka(free_port(), tmp_path / "data").start()
        proxy.target = broker.port
        began = time.monotonic()
        assert deliver(sink, Batch.of([b"two"], positions={"file": {"offset": 2}})) == (1, 0)
        assert time.monotonic() - began < 60, "it waited for its transaction's time-out"
        sink.close()
        assert values(broker, topic) == [b"one", b"two"]
    finally:
        proxy.close()
        broker.stop()


def test_what_is_not_committed_is_not_there(kafka: Any, tmp_path: Path) -> None:
    topic = fresh()
    sink = opened(kafka, topic, tmp_path)
    sink.write(Batch.of([b"lost"], positions={"file": {"offset": 4}}))
    sink.close()
    again = opened(kafka, topic, tmp_path)
    assert "file" not in again.positions
    deliver(again, Batch.of([b"there"]))
    again.close()
    assert values(kafka, topic) == [b"there"]


def test_keys_headers_and_timestamps(kafka: Any, tmp_path: Path) -> None:
    topic = fresh()
    sink = opened(kafka, topic, tmp_path)
    headers = [("host", b"web-1"), ("empty", b"")]
    deliver(
        sink,
        Batch.of([b"v1", b""], keys=[b"k", None], headers=headers, timestamp_ms=1_700_000_000_000),
    )
    sink.close()
    first, second = messages(kafka, topic)
    assert (first.key(), first.value(), second.key(), second.value()) == (b"k", b"v1", None, b"")
    assert first.headers() == second.headers() == headers
    assert first.timestamp()[1] == 1_700_000_000_000


def test_a_stream_keeps_to_one_partition(kafka: Any, tmp_path: Path) -> None:
    topic = fresh()
    sink = opened(kafka, topic, tmp_path, partitions=4)
    for at in range(8):
        deliver(sink, Batch.of([b"%d" % at], stream="a.log"))
    sink.close()
    received = messages(kafka, topic)
    assert [message.value() for message in received] == [b"%d" % at for at in range(8)]
    assert len({message.partition() for message in received}) == 1


def test_without_an_order_batches_take_turns(kafka: Any, tmp_path: Path) -> None:
    topic = fresh()
    sink = opened(kafka, topic, tmp_path, partitions=4, order="none")
    for at in range(8):
        deliver(sink, Batch.of([b"%d" % at], stream="a.log"))
    sink.close()
    assert {message.partition() for message in messages(kafka, topic)} == {0, 1, 2, 3}


def test_dead_letters_have_their_reason(kafka: Any, tmp_path: Path) -> None:
    topic = fresh()
    sink = opened(kafka, topic, tmp_path)
    long = b"x" * 2_000_000
    assert deliver(sink, Batch.of([b"a", long, b"b"], stream="a.log", dead=[DeadLine("why", b"raw")])) == (
        2,
        2,
    )
    sink.close()
    assert values(kafka, topic) == [b"a", b"b"]
    letters = messages(kafka, f"{topic}.dead-letters")
    by_reason = {dict(letter.headers())["reason"]: letter.value() for letter in letters}
    assert by_reason[b"why"] == b"raw"
    assert by_reason[b"2000000 bytes, above the limit of 1048332"] == long[:100_000]


def test_a_topic_that_takes_little_gets_small_batches(kafka: Any, tmp_path: Path) -> None:
    topic = fresh()
    kafka.create_topic(topic, partitions=1, config={"max.message.bytes": "20000"})
    sink = opened(kafka, topic, tmp_path)
    noise = np.random.default_rng(0)
    lines = [noise.bytes(5_000) for _ in range(40)]
    assert deliver(sink, Batch.of([*lines, noise.bytes(25_000)])) == (40, 1)
    sink.close()
    assert values(kafka, topic) == lines


def test_a_topic_that_takes_10_mb_gets_them(kafka: Any, tmp_path: Path) -> None:
    topic = fresh()
    kafka.create_topic(topic, partitions=1, config={"max.message.bytes": "12000000"})
    sink = opened(kafka, topic, tmp_path)
    line = np.random.default_rng(0).bytes(10_000_000)
    assert deliver(sink, Batch.of([line, b"next"])) == (2, 0)
    sink.close()
    assert values(kafka, topic) == [line, b"next"]


def test_an_older_agent_of_the_same_name_is_fenced(kafka: Any, tmp_path: Path) -> None:
    topic = fresh()
    older = opened(kafka, topic, tmp_path)
    deliver(older, Batch.of([b"older"]))
    newer = opened(kafka, topic, tmp_path)
    older.write(Batch.of([b"zombie"]))
    with pytest.raises(IngestError, match=f"another agent named '{topic}' has taken over 'source'"):
        older.commit([Batch.of([b"zombie"])])
    deliver(newer, Batch.of([b"newer"]))
    older.close()
    newer.close()
    assert values(kafka, topic) == [b"older", b"newer"]


def test_it_is_fenced_while_the_newer_one_waits_for_others(kafka: Any, tmp_path: Path) -> None:
    # Positions can be read only up to an open transaction, of any agent's that shares their partition.
    topic = fresh()
    older = opened(kafka, topic, tmp_path)
    config = {"bootstrap.servers": kafka.bootstrap_servers}
    other = Producer({**config, "transactional.id": fresh()})
    other.init_transactions(60)
    other.begin_transaction()
    place = (TOPIC, KafkaPositions(admin(config), config, topic, "source").partition)
    key = json.dumps(["other", "source", "file"])
    other.produce(TOPIC, key=key, value=json.dumps({}), partition=place[1])
    assert other.flush(60) == 0
    end = high_watermarks(admin(config), [place], 60)[place]
    newer: list[KafkaSink] = []
    thread = threading.Thread(target=lambda: newer.append(opened(kafka, topic, tmp_path)))
    thread.start()
    until(lambda: high_watermarks(admin(config), [place], 60)[place] > end)
    with pytest.raises(IngestError, match="another agent"):
        deliver(older, Batch.of([b"zombie"]))
    older.close()
    assert not newer
    other.abort_transaction()
    thread.join()
    deliver(newer[0], Batch.of([b"newer"]))
    newer[0].close()
    assert values(kafka, topic) == [b"newer"]


@pytest.mark.parametrize("lost", ["answer", "request"])
def test_a_commit_of_unknown_outcome_counts_once(kafka: Any, tmp_path: Path, lost: str) -> None:
    topic = fresh()
    sink = opened(kafka, topic, tmp_path, proxied=True, config={"transaction.timeout.ms": 10_000})
    deliver(sink, Batch.of([b"one"]))
    getattr(kafka.proxy, f"lose_{lost}")(Request.END_TRANSACTION)
    deliver(sink, Batch.of([b"two"], positions={"file": {"offset": 2}}))
    deliver(sink, Batch.of([b"three"]))
    sink.close()
    assert values(kafka, topic) == [b"one", b"two", b"three"]


@pytest.mark.slow
def test_a_broker_that_is_away_is_waited_for(kafka: Any, tmp_path: Path) -> None:
    topic = fresh()
    sink = opened(kafka, topic, tmp_path, proxied=True, config={"transaction.timeout.ms": 3_000})
    kafka.proxy.away = True
    kafka.proxy.reset()
    batch = Batch.of([b"kept"])
    done: list[tuple[int, int]] = []
    thread = threading.Thread(target=lambda: done.append(deliver(sink, batch)))
    thread.start()
    time.sleep(4)  # longer than the transaction may last
    assert not done
    kafka.proxy.away = False
    thread.join(120)
    sink.close()
    assert done == [(1, 0)] and values(kafka, topic) == [b"kept"]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"topic": ""}, "topic must name a topic"),
        ({"topic": "t", "partitions": 0}, "partitions must be an integer ≥ 1, got 0"),
        ({"topic": "t", "config": {"lingr.ms": 1}}, 'did you mean "linger.ms"'),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        KafkaTopic(**settings)
