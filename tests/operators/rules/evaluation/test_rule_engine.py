"""Rules as a fold: against plain Python, cut anywhere, in silences, and with windows that come again."""

from __future__ import annotations

import random
from datetime import timedelta

import polars as pl
import pytest

from streamgauge import Stream, StreamTester, count, distinct, last, quantiles, sample, top_k
from streamgauge import sum as sum_
from streamgauge.operators.rules.evaluation.rule_engine import rule_view
from streamgauge.operators.table.schema import schema_of
from streamgauge.operators.table.window_groups import WindowGroups
from streamgauge.rules import (
    Absence,
    Alert,
    Alerting,
    Burst,
    Change,
    Flatline,
    NewTerm,
    Ratio,
    Slope,
    StaLta,
    Threshold,
)

from ....cases import seeds
from ..plain import MINUTE, NOON, READINGS, ROWS, WINDOWS, Kept, hysteresis, row, summaries

RULES = [
    Threshold("hot", value="value", above=60, clear=40, hold="2m", release="1m", cooldown="9m"),
    Threshold("rare", value="n", below=1, absent=0),
    Ratio("bad", value="bad", to="n", at_least=0.5, least=3),
    Change("jump", value="value", against="last", by="distance", above=60, every=True),
    Change("burst", value="n", against="mean", over=10, by="poisson", above=1.8, absent=0, warm=5),
    Absence("dead", longer="3m"),
    Flatline("stuck", value="value", longer="4m", within=2.0),
    NewTerm("new", learn="5m", forget="7m", most=2),
    Burst("crowd", value="n", above=1.5, clear=1, least=2, over=10, warm=5),
    Slope("trend", value="value", above=1, over="20m", rate="1m", least=5, surely=True),
    StaLta("onset", value="n", at_least=1, clear=0.9, short="2m", long="20m", times=1, offset=1),
]


def rows(seed: int, minutes: int = 120) -> list[dict]:
    """Three keys whose last is away for long, and whose values wander, stick and jump."""
    dice = random.Random(seed)
    result, value = [], dict.fromkeys("abc", 50.0)
    for second in range(0, 60 * minutes, 7):
        key = dice.choice("aaabbc")
        if (key == "c" and 30 < second / 60 % 60 < 50) or 70 < second / 60 < 76:
            continue
        if dice.random() < 0.3:
            value[key] = min(max(value[key] + dice.gauss(0, 25), 0), 100)
        result.append(row(second / 60, key, value[key], int(dice.random() < 0.4)))
    return result


def alerts_of(stream: Stream, fed: list[dict], rules=RULES, at=None, restart=lambda n: False):
    kept = Kept()
    tester = StreamTester(stream, sinks=[Alerting(rules, to=[kept], at=at)], start=NOON + timedelta(days=1))
    for number, one in enumerate(fed):
        tester.feed([one])
        if restart(number):
            tester.restart()
    return kept.alerts


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(1, 4))
def test_a_restart_anywhere_gives_the_same(seed: int) -> None:
    fed = rows(seed)
    whole = alerts_of(WINDOWS, fed)
    assert {alert.rule for alert in whole} == {rule.name for rule in RULES}
    assert len({alert.id for alert in whole}) == len(whole)
    if seed:
        assert alerts_of(WINDOWS, fed, restart=lambda number: True) == whole
    dice = random.Random(seed)
    assert alerts_of(WINDOWS, fed, restart=lambda number: dice.random() < 0.1) == whole


