"""Three brokers, each killed in turn under a run, by both protocols of groups: nothing is lost or doubled."""

from __future__ import annotations

import json
import os
import signal
import uuid
from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest
from confluent_kafka import Producer

import streamgauge as sg
from streamgauge.apps.dev.kafka.cluster import EmbeddedCluster
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run, start
from streamgauge.operators.sketching.account import Account

from ..waiting import readable, until
from .exact import messages

pytestmark = [pytest.mark.kafka, pytest.mark.soak]

EACH = 1_000
CLASSIC = {"session.timeout.ms": 6_000}
BY_BROKERS = {"group.protocol": "consumer"}
"""KIP-848: the brokers assign partitions."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(3) as cluster:
        yield cluster


@pytest.mark.parametrize("delivery", ["exactly_once", "effectively_once"])
@pytest.mark.parametrize("protocol", [CLASSIC, BY_BROKERS], ids=["classic", "by brokers"])
def test_each_broker_and_a_worker_are_killed(
    cluster: EmbeddedCluster, protocol: dict[str, Any], delivery: Any
) -> None:
    topic = f"posts-{uuid.uuid4().hex[:8]}"
    cluster.create_topic(topic, 4)
    servers = cluster.bootstrap_servers
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "log_level": 0})
    sent = 0

    def send() -> None:
        nonlocal sent
        for number in range(sent, sent + EACH):
            value = json.dumps({"user": number % 7, "at": 1_700_000_000_000 + number * 100})
            producer.produce(topic, value.encode(), partition=number % 4)
            producer.poll(0)
        sent += EACH
        assert producer.flush(120) == 0

    stream = (
        sg.Stream.from_kafka(
            topic,
            value=sg.json({"user": pl.Int64, "at": pl.Int64}),
            time=pl.from_epoch("at", time_unit="ms"),
            bootstrap_servers=servers,
            config=protocol,
        )
        .group_by("user")
        .tumbling("1m", delay="10s")
        .agg(posts=sg.count())
    )
    answers = f"{topic}-answers"
    options: Any = {
        "group_id": topic,
        "delivery": delivery,
        "sinks": [sg.AnswersToKafka(answers)],
        # However slow the machine is, no window is closed by silence and emitted again.
        "idle_seconds": 3_600.0,
    }
    running = start(stream, RunOptions(**options, workers=2, checkpoint_seconds=0.5))
    send()
    until(lambda: running.summary().account.read == sent)
    for node in cluster.nodes:
        node.kill()
        send()
        os.kill(running.worker_pids[0], signal.SIGKILL)
        until(lambda: running.summary().account.read == sent)
        node.start()
        send()
        until(lambda: running.summary().account.read == sent)
    assert running.drain(120).account == Account(read=sent, counted=sent)
    run(stream, RunOptions(**options, until="latest"))
    readable(servers, answers)
    posts = pl.DataFrame([json.loads(message.value()) for message in messages(servers, answers)])
    assert posts.select(pl.struct("window_start", "user").n_unique()).item() == len(posts)
    assert posts["posts"].sum() == sent
