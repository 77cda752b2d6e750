"""Devices' payloads as a format of the app, and their recordings.

A recording has one payload per line, after the time and the MQTT topic if ``mosquitto_sub -F '%U %t %p'``
wrote it; or it is a JSON document, line protocol, or Home Assistant's history as CSV.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import polars as pl

from ....operators.definition.stream import Stream
from ....operators.formats.per_message import Misread
from ...app import AppFormat, Feed, Message, Settings
from ...recordings.compressed_files import as_text, opened
from ...recordings.csv_records import csv_records
from ..columns import in_columns
from .decoder import Devices, named_shape
from .line_protocol import is_history, is_line_protocol

_TIMED = re.compile(rb"(\d{9,}(?:\.\d+)?) (\S+) (.*)", re.DOTALL)
_HEAD, _FEW = 1_000, 20

USUAL = {
    "metric": "",
    "group": "measure",
    "state": "",
    "state_hold": "0s",
    "dead": "25h",
    **dict.fromkeys(("limit", "stuck"), ""),
}
"""A `metric` excludes all other measures. Devices measure many things without a common limit, so rules about
limits are off unless set; `dead` is Zigbee2MQTT's own time for sleeping devices."""
_GROUPS = ("measure", "sensor", "")


def _decoder(settings: Settings) -> Devices:
    return Devices(settings.get("zone", "UTC"), settings.get("value_unit", ""))


def _rows(feed: Feed, settings: Settings) -> Stream:
    if (group := settings["group"]) not in _GROUPS:
        raise ValueError(f"--set group={group}: a reading's group is its measure, or its sensor")
    rows = feed.stream(_decoder(settings), time="time").explode("readings")
    reading = pl.col("readings").struct
    names = ("sensor", "measure", "at", "value", "state", "measured_in", "latitude", "longitude")
    rows = rows.with_columns(*(reading.field(name).alias(name) for name in names))
    if metric := settings["metric"]:
        last = pl.col("measure").str.split("/").list.last().str.to_lowercase()
        rows = rows.filter((last == metric.lower()) | (pl.col("measure") == metric))
    return in_columns(
        rows,
        settings,
        keep=pl.col("state").is_not_null(),
        watched=_watched(settings),
        **{name: pl.col(name) for name in (*names[:1], *names[2:], "arrived")},
        group=pl.col(group) if group else pl.lit(None),
    )


def _watched(settings: Settings) -> pl.Expr:
    """Return for each state of ``--set state=`` whether a row's sensor is in it; null for other sensors.

    Raises `ValueError` for a state without a name.
    """
    conditions = []
    for text in filter(None, (part.strip() for part in settings["state"].split(","))):
        names, _, state = text.rpartition("=")
        if not state.strip():
            raise ValueError(f"--set state must be such as open or *door*=open, got {text!r}")
        holds = (pl.col("state") == state.strip().lower()).cast(pl.Int64)
        pattern = ".*".join(map(pl.escape_regex, (names.strip() or "*").split("*")))
        is_about = pl.col("sensor").str.contains(f"(?s)^{pattern}$")
        condition = pl.struct(condition=pl.lit(state.strip().lower()), holds=pl.when(is_about).then(holds))
        conditions.append(condition)
    kind = pl.List(pl.Struct({"condition": pl.String, "holds": pl.Int64}))
    return pl.concat_list(conditions).cast(kind) if conditions else pl.lit(None, kind)


def _lines(path: Path) -> Iterator[Message]:
    """Yield a file's payloads, each with its topic and time, if any."""
    with opened(path) as file:
        head = file.read(65_536)
    first = head.decode(errors="replace").lstrip("\ufeff")
    if is_history(first):
        with as_text(path) as text:
            records = csv_records(text)
            header = next(records, "").strip()
            for record in records:
                yield Message(f"{header}\n{record}".encode(errors="surrogateescape"))
        return
    if first.lstrip()[:1] in ("[", "{") and not _is_lines(head):
        with opened(path) as file:
            whole = file.read()
        try:
            body = json.loads(whole)
        except ValueError:
            pass
        else:
            is_pack = not isinstance(body, list) or named_shape(whole) in ("SenML", "OPC UA PubSub")
            for part in [body] if is_pack else body:
                yield Message(json.dumps(part, ensure_ascii=False).encode())
            return
    with opened(path) as file:
        for line in file:
            if not (value := line.strip()) or value[:1] == b"#":
                continue
            match = _TIMED.fullmatch(value)
            if match is None:
                yield Message(value)
            else:
                yield Message(match[3], match[2], int(float(match[1]) * 1_000))


def _is_lines(head: bytes) -> bool:
    """Whether the first line by itself is JSON."""
    try:
        json.loads(head.lstrip().split(b"\n", 1)[0])
    except ValueError:
        return False
    return True


def _messages(path: Path, settings: Settings) -> Iterator[Message]:
    """Yield messages. Raises `ValueError` if no message has a time, because a file has no Kafka
    timestamps."""
    decoder, timed = _decoder(settings), False
    for number, message in enumerate(_lines(path), 1):
        message = message._replace(sent_ms=_sent_ms(decoder, message))
        timed = timed or message.sent_ms is not None
        if number == _HEAD and not timed:
            raise ValueError(_untimed(path))
        yield message
    if not timed:
        raise ValueError(_untimed(path))


def _untimed(path: Path) -> str:
    return (
        f"no message of {path} has a time of its own, and a file has none of Kafka's: record times and "
        "topics with mosquitto_sub -F '%U %t %p', or archive the topic in Kafka"
    )


def _sent_ms(decoder: Devices, message: Message) -> int | None:
    if message.sent_ms is not None:
        return message.sent_ms
    try:
        times = [reading.at for reading in decoder.readings(message.value, message.key, 0)]
    except Misread:
        return None
    known = [at for at in times if at is not None and at > 0]
    return int(max(known) // 1_000) if known else None


def _recognises(path: Path, head: bytes) -> bool:
    """Whether most of the first payloads have a shape other than plain named values."""
    try:
        first = list(islice(_lines(path), _FEW))
    except (OSError, ValueError):
        return False
    return 2 * sum(map(_is_ours, first)) > len(first)


def _is_ours(message: Message) -> bool:
    if message.key is not None:
        return not message.key.startswith(b"spBv1.0/")
    if is_line_protocol(message.value.decode(errors="replace")):
        return True
    try:
        body = json.loads(message.value)
    except ValueError:
        return is_history(message.value.decode(errors="replace"))
    if isinstance(body, dict) and {"time", "value"} <= set(body):
        return False
    return bool(named_shape(message.value))


def _note(path: Path, settings: Settings) -> str:
    """Describe the shapes of the first payloads, and whether times have no zone."""
    first = list(islice(_lines(path), _HEAD))
    shapes = sorted({name for message in first if (name := named_shape(message.value, message.key))})
    notes = [f"payloads are {', '.join(shapes)}"] if shapes else []
    decoder = Devices()
    untimed = sum(_sent_ms(decoder, message._replace(sent_ms=None)) is None for message in first)
    if untimed:
        notes.append(
            f"{untimed:,} of the first {len(first):,} have no time and get the time of their arrival"
        )
    return "; ".join(notes)


DEVICES = AppFormat(
    "devices",
    "payloads of devices and gateways by their shape: Tasmota, Zigbee2MQTT, Home Assistant, LoRaWAN, SenML …",
    _rows,
    _recognises,
    _messages,
    USUAL,
    _note,
    over=("json", "csv"),
)
