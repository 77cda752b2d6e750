"""How sensors' readings come: JSON as devices send it over MQTT, CSV, and the forms of standards.

Of JSON and CSV, ``--set time=… --set sensor=… --set value=…`` say which fields those are, and ``group``,
``latitude`` and ``longitude`` further ones; a path such as ``payload.temperature`` leads into objects.
"""

from __future__ import annotations

import json as plain_json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from ...operators.definition.stream import Stream
from ...operators.formats.csv import csv
from ...operators.formats.decode import Decoder
from ...operators.formats.json import json
from ...operators.formats.json_fields import field
from ..app import AppFormat, Feed, Message, Settings
from ..replay.compressed_files import as_text, opened, suffix_of
from ..replay.csv_records import cells_of, csv_records
from .columns import in_columns
from .sensor_things import SENSOR_THINGS
from .sparkplug.rows import SPARKPLUG
from .vehicles import VEHICLES

_TIME = pl.Datetime("us", "UTC")
_UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}

_MORE = ("group", "latitude", "longitude")

USUAL = {
    "time": "time",
    "sensor": "sensor",
    "value": "value",
    "unit": "",
    "pattern": "",
    **dict.fromkeys(_MORE, ""),
}
"""A time is ISO 8601 text; with a `unit` (s, ms or us) a number since 1970, whole or not, with a `pattern`
text such as ``%Y/%m/%d``. Numbers may stand as strings. Without a `sensor` all readings are of one."""


def _time_type(settings: Settings) -> pl.DataType:
    unit = settings["unit"]
    if unit and unit not in _UNITS:
        raise ValueError(f"--set unit={unit}: a time is in {', '.join(_UNITS)} since 1970, or ISO 8601 text")
    if settings["pattern"]:
        return pl.String()
    # A double is exact to a quarter of a microsecond for centuries to come.
    return pl.Float64() if unit else _TIME


def _when(column: str, settings: Settings) -> pl.Expr:
    """The time in a column; null where there is none, which makes the reading a dead letter."""
    if settings["pattern"]:
        text = pl.col(column).str
        return text.to_datetime(settings["pattern"], time_unit="us", time_zone="UTC", strict=False)
    if settings["unit"]:
        microseconds = (pl.col(column) * _UNITS[settings["unit"]]).round()
        return microseconds.cast(pl.Int64, strict=False).cast(_TIME)
    return pl.col(column)


def _json_rows(feed: Feed, settings: Settings) -> Stream:
    columns = {
        "at": field(settings["time"], _time_type(settings), text=bool(settings["unit"])),
        "value": field(settings["value"], pl.Float64, text=True),
    }
    for name in ("sensor", *_MORE):
        if settings[name]:
            kind = pl.Float64 if name in ("latitude", "longitude") else pl.String
            columns[name] = field(settings[name], kind, text=True)
    return _rows(feed, json(columns), {name: name for name in columns}, settings)


def _csv_rows(feed: Feed, settings: Settings) -> Stream:
    names = {name: settings[setting] for name, setting in (("at", "time"), ("value", "value"))}
    kinds = {names["at"]: _time_type(settings), names["value"]: pl.Float64()}
    for name in ("sensor", *_MORE):
        if settings[name]:
            names[name] = settings[name]
            kinds[settings[name]] = pl.Float64() if name in ("latitude", "longitude") else pl.String()
    return _rows(feed, csv(kinds, header=True), names, settings)


def _rows(feed: Feed, value: Decoder, names: Mapping[str, str], settings: Settings) -> Stream:
    """The columns of every format, in one form."""
    at = _when(names["at"], settings)
    stream = feed.stream(value, time=at)
    more = {name: pl.col(names[name]) for name in ("sensor", *_MORE) if name in names}
    return in_columns(
        stream, settings, **{"at": at, "value": pl.col(names["value"]), "sensor": pl.lit("sensor"), **more}
    )


def _json_messages(path: Path, settings: Settings) -> Iterator[Message]:
    with opened(path) as file:
        for line in file:
            if value := line.strip():
                yield _message(value, _json_cells(value, settings), settings)


def _json_cells(value: bytes, settings: Settings) -> dict[str, Any]:
    """The fields that pace a replay; none of a line that isn't JSON, which goes on as it is."""
    try:
        whole = plain_json.loads(value)
    except ValueError:
        return {}
    cells = {}
    for name in ("time", "sensor"):
        one: Any = whole
        for step in settings[name].split("."):
            one = one.get(step) if isinstance(one, dict) else None
        cells[settings[name]] = one
    return cells


def _csv_messages(path: Path, settings: Settings) -> Iterator[Message]:
    """Each record with the header before it, so that a message says what it is."""
    with as_text(path) as file:
        records = csv_records(file)
        header = next(records, "").strip()
        names = cells_of(header)
        for record in records:
            value = f"{header}\n{record}".encode(errors="surrogateescape")
            yield _message(value, dict(zip(names, cells_of(record))), settings)


def _message(value: bytes, cells: Mapping[str, Any], settings: Settings) -> Message:
    sensor = cells.get(settings["sensor"])
    return Message(value, None if sensor is None else str(sensor).encode(), _sent_ms(cells, settings))


def _sent_ms(cells: Mapping[str, Any], settings: Settings) -> int | None:
    stamp = cells.get(settings["time"])
    try:
        if settings["unit"]:
            return int(float(stamp) * _UNITS[settings["unit"]] // 1_000)  # type: ignore[arg-type]
        if settings["pattern"]:
            at = datetime.strptime(str(stamp), settings["pattern"])
        else:
            at = datetime.fromisoformat(str(stamp))
        return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, TypeError, OverflowError):
        return None


FORMATS = (
    AppFormat(
        "json",
        "JSON as devices send it over MQTT, one object a message",
        _json_rows,
        lambda path, head: head.lstrip()[:1] == b"{" and not SENSOR_THINGS.recognises(path, head),
        _json_messages,
        USUAL,
    ),
    AppFormat(
        "csv",
        "CSV with a header, one record a message",
        _csv_rows,
        lambda path, head: suffix_of(path) == ".csv",
        _csv_messages,
        {**USUAL, "time": "timestamp", "sensor": ""},
    ),
    VEHICLES,
    SENSOR_THINGS,
    SPARKPLUG,
)
