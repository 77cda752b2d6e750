"""Shapes of devices' JSON: how to recognise each, and how to read it.

A shape gets an object (or a list), its MQTT topic, and its time of arrival (µs since 1970). The first shape
that recognises a payload reads it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ....operators.formats.per_message import Misread
from ....operators.formats.reasons import Reason
from ....operators.formats.text.iso_times import read_microseconds
from ..reading_times import UNITS, both_local, has_offset, unit_of
from .reading import Reading, measured, readings_of

_AHEAD_US = 300_000_000
"""How far a device's clock may be ahead of the message's timestamp."""
_DATE = re.compile(r"\d{4}-?\d{2}-?\d{2}")


class Payload(NamedTuple):
    """A message: its parsed `body`, the `topic` in its key, when it `arrived`, and the `zone` of times
    without
    one."""

    body: Any
    topic: str
    arrived: float
    zone: str = "UTC"

    @property
    def device(self) -> str:
        """The device named by the topic, without the topic's base and the kind of message.

        >>> [Payload({}, topic, 0).device for topic in ("tele/hall/SENSOR", "zigbee2mqtt/up/door", "d1", "")]
        ['hall', 'up/door', 'd1', 'sensor']
        """
        steps = [step for step in self.topic.split("/") if step]
        if len(steps) > 1 and steps[0].lower() in _BASES:
            steps = steps[1:]
        if len(steps) > 1 and steps[-1].upper() in _ENDINGS:
            steps = steps[:-1]
        return "/".join(steps) or "sensor"

    def time(self, stamp: Any) -> float | None:
        """Convert a time to microseconds since 1970; None for None. Raises `Misread` if it can't be read."""
        if stamp is None:
            return None
        if isinstance(stamp, int | float) and not isinstance(stamp, bool):
            if unit := unit_of(stamp):
                return float(stamp) * UNITS[unit]
        elif isinstance(stamp, str):
            text = stamp.strip()
            if text.replace(".", "", 1).isdigit() and not _DATE.fullmatch(text) and unit_of(float(text)):
                return self.time(float(text))
            if (at := read_microseconds(text)) is not None:
                if self.zone == "UTC" or has_offset(text):
                    return float(at)
                # At the end of summer time, the message's arrival decides which of the two hours is meant.
                first, second = both_local(at, self.zone)
                return second if second <= self.arrived + _AHEAD_US else first
        raise Misread(Reason("its time can't be read", f"its time {str(stamp)[:40]!r} can't be read"))


_BASES = {"tele", "stat", "zigbee2mqtt", "shellies", "homeassistant"}
_ENDINGS = {"SENSOR", "STATE", "RESULT", "STATUS", "TELEMETRY", "EVENTS", "STATUS8", "STATUS10"}


class PayloadShape(NamedTuple):
    """A format of payloads: its name, a test for it, and the function that reads it."""

    name: str
    recognises: Callable[[Payload], bool]
    readings: Callable[[Payload], list[Reading]]


def _has(*names: str) -> Callable[[Payload], bool]:
    return lambda payload: isinstance(payload.body, Mapping) and all(name in payload.body for name in names)


def _refuse(kind: str) -> Misread:
    return Misread(Reason(kind))


_TASMOTA = frozenset({"Time", "TempUnit", "PressureUnit", "SpeedUnit", "Uptime", "Vcc", "Heap", "SleepMode"})


_NO_READINGS = re.compile(
    r"cmnd/.*|zigbee2mqtt/bridge/.*|zigbee2mqtt/.*/(?:set|get)(?:/.*)?|zigbee2mqtt/.*/availability"
    r"|homeassistant/.*/config|tasmota/discovery/.*"
)
"""Topics without readings: commands, messages about the bridge, and devices' capabilities."""


def _is_aside(payload: Payload) -> bool:
    return _NO_READINGS.fullmatch(payload.topic) is not None


def _tasmota(payload: Payload) -> list[Reading]:
    body, at = payload.body, payload.time(payload.body.get("Time"))
    units = {"Temperature": body.get("TempUnit"), "DewPoint": body.get("TempUnit")}
    units |= {"Pressure": body.get("PressureUnit"), "SeaPressure": body.get("PressureUnit")}
    units |= {"Humidity": "%", "Power": "W", "Voltage": "V", "Current": "A", "Total": "kWh", "Today": "kWh"}
    return readings_of(
        payload.device, body, at, {name: unit for name, unit in units.items() if unit}, _TASMOTA
    )


