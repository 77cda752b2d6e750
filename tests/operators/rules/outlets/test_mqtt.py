"""Alerts to a broker of MQTT, which acknowledges each."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from streamgauge.errors import OutletError
from streamgauge.operators.rules.outlets import mqtt_publisher
from streamgauge.operators.rules.outlets.outlet import trial_notification
from streamgauge.operators.rules.outlets.to_command import command_outlets
from streamgauge.rules import AlertsToMqtt, Command, Threshold

from ....agents.ingest.sources.mqtt_broker import MqttBroker
from .alerts import ALERT, EVIL, alert, one


@pytest.fixture
def broker() -> Iterator[MqttBroker]:
    made = MqttBroker()
    yield made
    made.close()


def test_each_alert_is_a_message(broker: MqttBroker) -> None:
    outlet = AlertsToMqtt(f"mqtt://127.0.0.1:{broker.port}/alerts/iot")
    outlet.send(one(ALERT, EVIL))
    outlet.send(trial_notification())
    broker.drop()
    outlet.write(ALERT)
    outlet.close(60)
    assert {topic for topic, _ in broker.published} == {"alerts/iot"}
    first, second, trial, again = (json.loads(payload) for _, payload in broker.published)
    assert first == ALERT.to_dict() and second["id"] == EVIL.id and trial["test"] is True
    assert again == first


def test_a_broker_that_refuses_or_says_nothing(broker: MqttBroker, monkeypatch) -> None:
    outlet = AlertsToMqtt(f"mqtt://me:tr0ut@127.0.0.1:{broker.port}/alerts")
    broker.refuse = True
    with pytest.raises(OutletError, match="the broker refuses") as raised:
        outlet.send(one())
    assert not raised.value.may_pass
    broker.refuse, broker.mute = False, True
    monkeypatch.setattr(mqtt_publisher, "_SECONDS", 0.5)
    with pytest.raises(OutletError, match=r"within 0\.5 s") as raised:
        outlet.send(one())
    assert raised.value.may_pass
    broker.close()
    with pytest.raises(OutletError) as raised:
        outlet.send(one())
    assert raised.value.may_pass and "tr0ut" not in f"{outlet!r} {outlet.title}"


def test_commands_of_rules_go_there_too(broker: MqttBroker) -> None:
    command = Command(
        mqtt=f"mqtt://127.0.0.1:{broker.port}/ac/hall", fired={"ac": "on"}, cleared={"ac": "off"}
    )
    (outlet,) = command_outlets([Threshold("hot", value="value", above=30, command=command)])
    outlet.write(ALERT)
    outlet.write(alert("hall", "cleared", 5))
    outlet.close(60)
    assert [json.loads(payload)["command"] for _, payload in broker.published] == [
        {"ac": "on"},
        {"ac": "off"},
    ]
    assert outlet.account.sent == 2


@pytest.mark.parametrize("url", ["mqtt://h", "mqtt://h/", "mqtt://h/a/#", "http://h/a", "mqtt://h:x/a"])
def test_addresses_that_can_not_be_are_named(url: str) -> None:
    with pytest.raises(ValueError, match="mqtt must be mqtt://HOST:PORT/TOPIC"):
        AlertsToMqtt(url)
