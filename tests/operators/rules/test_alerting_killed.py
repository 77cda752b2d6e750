"""A process that is killed between alerts: its successor sends none of them twice and forgets none."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from ...waiting import readable, until
from .plain import NOON, hysteresis

MINUTES, CUTS = 600, (300,)


@pytest.mark.slow
@pytest.mark.kafka
def test_a_kill_between_alerts_emits_nothing_twice_and_forgets_nothing(kafka: Any, tmp_path: Path) -> None:
    dice, readings, value = random.Random(1), [], 50.0
    for minute in range(MINUTES):
        value = min(max(value + dice.gauss(0, 9), 0), 100)
        readings.append((minute, value))
    wanted = hysteresis(readings, 60, 40, hold=2)
    topic, file = f"sensors-{uuid.uuid4().hex[:8]}", tmp_path / "alerts.jsonl"
    kafka.create_topic(topic, 1)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})

    def send(low: int, high: int) -> None:
        for minute, value in readings[low:high]:
            reported = {"at": (NOON + timedelta(minutes=minute)).isoformat(), "sensor": "a", "value": value}
            producer.produce(topic, json.dumps(reported).encode())
        assert producer.flush(120) == 0

    def alerts_now() -> list[dict[str, Any]]:
        whole = file.read_text().rpartition("\n")[0] if file.exists() else ""  # a line may be half written
        return [json.loads(line) for line in whole.splitlines()]

    def due(minute: float) -> int:
        return sum(at < minute - 1 for _, at in wanted)

    command = [sys.executable, "-m", "streamgauge.tests.operators.rules.killed"]
    low = 0
    for cut in (*CUTS, MINUTES):
        run = subprocess.Popen([*command, kafka.bootstrap_servers, topic, str(file)])
        try:
            send(low, cut)
            low = cut
            # The last alerts are in the file, and perhaps not yet behind the place that is kept.
            until(lambda: len(alerts_now()) >= due(cut), 300)  # noqa: B023
            if cut == MINUTES:
                until(lambda: len(committed(kafka, topic)) >= due(cut), 300)  # noqa: B023
        finally:
            os.kill(run.pid, signal.SIGKILL)
            run.wait()
    expected = [(state, (NOON + timedelta(minutes=at)).isoformat()) for state, at in wanted][: due(MINUTES)]
    for result in (alerts_now(), committed(kafka, topic)):
        assert [(one["state"], one["at"]) for one in result][: len(expected)] == expected
        assert len({one["id"] for one in result}) == len(result) <= len(wanted)
    assert len(expected) >= 10


def committed(kafka: Any, topic: str) -> list[dict[str, Any]]:
    """What a reader that sees only committed messages finds."""
    readable(kafka.bootstrap_servers, f"{topic}.alerts")
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": uuid.uuid4().hex,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(f"{topic}.alerts", 0, 0)])
    collected = []
    while (message := consumer.poll(120)) is not None and message.error() is None:
        collected.append(json.loads(message.value() or b""))
    consumer.close()
    return collected