_Z2M_UNITS = {
    "temperature": "°C",
    "humidity": "%",
    "battery": "%",
    "pressure": "hPa",
    "voltage": "mV",
    "illuminance": "lx",
    "power": "W",
    "energy": "kWh",
    "current": "A",
    "linkquality": "lqi",
}
_Z2M = frozenset({"last_seen", "update", "update_available", "device", "elapsed"})


def _zigbee2mqtt(payload: Payload) -> list[Reading]:
    body, device = payload.body, payload.device
    if not payload.topic and isinstance(about := body.get("device"), Mapping):
        device = str(about.get("friendlyName") or about.get("ieeeAddr") or device)
    at = payload.time(body.get("last_seen"))
    # A plug's voltage is in V, a battery's in mV.
    units = {**_Z2M_UNITS, "voltage": "V" if "power" in body else "mV"}
    contact = body.get("contact")
    opened = (
        []
        if not isinstance(contact, bool)
        else [Reading(f"{device}/contact", "contact", at, state="closed" if contact else "open")]
    )
    return readings_of(device, body, at, units, _Z2M | ({"contact"} if opened else frozenset())) + opened


def _home_assistant(payload: Payload) -> list[Reading]:
    body = payload.body
    if "event_type" in body:
        body = body.get("event_data", body.get("data"))
        body = body.get("new_state") if isinstance(body, Mapping) else None
        if not isinstance(body, Mapping):
            return []
    entity, attributes = str(body.get("entity_id")), body.get("attributes")
    attributes = attributes if isinstance(attributes, Mapping) else {}
    fields = measured(body.get("state"), entity)
    if fields is None:
        return []
    unit = attributes.get("unit_of_measurement")
    at = payload.time(body.get("last_updated", body.get("last_changed")))
    return [Reading(entity, entity.partition(".")[0], at, **{"unit": unit, **fields})]


def _the_things(payload: Payload) -> list[Reading]:
    body = payload.body
    if isinstance(body.get("result"), Mapping):
        body = body["result"]
    elif isinstance(body.get("data"), Mapping):
        body = body["data"]
    up = body.get("uplink_message")
    if not isinstance(up, Mapping):
        return []
    device = str(body["end_device_ids"].get("device_id") or body["end_device_ids"].get("dev_eui"))
    decoded = up.get("decoded_payload")
    if not isinstance(decoded, Mapping):
        raise _refuse(
            "an uplink of The Things Network without decoded_payload: give its device a payload formatter"
        )
    place = up.get("locations") or {}
    place = (
        next((item for item in place.values() if isinstance(item, Mapping)), {})
        if isinstance(place, Mapping)
        else {}
    )
    place = {name: place[name] for name in ("latitude", "longitude") if name in place}
    return readings_of(
        device, {**place, **decoded}, payload.time(up.get("received_at", body.get("received_at")))
    )


def _chirpstack(payload: Payload) -> list[Reading]:
    body = payload.body
    device = body["deviceInfo"].get("deviceName") or body["deviceInfo"].get("devEui")
    decoded = body.get("object")
    if not isinstance(decoded, Mapping):
        raise _refuse("an uplink of ChirpStack without object: give its device profile a codec")
    return readings_of(str(device), decoded, payload.time(body.get("time")))


def _is_thingsboard(body: Any) -> bool:
    return isinstance(body, Mapping) and "ts" in body and isinstance(body.get("values"), Mapping)


def _thingsboard(payload: Payload) -> list[Reading]:
    return [
        reading for item in _listed(payload.body) for reading in _of_values(payload, payload.device, item)
    ]


def _listed(body: Any) -> list[Any]:
    return body if isinstance(body, list) else [body]


def _of_values(payload: Payload, device: str, item: Any) -> list[Reading]:
    if not _is_thingsboard(item):
        return readings_of(device, item, None) if isinstance(item, Mapping) else []
    return readings_of(device, item["values"], payload.time(item["ts"]))


def _is_thingsboard_gateway(payload: Payload) -> bool:
    body = payload.body
    return (
        isinstance(body, Mapping)
        and bool(body)
        and all(isinstance(some, list) and some and all(map(_is_thingsboard, some)) for some in body.values())
    )


def _thingsboard_gateway(payload: Payload) -> list[Reading]:
    each = ((str(device), item) for device, some in payload.body.items() for item in some)
    return [reading for device, item in each for reading in _of_values(payload, device, item)]


_RELATIVE = 2.0**28


