"""Waiting for Kafka: what is waited for and what is not, what is said of it, and when it is given up."""

from __future__ import annotations

import logging

import pytest
from confluent_kafka import KafkaError, KafkaException

from streamgauge.operators.kafka import retry
from streamgauge.operators.kafka.retry import Retry, Stopped

AWAY = KafkaException(KafkaError(KafkaError._TRANSPORT, "no way to https://me:tr0ut@box/"))


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "_PAUSE_SECONDS", 0.0)


def test_it_is_said_once_that_brokers_are_waited_for_and_once_that_they_are_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    waiting = Retry("send deltas", lambda: False)
    with caplog.at_level(logging.WARNING, "streamgauge.kafka"):
        for _ in range(5):
            waiting.failed(AWAY)
        waiting.done()
        waiting.done()
    said = [record.getMessage() for record in caplog.records]
    assert said == ["waiting to send deltas: no way to https://…@box/", "managed to send deltas; continuing"]


def test_what_waiting_does_not_mend_is_raised_at_once() -> None:
    refused = KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    with pytest.raises(KafkaException) as raised:
        Retry("send deltas", lambda: False).failed(refused)
    assert raised.value is refused


def test_after_a_stop_it_tries_for_some_seconds_more(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(retry.time, "monotonic", lambda: now)
    stopping = False
    waiting = Retry("commit positions", lambda: stopping)
    waiting.still("the coordinator is loading")
    now += 3600
    waiting.still("the coordinator is loading")
    stopping = True
    waiting.still("the coordinator is loading")
    now += retry._LAST_SECONDS
    waiting.still("the coordinator is loading")
    now += 0.1
    with pytest.raises(
        Stopped, match="stopped while waiting to commit positions: the coordinator is loading"
    ):
        waiting.still("the coordinator is loading")
