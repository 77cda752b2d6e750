"""An MQTT broker's messages, acknowledged when they are delivered."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamgauge.agents.ingest.batch import Batch, IngestError
from streamgauge.agents.ingest.component import STOPPED, Place
from streamgauge.agents.ingest.pump import Pump
from streamgauge.agents.ingest.sources.mqtt import Mqtt, MqttSource
from streamgauge.operators.kafka.retry import Stopped

from ..collected import Collected
from .mqtt_broker import MqttBroker


@pytest.fixture
def broker() -> Iterator[MqttBroker]:
    broker = MqttBroker()
    yield broker
    broker.close()


def opened(broker: MqttBroker, tmp_path: Path, **settings: Any) -> MqttSource:
    given = {"topics": ["sensors/#"], "host": "127.0.0.1", "port": broker.port, **settings}
    return Mqtt(**given).open(Place("agent", "sensors", tmp_path), {})


def read(source: MqttSource, count: int) -> list[Batch]:
    batches: list[Batch] = []
    while sum(batch.read for batch in batches) < count:
        if (batch := source.read(30)) is not None:
            batches.append(batch)
    return batches


def values(batches: list[Batch]) -> list[bytes]:
    return [value for batch in batches for value in batch.values()]


def until(condition: Any) -> None:
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("version", [4, 5])
def test_qos_1_is_acknowledged_after_the_commit(broker: MqttBroker, tmp_path: Path, version: int) -> None:
    source = opened(broker, tmp_path, version=version)
    for number in range(3):
        broker.publish(f"sensors/{number}", b"%d" % number)
    batches = read(source, 3)
    assert values(batches) == [b"0", b"1", b"2"]
    assert [key for batch in batches for key in batch.keys or ()] == [
        b"sensors/0",
        b"sensors/1",
        b"sensors/2",
    ]
    time.sleep(0.2)
    assert broker.unacknowledged() == 3
    for batch in batches:
        batch.acknowledged()
    until(lambda: broker.unacknowledged() == 0)
    source.close()


@pytest.mark.parametrize("version", [4, 5])
def test_what_was_not_acknowledged_comes_to_the_next_agent(
    broker: MqttBroker, tmp_path: Path, version: int
) -> None:
    source = opened(broker, tmp_path, version=version)
    broker.publish("sensors/a", b"first")
    assert values(read(source, 1)) == [b"first"]
    source.close()
    broker.publish("sensors/a", b"while it was away")
    again = opened(broker, tmp_path, version=version)
    assert values(read(again, 2)) == [b"first", b"while it was away"]
    again.close()


def test_a_broken_connection_is_made_again(broker: MqttBroker, tmp_path: Path) -> None:
    source = opened(broker, tmp_path)
    broker.publish("sensors/a", b"one")
    read(source, 1)[0].acknowledged()
    until(lambda: broker.unacknowledged() == 0)
    broker.drop()
    broker.publish("sensors/a", b"two")
    assert values(read(source, 1)) == [b"two"]
    source.close()


@pytest.mark.parametrize("version", [4, 5])
def test_retained_messages_come_once(broker: MqttBroker, tmp_path: Path, version: int) -> None:
    broker.retained["sensors/old"] = b"retained"
    source = opened(broker, tmp_path, version=version)
    assert values(read(source, 1)) == [b"retained"]
    broker.drop()
    broker.publish("sensors/a", b"one")
    assert values(read(source, 1)) == [b"one"] and source.inbox.empty
    source.close()


def test_qos_2_is_received_by_qos_1(broker: MqttBroker, tmp_path: Path) -> None:
    source = opened(broker, tmp_path, qos=2)
    assert [session.granted for session in broker.sessions.values()] == [[1]]
    source.close()


@pytest.mark.parametrize("version", [4, 5])
def test_an_acknowledgement_is_not_sent_to_another_session(
    broker: MqttBroker, tmp_path: Path, version: int
) -> None:
    source = opened(broker, tmp_path, version=version)
    broker.publish("sensors/a", b"one")
    [first] = read(source, 1)
    broker.sessions.clear()  # as one that is started again, and keeps no sessions
    broker.drop()
    connection = source._client.socket()
    if connection is not None:
        connection.shutdown(2)
    until(lambda: any(session.granted for session in broker.sessions.values()))
    broker.publish("sensors/a", b"two")
    [second] = read(source, 1)
    first.acknowledged()
    time.sleep(0.2)
    assert broker.unacknowledged() == 1
    second.acknowledged()
    until(lambda: broker.unacknowledged() == 0)
    source.close()


@pytest.mark.slow
def test_a_broker_that_refuses_later_is_reported_and_asked_again(
    broker: MqttBroker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = opened(broker, tmp_path)
    broker.refuse = True
    broker.drop()
    until(lambda: "refuses: Not authorized" in caplog.text)
    broker.refuse = False
    broker.publish("sensors/a", b"one")
    assert values(read(source, 1)) == [b"one"]
    source.close()


def test_an_agent_whose_name_another_takes_ends(broker: MqttBroker, tmp_path: Path) -> None:
    source = opened(broker, tmp_path)
    broker.take_over()
    with pytest.raises(IngestError, match="another client named 'streamgauge-agent-sensors' has taken over"):
        for _ in range(600):
            source.read(0.1)
    source.close()


def test_full_qos_0_is_dropped_and_counted(broker: MqttBroker, tmp_path: Path) -> None:
    source = opened(broker, tmp_path, capacity=1, qos=0)
    for number in range(20):
        broker.publish("sensors/a", b"%d" % number, qos=0)
    batches = read(source, 20)
    assert sum(batch.dropped.get("source full", 0) for batch in batches) == 20 - len(values(batches))
    source.close()


def test_a_broker_that_refuses_or_is_not_there_is_named(broker: MqttBroker, tmp_path: Path) -> None:
    broker.refuse = True
    with pytest.raises(IngestError, match=r"refuses: Not authorized"):
        opened(broker, tmp_path)
    broker.close()
    with pytest.raises(IngestError, match=f"no MQTT broker at 127.0.0.1:{broker.port}"):
        opened(broker, tmp_path)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"topics": []}, "topics must be a list"),
        ({"topics": ["a"], "qos": 3}, "qos must be 0, 1 or 2, got 3"),
        ({"topics": ["a"], "version": 3}, "version must be 5, or 4"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Mqtt(**settings)


@pytest.mark.parametrize(("qos", "lost"), [(0, 3), (1, 0)])
def test_what_a_stop_loses_is_counted(broker: MqttBroker, tmp_path: Path, qos: int, lost: int) -> None:
    source = opened(broker, tmp_path, topics=["a"], qos=qos)
    for number in range(3):
        broker.publish("a", b"%d" % number, qos)
    until(lambda: source.inbox.count == 3)
    sink: Any = Collected(Stopped("away"))
    pump = Pump(source, sink, stopping=lambda: source.inbox.empty)
    with pytest.raises(Stopped):
        pump.run()
    source.close()
    assert pump.state.account.dropped == ({STOPPED: lost} if lost else {})


def test_a_stop_delivers_what_came_by_qos_0(broker: MqttBroker, tmp_path: Path) -> None:
    source = opened(broker, tmp_path, topics=["a"], qos=0)
    for number in range(3):
        broker.publish("a", b"%d" % number, 0)
    until(lambda: source.inbox.count == 3)
    sink = Collected()
    Pump(source, sink, stopping=lambda: True).run()
    assert sink.commits == [[b"0", b"1", b"2"]]
    source.close()
