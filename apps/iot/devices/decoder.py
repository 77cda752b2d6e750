"""A decoder of devices' payloads by shape: a row for each message, with its readings."""

from __future__ import annotations

import json
import logging
import re
from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl
import pyarrow as pa

from ....operators.formats.decode import Decoded
from ....operators.formats.field_paths import picked
from ....operators.formats.messages import Messages
from ....operators.formats.per_message import Misread, one_by_one
from ....operators.formats.reasons import Reason
from ....operators.windows.window import YEAR_10000
from .line_protocol import history, is_history, is_line_protocol, line_protocol
from .payloads import Payload, PayloadShape, shape_of
from .reading import Reading, in_unit, measured

log = logging.getLogger(__name__)

_TIME = pa.timestamp("us", "UTC")
_READING = pa.struct(
    {
        "sensor": pa.string(),
        "measure": pa.string(),
        "at": _TIME,
        "value": pa.float64(),
        "state": pa.string(),
        "measured_in": pa.string(),
        "latitude": pa.float64(),
        "longitude": pa.float64(),
    }
)
_ROW = pa.struct({"time": _TIME, "arrived": _TIME, "readings": pa.list_(_READING)})
_COLUMNS = tuple((name, (name,)) for name in ("time", "arrived", "readings"))
_STATESTREAM = re.compile(r"(?:.*/)?([a-z_]+)/([a-z0-9_]+)/([a-z_]+)")
_DOMAINS = {
    *("sensor", "binary_sensor", "switch", "light", "climate", "cover", "fan", "lock", "person", "weather"),
    *("device_tracker", "input_boolean", "input_number", "input_select", "number", "select", "sun", "valve"),
    *("alarm_control_panel", "humidifier", "media_player", "vacuum", "water_heater", "zone", "automation"),
}


@dataclass(frozen=True)
class Devices:
    """A `Decoder` of payloads of devices and gateways; the topic of MQTT may be in the messages' keys.

    Each row has the `time` of its latest reading, the time when the message `arrived`, and its `readings`.
    Readings without a time get Kafka's, which a warning reports. Temperatures are converted to `value_unit`
    if that is a unit of temperature; times without a zone are in `zone`.

    >>> payload = b'{"Time":"2026-06-01T12:00:00","AM2301":{"Temperature":21.5}}'
    >>> decoded = Devices().decode(Messages.of([payload]))
    >>> [(reading["sensor"], reading["value"]) for reading in decoded.frame["readings"][0]]
    [('sensor/AM2301/Temperature', 21.5)]
    """

    zone: str = "UTC"
    value_unit: str = ""
    version: int = 1

    @property
    def schema(self) -> dict[str, Any]:
        """The Polars types of its columns."""
        return dict(_frame(_built([])).schema)

    def decode(self, messages: Messages) -> Decoded:
        """Return the rows of a batch, and why the other messages were refused."""
        keys, stamps = messages.key.to_pylist(), messages.timestamp.tolist()
        reads = [partial(self._row, key, stamp) for key, stamp in zip(keys, stamps)]
        return one_by_one(messages, reads, _built, _frame)

    def _row(self, key: bytes | None, arrived_ms: int, data: memoryview) -> dict[str, Any]:
        readings = self.readings(bytes(data), key, arrived_ms)
        rows, untimed = [], False
        for reading in readings:
            at = reading.at
            if at is None:
                at, untimed = arrived_ms * 1e3, True
            if not 0 <= at < YEAR_10000:
                raise Misread(Reason("a time out of range", f"the time of {reading.sensor} is out of range"))
            value, unit = reading.value, reading.unit if isinstance(reading.unit, str) else None
            if value is not None and self.value_unit:
                value, unit = in_unit(value, unit, self.value_unit)
            row = reading._replace(at=round(at), value=value)._asdict()
            rows.append({**row, "measured_in": unit})
        if untimed:
            _warn()
        latest = max((row["at"] for row in rows), default=max(arrived_ms, 0) * 1_000)
        arrived = None if arrived_ms < 0 else arrived_ms * 1_000
        return {"time": latest, "arrived": arrived, "readings": rows}

    def readings(self, data: bytes, key: bytes | None, arrived_ms: int) -> list[Reading]:
        """Return the readings in a single message. Raises `Misread` if no shape fits."""
        payload = payload_of(data, key, arrived_ms, self.zone)
        if isinstance(payload.body, str):
            if is_history(payload.body):
                return history(payload)
            if is_line_protocol(payload.body):
                return line_protocol(payload)
        if not isinstance(payload.body, dict | list):
            return _bare(payload)
        return _shaped(payload)


