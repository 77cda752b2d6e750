"""What a reading began lasts until another one says otherwise, by its key's times or by the clock."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import polars as pl
import pytest

from streamgauge import Stream, StreamTester, last
from streamgauge.rules import Alerting, Change, Command, Flatline, Ratio, Threshold

from .plain import Kept, hysteresis, minute_of

START = datetime(2026, 6, 1, 12)
ROWS = Stream.from_schema(
    {"at": pl.Datetime("us"), "pump": pl.String, "bar": pl.Float64, "most": pl.Float64}, time="at"
)
BY_TIME = ROWS.group_by("pump", "at").tumbling("10s", delay="10s", max_ahead=None)
EACH = BY_TIME.agg(bar=last("bar"), most=last("most"))
HIGH = Threshold("high", value="bar", above=6, clear=5, hold="5m", unit="bar")


class Pumps(StreamTester):
    """Pumps that report seldom; times are minutes."""

    def __init__(self, rule: Any) -> None:
        self.kept = Kept()
        super().__init__(EACH, start=START, sinks=[Alerting([rule], to=[self.kept], at="at")])

    def report(self, minute: float, bar: float, pump: str = "a") -> None:
        self.feed([{"at": START + timedelta(minutes=minute), "pump": pump, "bar": bar, "most": 10.0}])

    def wait(self, minutes: float) -> None:
        for _ in range(int(minutes * 6)):
            self.advance(10)

    @property
    def said(self) -> list[tuple[str, float]]:
        return [(alert.state, round(minute_of(alert), 6)) for alert in self.kept.alerts]


SLOW = [(0, 4.0), (15, 7.0), (30, 7.2), (45, 6.8), (60, 4.4), (75, 4.2), (90, 7.0), (105, 4.9)]
RULES = [
    HIGH,
    Threshold("released", value="bar", above=6, clear=5, release="20m"),
    Threshold("apart", value="bar", above=6, clear=5, hold="1m", release="2m", cooldown="80m"),
    Threshold("reported", value="bar", above=6, clear=5, hold="5m", report=["most"]),
    Ratio("share", value="bar", to="most", above=0.6, clear=0.5, hold="5m"),
]


@pytest.mark.slow
def test_a_hold_ends_by_the_clock_or_with_the_next_reading_at_the_same_time() -> None:
    wrong = []
    for rule in RULES:
        recorded, live = Pumps(rule), Pumps(rule)
        for minute, bar in SLOW:
            recorded.report(minute, bar)
            live.report(minute, bar)
            live.wait(15)
        recorded.report(150, 4.0, "b")  # time continues with another pump
        live.report(150, 4.0, "b")
        holds = rule.holds.hold_us, rule.holds.release_us, rule.holds.cooldown_us
        wanted = hysteresis(SLOW, 6, 5, *(length / 60e6 for length in holds), end=149)
        for name, pumps in (("recorded", recorded), ("live", live)):
            if pumps.said != wanted or len(wanted) < 3:
                wrong.append((rule.name, name, pumps.said, wanted))
    assert not wrong


def test_the_command_of_a_hold_goes_out_at_its_end_with_the_last_readings_value() -> None:
    command = Command(topic="valves", fired={"valve": "open", "at": "$value"}, cleared={"valve": "shut"})
    pumps = Pumps(Threshold("high", value="bar", above=6, hold="5m", command=command))
    pumps.report(0, 7.5)
    pumps.wait(4)
    assert not pumps.sent()
    pumps.wait(2)
    (alert,) = pumps.kept.alerts
    assert (alert.state, minute_of(alert), alert.value) == ("fired", 5, 7.5)
    assert alert.at_us - alert.since_us == 300_000_000
    assert alert.why == "bar is 7.5: above 6 for 5m"
    (sent,) = pumps.sent()
    assert b'"valve":"open"' in sent.value


def test_a_late_reading_that_says_otherwise_withdraws_what_the_clock_said() -> None:
    pumps = Pumps(HIGH)
    pumps.report(0, 7.0)
    pumps.wait(6)
    assert pumps.said == [("fired", 5)]
    pumps.report(3, 4.0)  # was on its way meanwhile
    pumps.report(8, 4.0)
    assert pumps.said == [("fired", 5), ("withdrawn", 5)]
    assert [alert.lasts for alert in pumps.kept.alerts] == [True, False]


def test_an_event_without_a_reading_for_too_long_is_unknown_until_there_is_one() -> None:
    rule = Threshold("high", value="bar", above=6, clear=5, hold="5m", stale_after="2h")
    for later, wanted in (
        (7.0, [("fired", 5), ("unknown", 120), ("fired", 200)]),
        (4.0, [("fired", 5), ("unknown", 120), ("cleared", 200)]),
        (5.5, [("fired", 5), ("unknown", 120)]),
    ):
        live, recorded = Pumps(rule), Pumps(rule)
        for pumps in (live, recorded):
            pumps.report(0, 7.0)
        live.wait(125)
        assert live.said == wanted[:2]
        for pumps in (live, recorded):
            pumps.restart()
            pumps.report(200, later)
            pumps.report(201, 5.5)
            assert pumps.said == wanted, later
        assert live.kept.alerts[1].why == "no reading for 2h: whether it lasts is not known"
        assert live.kept.alerts[1].lasts is None


def test_memory_of_holds_survives_restarts_between_any_two_readings() -> None:
    for rule in RULES:
        plain, restarted = Pumps(rule), Pumps(rule)
        for minute, bar in SLOW:
            for pumps in (plain, restarted):
                pumps.report(minute, bar)
                pumps.wait(3)
            restarted.restart()
        assert restarted.kept.alerts == plain.kept.alerts
        assert plain.kept.alerts


def test_what_moves_by_itself_holds_too() -> None:
    jump = Change("jump", value="bar", against="last", by="distance", above=2, hold="4m")
    same = Flatline("same", value="bar", longer="10m", cooldown="1h")
    for rule, wanted in ((jump, [("fired", 19), ("cleared", 30)]), (same, [])):
        pumps = Pumps(rule)
        for minute, bar in SLOW[:4]:
            pumps.report(minute, bar)
        assert pumps.said == wanted, rule.name


def test_a_wrong_stale_after_is_refused_with_what_to_write() -> None:
    for fields, message in (
        ({"hold": "3h", "stale_after": "2h"}, "stale_after must be at least as long as hold and release, 3h"),
        ({"stale_after": "0s"}, "stale_after must be at least as long as hold and release, and above 0s"),
        ({"every": True, "stale_after": "2h"}, "every=True reports each row"),
    ):
        with pytest.raises(ValueError, match=message):
            Threshold("high", value="bar", above=6, **fields)
    windows = ROWS.group_by("pump").tumbling("1m").agg(bar=last("bar"))
    stale = Threshold("high", value="bar", above=6, stale_after="2h")
    with pytest.raises(ValueError, match="stale_after is for readings"):
        StreamTester(windows, sinks=[Alerting([stale])])
