"""Unusual readings: labelled windows that are found and false alarms, of `Unusual` and of an EWMA, by series.

``python -m bench.unusual_readings FOLDER``; without one, `nab_dev` in the folder that STREAMGAUGE_RECORDINGS
names. It has CSV files with the columns timestamp and value, a series each, and windows.json with the
labelled windows by a series' name, [[begin, end], …], as the Numenta Anomaly Benchmark has them. A window
is found if an alarm begins in it; an alarm that begins in none is false. The EWMA (weight 0.125) fires on a
value that is more than ten of its standard deviations away. If an alarm begins less than half a day after
the one before has ended, both are one.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from streamgauge import Stream, last
from streamgauge.operators.testing import StreamTester
from streamgauge.rules import Alert, Alerting, Change, LimitRule, Unusual

from .measure import line

RULES: dict[str, LimitRule] = {
    "unusual": Unusual("unusual", value="value", above=1.2, release="12h"),
    "EWMA": Change(
        "EWMA", value="value", against="ewma", over=15, by="deviation", above=10, release="12h", warm=300
    ),
}
ROWS = Stream.from_schema({"timestamp": pl.Datetime("us"), "value": pl.Float64}, time="timestamp")
READINGS = ROWS.group_by("timestamp").tumbling("1h", delay="2h", max_ahead=None).agg(value=last("value"))


class Score(NamedTuple):
    """Windows found, of how many, and alarms in none of them."""

    hits: int
    windows: int
    false: int

    def __str__(self) -> str:
        return f"{self.hits} of {self.windows}, {self.false} false"


class Collected:
    """An outlet that keeps its alerts."""

    def __init__(self) -> None:
        self.alerts: list[Alert] = []

    def begin(self) -> None:
        """Nothing to prepare."""

    def write(self, alert: Alert) -> None:
        """Keep an alert."""
        self.alerts.append(alert)


def alarms(readings: pl.DataFrame, rule: LimitRule) -> list[datetime]:
    """When a rule fires."""
    outlet = Collected()
    tester = StreamTester(READINGS, sinks=[Alerting([rule], to=[outlet], at="timestamp")])
    tester.feed(readings)
    tester.finish()
    start = datetime(1970, 1, 1, tzinfo=UTC)
    return [start + timedelta(microseconds=alert.at_us) for alert in outlet.alerts if alert.state == "fired"]


def score(times: Sequence[datetime], windows: Sequence[tuple[datetime, datetime]]) -> Score:
    """How alarms lie to labelled windows."""
    hits = sum(any(begin <= at <= end for at in times) for begin, end in windows)
    false = sum(not any(begin <= at <= end for begin, end in windows) for at in times)
    return Score(hits, len(windows), false)


def main(folder: Path | None = None) -> list[dict[str, Any]]:
    """Score each series of a folder."""
    folder = folder or Path(os.environ.get("STREAMGAUGE_RECORDINGS", ".")) / "nab_dev"
    if not (folder / "windows.json").exists():
        return [line(f"no {folder}/windows.json: name a folder by STREAMGAUGE_RECORDINGS", "", "", "")]
    lines, totals = [], dict.fromkeys(RULES, Score(0, 0, 0))
    for name, windows in json.loads((folder / "windows.json").read_text()).items():
        readings = pl.read_csv(folder / f"{name}.csv").with_columns(
            pl.col("timestamp").str.to_datetime(time_unit="us"), pl.col("value").cast(pl.Float64)
        )
        spans = [
            (
                datetime.fromisoformat(begin).replace(tzinfo=UTC),
                datetime.fromisoformat(end).replace(tzinfo=UTC),
            )
            for begin, end in windows
        ]
        scores = {rule: score(alarms(readings, RULES[rule]), spans) for rule in RULES}
        totals = {
            rule: Score(*(before + now for before, now in zip(totals[rule], scores[rule]))) for rule in RULES
        }
        lines.append(line(name, *map(str, scores.values()), ""))
    return [*lines, line("all series", *map(str, totals.values()), "")]


if __name__ == "__main__":
    for one in main(Path(sys.argv[1]) if len(sys.argv) > 1 else None):
        print(f"{one['claim']:<32} unusual: {one['ours']:<28} EWMA: {one['peer']}")
