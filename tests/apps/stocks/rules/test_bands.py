"""Limit up, limit down: tiers, doubling, reference prices, limit states and pauses."""

from __future__ import annotations

from datetime import date

import pytest

from streamgauge.apps.stocks.rules.bands import PriceBand, bands

from ....cases import each
from .made import alerts_of, bar, day, trade

NEW_YORK = {"zone": "America/New_York", "hours": "09:30-16:00"}
NOON, LATE, EARLY = 12 * 3600.0, 15 * 3600 + 36 * 60.0, 9 * 3600 + 31 * 60.0
NOW, THEN = (date(year, 6, 1).toordinal() - date(1970, 1, 1).toordinal() for year in (2026, 2019))


@each(
    ("close", "tier", "at", "day_", "lower", "upper"),
    [
        (50.0, 1, NOON, NOW, 95, 105),
        (50.0, 2, NOON, NOW, 90, 110),
        (3.0, 1, NOON, NOW, 80, 120),
        (3.0, 2, NOON, NOW, 80, 120),
        (3.01, 2, NOON, NOW, 90, 110),
        (50.0, 1, LATE, NOW, 90, 110),
        (50.0, 2, LATE, NOW, 90, 110),
        (2.0, 2, LATE, NOW, 60, 140),
        (50.0, 1, EARLY, NOW, 95, 105),
        (50.0, 1, EARLY, THEN, 90, 110),
        (50.0, 2, LATE, THEN, 80, 120),
        (0.75, 1, NOON, NOW, 80, 120),
        (3.0, 2, LATE, NOW, 60, 140),
        (3.01, 2, LATE, NOW, 90, 110),
        (50.0, 1, LATE - 61, NOW, 95, 105),
        (50.0, 1, LATE - 60, NOW, 90, 110),
        (50.0, 2, EARLY + 839, THEN, 80, 120),
        (50.0, 2, EARLY + 840, THEN, 90, 110),
    ],
)
def test_the_plan_s_table(close, tier, at, day_, lower, upper) -> None:
    assert bands(100.0, close, tier, day_, at)[:2] == (lower, upper)


@pytest.mark.parametrize(
    ("reference", "at", "wanted"),
    [
        # The lesser of $0.15 and 75 %: 75 % of $0.20 is $0.15.
        (0.5, NOON, (0.35, 0.65)),
        (0.2, NOON, (0.05, 0.35)),
        (0.12, NOON, (0.03, 0.21)),
        (0.1, NOON, (0.02, 0.18)),
        # Doubled: $0.30 or 150 %, and no price is below nothing.
        (0.5, LATE, (0.2, 0.8)),
        (0.1, LATE, (0.0, 0.25)),
    ],
)
def test_pennies(reference: float, at: float, wanted: tuple) -> None:
    result = bands(reference, 0.7499, 2, NOW, at)
    assert result[:2] == pytest.approx(wanted, abs=0.006)


@pytest.mark.parametrize(
    ("opens", "closing"),
    [
        ("2026-03-06T14:30:00", "2026-03-06T20:34:59"),  # in winter
        ("2026-03-09T13:30:00", "2026-03-09T19:34:59"),  # the Monday after clocks went forward
        ("2026-10-30T13:30:00", "2026-10-30T19:34:59"),
        ("2026-11-02T14:30:00", "2026-11-02T20:34:59"),  # the Monday after they went back
    ],
)
def test_the_hours_are_new_york_s_when_clocks_change(opens: str, closing: str) -> None:
    rule = PriceBand("band", at_least=100, tier1=("*",), **NEW_YORK)
    first, last = trade(opens, 100.0), trade(closing, 94.0)
    # 6 % is past the band of 5 % until 15:34:59, and within that of 10 % from 15:35:00 on.
    assert [one.at_us for one in alerts_of(rule, [first, last]) if one.state == "fired"] == [last.at_us]
    assert not alerts_of(rule, [first, trade(closing.replace("34:59", "35:00"), 94.0)])
    before = trade(opens.replace("30:00", "29:59"), 100.0)
    assert not alerts_of(rule, [before, first]) and not alerts_of(
        rule, [before, trade(closing[:11] + "22:00:00", 50.0)]
    )