def payload_of(data: bytes, key: bytes | None, arrived_ms: int, zone: str = "UTC") -> Payload:
    """Parse a message; the body is text if it isn't JSON. Raises `Misread` for bytes that aren't UTF-8."""
    topic = "" if key is None else key.decode(errors="replace")
    try:
        text = data.decode().strip().lstrip("\ufeff")
    except UnicodeDecodeError:
        raise Misread("not UTF-8; this format reads text") from None
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        if text[:1] in ("{", "["):
            raise Misread(Reason("broken JSON", f"broken JSON: {text[:60]!r}")) from None
        body = text
    return Payload(body, topic, arrived_ms * 1e3, zone)


def named_shape(data: bytes, key: bytes | None = None) -> str:
    """Return the name of a payload's shape; empty if none fits."""
    try:
        payload = payload_of(data, key, 0)
    except Misread:
        return ""
    if isinstance(payload.body, str):
        is_text = {"Home Assistant's history": is_history, "line protocol": is_line_protocol}
        return next((name for name, fits in is_text.items() if fits(payload.body)), "")
    shape = _shape(payload)
    return shape.name if shape else ""


def form_of_readings(data: bytes, key: bytes | None) -> str:
    """Return the name of the shape of an object with readings but no ``value``; empty for anything else.

    >>> form_of_readings(b'{"ts": 1780315200, "values": {"t": 1}}', None)
    'ThingsBoard'
    """
    try:
        payload = payload_of(data, key, 0)
        has_readings = isinstance(payload.body, dict) and "value" not in payload.body and _shaped(payload)
    except Misread:
        return ""
    return named_shape(data, key) if has_readings else ""


def _shape(payload: Payload) -> PayloadShape | None:
    """Return the shape of an object, or of the first in a list of objects."""
    body = payload.body
    if (shape := shape_of(payload)) is None and isinstance(body, list) and body:
        return shape_of(payload._replace(body=body[0]))
    return shape


def _shaped(payload: Payload) -> list[Reading]:
    if (shape := shape_of(payload)) is not None:
        try:
            return shape.readings(payload)
        except Misread:
            raise
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            reason = f"a malformed payload of {shape.name}"
            raise Misread(Reason(reason, f"{reason}: {type(error).__name__}: {error}")) from None
    if isinstance(payload.body, list) and payload.body:
        return [reading for part in payload.body for reading in _shaped(payload._replace(body=part))]
    shown = json.dumps(payload.body)[:60]
    raise Misread(
        Reason(
            "a payload of no known shape", f"a payload of no known shape, without a time or a device: {shown}"
        )
    )


def _bare(payload: Payload) -> list[Reading]:
    """Read a bare value, as in Tasmota's ``stat/hall/POWER`` and Home Assistant's statestream."""
    topic = payload.topic
    if shape_of(payload) is not None:
        return []  # for example a command
    if not topic:
        shown = str(payload.body)[:40]
        raise Misread(Reason("a value alone", f"{shown!r} alone, and no key that names its sensor"))
    if (match := _STATESTREAM.fullmatch(topic)) and match[1] in _DOMAINS:
        if match[3] != "state":
            return []
        sensor, measure = f"{match[1]}.{match[2]}", match[1]
    else:
        sensor, measure = topic, topic.rpartition("/")[2]
    fields = measured(payload.body, sensor)
    return [] if fields is None else [Reading(sensor, measure, None, **fields)]


_warned: list[bool] = []


def _warn() -> None:
    """Log once per process that readings have Kafka's times."""
    if not _warned:
        _warned.append(True)
        log.warning("readings without a time of their own get their message's time in Kafka")


def _built(rows: list[Any]) -> pa.Array:
    return pa.array(rows, _ROW)


def _frame(rows: pa.Array) -> pl.DataFrame:
    return picked(rows, _COLUMNS)