@pytest.mark.parametrize("seed", seeds(1, 4))
@pytest.mark.parametrize(("hold", "release", "cooldown"), [(0, 0, 0), (3, 0, 0), (0, 4, 0), (2, 2, 20)])
def test_readings_in_any_order_within_the_delay_fire_as_in_plain_python(
    hold: int, release: int, cooldown: int, seed: int
) -> None:
    dice = random.Random(seed)
    readings, value = [], 50.0
    for minute in range(400):
        value = min(max(value + dice.gauss(0, 12), 0), 100)
        if dice.random() < 0.9:
            readings.append((minute + dice.random() / 2, value))
    rule = Threshold(
        "hot",
        value="value",
        above=60,
        clear=45,
        hold=timedelta(minutes=hold),
        release=timedelta(minutes=release),
        cooldown=timedelta(minutes=cooldown),
    )
    exact = [(round(at, 7), value) for at, value in readings]
    exact = [(round(round(at * MINUTE) / MINUTE, 7), value) for at, value in exact]
    stream = ROWS.group_by("key", "at").tumbling("1m", delay="5m").agg(value=READINGS.aggregates["value"])
    late = sorted(readings, key=lambda reading: reading[0] + dice.random() * 4)
    fed = [row(at, "a", value) for at, value in late] + [row(440, "b", 0)]
    alerts = [(state, minute) for _, state, _, minute in summaries(alerts_of(stream, fed, [rule], "at"))]
    wanted = hysteresis(exact, 60, 45, hold, release, cooldown, end=435)
    assert [state for state, _ in alerts] == [state for state, _ in wanted] and wanted
    assert [at for _, at in alerts] == pytest.approx([at for _, at in wanted], abs=1e-5)


def test_what_a_silence_has_closed_is_emitted_once_and_corrected() -> None:
    kept = Kept()
    rules = [Threshold("few", value="n", at_most=1), Threshold("many", value="n", at_least=3)]
    tester = StreamTester(WINDOWS, sinks=[Alerting(rules, to=[kept])], start=NOON)
    tester.feed([row(0.1)])
    tester.advance(120)
    assert summaries(kept.alerts) == [("few", "fired", "a", 1)]
    tester.restart().advance(10).feed([row(0.2)])
    tester.advance(120).restart().advance(60)
    assert len(kept.alerts) == 1  # it is withdrawn for good, or not at all
    tester.feed([row(0.3), row(5)])
    assert summaries(kept.alerts[1:]) == [("many", "fired", "a", 1), ("few", "withdrawn", "a", 1)]
    tester.feed([row(9)])
    assert summaries(kept.alerts[3:]) == [("few", "fired", "a", 6), ("many", "cleared", "a", 6)]


def test_a_key_that_stays_away_is_reported_while_others_go_on_and_when_all_are_silent() -> None:
    kept = Kept()
    alerting = Alerting([Absence("dead", longer="3m")], to=[kept])
    tester = StreamTester(WINDOWS, sinks=[alerting], start=NOON)
    tester.feed([row(0.5, "a"), *(row(minute, "b") for minute in (0.5, 1, 2, 3, 4, 5.5, 6))])
    assert summaries(kept.alerts) == [("dead", "fired", "a", 4)]
    tester.feed([row(7.5, "a"), row(8.5, "b")])
    assert summaries(kept.alerts[1:]) == [("dead", "cleared", "a", 8)]


def test_an_absent_count_is_zero_in_every_window_that_passes() -> None:
    kept = Kept()
    rule = Threshold("rare", value="n", below=1, absent=0, hold="3m")
    tester = StreamTester(WINDOWS, sinks=[Alerting([rule], to=[kept])], start=NOON)
    tester.feed([row(0.5), row(9.5), row(11)])
    assert summaries(kept.alerts) == [("rare", "fired", "a", 4), ("rare", "cleared", "a", 10)]


@pytest.mark.slow
def test_items_of_a_list_are_keys_and_an_estimate_fires_surely_if_asked_to() -> None:
    stream = ROWS.tumbling("1m").agg(keys=top_k("key", k=2), different=distinct("key"), n=count())
    rules = [
        Threshold("trend", value="keys", each=True, at_least=3, absent=0),
        Threshold("different", value="different", at_least=1000),
        Threshold("surely different", value="different", at_least=1000, surely=True),
    ]
    fed = [row(0.1, key) for key in "aaab"] + [row(1.1, "b")]
    fed += [row(2.5, f"k{n}") for n in range(1010)] + [row(4.1), row(5.5)]
    alerts = alerts_of(stream, fed, rules)
    assert summaries(alerts) == [
        ("trend", "fired", "a", 1),
        ("trend", "cleared", "a", 2),
        ("different", "fired", "None", 3),
        ("different", "cleared", "None", 5),
    ]
    assert "about 1" in alerts[2].why and "an estimate, which may be short of it" in alerts[2].why
    assert alerts[2].lower < 1000 <= alerts[2].value <= alerts[2].upper


