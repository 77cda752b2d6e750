"""What CONTRIBUTING.md shows for debugging works: a group's log is replayed into a merger."""

from __future__ import annotations

import json
import re
import uuid
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import streamgauge as sg
from streamgauge.operators.consumer.log.messages import table_topic

from .waiting import until

PAGE = Path(__file__).resolve().parents[1] / "CONTRIBUTING.md"


@pytest.mark.slow
@pytest.mark.kafka
def test_a_log_is_replayed_into_a_merger(kafka: Any, capsys: pytest.CaptureFixture[str]) -> None:
    from confluent_kafka import Producer

    topic = f"replayed-{uuid.uuid4().hex[:8]}"
    kafka.create_topic(topic, 2)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    for n in range(30):
        producer.produce(topic, json.dumps({"user": f"u{n % 7}", "at": "2026-01-01T00:00:01Z"}))
    producer.flush()
    value = sg.json({"user": pl.String, "at": pl.String})
    rows = sg.Stream.from_kafka(topic, value=value, time="at", bootstrap_servers=kafka.bootstrap_servers)
    stream = rows.tumbling("1m").agg(n=sg.count(), users=sg.distinct("user"))
    run = stream.start(group_id=topic, workers=1)
    try:
        until(lambda: run.summary().account.counted == 30)
    finally:
        run.stop()
    (block,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    block = block.replace("localhost:9092", kafka.bootstrap_servers).replace('"posts"', f'"{topic}"')
    names: dict[str, Any] = {"stream": stream, "table_topic": table_topic(topic, stream.fingerprint())}
    exec(block, names)
    assert "accepted" in capsys.readouterr().out
    assert names["merger"].state.account.counted == 30
