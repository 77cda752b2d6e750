"""A broker that holds its answers back, because the client is over its quota, is waited for."""

from __future__ import annotations

import subprocess
import uuid
from typing import Any

import numpy as np
import pytest
from confluent_kafka import Producer

from streamgauge.apps.dev.kafka.broker import EmbeddedKafka
from streamgauge.apps.dev.kafka.jars import kafka_jars
from streamgauge.operators.java import find_java
from streamgauge.operators.kafka.reader import Reader

pytestmark = [pytest.mark.kafka, pytest.mark.soak]


@pytest.mark.parametrize("source", ["raw", "plain"])
def test_a_client_over_its_quota_gets_everything_later(kafka: EmbeddedKafka, source: Any) -> None:
    topic, client = f"quota-{source}-{uuid.uuid4().hex[:8]}", f"slow-{source}"
    kafka.create_topic(topic)
    config = {"bootstrap.servers": kafka.bootstrap_servers}
    producer = Producer(config)
    for _ in range(2000):
        producer.produce(topic, np.random.default_rng(1).bytes(1000))
    assert producer.flush(120) == 0
    tool = [str(find_java().program), "-cp", f"{kafka_jars()}/*", "kafka.admin.ConfigCommand"]
    messages = ["--alter", "--add-config", "consumer_byte_rate=100000", "--entity-type", "clients"]
    command = [*tool, "--bootstrap-server", kafka.bootstrap_servers, *messages, "--entity-name", client]
    subprocess.run(command, check=True, capture_output=True)
    with Reader(
        {**config, "client.id": client, "fetch.max.bytes": 1_000_000}, {(topic, 0): 0}, source=source
    ) as reader:
        offsets = [n for m in reader.read_to({(topic, 0): 2000}) for n in m.offset.tolist()]
    assert offsets == list(range(2000))