def test_alerts_name_the_columns_of_their_keys() -> None:
    both = ROWS.with_columns(other=pl.lit("x")).group_by("key", "other").tumbling("1m")
    stream = both.agg(terms=top_k("key", k=2), n=count())
    rules = [
        Threshold("busy", value="n", at_least=1),
        Threshold("per other", value="n", at_least=1, per=("other",)),
        Threshold("term", value="terms", each=True, at_least=1),
        Absence("dead", longer="3m"),
        NewTerm("new", learn="1m"),
    ]
    alerts = alerts_of(
        stream, [row(minute, key) for minute in range(9) for key in ("ab" if minute else "a")], rules
    )
    names = {(alert.rule, alert.key, alert.key_names) for alert in alerts}
    assert ("busy", ("a", "x"), ("key", "other")) in names and ("per other", ("x",), ("other",)) in names
    assert ("term", ("b", "x", "b"), ("key", "other", "terms")) in names
    assert ("new", ("b", "x"), ("key", "other")) in names
    for alert in alerts:
        assert Alert.from_dict(alert.to_dict()).key_names == alert.key_names


def test_a_rule_that_was_changed_starts_over(caplog: pytest.LogCaptureFixture) -> None:
    from streamgauge.operators.rules.evaluation.rule_engine import RuleEngine

    of = rule_view(RULES, schema_of(WINDOWS), None)
    before = RuleEngine(RULES, of)
    tester = StreamTester(WINDOWS, start=NOON)
    tester.feed([row(minute, "a", 70) for minute in range(9)])
    before.evaluate(WindowGroups.of_table(tester.tables().to_arrow()), True)
    changed = [Threshold("hot", value="value", above=50), *RULES[1:]]
    after = RuleEngine(changed, of)
    after.restore(before.state())
    assert "the rule 'hot' has changed and starts over" in caplog.text
    tester.feed([row(9, "a", 70), row(10, "a", 70)])
    assert [
        alert.rule for alert in after.evaluate(WindowGroups.of_table(tester.tables().to_arrow()), True)
    ] == ["hot"]


@pytest.mark.parametrize(
    ("rules", "at", "said"),
    [
        (
            [Threshold("a", value="m", above=1)],
            None,
            "'m' is not an answer of the stream; there are 'n', 'q', 's'",
        ),
        ([Threshold("a", value="q", above=1)], None, "'q' has several parts; name one of 'q.n', 'q.p25'"),
        ([Threshold("a", value="q.p98", above=1)], None, "'q.p98' has several parts"),
        ([Threshold("a", value="n.p99", above=1)], None, "'n' has no part 'p99'"),
        (
            [Threshold("a", value="n", above=1, where={"lang": "en"})],
            None,
            "where names 'lang', which is not a key",
        ),
        ([Threshold("a", value="n", above=1)] * 2, None, "two rules are named 'a'"),
        ([Threshold("a", value="n", above=1)], "at", "group readings by their time as well"),
        ([Threshold("a", value="n", above=1)], "key", "holds string and not times"),
    ],
)
def test_rules_that_do_not_suit_the_stream_are_refused(rules, at, said: str) -> None:
    stream = ROWS.group_by("key").tumbling("1m").agg(n=count(), q=quantiles("value"), s=sample("key", k=1))
    with pytest.raises(ValueError) as refused:
        StreamTester(stream, sinks=[Alerting(rules, to=[Kept()], at=at)])
    assert said in str(refused.value)


def test_absent_needs_windows_in_steps() -> None:
    rule = Threshold("a", value="n", above=1, absent=0)
    sessions = ROWS.session("5m").agg(n=count())
    with pytest.raises(ValueError, match="absent is what a value is in a window without rows"):
        StreamTester(sessions, sinks=[Alerting([rule], to=[Kept()])])


