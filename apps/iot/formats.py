"""Formats of sensors' readings: JSON as devices send it over MQTT, CSV, and standard formats.

For JSON and CSV, ``--set time=… --set sensor=… --set value=…`` name the fields, and ``group``, ``latitude``
and ``longitude`` further ones; a path such as ``payload.temperature`` leads into objects.
"""

from __future__ import annotations

import json as plain_json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import polars as pl

from ...operators.definition.stream import Stream
from ...operators.formats.decode import Decoder
from ...operators.formats.json.decoder import json
from ...operators.formats.json.fields import field
from ...operators.formats.text.csv import csv
from ...operators.rendering.names import visible_name
from ..app import AppFormat, Feed, Message, Settings
from ..recordings.compressed_files import as_text, opened, suffix_of
from ..recordings.csv_records import cells_of, csv_records
from ..recordings.local_clocks import LocalClocks
from .columns import ARRIVED, in_columns
from .devices.rows import DEVICES
from .number_texts import USUAL as NUMBERS
from .number_texts import number_texts
from .reading_times import both_microseconds, check_times, conclusion, time_in, time_type
from .sensor_things import SENSOR_THINGS
from .sparkplug.rows import SPARKPLUG
from .vehicles import VEHICLES

_MORE = ("group", "latitude", "longitude")
_HEAD = 1_000
_NAMED, _ENOUGH, _LARGE = 5, 20, 100

USUAL = {
    "time": "time",
    "sensor": "sensor",
    "value": "value",
    "unit": "",
    "pattern": "",
    **NUMBERS,
    **dict.fromkeys(_MORE, ""),
}
"""A time is ISO 8601 text, or a number since 1970, integer or not, whose size implies its unit unless `unit`
(s, ms, us or ns) is set; with a `pattern` it is text such as ``%Y/%m/%d``. Numbers may be strings. Without a
`sensor`, all readings belong to one sensor."""


def _json_rows(feed: Feed, settings: Settings) -> Stream:
    check_times(settings)
    columns = {
        "at": field(settings["time"], time_type(settings), text=True),
        "value": field(settings["value"], pl.String, text=True),
    }
    for name in ("sensor", *_MORE):
        if settings[name]:
            kind = pl.Float64 if name in ("latitude", "longitude") else pl.String
            columns[name] = field(settings[name], kind, text=True)
    value = number_texts(json(columns), "value", settings)
    return _rows(feed, value, {name: name for name in columns}, settings)


def _csv_rows(feed: Feed, settings: Settings) -> Stream:
    check_times(settings)
    names = {name: settings[setting] for name, setting in (("at", "time"), ("value", "value"))}
    kinds = {names["at"]: time_type(settings), names["value"]: pl.String()}
    for name in ("sensor", *_MORE):
        if settings[name]:
            names[name] = settings[name]
            kinds[settings[name]] = pl.Float64() if name in ("latitude", "longitude") else pl.String()
    value = number_texts(csv(kinds, header=True), names["value"], settings)
    return _rows(feed, value, names, settings)


def _rows(feed: Feed, value: Decoder, names: Mapping[str, str], settings: Settings) -> Stream:
    """Convert rows to the common columns."""
    at = time_in(names["at"], settings)
    stream = feed.stream(value, time=at, message=ARRIVED)
    more = {name: pl.col(names[name]) for name in ("sensor", *_MORE) if name in names}
    return in_columns(
        stream,
        settings,
        at=at,
        value=pl.col(names["value"]),
        arrived=pl.col("arrived"),
        **{"sensor": pl.lit("sensor"), **more},
    )


def _json_messages(path: Path, settings: Settings) -> Iterator[Message]:
    return _messages(_json_lines(path, settings), settings)


def _json_lines(path: Path, settings: Settings) -> Iterator[tuple[bytes, dict[str, Any]]]:
    with opened(path) as file:
        for line in file:
            if value := line.strip():
                yield value, _json_cells(value, settings)


def _json_cells(value: bytes, settings: Settings) -> dict[str, Any]:
    """Return the fields that pace a replay; empty for a line that isn't JSON, which is passed on
    unchanged."""
    try:
        whole = plain_json.loads(value)
    except ValueError:
        return {}
    cells = {}
    for name in ("time", "sensor", "value"):
        one: Any = whole
        for step in settings[name].split("."):
            one = one.get(step) if isinstance(one, dict) else None
        cells[settings[name]] = one
    return cells


def _csv_messages(path: Path, settings: Settings) -> Iterator[Message]:
    return _messages(_csv_lines(path, settings), settings)


