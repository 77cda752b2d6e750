"""A fictional house full of sensors, for demos."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from datetime import UTC, datetime

from ..app import Example, Message

_EVERY_MS = 10_000
_HOURS = 9
_HOUR_MS = 3_600_000
_ROOMS = ("attic", "bath", "cellar", "hall", "kitchen", "lab", "office", "porch", "server room", "studio")
_HOT, _DEAD, _STUCK = "server room", "porch", "cellar"


def messages(seed: int, now_ms: int) -> Iterator[Message]:
    """Yield readings in °C of ten rooms, one every ten seconds, from nine hours before now on.

    The server room gets hot twelve seconds after now and cools down a minute later; the porch has been silent
    for three hours, and the cellar has reported the same value for eight.
    """
    dice = random.Random(seed)
    drift = dict.fromkeys(_ROOMS, 0.0)
    for tick in range(-_HOURS * _HOUR_MS // _EVERY_MS, 1 << 40):
        for number, room in enumerate(_ROOMS):
            at = now_ms + tick * _EVERY_MS + number * (_EVERY_MS // len(_ROOMS))
            since = (at - now_ms) / 1000
            drift[room] = 0.98 * drift[room] + dice.gauss(0, 0.05)
            if room == _DEAD and since > -3 * 3600:
                continue
            day = math.sin(2 * math.pi * (at % (24 * _HOUR_MS)) / (24 * _HOUR_MS))
            value = 20 + number % 4 + 2 * day + drift[room]
            if room == _HOT and 8 <= since < 75:
                value += 12
            if room == _STUCK and since > -8 * 3600:
                value = 14.2
            yield Message(_said(room, at, value), room.encode(), at)


def _said(room: str, at_ms: int, value: float) -> bytes:
    at = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")
    return json.dumps({"time": at, "sensor": room, "value": round(value, 2)}).encode()


EXAMPLE = Example(
    "json",
    messages,
    {"sensor": "sensor", "hysteresis": "2", "limit": "30"},
    (("limit", _HOT), ("dead sensor", _DEAD), ("stuck sensor", _STUCK)),
)