def _is_senml(payload: Payload) -> bool:
    body = payload.body
    if not isinstance(body, list) or not all(isinstance(record, Mapping) for record in body):
        return False
    labels = set().union(*body) if body else set()
    return bool(labels & {"n", "bn"}) and bool(labels & {"v", "vs", "vb", "vd", "s", "bv"})


def _senml(payload: Payload) -> list[Reading]:
    """Read SenML (RFC 8428, section 4): base fields apply from their record on, and are added to its own."""
    readings: list[Reading] = []
    name, time, unit, value, total = "", 0.0, None, None, None
    for record in payload.body:
        if strange := [label for label in record if label.endswith("_")]:
            raise Misread(
                Reason("SenML that must be understood", f"SenML's {strange[0]!r} must be understood")
            )
        if record.get("bver", 10) > 10:
            raise Misread(Reason("a version of SenML", f"SenML of version {record['bver']}; 10 is read"))
        name, unit = str(record.get("bn", name)), record.get("bu", unit)
        time = _number(record.get("bt", time))
        value, total = record.get("bv", value), record.get("bs", total)
        if not set(record) & {"n", "v", "vs", "vb", "vd", "s"}:
            continue
        measure = str(record.get("n", ""))
        at = time + _number(record.get("t", 0))
        # Times below 2^28 are seconds before or after now (section 4.5.3).
        when = at * 1e6 if at >= _RELATIVE else payload.arrived + at * 1e6
        sensor = f"{name}{measure}" or payload.device
        common: dict[str, Any] = {
            "sensor": sensor,
            "measure": measure or sensor,
            "at": when,
            "unit": record.get("u", unit),
        }
        has_other = bool(set(record) & {"vs", "vb", "vd"})
        if "v" in record or (value is not None and not has_other and "s" not in record):
            readings.append(Reading(**common, value=_number(record.get("v", 0)) + _number(value or 0)))
        elif "vb" in record or "vs" in record:
            fields = measured(record.get("vb", record.get("vs")), sensor)
            readings += [Reading(**{**common, **fields})] if fields else []
        if "s" in record or (total is not None and "v" not in record and not has_other):
            summed = _number(record.get("s", 0)) + _number(total or 0)
            readings.append(Reading(**{**common, "sensor": f"{sensor}/sum", "unit": None}, value=summed))
    return readings


def _number(value: Any) -> float:
    fields = measured(value, "a number of SenML") if not isinstance(value, bool | str) else None
    if fields is None:
        raise Misread(Reason("not a number in SenML", f"SenML has {str(value)[:40]!r} for a number"))
    return float(fields["value"])


_BAD = 0x80000000
"""The first bit of an OPC UA status: the value is bad (part 4, section 7.39)."""


def _is_opc_ua(payload: Payload) -> bool:
    body = payload.body
    if isinstance(body, list):
        return bool(body) and all(isinstance(item, Mapping) and _is_data_set(item) for item in body)
    return isinstance(body, Mapping) and (
        str(body.get("MessageType", "")).startswith("ua-") or _is_data_set(body)
    )


def _is_data_set(body: Mapping[str, Any]) -> bool:
    return isinstance(body.get("Payload"), Mapping) and bool(
        set(body) & {"DataSetWriterId", "DataSetWriterName", "MetaDataVersion", "SequenceNumber"}
    )


def _opc_ua(payload: Payload) -> list[Reading]:
    body = payload.body
    whole = body if isinstance(body, Mapping) and "Messages" in body else {"Messages": body}
    if isinstance(body, Mapping) and body.get("MessageType", "ua-data") not in (
        *("ua-data", "ua-keyframe", "ua-deltaframe", "ua-event"),
    ):
        return []
    readings = []
    for message in _listed(whole["Messages"]):
        fields = message.get("Payload") if isinstance(message, Mapping) else None
        if not isinstance(fields, Mapping) or _is_bad(message.get("Status")):
            continue
        writer = message.get("DataSetWriterName") or message.get("DataSetWriterId")
        steps = (message.get("PublisherId", whole.get("PublisherId")), writer)
        device = "/".join(str(step) for step in steps if step is not None) or payload.device
        sent = payload.time(message.get("Timestamp", whole.get("Timestamp")))
        for name, field in fields.items():
            at, value, unit = sent, field, None
            if isinstance(field, Mapping):
                if _is_bad(field.get("StatusCode", field.get("Status"))):
                    continue
                at = payload.time(field.get("SourceTimestamp", field.get("ServerTimestamp"))) or sent
                value = field.get("Value", field.get("Body"))
            while isinstance(value, Mapping) and ({"Body", "Value"} & set(value)):
                unit = _unit_in(value) or unit
                value = value.get("Body", value.get("Value"))
            readings += [
                item._replace(unit=item.unit or unit) for item in readings_of(device, {name: value}, at)
            ]
    return readings


