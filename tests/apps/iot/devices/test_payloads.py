"""A law over formats: readings written as a format has them come back the same. And what is special in each.

The forms are those of the formats' own documentation; the values are made up.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.apps.iot.devices.decoder import Devices, named_shape
from streamgauge.operators.formats.messages import Messages

AT = datetime(2026, 6, 1, 12, 0, 0, 250_000, UTC)
ARRIVED_MS = int(AT.timestamp() * 1000) + 5_000
Values = Mapping[str, float]


def iso(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def pair(body: Any, key: str | None = None) -> tuple[bytes, bytes | None]:
    value = body if isinstance(body, str) else json.dumps(body)
    return value.encode(), None if key is None else key.encode()


def escaped(name: str) -> str:
    return name.replace(",", "\\,").replace(" ", "\\ ").replace("=", "\\=")


WRITERS: dict[str, Callable[[str, Values, datetime], tuple[bytes, bytes | None]]] = {
    "Tasmota": lambda device, values, at: pair({"Time": iso(at), **values}, f"tele/{device}/SENSOR"),
    "Zigbee2MQTT": lambda device, values, at: pair({**values, "last_seen": ms(at)}, f"zigbee2mqtt/{device}"),
    "The Things Network": lambda device, values, at: pair(
        {
            "end_device_ids": {"device_id": device, "application_ids": {"application_id": "a"}},
            "received_at": iso(at.replace(year=2027)),
            "uplink_message": {"f_port": 1, "decoded_payload": dict(values), "received_at": iso(at)},
        }
    ),
    "ChirpStack": lambda device, values, at: pair(
        {"time": iso(at), "deviceInfo": {"deviceName": device, "devEui": "00"}, "object": dict(values)}
    ),
    "ThingsBoard": lambda device, values, at: pair([{"ts": ms(at), "values": dict(values)}], device),
    "ThingsBoard's gateway": lambda device, values, at: pair(
        {device: [{"ts": ms(at), "values": dict(values)}]}
    ),
    "SenML": lambda device, values, at: pair(
        [
            {"bn": f"{device}/", "bt": at.timestamp() - 10, "bv": 1},
            *({"n": name, "v": value - 1, "t": 10} for name, value in values.items()),
        ]
    ),
    "OPC UA PubSub": lambda device, values, at: pair(
        {
            "MessageId": "1",
            "MessageType": "ua-data",
            "PublisherId": device,
            "Messages": [
                {
                    "SequenceNumber": 1,
                    "Payload": {
                        name: {"Value": {"Type": 11, "Body": value}, "SourceTimestamp": iso(at)}
                        for name, value in values.items()
                    },
                }
            ],
        }
    ),
    "Neuron": lambda device, values, at: pair(
        {"node": device, "timestamp": ms(at), "values": dict(values), "errors": {"broken": 2014}}
    ),
    "Kepware": lambda device, values, at: pair(
        {
            "timestamp": ms(at) + 50,
            "values": [
                {"id": f"{device}/{name}", "v": value, "q": True, "t": ms(at)}
                for name, value in values.items()
            ],
        }
    ),
    "Telegraf": lambda device, values, at: pair(
        {"fields": dict(values), "name": device, "tags": {}, "timestamp": ms(at)}
    ),
    "EdgeX": lambda device, values, at: pair(
        {
            "deviceName": device,
            "readings": [
                {"resourceName": name, "value": str(value), "origin": ms(at) * 1_000_000}
                for name, value in values.items()
            ],
        }
    ),
    "an object with a time or a device": lambda device, values, at: pair(
        {"device_id": device, "timestamp": iso(at), **values}
    ),
    "line protocol": lambda device, values, at: pair(
        f"{escaped(device)} "
        + ",".join(f"{escaped(name)}={value!r}" for name, value in values.items())
        + f" {ms(at) * 1_000_000}"
    ),
    "Home Assistant's history": lambda device, values, at: pair(
        "entity_id,state,last_changed\n"
        + "\n".join(f"{device}/{name},{value!r},{iso(at)}" for name, value in values.items())
    ),
}

NAMES = st.sampled_from(["temperature", "Humidity", "co2", "pm 2.5", "flow=in", "tag0"])
NUMBERS = st.integers(-(10**6), 10**6).map(lambda number: number / 64)


@pytest.mark.slow
@pytest.mark.parametrize("form", WRITERS)
@settings(deadline=None)
@given(
    device=st.sampled_from(["hall", "press 7", "a-1"]),
    values=st.dictionaries(NAMES, NUMBERS, min_size=1),
    at=st.datetimes(datetime(2001, 1, 1), datetime(2090, 1, 1)).map(
        lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000, tzinfo=UTC)
    ),
)
def test_readings_come_back_from_every_format(
    form: str, device: str, values: dict[str, float], at: datetime
) -> None:
    value, key = WRITERS[form](device, values, at)
    decoded = Devices().decode(Messages.of([value], [key], timestamps=[ARRIVED_MS]))
    assert not decoded.reasons and named_shape(value, key) == form
    readings = decoded.frame["readings"][0].to_list()
    got = {one["sensor"]: (one["value"], one["at"]) for one in readings}
    assert len(got) == len(readings)
    assert got.keys() == {f"{device}/{name}" for name in values}
    for name, number in values.items():
        back, moment = got[f"{device}/{name}"]
        assert back == pytest.approx(number) and abs((moment - at).total_seconds()) < 1e-4


def read(body: Any, key: str | None = None, **options: str) -> list[tuple[str, Any]]:
    """The sensors of a payload, each with its number or state."""
    value, name = pair(body, key)
    decoded = Devices(**options).decode(Messages.of([value], [name], timestamps=[ARRIVED_MS]))
    if decoded.reasons:
        return [("refused", decoded.reasons[0])]
    readings = decoded.frame["readings"][0].to_list()
    return [(one["sensor"], one["state"] if one["value"] is None else one["value"]) for one in readings]


DOOR = {"battery": 97, "contact": False, "linkquality": 110}
STATES = {
    "Tasmota's relay": ({"Time": iso(AT), "POWER": "ON"}, "tele/hall/STATE", [("hall/POWER", "on")]),
    "a bare value": ("ON", "stat/hall/POWER", [("stat/hall/POWER", "on")]),
    "a door of Zigbee2MQTT": (
        {"contact": False},
        "zigbee2mqtt/hall/door",
        [("hall/door/contact", "open")],
    ),
    "a closed one": ({"contact": True}, "zigbee2mqtt/hall/door", [("hall/door/contact", "closed")]),
    "an enum": ({"id": "ac", "mode": "heat", "serial": "X-99"}, None, [("ac/mode", "heat")]),
    "Home Assistant's event": (
        {
            "event_type": "state_changed",
            "event_data": {"new_state": {"entity_id": "binary_sensor.door", "state": "on"}},
        },
        None,
        [("binary_sensor.door", "on")],
    ),
    "its statestream": ("21.5", "homeassistant/sensor/attic/state", [("sensor.attic", 21.5)]),
    "what else is in it": ('"°C"', "homeassistant/sensor/attic/unit_of_measurement", []),
    "no reading": ({"entity_id": "sensor.a", "state": "unavailable"}, None, []),
    "a Boolean of SenML": ([{"n": "door", "vb": True}], None, [("door", "true")]),
    "a word of SenML": ([{"n": "door", "vs": "Open"}], None, [("door", "open")]),
    "a sum of SenML": ([{"bn": "m", "bs": 2, "s": 3}], None, [("m/sum", 5.0)]),
    "a bad value of OPC UA": (
        {
            "MessageType": "ua-data",
            "Messages": [
                {
                    "DataSetWriterName": "w",
                    "Payload": {
                        "a": {"Value": 1, "StatusCode": {"Code": 0x80310000}},
                        "b": {"Value": 2, "StatusCode": {"Code": 0}},
                        "c": 3,
                    },
                }
            ],
        },
        None,
        [("w/b", 2.0), ("w/c", 3.0)],
    ),
    "a tag of bad quality": (
        {"timestamp": 1780315200000, "values": [{"id": "d.t", "v": 0, "q": False, "t": 1780315200000}]},
        None,
        [],
    ),
    "a command of Zigbee2MQTT": ({"state": "ON"}, "zigbee2mqtt/lamp/set", []),
    "a command of Tasmota": ("ON", "cmnd/lamp/POWER", []),
    "Zigbee2MQTT's bridge": ({"version": "2", "log_level": "info"}, "zigbee2mqtt/bridge/info", []),
    "an announcement": ({"name": "t", "qos": 1}, "homeassistant/sensor/attic/config", []),
    "a sample of the OPC Publisher": (
        {"NodeId": "i=7", "Value": {"Value": 21.5, "SourceTimestamp": "2026-06-01T12:00:00Z"}},
        None,
        [("i=7", 21.5)],
    ),
    "a join": ({"end_device_ids": {"device_id": "d"}, "join_accept": {}}, None, []),
    "a number with its unit": ({"id": "d", "t": "21.5 °C"}, None, [("d/t", 21.5)]),
    "a switch of Shelly": (
        {
            "src": "plug",
            "method": "NotifyStatus",
            "params": {"ts": 1780315200.5, "switch:0": {"output": True}},
        },
        None,
        [("plug/switch:0/output", "true")],
    ),
    "strings of line protocol": (
        'm,t=a s="is open",b=t,n=7i,u=8u',
        None,
        [("m,t=a/s", "is open"), ("m,t=a/b", "true"), ("m,t=a/n", 7.0), ("m,t=a/u", 8.0)],
    ),
    "a list of objects": ([{"id": "a", "t": 1}, {"id": "b", "t": 2}], None, [("a/t", 1.0), ("b/t", 2.0)]),
    "a value under its name": ({"sensor": "a", "value": 21.5}, None, [("a", 21.5)]),
}


@pytest.mark.parametrize(("body", "key", "readings"), STATES.values(), ids=STATES)
def test_states_numbers_and_what_is_neither(body: Any, key: str | None, readings: list[Any]) -> None:
    assert read(body, key) == readings


REFUSED = {
    "an uplink that is not decoded": (
        {"end_device_ids": {"device_id": "d"}, "uplink_message": {"frm_payload": "AQ=="}},
        "without decoded_payload",
    ),
    "a label that must be understood": ([{"n": "a", "v": 1, "secret_": 1}], "'secret_' must be understood"),
    "a later version of SenML": ([{"bver": 11, "n": "a", "v": 1}], "version 11"),
    "a time in words": ({"device": "a", "time": "soon", "t": 1}, "its time 'soon' can't be read"),
    "a part of another kind": (
        {
            "end_device_ids": {"device_id": "d"},
            "uplink_message": {"decoded_payload": {}, "locations": {"a": 1}, "received_at": {}},
        },
        "its time '{}' can't be read",
    ),
    "readings that are none": (
        {"fields": {"a": 1}, "name": "n", "metrics": [{"fields": 3}]},
        "a malformed payload of Telegraf",
    ),
    "a decimal comma": ({"device": "a", "t": "21,5"}, "a decimal comma"),
    "a number that is none": ('{"device": "a", "t": NaN}', "not a finite number"),
    "no shape": ({"t": 1}, "a payload of no known shape"),
    "a value of nothing": ("21.5", "no key that names its sensor"),
    "broken JSON": ('{"t": 1', "broken JSON"),
    "a broken line": ("m a=1 1780315200000000000\nm a=", "not line protocol"),
}


@pytest.mark.parametrize(("body", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_understood_is_refused_by_name(body: Any, reason: str) -> None:
    ((refused, why),) = read(body)
    assert refused == "refused" and reason in why


ODD = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=3) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@settings(deadline=None)
@given(st.sampled_from(sorted(WRITERS)), st.integers(0, 30), ODD)
def test_any_part_that_is_damaged_is_read_or_refused_by_name(form: str, place: int, odd: Any) -> None:
    value, key = WRITERS[form]("hall", {"temperature": 21.5}, AT)
    try:
        body = json.loads(value)
    except ValueError:
        return
    decoded = Devices().decode(
        Messages.of([json.dumps(damaged(body, place, odd)).encode()], [key], timestamps=[ARRIVED_MS])
    )
    assert len(decoded.reasons) + decoded.frame.height == 1
    assert not [reason for reason in decoded.reasons if "Error" in reason.split(":")[0]]


def damaged(body: Any, place: int, odd: Any) -> Any:
    """A document with another value at one of its places."""
    parts = (
        list(body.items())
        if isinstance(body, dict)
        else list(enumerate(body))
        if isinstance(body, list)
        else []
    )
    if not parts or place == 0:
        return odd
    name, part = parts[place % len(parts)]
    changed = damaged(part, place // len(parts), odd)
    return {**body, name: changed} if isinstance(body, dict) else [*body[:name], changed, *body[name + 1 :]]


def times(body: Any, **options: str) -> list[datetime]:
    value, key = pair(body)
    decoded = Devices(**options).decode(Messages.of([value], [key], timestamps=[ARRIVED_MS]))
    return [one["at"] for one in decoded.frame["readings"][0]]


def test_relative_times_of_senml_count_from_the_arrival_and_base_times_go_on() -> None:
    arrived = datetime.fromtimestamp(ARRIVED_MS / 1000, UTC)
    pack = [{"n": "a", "v": 1, "t": -5}, {"n": "a", "v": 2}]
    assert [(arrived - at).total_seconds() for at in times(pack)] == [5, 0]
    base = [{"bt": AT.timestamp(), "n": "a", "v": 1}, {"n": "b", "v": 2, "t": 1}]
    assert [(at - AT).total_seconds() for at in times(base)] == [0, 1]


def test_a_clock_without_a_zone_is_in_the_named_one() -> None:
    body = {"Time": "2026-06-01T12:00:00", "A": {"B": 1}}
    assert times(body) == [datetime(2026, 6, 1, 12, tzinfo=UTC)]
    assert times(body, zone="Europe/Berlin") == [datetime(2026, 6, 1, 10, tzinfo=UTC)]
    aware = {"Time": "2026-06-01T12:00:00+00:00", "A": {"B": 1}}
    assert times(aware, zone="Europe/Berlin") == [datetime(2026, 6, 1, 12, tzinfo=UTC)]


def test_a_reading_without_a_time_has_kafkas_and_a_warning_says_so(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamgauge.apps.iot.devices.decoder._warned", [])
    assert times({"device": "a", "t": 1}) == [datetime.fromtimestamp(ARRIVED_MS / 1000, UTC)]
    times({"device": "a", "t": 1})
    assert [record.getMessage() for record in caplog.records] == [
        "readings without a time of their own get their message's time in Kafka"
    ]


@pytest.mark.parametrize(
    ("unit", "wanted", "value"),
    [("F", "°C", 21.5), ("C", "°F", 159.26), ("F", "%", 70.7), ("F", "K", 294.65)],
)
def test_temperatures_are_converted_into_the_unit_of_the_limits(unit: str, wanted: str, value: float) -> None:
    body = {"Time": iso(AT), "AM2301": {"Temperature": 70.7}, "TempUnit": unit}
    ((_, converted),) = read(body, value_unit=wanted)
    assert converted == pytest.approx(value)


def test_a_place_is_a_row_by_itself() -> None:
    value, _ = pair({"id": "van", "latitude": 48.2, "longitude": 16.4, "speed": 12})
    (readings,) = Devices().decode(Messages.of([value], timestamps=[ARRIVED_MS])).frame["readings"].to_list()
    assert [(one["sensor"], one["value"], one["latitude"], one["longitude"]) for one in readings] == [
        ("van/speed", 12.0, None, None),
        ("van", None, 48.2, 16.4),
    ]
