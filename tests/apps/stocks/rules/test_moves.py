"""Moves against the session before, within a time, as scores; sessions and splits: as over the whole list."""

from __future__ import annotations

import itertools
import math
import random
from datetime import UTC, datetime, timedelta

import pytest

from streamgauge.apps.stocks.rules.bands import PriceBand
from streamgauge.apps.stocks.rules.moves import ReturnScore, RollingMove, SessionMove, SplitSeen, UnitChange
from streamgauge.apps.stocks.rules.sessions import Hours, local
from streamgauge.apps.stocks.rules.splits import Opening, split

from ....cases import each
from .made import alerts_of, bar, trade

NEW_YORK = {"zone": "America/New_York", "hours": "09:30-16:00"}


def days(seed: int, count: int = 400) -> list:
    dice, price, collected = random.Random(seed), 100.0, []
    for number in range(count):
        close = price * math.exp(dice.gauss(0, 0.06))
        opened = price * math.exp(dice.gauss(0, 0.01))
        at = (datetime(2020, 1, 1, tzinfo=UTC) + timedelta(days=number)).isoformat()
        low, high = min(opened, close) * 0.98, max(opened, close) * 1.02
        collected.append(bar(at, [opened, high, low, close], arrived=number))
        price = close
    return collected


@pytest.mark.parametrize("at_a_time", [1, 7, 400])
@pytest.mark.parametrize("value", ["price", "low"])
def test_every_day_past_the_limit_is_reported_once(at_a_time: int, value: str) -> None:
    rows = days(3)
    pairs = list(itertools.pairwise(rows))
    moves = {b.at_us: b.answers[value] / a.answers["price"] - 1 for a, b in pairs}
    gain = SessionMove("gain", value=value, at_least=10)
    drop = SessionMove("drop", value=value, at_most=-10)
    assert [one.at_us for one in alerts_of(gain, rows, at_a_time)] == [
        at for at, m in moves.items() if m >= 0.1
    ]
    assert [one.at_us for one in alerts_of(drop, rows, at_a_time)] == [
        at for at, m in moves.items() if m <= -0.1
    ]
    assert len(alerts_of(drop, rows)) > 10 and all(one.state == "fired" for one in alerts_of(drop, rows))


def test_trades_are_held_against_the_regular_close_and_reported_once_a_session() -> None:
    rows = [
        trade("2026-06-01T15:00:00", 100.0),
        trade("2026-06-01T20:00:30", 101.0),  # the closing auction, 16:00:30 in New York
        trade("2026-06-01T23:00:00", 150.0),  # after hours
        trade("2026-06-02T12:00:00", 111.0),  # before the opening, 9.9 % above the close
        trade("2026-06-02T14:00:00", 111.2),
        trade("2026-06-02T15:00:00", 105.0),
        trade("2026-06-02T16:00:00", 112.0),
        trade("2026-06-03T14:00:00", 123.0),  # 9.8 %
        trade("2026-06-04T14:00:00", 136.0, symbol="B"),
    ]
    result = alerts_of(SessionMove("gain", at_least=10, **NEW_YORK), rows)
    assert [(one.plain_key, one.value) for one in result] == [("A", pytest.approx(100 * (111.2 / 101 - 1)))]
    assert result[0].why == "111.20 is 10.1 % from 101, the close before 2026-06-02: at least 10"


def test_levels_are_reported_until_a_time_of_day() -> None:
    rows = [
        trade("2026-06-01T19:00:00", 100.0, symbol="^GSPC"),
        trade("2026-06-02T19:26:00", 92.0, symbol="^GSPC"),
        trade("2026-06-03T19:24:00", 85.0, symbol="^GSPC"),
        trade("2026-06-02T19:00:00", 50.0),
        trade("2026-06-03T19:00:00", 10.0),
    ]
    rule = SessionMove("level 1", value="low", at_most=-7, until="15:25", matching=r"\^GSPC", **NEW_YORK)
    assert [one.value for one in alerts_of(rule, rows)] == [pytest.approx(100 * (85 / 92 - 1))]


