"""The rules of sensors as settings and rules files make them, and what they have done."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from streamgauge import StreamTester
from streamgauge.apps.app import Feed
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.page.served_app import ServedApp
from streamgauge.apps.registry import app_of
from streamgauge.rules import Alert, LimitRule, Threshold, Unusual

from ...operators.rules.plain import Kept

START = datetime(2026, 6, 1, 12, tzinfo=UTC)
HOT = [29.0, 31.0, 31.5, 31.2, 30.8, 31.4, 31.1, 31.3, 31.0, 29.5, 27.0, 27.0, 27.0]
"""A reading a minute: hot for eight minutes."""
FLAGSHIP = """
[[rule]]
name = "hot"
kind = "threshold"
value = "value"
above = 30
clear = 28
hold = "5m"
"""
COMMAND = """
[rule.command]
topic = "commands"
fired = { sensor = "$key", ac = "off" }
cleared = { sensor = "$key", ac = "on" }
"""


def run(
    values: Sequence[float], given: dict[str, str], rules: Path | None = None, repeat: bool = False
) -> tuple[list[Alert], list[dict[str, Any]]]:
    """The alerts of a kitchen's readings, and the commands that are sent to topics."""
    job = Job.of(app_of("iot"), "json", {"sensor": "sensor", **given}, rules)
    part, kept = next(part for part in job.parts if part.name == "readings"), Kept()
    alerting = job.alerting(part, [kept])
    assert alerting is not None
    messages = [
        json.dumps(
            {"time": (START + timedelta(minutes=at)).timestamp(), "sensor": "kitchen", "value": str(value)}
        ).encode()
        for at, value in enumerate(values)
    ]
    tester = StreamTester(job.streams(Feed("t", "localhost:1"))["readings"], sinks=[alerting], start=START)
    for message in messages:
        tester.feed_messages([message] * (2 if repeat else 1))
    tester.finish()
    sent = [json.loads(one.value or b"") for one in tester.sent() if one.topic == "commands"]
    return kept.alerts, sent


@pytest.mark.parametrize("repeat", [False, True], ids=["once", "delivered twice"])
def test_above_thirty_for_five_minutes_from_a_rules_file(repeat: bool, tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text(FLAGSHIP + COMMAND)
    alerts, commands = run(HOT, {}, tmp_path / "rules.toml", repeat)
    assert [(one.state, one.at_us / 6e7 - START.timestamp() / 60) for one in alerts] == [
        ("fired", 6),
        ("cleared", 10),
    ]
    assert [one["command"] for one in commands] == [
        {"sensor": "kitchen", "ac": "off"},
        {"sensor": "kitchen", "ac": "on"},
    ]


def test_commands_by_a_setting_are_those_of_the_limit_and_of_a_files_rules(tmp_path: Path) -> None:
    own = {"commands": "commands", "above": "30", "hysteresis": "2", "hold": "5m"}
    _, commands = run(HOT, own)
    assert [(one["command"], one["key"], one["rule"]) for one in commands] == [
        ({"ac": "on"}, "kitchen", "limit"),
        ({"ac": "off"}, "kitchen", "limit"),
    ]
    (tmp_path / "rules.toml").write_text(FLAGSHIP)
    _, commands = run(HOT, {"commands": "commands"}, tmp_path / "rules.toml")
    assert [one["command"] for one in commands] == [
        {"rule": "hot", "state": "fired"},
        {"rule": "hot", "state": "cleared"},
    ]
    (tmp_path / "rules.toml").write_text(FLAGSHIP + COMMAND.replace("commands", "others"))
    assert run(HOT, {"commands": "commands"}, tmp_path / "rules.toml")[1] == []


def rules_of(given: dict[str, str]) -> dict[str, LimitRule]:
    job = Job.of(app_of("iot"), "json", given)
    return {rule.name: rule for rule in job.rules["readings"] if isinstance(rule, LimitRule)}


def test_limits_by_settings() -> None:
    usual = rules_of({})["limit"]
    assert isinstance(usual, Threshold) and (usual.at_least, usual.above) == (30, None)
    rules = rules_of({"above": "25", "below": "3.5", "hysteresis": "1", "value_unit": "°C"})
    assert (rules["limit"].above, rules["limit"].at_least, rules["limit"].clear) == (25, None, 24)
    assert (rules["low"].below, rules["low"].clear, rules["low"].unit) == (3.5, 4.5, "°C")
    assert "limit" not in rules_of({"limit": ""})
    with pytest.raises(ValueError, match="--set above must be a number, got warm"):
        rules_of({"above": "warm"})


def test_a_value_is_said_with_its_unit() -> None:
    alerts, _ = run(HOT, {"value_unit": "°C", "above": "30", "hysteresis": "2"})
    assert [one.why for one in alerts] == [
        "value is 31 °C: above 30 °C",
        "value is 27 °C: back from above 30 °C (clear at 28 °C)",
    ]
    served = ServedApp.of_run(app_of("iot"), {"readings": "r", "days": "d"}, {"value_unit": "°C"})
    units = {panel["title"]: panel.get("unit") for panel in served.described()["panels"]}
    columns = {panel["title"]: panel.get("units") for panel in served.described()["panels"]}
    assert columns["Sensors"] == {"low": "°C", "spread.p50": "°C", "high": "°C"}
    assert (units["Readings"], units["Distribution of readings"]) == ("°C", "°C")
    without = ServedApp.of_run(app_of("iot"), {"readings": "r", "days": "d"})
    assert next(one["unit"] for one in without.described()["panels"] if one["title"] == "Readings") == ""


def test_unusual_takes_its_settings() -> None:
    rule = rules_of({"deviation": "2", "quiet": "1d", "zone": "Europe/Rome", "value_unit": "kW"})["unusual"]
    assert isinstance(rule, Unusual)
    assert (rule.above, rule.release, rule.zone, rule.unit) == (2, "1d", "Europe/Rome", "kW")
    assert "unusual" not in rules_of({"deviation": ""})
    with pytest.raises(ValueError, match="--set deviation must be a number from 1 on, got"):
        rules_of({"deviation": "0.5"})


def test_a_median_is_between_the_lowest_and_the_highest_value() -> None:
    (days,) = [part for part in app_of("iot").parts if part.name == "days"]
    quantile = {"q": 0.5, "value": 100.49, "lower": 99.5, "upper": 101.5, "exact": 100}
    rows = [
        {"low": 100, "high": 100, "spread": {"n": 3, "quantiles": [quantile]}},
        {"low": None, "high": None, "spread": None},
    ]
    assert days.derive(rows)[0]["spread"]["quantiles"] == [
        {"q": 0.5, "value": 100, "lower": 100, "upper": 100, "exact": 100}
    ]
