"""Text payloads: InfluxDB's line protocol, and Home Assistant's history as CSV.

Source: https://docs.influxdata.com/influxdb/v2/reference/syntax/line-protocol/. Times are nanoseconds there;
other precisions are recognised by the size of the number, as everywhere in this app.
"""

from __future__ import annotations

import re
from typing import Any

from ....operators.formats.per_message import Misread
from ....operators.formats.reasons import Reason
from ...recordings.csv_records import cells_of
from .payloads import Payload
from .reading import Reading, measured

_KEY = r"(?:\\.|[^\s,=\\])+"
_STRING = r'"(?:\\.|[^"\\])*"'
_FIELD = rf"{_KEY}=(?:{_STRING}|[^\s,\"]+)"
_LINE = re.compile(
    rf"(?P<series>(?:\\.|[^\s,\\])+(?:,{_KEY}={_KEY})*) "
    rf"(?P<fields>{_FIELD}(?:,{_FIELD})*)(?: (?P<at>-?\d+))?\s*"
)
_FIELDS = re.compile(rf"({_KEY})=({_STRING}|[^\s,\"]+)")
_ESCAPED = re.compile(r"\\([,= \\\"])")
_BOOLEANS = {
    **dict.fromkeys(("t", "T", "true", "True", "TRUE"), True),
    **dict.fromkeys(("f", "F", "false", "False", "FALSE"), False),
}


def is_line_protocol(text: str) -> bool:
    """Whether a text's first line is line protocol.

    >>> is_line_protocol("weather,location=us temperature=82 1465839830100400200"), is_line_protocol("21.5")
    (True, False)
    """
    first = next((line for line in text.splitlines() if line.strip() and line[:1] != "#"), "")
    return _LINE.fullmatch(first) is not None


def line_protocol(payload: Payload) -> list[Reading]:
    """Read the fields of every line; a sensor is a series and one of its fields.

    Raises `Misread` for a broken line.
    """
    readings = []
    for line in payload.body.splitlines():
        if not line.strip() or line[0] == "#":
            continue
        if (match := _LINE.fullmatch(line)) is None:
            raise Misread(Reason("a broken line of line protocol", f"not line protocol: {line[:60]!r}"))
        at = None if match["at"] is None else payload.time(int(match["at"]))
        series = _ESCAPED.sub(r"\1", match["series"])
        for name, text in _FIELDS.findall(match["fields"]):
            name = _ESCAPED.sub(r"\1", name)
            if fields := measured(_value(text), name):
                readings.append(Reading(f"{series}/{name}", name, at, **fields))
    return readings


def _value(text: str) -> Any:
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if text[:1] == '"':
        return _ESCAPED.sub(r"\1", text[1:-1])
    return text[:-1] if re.fullmatch(r"-?\d+[iu]", text) else text


_HISTORY = ("entity_id", "state")


def is_history(text: str) -> bool:
    """Whether a text has the header of Home Assistant's CSV history.

    >>> is_history("entity_id,state,last_changed\\nsensor.a,1,2026-06-01T12:00:00.000Z")
    True
    """
    return tuple(cells_of(text.partition("\n")[0])[:2]) == _HISTORY


def history(payload: Payload) -> list[Reading]:
    """Read a record after the header. Raises `Misread` for a record without a time."""
    header, _, records = payload.body.partition("\n")
    names, readings = cells_of(header), []
    for record in records.splitlines():
        cells = dict(zip(names, cells_of(record)))
        entity = cells.get("entity_id", "")
        at = payload.time(cells.get("last_changed", cells.get("last_updated", "")))
        if fields := measured(cells.get("state"), entity):
            readings.append(Reading(entity, entity.partition(".")[0], at, **fields))
    return readings