def _opc_publisher(payload: Payload) -> list[Reading]:
    """Read samples of the OPC Publisher: a node's value with its own time."""
    body, value = payload.body, payload.body["Value"]
    if _is_bad(body.get("Status")) or (isinstance(value, Mapping) and _is_bad(value.get("StatusCode"))):
        return []
    node = str(body.get("DisplayName") or body["NodeId"])
    stamp = body.get("Timestamp")
    if isinstance(value, Mapping):
        stamp, value = value.get("SourceTimestamp", stamp), value.get("Value", value.get("Body"))
    fields = measured(value, node)
    return [Reading(node, node, payload.time(stamp), **fields)] if fields else []


def _unit_in(value: Mapping[str, Any]) -> str | None:
    units = value.get("EngineeringUnits")
    named = units.get("DisplayName") if isinstance(units, Mapping) else None
    return str(named.get("Text")) if isinstance(named, Mapping) else named


def _is_bad(status: Any) -> bool:
    code = status.get("Code", 0) if isinstance(status, Mapping) else status
    return isinstance(code, int) and code >= _BAD


def _neuron(payload: Payload) -> list[Reading]:
    """Read EMQX Neuron, and gateways with its format; `errors` has tags that could not be read."""
    body = payload.body
    device = "/".join(str(body[name]) for name in ("node", "group") if body.get(name))
    values = body.get("values")
    if not isinstance(values, Mapping):
        tags = [
            item for item in _listed(body.get("tags")) if isinstance(item, Mapping) and not item.get("error")
        ]
        values = {str(item.get("name")): item.get("value") for item in tags}
    return readings_of(device, values, payload.time(body["timestamp"]))


def _kepware(payload: Payload) -> list[Reading]:
    """Read Kepware's IoT gateway; values without good quality are left out."""
    readings = []
    for item in payload.body["values"]:
        if (
            isinstance(item, Mapping)
            and item.get("q") is not False
            and (fields := measured(item.get("v"), "v"))
        ):
            name = str(item.get("id"))
            at = payload.time(item.get("t", payload.body.get("timestamp")))
            readings.append(Reading(name, name.rpartition(".")[2], at, **fields))
    return readings


def _is_kepware(payload: Payload) -> bool:
    values = payload.body.get("values") if isinstance(payload.body, Mapping) else None
    return (
        isinstance(values, list)
        and bool(values)
        and all(isinstance(item, Mapping) and "id" in item and "v" in item for item in values)
    )


def _is_telegraf(payload: Payload) -> bool:
    body = payload.body
    if isinstance(body, Mapping) and isinstance(body.get("metrics"), list):
        return all(isinstance(item, Mapping) and "fields" in item for item in body["metrics"])
    return _has("fields", "name", "timestamp")(payload) and isinstance(body["fields"], Mapping)


def _telegraf(payload: Payload) -> list[Reading]:
    readings = []
    for item in payload.body.get("metrics") or [payload.body]:
        tags = item.get("tags") if isinstance(item.get("tags"), Mapping) else {}
        series = ",".join([str(item.get("name")), *(f"{tag}={value}" for tag, value in sorted(tags.items()))])
        readings += readings_of(series, item["fields"], payload.time(item.get("timestamp")))
    return readings


def _edgex(payload: Payload) -> list[Reading]:
    body = payload.body.get("event", payload.body)
    readings = []
    for item in body["readings"]:
        name, device = item.get("resourceName"), item.get("deviceName") or body.get("deviceName")
        some = readings_of(str(device), {str(name): item.get("value")}, payload.time(item.get("origin")))
        readings += [reading._replace(unit=item.get("units") or reading.unit) for reading in some]
    return readings


def _is_edgex(payload: Payload) -> bool:
    body = payload.body.get("event", payload.body) if isinstance(payload.body, Mapping) else None
    some = body.get("readings") if isinstance(body, Mapping) else None
    return (
        isinstance(some, list)
        and bool(some)
        and all(isinstance(item, Mapping) and "resourceName" in item for item in some)
    )


def _shelly(payload: Payload) -> list[Reading]:
    """Read Shelly's second generation: components such as ``switch:0`` in a notification's parameters."""
    params = payload.body["params"]
    known = {name: part for name, part in params.items() if isinstance(part, Mapping)}
    units = {"tC": "°C", "tF": "°F", "rh": "%", "apower": "W", "voltage": "V", "current": "A"}
    return readings_of(str(payload.body["src"]), known, payload.time(params.get("ts")), units)


