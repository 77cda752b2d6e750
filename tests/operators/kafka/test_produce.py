"""Producers that send as soon as they are there."""

from __future__ import annotations

import time
from typing import Any

import pytest

from streamgauge.operators.kafka.client_config import producer_config
from streamgauge.operators.kafka.produce import connected_producer

from ...agents.ingest.agents import fresh

pytestmark = pytest.mark.kafka


def test_a_new_producer_waits_no_half_second_for_its_id(kafka: Any) -> None:
    """A busy machine delays some of six, so the quickest counts."""
    topic, seconds = fresh(), list[float]()
    kafka.create_topic(topic, partitions=1)
    for _ in range(6):
        began = time.monotonic()
        producer = connected_producer(
            producer_config({"bootstrap.servers": kafka.bootstrap_servers}, 1_000_000)
        )
        producer.produce(topic, b"first")
        assert producer.flush(60) == 0
        seconds.append(time.monotonic() - began)
    assert min(seconds) < 0.4, seconds
