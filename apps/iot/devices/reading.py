"""Readings of devices, and the words and units in which devices write values."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ....operators.formats.per_message import Misread
from ....operators.formats.reasons import Reason


class Reading(NamedTuple):
    """What one sensor measured: a number in `value`, or a word in `state`, such as ``on``.

    `sensor` is the device and what it measures, `measure` only the latter. `at` is in microseconds since
    1970, None if the payload has no time.
    """

    sensor: str
    measure: str
    at: float | None
    value: float | None = None
    state: str | None = None
    unit: str | None = None
    latitude: float | None = None
    longitude: float | None = None


NOTHING = {"", "unavailable", "unknown", "none", "null", "nan", "undefined"}
"""Placeholders for a missing reading."""

_QUANTITY = re.compile(r"([-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)\s*([°%µA-Za-z][^\s\d]{0,7})?")
_WORD = re.compile(r"[^\W\d_][^\W\d]*(?:[ /-][^\W\d]+){0,4}")
_COMMA = re.compile(r"[-+]?\d+,\d+\s*\D{0,8}")
_LONGEST = 40
_CELSIUS = {"°C", "C", "Cel", "℃", "celsius", "degC"}
_FAHRENHEIT = {"°F", "F", "℉", "fahrenheit", "degF"}
_TEMPERATURES = {
    **dict.fromkeys(_CELSIUS, "°C"),
    **dict.fromkeys(_FAHRENHEIT, "°F"),
    **dict.fromkeys(("K", "kelvin"), "K"),
}
_PLACES = {
    **dict.fromkeys(("latitude", "lat"), "latitude"),
    **dict.fromkeys(("longitude", "lon", "lng", "long"), "longitude"),
}


def measured(value: Any, what: str) -> dict[str, Any] | None:
    """Convert a value to the fields of a `Reading`: a number, a state, or None for anything else.

    Raises `Misread` for a number with a decimal comma or one that isn't finite.

    >>> measured("21.5 °C", "t"), measured("ON", "s"), measured(True, "b"), measured("0T01:10:13", "up")
    ({'value': 21.5, 'unit': '°C'}, {'state': 'on'}, {'state': 'true'}, None)
    """
    if isinstance(value, bool):
        return {"state": "true" if value else "false"}
    if isinstance(value, int | float):
        if not _is_finite(value):
            raise Misread(Reason("a value is not finite", f"{what} is {value}, not a finite number"))
        return {"value": float(value)}
    if not isinstance(value, str) or (text := value.strip()).lower() in NOTHING:
        return None
    if (match := _QUANTITY.fullmatch(text)) and _is_finite(float(match[1])):
        return {"value": float(match[1]), **({"unit": match[2]} if match[2] else {})}
    if _COMMA.fullmatch(text):
        raise Misread(
            Reason("a value has a decimal comma", f"{what} is {text[:_LONGEST]!r}: a decimal comma")
        )
    return {"state": text.lower()} if len(text) <= _LONGEST and _WORD.fullmatch(text) else None


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond the range of doubles
        return False


def flat(members: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each value of an object with its path, including values in nested objects and lists.

    >>> list(flat({"a": 1, "b": {"c": [2, {"d": 3}]}}))
    [('a', 1), ('b/c/0', 2), ('b/c/1/d', 3)]
    """
    for name, value in members.items():
        path = f"{prefix}{name}"
        if isinstance(value, list):
            value = {str(number): item for number, item in enumerate(value)}
        if isinstance(value, Mapping):
            yield from flat(value, f"{path}/")
        else:
            yield path, value


def readings_of(
    device: str,
    members: Mapping[str, Any],
    at: float | None,
    units: Mapping[str, str] | None = None,
    without: frozenset[str] = frozenset(),
) -> list[Reading]:
    """Return the readings in an object, with the device's place if the object has it.

    `units` maps the last step of a member's path to its unit. Members named in `without` are left out.
    """
    readings, place = [], {}
    for path, value in flat({name: value for name, value in members.items() if name not in without}):
        last = path.rpartition("/")[2]
        fields = measured(value, path)
        if fields is None:
            continue
        if (coordinate := _PLACES.get(last.lower())) and "value" in fields:
            place[coordinate] = fields["value"]
            continue
        unit = fields.pop("unit", None) or (units or {}).get(last)
        readings.append(Reading(f"{device}/{path}" if device else path, path, at, unit=unit, **fields))
    if len(place) == 2:
        readings.append(Reading(device or "sensor", "place", at, **place))
    return readings


def in_unit(value: float, unit: str | None, wanted: str) -> tuple[float, str | None]:
    """Convert a temperature to another unit; return other values unchanged.

    >>> in_unit(212.0, "F", "°C"), in_unit(50.0, "%", "°C")
    ((100.0, '°C'), (50.0, '%'))
    """
    known, target = _TEMPERATURES.get(unit or ""), _TEMPERATURES.get(wanted)
    if known is None or target is None or known == target:
        return value, target or unit if known else unit
    celsius = {"°C": value, "°F": (value - 32) / 1.8, "K": value - 273.15}[known]
    return {"°C": celsius, "°F": celsius * 1.8 + 32, "K": celsius + 273.15}[target], target
