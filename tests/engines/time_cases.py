"""Readings over time, and what rules report of them: holds, silences, late readings, corrections, counters.

Each case has two and a half hours of one feed to itself, so one run of an engine evaluates all of them. A
reading is written ``AT=VALUE``: seconds since the case began, and ``-`` for no value. ``@ARRIVAL`` says when
it came if that was later, and ``KEY/`` of which key it is (a by default). Another key ticks beside them, at
first once a minute, then every ten.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from streamgauge import Stream, last
from streamgauge.operators.rules.alert import Alert
from streamgauge.rules import (
    Absence,
    Alerting,
    Change,
    Flatline,
    Rate,
    RollingSum,
    Rule,
    Threshold,
)

BEGIN, SLOT = 1_780_315_200, 9_000
SCHEMA = {"us": pl.Int64, "case": pl.String, "key": pl.String, "value": pl.Float64}


@dataclass(frozen=True)
class TimeCase:
    """A rule, readings, and ``STATE AT`` of each alert, with ``KEY/`` before the state and ``+LATE`` behind
    the time if it was detected late, by so many seconds.
    """

    rule: Rule
    readings: str
    wanted: str


def _hot(**options: Any) -> Threshold:
    return Threshold("hot", value="value", **{"above": 30, "clear": 28, **options})


_DEAD = Absence("dead", longer="10m")
_FAST = Rate("fast", value="value", above=5)
_JUMP = Change("jump", value="value", against="last", by="distance", above=10, every=True)
_SUM = RollingSum("sum", value="value", over="10m", at_least=100)

CASES = {
    "a hold between two readings of ten minutes": TimeCase(
        _hot(hold="5m"), "0=20 600=45 1200=45 1800=25", "fired 900, cleared 1800"
    ),
    "a hold between two readings of half an hour": TimeCase(
        _hot(hold="5m"), "0=20 1800=45 3600=20", "fired 2100, cleared 3600"
    ),
    "a hold over several readings": TimeCase(
        _hot(hold="5m"), "0=45 120=31 240=45 360=31 480=20", "fired 300, cleared 480"
    ),
    "a hold that a reading ends": TimeCase(_hot(hold="5m"), "0=45 240=20 300=45 420=20 600=20", ""),
    "a reading at the very end of a hold": TimeCase(_hot(hold="5m"), "0=45 300=20 900=20", ""),
    "a release between two readings": TimeCase(
        _hot(release="5m"), "0=45 600=20 1200=20", "fired 0, cleared 900"
    ),
    "a release that starts again": TimeCase(
        _hot(release="5m"), "0=45 60=20 240=45 300=20 900=20", "fired 0, cleared 600"
    ),
    "a reading between limit and clear": TimeCase(_hot(), "0=31 60=29 120=28 180=29", "fired 0, cleared 120"),
    "a cooldown": TimeCase(
        _hot(cooldown="10m"),
        "0=45 60=20 120=45 180=20 900=45 960=20",
        "fired 0, cleared 60, fired 900, cleared 960",
    ),
    "a cooldown that ends during an event": TimeCase(
        _hot(cooldown="10m"), "0=45 60=20 120=45 900=20", "fired 0, cleared 60, fired 600, cleared 900"
    ),
    "a stale event that is on again": TimeCase(
        _hot(stale_after="1h"),
        "0=45 7200=45 7260=20",
        "fired 0, unknown 3600, fired 7200, cleared 7260",
    ),
    "a stale event that is over": TimeCase(
        _hot(stale_after="1h"), "0=45 7200=20", "fired 0, unknown 3600, cleared 7200"
    ),
    "a clock 45 s behind": TimeCase(
        _hot(hold="1m"),
        "0=20@45 60=45@105 120=45@165 180=45@225 240=20@285 300=20@345",
        "fired 120, cleared 240",
    ),
    "a clock 30 s ahead": TimeCase(
        _hot(hold="1m"), "30=20@0 90=45@60 150=45@120 210=20@180", "fired 150, cleared 210"
    ),
    "a late reading above the limit": TimeCase(
        _hot(), "0=20 600=20 300=45@700", "fired 300+360, cleared 600+60"
    ),
    "a late reading that ends a hold": TimeCase(
        _hot(hold="5m"), "0=45 600=45 1200=20 120=20@700", "fired 300, withdrawn 300, fired 900, cleared 1200"
    ),
    "a late reading between others, too late": TimeCase(_hot(), "0=20 3600=20 60=45@3800 4200=20", ""),
    "a backlog out of order": TimeCase(
        _hot(hold="5m"),
        "0=20 1200=20@3600 600=45@3600 900=45@3601 300=20@3602 1500=20@3603 3700=20",
        "fired 900+2640, cleared 1200+2340",
    ),
    "a backlog during which a key seemed to be dead": TimeCase(
        # As its readings lagged, the key has 281 s more before it counts as dead again.
        _DEAD,
        "0=1 300=1@1500 600=1@1500 900=1@1500 1200=1@1500 1500=1",
        "fired 600, withdrawn 600, fired 2100+310",
    ),
    "a reading that is restated": TimeCase(
        _hot(), "0=20 60=45 120=20 60=21@300 600=20", "fired 60, cleared 120, withdrawn 60, withdrawn 120"
    ),
    "a reading that is cancelled": TimeCase(
        _hot(), "0=20 60=45 120=20 60=-@300 600=20", "fired 60, cleared 120, withdrawn 60, withdrawn 120"
    ),
    "a reading that is restated and still too high": TimeCase(
        _hot(), "0=20 60=45 120=20 60=44@300 600=20", "fired 60, cleared 120"
    ),
    "a counter that is reset": TimeCase(
        _FAST, "0=4000000 60=4000120 120=60 180=600 240=660", "fired 180, cleared 240"
    ),
    "a counter that wraps": TimeCase(
        _FAST, "0=4294967000 60=4294967200 120=200 180=800 240=860", "fired 180, cleared 240"
    ),
    "a counter with a late reading": TimeCase(
        _FAST, "0=100 120=500 180=600 60=100@300 600=700", "fired 120+120, cleared 180+60"
    ),
    "a jump that a late reading explains": TimeCase(
        _JUMP, "0=20 120=32 60=26@300 600=32", "fired 120, withdrawn 120"
    ),
    "a sum with a late reading": TimeCase(_SUM, "0=40 300=30 120=40@400 900=10", "fired 300+60, cleared 900"),
    "a stuck value with a late other one": TimeCase(
        Flatline("stuck", value="value", longer="10m"),
        "0=20 300=20 700=20 400=21@800 900=22",
        "fired 700, withdrawn 700",
    ),
    "two keys": TimeCase(
        _hot(hold="5m"),
        "0=45 b/30=45 b/60=20 600=20 b/600=45 b/1200=20",
        "fired 300, cleared 600, b/fired 900, b/cleared 1200",
    ),
}


def rows() -> list[dict[str, Any]]:
    """The readings of all cases, as they come."""
    coming = []
    for number, (name, case) in enumerate(CASES.items()):
        begin = BEGIN + number * SLOT
        for text in case.readings.split():
            reading, _, arrival = text.partition("@")
            at, _, value = reading.rpartition("=")
            key, _, second = at.rpartition("/")
            row = {"case": name, "key": key or "a", "value": None if value == "-" else float(value)}
            coming.append((begin + int(arrival or second), begin + int(second), row))
        tick = {"case": "", "key": "tick", "value": 0.0}
        coming += [(begin + at, begin + at, tick) for at in (*range(0, 4_200, 60), *range(4_200, SLOT, 600))]
    coming.sort(key=lambda one: one[0])
    return [{"us": at * 1_000_000, **row} for _, at, row in coming]


def stream_of(source: Stream) -> Stream:
    """Each reading by itself, in the order of its key."""
    each = source.with_columns(at=pl.from_epoch("us", time_unit="us")).group_by("case", "key", "at")
    return each.tumbling("10s", delay="10s", keep_late=True).agg(value=last("value"))


def alerting_to(outlet: Any) -> Alerting:
    """The rules of all cases, each for its own readings."""
    rules = [
        replace(case.rule, name=f"{case.rule.name} {number}", where={"case": name})
        for number, (name, case) in enumerate(CASES.items())
    ]
    return Alerting(rules, to=[outlet], at="at", lateness="30m")


def reported(alerts: Iterable[Alert]) -> dict[str, list[str]]:
    """What was reported of each case, as in `TimeCase.wanted`, in order of time."""
    names = list(CASES)
    by_case: dict[str, list[tuple[int, str]]] = {name: [] for name in names}
    for alert in alerts:
        name = str(alert.key[0])
        at = alert.at_us // 1_000_000 - BEGIN - names.index(name) * SLOT
        late = alert.details.get("detected_late")
        key = "" if alert.key[1] == "a" else f"{alert.key[1]}/"
        text = f"{key}{alert.state} {at}" + (f"+{late:g}" if late and alert.state != "withdrawn" else "")
        by_case[name].append((at, text))
    return {name: [text for _, text in sorted(some)] for name, some in by_case.items()}


def wanted() -> dict[str, list[str]]:
    """What must be reported of each case, in the same form."""
    result = {}
    for name, case in CASES.items():
        texts = [text for text in case.wanted.split(", ") if text]
        result[name] = [text for _, text in sorted((int(t.split()[1].split("+")[0]), t) for t in texts)]
    return result
