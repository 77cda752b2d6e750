"""Rules once more in plain Python, over whole lists, and what tests of rules feed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from streamgauge import Stream, count, last
from streamgauge import sum as sum_
from streamgauge.rules import Alert

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
MINUTE = 60_000_000

ROWS = Stream.from_schema(
    {"at": pl.Datetime("us"), "key": pl.String, "value": pl.Float64, "bad": pl.Int64}, time="at"
)
WINDOWS = ROWS.group_by("key").tumbling("1m").agg(n=count(), value=last("value"), bad=sum_("bad"))
READINGS = ROWS.group_by("key", "at").tumbling("1m").agg(value=last("value"))


def row(minute: float, key: str = "a", value: float | None = None, bad: int = 0) -> dict[str, Any]:
    at = (NOON + timedelta(minutes=minute)).replace(tzinfo=None)
    return {"at": at, "key": key, "value": value, "bad": bad}


def minute_of(alert: Alert) -> float:
    return (alert.at_us / 1e6 - NOON.timestamp()) / 60


def summaries(alerts: Iterable[Alert]) -> list[tuple[str, str, str, float]]:
    return [(a.rule, a.state, str(a.plain_key), round(minute_of(a), 6)) for a in alerts]


class Kept:
    """An outlet that keeps its alerts, in order."""

    def __init__(self) -> None:
        self.alerts: list[Alert] = []

    def begin(self) -> None:
        pass

    def write(self, alert: Alert) -> None:
        self.alerts.append(alert)


def hysteresis(
    readings: Sequence[tuple[float, float]],
    above: float,
    clear: float,
    hold: float = 0,
    release: float = 0,
    cooldown: float = 0,
    end: float | None = None,
) -> list[tuple[str, float]]:
    """What a threshold reports of (time, value): a value lasts until the next one, the last until `end`."""
    collected: list[tuple[str, float]] = []
    ends = [at for at, _ in readings[1:]] + [readings[-1][0] if end is None else end]
    for number, ((now, value), until) in enumerate(zip(readings, ends)):
        on = bool(collected) and collected[-1][0] == "fired"
        begun = collected[-1][1] if collected else float("-inf")
        before = [reading for reading in readings[: number + 1] if reading[0] >= begun]
        if not on and value > above:
            fired = [at for state, at in collected if state == "fired"]
            due = max(now, _run(before, lambda value: value > above) + hold, *(at + cooldown for at in fired))
        elif on and value <= clear:
            due = max(now, _run(before, lambda value: value <= clear) + release)
        else:
            continue
        # A reading at the very time at which a hold ends is taken into account.
        if due < until or due == now:
            collected.append(("cleared" if on else "fired", due))
    return collected


def _run(readings: Sequence[tuple[float, float]], holds: Any) -> float:
    """When the last stretch began in which it held throughout."""
    begin = readings[-1][0]
    for at, value in reversed(readings):
        if not holds(value):
            break
        begin = at
    return begin