_TIMES = ("time", "timestamp", "ts", "datetime", "date_time", "at", "measured_at", "created_at", "time_stamp")
_DEVICES = (
    *(
        "device",
        "device_id",
        "deviceid",
        "devicename",
        "device_name",
        "sensor",
        "sensor_id",
        "sensorid",
        "id",
    ),
    *("name", "node", "node_id", "station", "asset", "machine", "thing", "host", "source", "serial", "mac"),
)


def _member(body: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """Return the object's spelling of the first of these names that it has, ignoring case."""
    known = {str(name).lower(): name for name in body}
    return next((known[name] for name in names if name in known), None)


def _is_flat(payload: Payload) -> bool:
    return (
        isinstance(payload.body, Mapping)
        and bool(payload.body)
        and (
            bool(payload.topic)
            or _member(payload.body, _TIMES) is not None
            or _member(payload.body, _DEVICES) is not None
        )
    )


def _flat(payload: Payload) -> list[Reading]:
    """Read any other object: find its time, the device's name, and the readings."""
    body = payload.body
    time, name = _member(body, _TIMES), _member(body, _DEVICES)
    if name is not None and not isinstance(body[name], str | int):
        name = None
    at = None if time is None else payload.time(body[time] if body[time] is not None else "")
    device = payload.device if name is None else str(body[name])
    unit = body.get("unit")
    without = frozenset(filter(None, (time, name, "unit")))
    readings = readings_of(device, body, at, {"value": unit} if isinstance(unit, str) else None, without)
    # A single value belongs to the device itself.
    return [item._replace(sensor=device) if item.measure == "value" else item for item in readings]


def _is_the_things(body: Any) -> bool:
    if not isinstance(body, Mapping):
        return False
    inner = body.get("result", body.get("data", body))
    return isinstance(inner, Mapping) and isinstance(inner.get("end_device_ids"), Mapping)


def _is_tasmota(payload: Payload) -> bool:
    body = payload.body
    if not isinstance(body, Mapping):
        return False
    return "Time" in body or re.match(r"(?:.*/)?(?:tele|stat)/", payload.topic) is not None


def _is_zigbee2mqtt(payload: Payload) -> bool:
    return isinstance(payload.body, Mapping) and (
        payload.topic.startswith("zigbee2mqtt/") or "linkquality" in payload.body
    )


SHAPES: tuple[PayloadShape, ...] = (
    PayloadShape("commands and announcements", _is_aside, lambda payload: []),
    PayloadShape("SenML", _is_senml, _senml),
    PayloadShape("OPC UA PubSub", _is_opc_ua, _opc_ua),
    PayloadShape("OPC Publisher", _has("NodeId", "Value"), _opc_publisher),
    PayloadShape("The Things Network", lambda payload: _is_the_things(payload.body), _the_things),
    PayloadShape(
        "ChirpStack",
        lambda p: _has("deviceInfo")(p) and isinstance(p.body["deviceInfo"], Mapping),
        _chirpstack,
    ),
    PayloadShape("EdgeX", _is_edgex, _edgex),
    PayloadShape("Kepware", _is_kepware, _kepware),
    PayloadShape(
        "Neuron", lambda p: _has("node", "timestamp")(p) and ("values" in p.body or "tags" in p.body), _neuron
    ),
    PayloadShape("Telegraf", _is_telegraf, _telegraf),
    PayloadShape(
        "Shelly", lambda p: _has("src", "params")(p) and isinstance(p.body["params"], Mapping), _shelly
    ),
    PayloadShape("ThingsBoard", lambda p: any(map(_is_thingsboard, _listed(p.body))), _thingsboard),
    PayloadShape("ThingsBoard's gateway", _is_thingsboard_gateway, _thingsboard_gateway),
    PayloadShape(
        "Home Assistant", lambda p: _has("entity_id", "state")(p) or _has("event_type")(p), _home_assistant
    ),
    PayloadShape("Tasmota", _is_tasmota, _tasmota),
    PayloadShape("Zigbee2MQTT", _is_zigbee2mqtt, _zigbee2mqtt),
    PayloadShape("an object with a time or a device", _is_flat, _flat),
)
"""All shapes, the more specific ones first."""


def shape_of(payload: Payload) -> PayloadShape | None:
    """Return the shape of an object or a list; None if no known shape fits."""
    return next((shape for shape in SHAPES if shape.recognises(payload)), None)
