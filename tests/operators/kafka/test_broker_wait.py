"""Brokers that are away at a start: waited for, for ever or as long as is said."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from confluent_kafka import KafkaError, KafkaException

from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.kafka.broker_wait import wait_for_brokers
from streamgauge.operators.kafka.faults import FINAL, Refused
from streamgauge.operators.kafka.topics import TopicError


class Brokers:
    """An administration client whose brokers fail with these codes before they answer."""

    address = "box:9092"

    def __init__(self, *codes: int) -> None:
        self.codes, self.now = list(codes), 0.0

    def list_topics(self, timeout: float) -> None:
        self.now += timeout
        if self.codes:
            code = self.codes.pop(0)
            raise Refused(code, "no") if code in FINAL else KafkaException(KafkaError(code))

    def wait(self, seconds: float | None) -> None:
        wait_for_brokers(self, seconds, lambda: self.now)  # type: ignore[arg-type]


def test_they_are_waited_for_and_that_is_said_once(caplog: Any) -> None:
    brokers = Brokers(*[KafkaError._TRANSPORT] * 500)
    brokers.wait(None)
    assert brokers.now > 1_000 and len(caplog.messages) == 2
    assert caplog.messages[0].startswith("no broker answers at box:9092 (") and "until they do" in caplog.text


def test_brokers_that_answer_at_once_are_nothing_to_speak_of(caplog: Any) -> None:
    Brokers().wait(None)
    assert not caplog.messages


def test_the_wait_ends_when_it_is_said_to() -> None:
    brokers = Brokers(*[KafkaError._TRANSPORT] * 500)
    with pytest.raises(TopicError, match=r"no broker answered at box:9092 within 60 s: .*check the address"):
        brokers.wait(60)
    assert 60 <= brokers.now < 70


def test_who_is_refused_does_not_wait() -> None:
    for before in (0, 2):
        brokers = Brokers(*[KafkaError._TRANSPORT] * before, KafkaError._AUTHENTICATION)
        with pytest.raises(Refused):
            brokers.wait(None)
        assert brokers.now < 20


def test_a_run_without_brokers_says_so_after_the_seconds_that_it_was_given() -> None:
    rows = Stream.from_kafka("posts", value=json({"x": pl.Int64}), bootstrap_servers="127.0.0.1:1")
    with pytest.raises(TopicError, match=r"no broker answered at 127\.0\.0\.1:1 within 0\.3 s"):
        run(rows.tumbling("1m").agg(n=count()), RunOptions(connect_seconds=0.3))
