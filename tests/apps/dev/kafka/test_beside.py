"""A broker that starts while the program loads: it is there when it is wanted, and gone in the end."""

from __future__ import annotations

import threading

import pytest
from confluent_kafka.admin import AdminClient

from streamgauge.apps.dev.kafka.beside import KafkaBeside
from streamgauge.apps.dev.kafka.broker import BrokerError, EmbeddedKafka

from ....waiting import until


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.apart
def test_it_serves_and_makes_its_own_topics_before_anybody_needs_them() -> None:
    with KafkaBeside() as beside:
        kafka = beside.started()
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
        until(lambda: {"__consumer_offsets", "__transaction_state"} <= set(admin.list_topics().topics))
        producer = beside.producer()
        assert producer is not None and beside.producer() is None
        folder = kafka.folder
    assert not kafka.running and not folder.exists()


@pytest.fixture
def unprepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """No Java and no jars are looked for."""
    monkeypatch.setattr(EmbeddedKafka, "prepare", lambda self: None)


@pytest.mark.usefixtures("unprepared")
def test_what_its_start_fails_with_is_raised_where_it_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: EmbeddedKafka) -> None:
        raise BrokerError("no room")

    monkeypatch.setattr(EmbeddedKafka, "start", start)
    with KafkaBeside() as beside, pytest.raises(BrokerError, match="no room"):
        beside.started()


@pytest.mark.usefixtures("unprepared")
def test_one_that_is_stopped_before_it_serves_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    killed, stopped = threading.Event(), threading.Event()

    def start(_: EmbeddedKafka) -> None:
        assert killed.wait(300)
        raise BrokerError("it ended while starting")

    monkeypatch.setattr(EmbeddedKafka, "start", start)
    monkeypatch.setattr(EmbeddedKafka, "kill", lambda self: killed.set())
    monkeypatch.setattr(EmbeddedKafka, "stop", lambda self: stopped.set())
    KafkaBeside().stop()
    assert killed.is_set() and stopped.is_set()
