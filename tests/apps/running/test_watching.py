"""Apps live on a topic: the alerts over a restart, on both engines, are those of a replay."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer

from streamgauge.apps.app import Feed, Message
from streamgauge.apps.jobs.job import Job, Live
from streamgauge.apps.jobs.outcome import AlertList
from streamgauge.apps.jobs.outlets import alerts_topic_of, outlets
from streamgauge.apps.registry import app_of
from streamgauge.apps.running.watching import ENGINES
from streamgauge.operators.kafka.topics import admin, ensure_topic
from streamgauge.operators.rules.alerting import Alerting
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.table.schema import read_parquet
from streamgauge.operators.testing import StreamTester

from ...waiting import until
from .test_replaying import SET, lines, readings

APP = app_of("iot")


def alerts_of(messages: list[Message], job: Job) -> list[tuple[Any, ...]]:
    """What the rules say of messages, by the tester."""
    reported = AlertList()
    for name, stream in job.streams(Feed("t", "localhost:9092")).items():
        (part,) = (part for part in job.parts if part.name == name)
        alerting = job.alerting(part, [reported])
        sinks = [alerting] if isinstance(alerting, Alerting) else []
        tester = StreamTester(stream, start=datetime.now(UTC), sinks=sinks)
        sent = [datetime.fromtimestamp((message.sent_ms or 0) / 1000, UTC) for message in messages]
        tester.feed_messages([message.value for message in messages], timestamps=sent)
        tester.finish()
    return [(one.rule, one.plain_key, one.to_dict()["at"], one.state) for one in reported.alerts]


def sent(kafka: Any, topic: str, messages: list[Message]) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    for message in messages:
        producer.produce(topic, message.value, timestamp=message.sent_ms or 0)
    assert producer.flush(120) == 0


def alerts_in(kafka: Any, topic: str) -> list[dict[str, Any]]:
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": uuid4().hex,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    consumer.subscribe([topic])
    collected = []
    try:
        while (message := consumer.poll(120)) is not None and message.error() is None:
            collected.append(json.loads(message.value()))
    finally:
        consumer.close()
    return collected


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.parametrize(
    "engine", ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.soak])]
)
def test_a_live_run_goes_on_where_it_ended(
    kafka, engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if engine == "spark":
        pytest.importorskip("pyspark")
        request.getfixturevalue("spark")
    job = Job.of(APP, "json", SET)
    topic, group = f"live-{uuid4().hex[:8]}", f"group-{uuid4().hex[:8]}"
    ensure_topic(admin({"bootstrap.servers": kafka.bootstrap_servers}), topic, 1)
    recording = tmp_path / "readings.jsonl"
    recording.write_bytes(b"\n".join(lines(readings())) + b"\n")
    messages = list(job.form.messages(recording, job.settings))
    later = max(message.sent_ms or 0 for message in messages) + 86_400_000
    messages.append(Message(b'{"device": {"id": "z"}, "ts": %d, "payload": {"t": 20}}' % later, None, later))
    # Ten minutes lie between two rounds of readings, so this cuts no window.
    half = next(n for n in range(400, 800) if messages[n].sent_ms - messages[n - 1].sent_ms > 300_000)
    wanted, alerts = alerts_of(messages, job), alerts_topic_of(group)
    state = tmp_path / "state" if engine == "spark" else None
    to = outlets(alerts, None, None)
    live = Live(job, Feed(topic, kafka.bootstrap_servers), group, engine, to, state=state)

    def alerts_now() -> list[tuple[Any, ...]]:
        names = ("rule", "key", "at", "state")
        return [tuple(one[name] for name in names) for one in alerts_in(kafka, alerts)]

    def days() -> int:
        assert state is not None
        return read_parquet(state / "tables" / "days").num_rows

    def run(some: list[Message], upto: int, alerts: int) -> Account:
        sent(kafka, topic, some)
        going = ENGINES[engine](live)
        try:
            until(lambda: going.account().read == upto and len(alerts_now()) >= alerts)
            until(lambda: not alerts or state is None or days() == 9)
        finally:
            account = going.stop()
        return account

    assert run(messages[:half], half, 0).read == half
    account = run(messages[half:], len(messages), len(wanted))
    assert sorted(alerts_now(), key=str) == sorted(wanted, key=str)
    assert account.counted == len(messages) - 2 and account.dead_lettered == 1
    if state is not None:
        assert (state / "rules" / "readings").is_dir()