def _csv_lines(path: Path, settings: Settings) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Yield each record with the header before it, so that a message describes itself."""
    with as_text(path) as file:
        records = csv_records(file)
        header = next(records, "").strip()
        names = cells_of(header)
        for record in records:
            value = f"{header}\n{record}".encode(errors="surrogateescape")
            yield value, dict(zip(names, cells_of(record)))


def _messages(lines: Iterable[tuple[bytes, dict[str, Any]]], settings: Settings) -> Iterator[Message]:
    """Convert lines to messages sent at the times of their readings.

    In the repeated hour at the end of summer time, a sensor's time that jumps back means that its clock was
    set back.
    """
    clocks = LocalClocks(once_each=True)
    for value, cells in lines:
        sensor, sent_ms = cells.get(settings["sensor"]), None
        if (both := both_microseconds(cells.get(settings["time"]), settings)) is not None:
            first, second = (int(one // 1_000) for one in both)
            sent_ms = clocks.choose(None if sensor is None else str(sensor), first, second)
        yield Message(value, None if sensor is None else str(sensor).encode(), sent_ms)


def _concluded(
    lines: Callable[[Path, Settings], Iterator[tuple[bytes, dict[str, Any]]]],
) -> Callable[[Path, Settings], str]:
    """Return a function that describes a recording's times, and counters among its sensors."""

    def note(path: Path, settings: Settings) -> str:
        cells = [cells for _, cells in islice(lines(path, settings), _HEAD)]
        stamps = [stamp for one in cells if (stamp := one.get(settings["time"])) is not None]
        notes = [conclusion(stamps[0], settings) if stamps else ""]
        if not settings["rate"] and (counters := _counters(cells, settings)):
            names = ", ".join(map(visible_name, counters[:_NAMED]))
            more = f" and {len(counters) - _NAMED:,} others" if len(counters) > _NAMED else ""
            notes.append(
                f"values of {names}{more} only grow, as a counter's do; --set rate=N is a limit of their "
                "growth per second, --set deviation= --set limit= turn off what is for others"
            )
        return "; ".join(filter(None, notes))

    return note


def _csv_note(path: Path, settings: Settings) -> str:
    """Return how to name the fields of a header without the expected ones, else as `_concluded`."""
    cells = [cells for _, cells in islice(_csv_lines(path, settings), _HEAD)]
    missing = [name for name in ("time", "value") if cells and settings[name] not in cells[0]]
    if not missing:
        return _concluded(_csv_lines)(path, settings)
    columns = {name: [one.get(name) for one in cells] for name in cells[0]}
    free = [name for name in columns if name not in (settings["time"], settings["sensor"])]
    numbers = [name for name in free if all(map(_is_number, columns[name]))]
    texts = [name for name in free if name not in numbers]
    named = dict.fromkeys(missing, "NAME")
    for name, some in (("time", texts), ("value", numbers)):
        if name in missing and some:
            named[name] = some.pop(0)
    if not settings["sensor"] and texts:
        named["sensor"] = texts[0]
    how = " ".join(f"--set {name}={visible_name(column)}" for name, column in named.items())
    absent = " and ".join(visible_name(settings[name]) for name in missing)
    return (
        f"there is no column {absent}, only {', '.join(map(visible_name, columns))}: choose some, as in {how}"
    )


def _is_number(text: Any) -> bool:
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return True


def _counters(cells: Iterable[Mapping[str, Any]], settings: Settings) -> list[str]:
    """Return the sensors whose values are integers that grow with nearly every reading, except for resets."""
    values: dict[str, list[float]] = {}
    for one in cells:
        try:
            value = float(one.get(settings["value"]))  # type: ignore[arg-type]
        except (TypeError, ValueError):
            continue
        values.setdefault(str(one.get(settings["sensor"]) or "sensor"), []).append(value)
    return sorted(sensor for sensor, some in values.items() if _is_counter(some))


def _is_counter(values: Sequence[float]) -> bool:
    """Whether values look like a counter's.

    >>> _is_counter([*range(0, 300, 10), *range(0, 50, 10)]), _is_counter([20.5 + i / 10 for i in range(40)])
    (True, False)
    """
    if len(values) < _ENOUGH or any(value < 0 or value % 1 for value in values):
        return False
    steps = [after - before for before, after in pairwise(values)]
    grown, fallen = sum(step > 0 for step in steps), sum(step < 0 for step in steps)
    return 2 * grown > len(steps) and _ENOUGH * fallen <= len(steps) and max(values) >= _LARGE


FORMATS = (
    AppFormat(
        "json",
        "JSON as devices send it over MQTT, one object a message",
        _json_rows,
        lambda path, head: head.lstrip()[:1] == b"{" and not SENSOR_THINGS.recognises(path, head),
        _json_messages,
        USUAL,
        _concluded(_json_lines),
    ),
    AppFormat(
        "csv",
        "CSV with a header, one record a message",
        _csv_rows,
        lambda path, head: suffix_of(path) == ".csv",
        _csv_messages,
        {**USUAL, "time": "timestamp", "sensor": ""},
        _csv_note,
    ),
    DEVICES,
    VEHICLES,
    SENSOR_THINGS,
    SPARKPLUG,
)