@pytest.mark.parametrize(
    ("trades", "past"),
    [
        # (100 + 101.9) / 2 = 100.95 is less than 1 % away: the band stays at 105.
        ([("14:00:00", 100.0), ("14:01:00", 101.9), ("14:01:10", 105.0)], True),
        # (100 + 102.1) / 2 = 101.05 is more: the band is 106.1.
        ([("14:00:00", 100.0), ("14:01:00", 102.1), ("14:01:10", 105.0)], False),
        ([("14:00:00", 100.0), ("14:01:00", 102.1), ("14:01:10", 106.1)], True),
        # 100 stands for 30 s; then the mean is (100 + 2 · 104) / 3 = 102.67, and the band 107.8.
        ([("14:00:00", 100.0), ("14:00:10", 104.0), ("14:00:20", 104.0), ("14:00:29", 105.0)], True),
        ([("14:00:00", 100.0), ("14:00:10", 104.0), ("14:00:20", 104.0), ("14:00:30", 105.0)], False),
        # After five minutes the first trade is no part of the mean: it is 102, and the band 107.1.
        ([("14:00:00", 100.0), ("14:04:50", 102.0), ("14:05:00", 106.2)], True),
        ([("14:00:00", 100.0), ("14:04:50", 102.0), ("14:05:01", 106.2)], False),
    ],
)
def test_the_reference_by_hand(trades: list[tuple[str, float]], past: bool) -> None:
    rows = [trade(f"2026-06-02T{at}", price) for at, price in trades]
    result = alerts_of(PriceBand("band", at_least=100, tier1=("*",), **NEW_YORK), rows)
    assert [one.at_us for one in result] == ([rows[-1].at_us] if past else [])


def test_a_trade_at_the_band_fires_and_is_cleared() -> None:
    rows = [
        trade("2026-06-01T19:00:00", 98.0),
        trade("2026-06-02T14:00:00", 100.0),
        trade("2026-06-02T14:00:10", 95.01),
        trade("2026-06-02T14:00:11", 95.0),
        trade("2026-06-02T14:00:20", 97.0),
    ]
    result = alerts_of(PriceBand("band", at_least=100, tier1=("A",), **NEW_YORK), rows, 2)
    assert [(one.state, one.at_us) for one in result] == [
        ("fired", rows[3].at_us),
        ("cleared", rows[4].at_us),
    ]
    assert (
        result[0].why == "95 is 100 % of the way to the lower band 95, 5 % around 100 (Tier 1): at least 100"
    )
    assert not alerts_of(PriceBand("band", at_least=100, **NEW_YORK), rows)  # Tier 2


def test_the_reference_follows_the_mean_of_five_minutes() -> None:
    start = [trade(f"2026-06-02T14:00:{second:02d}", 100.0) for second in range(0, 40, 10)]
    moved = [trade(f"2026-06-02T14:01:{second:02d}", 104.0) for second in range(0, 60, 2)]
    # The reference is about 103.2 by now: 108 lies within 5 % of it, though not of 100.
    last = [trade("2026-06-02T14:02:10", 108.0)]
    assert not alerts_of(PriceBand("band", at_least=100, tier1=("*",), **NEW_YORK), [*start, *moved, *last])
    at_once = [*start, trade("2026-06-02T14:01:00", 105.0)]
    assert len(alerts_of(PriceBand("band", at_least=100, tier1=("*",), **NEW_YORK), at_once)) == 1


def test_fifteen_seconds_at_the_band_are_a_pause_and_reopening_sets_the_reference() -> None:
    rows = [trade("2026-06-02T14:00:00", 100.0)]
    rows += [trade(f"2026-06-02T14:01:{second:02d}", 89.9) for second in range(0, 20, 5)]
    rows += [trade("2026-06-02T14:06:30", 85.0), trade("2026-06-02T14:06:40", 85.0)]
    pause = alerts_of(PriceBand("pause", at_least=100, hold="15s", **NEW_YORK), rows)
    assert [(one.state, one.at_us) for one in pause] == [("fired", rows[4].at_us), ("cleared", rows[5].at_us)]
    short = [rows[0], *rows[1:3], trade("2026-06-02T14:01:10", 95.0), *rows[4:5]]
    assert not alerts_of(PriceBand("pause", at_least=100, hold="15s", **NEW_YORK), short)


def test_days_and_other_hours_have_no_bands_and_minutes_have() -> None:
    rule = PriceBand("band", at_least=100, **NEW_YORK)
    assert not alerts_of(rule, [day("2026-06-01", 100.0), day("2026-06-02", 50.0)])
    assert not alerts_of(rule, [trade("2026-06-01T12:00:00", 100.0), trade("2026-06-01T12:01:00", 50.0)])
    minutes = [
        bar("2026-06-01T14:00:00", [100, 101, 99, 100], span=60),
        bar("2026-06-01T14:01:00", [100, 100, 89, 99], span=60),
    ]
    assert [one.plain_key for one in alerts_of(rule, minutes)] == ["A"]