@pytest.mark.parametrize(
    ("against", "value", "limit"), [("first", "price", {"at_least": 3}), ("high", "low", {"at_most": -3})]
)
def test_rolling_moves_are_those_of_the_list(against: str, value: str, limit: dict) -> None:
    dice, price, rows = random.Random(5), 100.0, []
    for second in range(0, 3600 * 3, 7):
        price *= math.exp(dice.gauss(0, 0.002))
        at = (datetime(2026, 6, 1, tzinfo=UTC) + timedelta(seconds=second)).isoformat()
        rows.append(trade(at, price, arrived=second))
    rule = RollingMove("move", value=value, against=against, over="10m", every=True, **limit)
    result = {one.at_us for one in alerts_of(rule, rows, 50)}
    width, least = 5_000_000, 0
    for number, row in enumerate(rows):
        past = [r for r in rows[:number] if (r.at_us // width + 1) * width > row.at_us - 600_000_000]
        prices = [one.answers["price"] for one in past] or [row.answers["price"]]
        # Slices keep their first price, and the row's own opening is among what is highest.
        held = prices[0] if against == "first" else max([*prices, row.answers["price"]])
        moved = 100 * (row.answers["price"] / held - 1)
        past_limit = moved >= 3 if against == "first" else moved <= -3
        least += past_limit
        assert (row.at_us in result) == past_limit
    assert 20 < least < len(rows) - 20


def test_a_drop_in_minutes_clears_when_it_is_back_and_days_say_nothing_of_it() -> None:
    prices = [100, 100, 94, 93, 96, 97.6, 98]
    rows = [trade(f"2026-06-01T14:0{minute}:00", price) for minute, price in enumerate(prices)]
    rule = RollingMove("drop", value="low", against="high", over="1h", at_most=-5, clear=-2.5)
    result = alerts_of(rule, rows)
    assert [(one.state, one.at_us) for one in result] == [
        ("fired", rows[2].at_us),
        ("cleared", rows[5].at_us),
    ]
    assert result[0].why == "94 is -6 % from 100, the highest of 1h: at most -5"
    assert not alerts_of(RollingMove("day", over="24h", at_least=1), days(1))


def test_scores_are_reported_where_they_are_rare_for_the_symbol() -> None:
    dice, price, rows = random.Random(2), 50.0, []
    for minute in range(300):
        price *= math.exp(-0.02 if minute == 250 else dice.gauss(0, 0.001))
        at = (datetime(2026, 6, 1, 14, tzinfo=UTC) + timedelta(minutes=minute)).isoformat()
        rows.append(trade(at, price, arrived=minute))
    result = alerts_of(ReturnScore("score", below=-6), rows, 10)
    assert [(one.state, one.at_us) for one in result] == [
        ("fired", rows[250].at_us),
        ("cleared", rows[251].at_us),
    ]
    assert "standard deviations from the mean of 249 returns" in result[0].why
    assert not alerts_of(ReturnScore("score", below=-6, least=3), rows)


def test_a_split_is_reported_and_is_not_a_drop() -> None:
    prices = [(500.0, 500.0), (505.0, 499.23), (127.58, 129.04), (131.8, 131.8), (110.0, 110.0)]
    rows = [
        bar(f"2020-08-{27 + number}", [opened, max(opened, close), min(opened, close), close], arrived=number)
        for number, (opened, close) in enumerate(prices)
    ]
    drop = alerts_of(SessionMove("drop", at_most=-10), rows)
    assert [one.at_us for one in drop] == [rows[4].at_us]
    seen = alerts_of(SplitSeen("split", above=0), rows)
    assert [(one.value, one.at_us) for one in seen] == [(4.0, rows[2].at_us)]
    assert seen[0].why == "4 new shares for 1: it opened at 127.58 after 499.23, 1 to 3.913"
    assert len(alerts_of(SessionMove("drop", at_most=-10, splits=0), rows)) == 2


def test_a_hundred_times_the_price_is_another_unit_and_no_split_or_drop() -> None:
    pounds, pence = [7.31, 7.35, 7.29], [733.0, 735.0, 741.0]
    days = [bar(f"2026-06-{n + 1:02d}", [p] * 4, arrived=n) for n, p in enumerate([*pounds, *pence, *pounds])]
    times = [*pounds, *pence, *pounds]
    minutes = [
        trade(f"2026-06-01T14:{n:02d}:00", price, arrived=n) for n, price in enumerate(times)
    ]  # within one session
    for rows in (days, minutes):
        seen = alerts_of(UnitChange("unit", above=0), rows, 2)
        assert [(one.value, one.at_us) for one in seen] == [(100.0, rows[3].at_us), (0.01, rows[6].at_us)]
        assert ("or a split" in seen[0].why) == (rows is days)
        assert "733 is 100 times 7.29, the price before" in seen[0].why
        assert not alerts_of(SplitSeen("split", above=0), rows)
        for kind in ({"at_most": -10}, {"at_least": 10}):
            assert not alerts_of(SessionMove("move", **kind), rows)
            assert not alerts_of(RollingMove("move", over="96h", **kind), rows)
        assert alerts_of(SessionMove("move", at_most=-10, splits=0), days)
    fallen = [*days[:3], bar("2026-06-04", [733.0, 733.0, 620.0, 620.0], arrived=3)]
    [drop] = alerts_of(SessionMove("drop", at_most=-10), fallen)
    assert drop.value == pytest.approx(100 * (620 / 729 - 1)) and "(after a change of unit" in drop.why


def test_prices_at_or_below_zero_count_and_break_nothing() -> None:
    closes = [2.0, 1.0, 0.0, -1.5, 0.0, 0.5, 100.0, -0.01, 1.0]
    days = [bar(f"2026-06-{n + 1:02d}", [p] * 4, arrived=n, adjusted=p or None) for n, p in enumerate(closes)]
    fell = alerts_of(SessionMove("drop", at_most=-10), days)
    assert [one.at_us for one in fell] == [days[n].at_us for n in (1, 2, 7)]
    assert [one.value for one in fell] == [-50.0, -100.0, pytest.approx(-100.01)]
    minutes = [trade(f"2026-06-01T14:{n:02d}:00", price, arrived=n) for n, price in enumerate(closes)]
    for rows in (days, minutes):
        for rule in (
            RollingMove("fall", value="low", against="high", at_most=-5, over="96h"),
            ReturnScore("score", below=-6),
            SplitSeen("split", above=0),
            PriceBand("band", at_least=100),
        ):
            alerts_of(rule, rows, 3)


@each(
    ("seen", "close", "adjusted", "usual", "factor"),
    [
        (Opening(92.7, 93.7, None, None, None), 645.57, None, None, 7.0),
        (Opening(28.19, 25.75, None, None, None), 53.5, None, None, None),  # Apple, 2000-09-29: a crash
        (Opening(50.0, 50.0, None, None, 9e9), 100.0, None, 1e9, None),  # at nine times the turnover
        (Opening(50.0, 50.0, None, None, 1e9), 100.0, None, 1e9, 2.0),
        (Opening(50.0, 50.0, 50.0, None, None), 100.0, 100.0, None, None),  # the adjusted close fell as well
        (Opening(50.0, 51.0, 51.0, None, None), 100.0, 50.0, None, 2.0),
        (Opening(99.0, 99.0, 99.0, None, None), 100.0, 98.0, None, None),  # a dividend
        (Opening(70.0, 70.0, None, 1.5, None), 100.0, None, None, 1.5),
        (Opening(10.1, 10.0, None, None, None), 1.0, None, None, 0.1),
        (Opening(99.0, 99.0, None, None, None), 100.0, None, None, None),
    ],
)
def test_what_a_split_is_known_by(seen: Opening, close: float, adjusted, usual, factor) -> None:
    result = split(seen, close, adjusted, usual, 3.0)
    assert (result and result.factor) == factor


def test_days_begin_where_the_market_is() -> None:
    before, after = (int(datetime(2026, 3, 8, 12 + hour, tzinfo=UTC).timestamp() * 1e6) for hour in (-6, 6))
    assert local(before, "America/New_York").second == 3600.0
    assert local(after, "America/New_York").second == 14 * 3600.0
    assert Hours.of("").all_day and not Hours.of("09:30-16:00").all_day


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"hours": "16:00-09:30"}, "begin before they end"),
        ({"hours": "all"}, "hours must be such as 09:30-16:00"),
        ({"zone": "Mars"}, "got 'Mars'"),
        ({"splits": 30}, "a percentage from 0 to 20"),
        ({"matching": "("}, "the rule 'r': "),
    ],
)
def test_what_a_price_rule_can_not_be_asked_is_said(wrong: dict, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        SessionMove("r", above=1, **wrong)
    with pytest.raises(ValueError, match="must be a time of day"):
        SessionMove("r", above=1, until="noon")
    with pytest.raises(ValueError, match="got 'last'"):
        RollingMove("r", above=1, against="last")
    with pytest.raises(ValueError, match="warm must be an integer ≥"):
        ReturnScore("r", above=1, warm=1)
