"""What people ask of logs and of the metrics beside them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import polars as pl

from ...operators.definition.aggregates import count, first, mean, top_k
from ...operators.definition.aggregates import sum as sum_
from ...operators.definition.stream import Stream
from .scenario import Row, at, in_order, scenario

LINES = {
    "at": pl.Datetime("us"),
    "host": pl.String,
    "level": pl.String,
    "issue": pl.String,
    "message": pl.String,
}


def _lines(seed: int, begin: float, end: float, a_minute: float, **same: object) -> Iterator[Row]:
    dice = random.Random(seed)
    for _ in range(round((end - begin) * a_minute)):
        moment = at(dice.uniform(begin, end))
        yield {"at": moment, "level": "info", "message": "request served", **same}


def _burst() -> Iterator[Row]:
    usual = [_lines(seed, 0, 120, 5, host=f"web{seed}") for seed in range(3)]
    return in_order(*usual, _lines(7, 90, 93, 60, host="web2", message="retrying"))


@scenario(
    "logs",
    LINES,
    _burst,
    rules="""
        [[rule]]
        name = "burst"
        kind = "change"
        value = "lines"
        against = "mean"
        over = 60
        by = "poisson"
        above = 6
        warm = 30
        absent = 0
        release = "5m"
    """,
    alerts=[("fired", "web2"), ("cleared", "web2")],
)
def burst_of_messages(lines: Stream) -> Stream:
    """A burst of messages."""
    return lines.group_by("host").tumbling("1m").agg(lines=count())


def _one_error() -> Iterator[Row]:
    failed = {"level": "critical", "message": "disk of the ledger is read-only"}
    return in_order(_lines(1, 0, 60, 5, host="db1"), _lines(2, 33, 34, 1, host="db1", **failed))


@scenario(
    "logs",
    LINES,
    _one_error,
    rules="""
        [[rule]]
        name = "critical"
        kind = "threshold"
        value = "lines"
        at_least = 1
        every = true
        cooldown = "10m"
        report = ["example"]
    """,
    alerts=[("fired", "db1")],
)
def critical_error(lines: Stream) -> Stream:
    """One critical error."""
    critical = lines.filter(pl.col("level") == "critical")
    return critical.group_by("host").tumbling("10s").agg(lines=count(), example=first("message"))


def _a_day() -> Iterator[Row]:
    issues = {"disk full": 40, "payment refused": 25, "certificate expired": 12, "slow query": 3}
    feeds = [
        _lines(seed, 0, 900, times / 900, host="api", level="critical", issue=issue)
        for seed, (issue, times) in enumerate(issues.items())
    ]
    return in_order(_lines(9, 0, 900, 0.5, host="api", issue="cache miss"), *feeds)


def _top(windows: pl.DataFrame) -> Any:
    """The items of the day's list, the most frequent first."""
    (issues,) = windows["issues"]
    return [(one["item"], one["estimate"]) for one in issues]


@scenario(
    "logs",
    LINES,
    _a_day,
    answer=_top,
    answers=[("disk full", 40), ("payment refused", 25), ("certificate expired", 12)],
)
def critical_issues(lines: Stream) -> Stream:
    """The most critical issues today."""
    critical = lines.filter(pl.col("level") == "critical")
    return critical.tumbling("1d").agg(lines=count(), issues=top_k("issue", k=3))


METRICS = {"at": pl.Datetime("us"), "version": pl.String, "host": pl.String, "mb": pl.Float64}


def _memory() -> Iterator[Row]:
    dice = random.Random(4)
    for minute in range(360):
        for host in range(3):
            yield {"at": at(minute), "version": "2.3", "host": f"a{host}", "mb": 400 + dice.gauss(0, 25)}
            if minute >= 120:
                grown = 400 + (minute - 120) * 0.8 + dice.gauss(0, 25)
                yield {"at": at(minute), "version": "2.4", "host": f"b{host}", "mb": grown}


@scenario(
    "logs",
    METRICS,
    _memory,
    rules="""
        [[rule]]
        name = "leak"
        kind = "slope"
        value = "mb"
        above = 20
        over = "2h"
        rate = "1h"
        least = 45
        surely = true
        unit = "MB"
    """,
    alerts=[("fired", "2.4")],
)
def memory_leak(metrics: Stream) -> Stream:
    """Memory leaks in a new release."""
    return metrics.group_by("version").tumbling("1m").agg(mb=mean("mb"))


CALLS = {"at": pl.Datetime("us"), "feature": pl.String, "failed": pl.Int64}


def _calls() -> Iterator[Row]:
    dice = random.Random(6)
    for minute in range(90):
        for feature in ("search", "new checkout"):
            broken = 0.3 if feature == "new checkout" and minute >= 40 else 0.01
            for second in range(30):
                failed = int(dice.random() < broken)
                yield {"at": at(minute + second / 31), "feature": feature, "failed": failed}


@scenario(
    "logs",
    CALLS,
    lambda: in_order(_calls()),
    rules="""
        [[rule]]
        name = "unsafe"
        kind = "ratio"
        value = "failures"
        to = "calls"
        above = 0.1
        least = 20
        hold = "3m"

        [rule.command]
        topic = "flags"
        fired = { feature = "$key", enabled = false }
    """,
    alerts=[("fired", "new checkout")],
    commands=[("flags", {"feature": "new checkout", "enabled": False})],
)
def unsafe_feature(calls: Stream) -> Stream:
    """An unsafe feature is switched off."""
    return calls.group_by("feature").tumbling("1m").agg(calls=count(), failures=sum_("failed"))