@pytest.mark.parametrize(
    "rule", [Threshold("a", value="n", above=1, absent=0), RULES[8]], ids=["absent", "burst"]
)
def test_absent_needs_windows_of_one_length(rule: Threshold) -> None:
    days = ROWS.group_by("key").tumbling("1d", zone="Europe/Helsinki").agg(n=count())
    with pytest.raises(ValueError, match=r"windows of 1d in Europe/Helsinki, which differ in length; choose"):
        StreamTester(days, sinks=[Alerting([rule], to=[Kept()])])


def test_days_of_a_zone_are_judged_and_held_by_their_own_edges() -> None:
    """In summer they are the days from 21:00 to 21:00 in UTC, which have one length."""
    rules = [Threshold("busy", value="n", at_least=2, hold="20h"), Absence("gone", longer="60h")]
    hours = [(0, "a"), (1, "a"), (24, "a"), (25, "a"), (150, "b"), (200, "b")]
    reported = []
    for place in ({"zone": "Europe/Helsinki"}, {"offset": "21h"}):
        days = ROWS.group_by("key").tumbling("1d", **place, max_ahead=None).agg(n=count())
        kept = Kept()
        tester = StreamTester(days, sinks=[Alerting(rules, to=[kept])])
        tester.feed([row(60 * hour, key, 1.0, 0) for hour, key in hours])
        tester.finish()
        reported.append(summaries(kept.alerts))
    assert reported[0] == reported[1] and [one[0] for one in reported[0]] == ["busy", "gone"]
    assert reported[0][1][3] == 1_980 + 60 * 60  # the end of a day, in minutes from noon, and 60 hours


def test_support_and_what_is_reported_besides() -> None:
    windows = (
        ROWS.group_by("key").tumbling("1m").agg(n=count(), value=last("value"), shown=sample("key", k=2))
    )
    rule = Threshold("hot", value="value", above=9, support={"n": 3}, report=["n", "shown.values"])
    kept = Kept()
    tester = StreamTester(windows, start=NOON, sinks=[Alerting([rule], to=[kept])])
    tester.feed(
        [row(minute + n / 10, "a", 10.0) for minute, n_rows in ((0, 2), (1, 3)) for n in range(n_rows)]
    )
    tester.finish()
    assert [alert.why for alert in kept.alerts] == ["value is 10: above 9; n: 3; shown: 'a', 'a'"]
    for wrong, said in (({"support": 3}, "support must be"), ({"report": "n"}, "report must list")):
        with pytest.raises(TypeError, match=said):
            Threshold("hot", value="value", above=9, **wrong)
    with pytest.raises(ValueError, match="'rows' is not an answer of the stream"):
        rule_view([Threshold("hot", value="value", above=9, support={"rows": 3})], schema_of(windows), None)


def test_windows_without_rows_need_steps_which_an_offset_keeps_and_a_zone_does_not() -> None:
    rules = [
        Threshold("none", value="n", below=1, absent=0),
        Burst("burst", value="n", above=3),
    ]
    counted = ROWS.group_by("key")
    rule_view(rules, schema_of(counted.tumbling("1h", offset="15m").agg(n=count())), None)
    for windows in (counted.tumbling("1h", zone="Europe/Rome"), counted.tumbling("1mo", offset="1d")):
        for rule, needs in zip(rules, ("absent is what a value is", "Burst counts windows without rows")):
            with pytest.raises(ValueError, match=f"{needs}.* differ in length; choose windows of a fixed"):
                rule_view([rule], schema_of(windows.agg(n=count())), None)


def test_an_event_of_a_ratio_lasts_through_rows_with_too_little() -> None:
    stream = ROWS.group_by("key").tumbling("1m").agg(bad=sum_("bad"), n=count())
    kept, rule = Kept(), Ratio("errors", value="bad", to="n", above=0.5, least=3)
    tester = StreamTester(stream, start=NOON, sinks=[Alerting([rule], to=[kept])])
    for minute, rows in enumerate([3, 1, 2, 3, 2]):
        failed = minute in (0, 4)
        tester.feed([row(minute + part / 10, "a", bad=int(failed)) for part in range(rows)])
    tester.finish()
    assert summaries(kept.alerts) == [("errors", "fired", "a", 1), ("errors", "cleared", "a", 4)]
