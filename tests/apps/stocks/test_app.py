"""The app on recordings, against plain Python: what fired, the answers, the same on both engines."""

from __future__ import annotations

import csv
import io
import itertools
import json
import pickle
import random
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from streamgauge.apps.app import Feed
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.jobs.outcome import AlertList
from streamgauge.apps.registry import app_of
from streamgauge.apps.running.exact import all_inside
from streamgauge.apps.running.replaying import AppReplay, replayed
from streamgauge.operators.table.query import query
from streamgauge.operators.testing import StreamTester

from ...cases import each
from .made import recording, trades
from .tried import Tried, fed, tried

NOW = 1_790_000_000_000
SETTINGS = {"fall_over": "5m", "tier1": "UP,SPLIT"}
WANTED = {
    "session gain": ["UP"],
    "rolling gain": ["UP"],
    "sharp drop": ["DOWN"],
    "split": ["SPLIT"],
    "block by shares": 1,
    "block by value": 2,
    "large trade": 2,  # the block is one as well
    "duplicate": 1,
    "out of order": 1,
}


@pytest.fixture(scope="module")
def on_twin(twin: Path) -> Tried:
    return tried(twin, SETTINGS, exactly=True)


def moves(path: Path, value: str) -> dict[str, float]:
    """Each day's move from the close before, in percent, by its date."""
    with path.open() as file:
        days = [{name.lower(): cell for name, cell in row.items()} for row in csv.DictReader(file)]
    return {
        later["date"]: 100 * (float(later[value]) / float(before["close"]) - 1)
        for before, later in itertools.pairwise(days)
    }


def dates(alerts: list[dict[str, Any]]) -> list[str]:
    return [alert["at"].removesuffix("T00:00:00+00:00") for alert in alerts]


def test_apple_s_days_past_ten_percent(apple: Path) -> None:
    result = tried(apple, parts=["tape"])
    day = moves(apple, "close")
    gains, drops = dates(result.of("session gain")), dates(result.of("session drop"))
    assert gains == [at for at, move in day.items() if move >= 10] and len(gains) == 19
    assert drops == [at for at, move in day.items() if move <= -10] and len(drops) == 10
    assert min(result.of("session drop"), key=lambda one: one["value"])["at"][:10] == "2000-09-29"
    assert result.account.counted == result.account.read == 1867 and not result.of("split")


def test_the_market_s_days_past_seven_percent(sp500: Path) -> None:
    result = tried(sp500, parts=["tape"])
    level = dates(result.of("market-wide level 1"))
    assert level == [at for at, move in moves(sp500, "low").items() if move <= -7] and len(level) == 14
    assert not result.of("market-wide level 2") and not result.of("split")


def test_the_capture_s_matches_and_their_takers(recordings: Path) -> None:
    path = recordings / "stocks" / "coinbase_websocket_capture.txt"
    text = path.read_text()
    matches = [json.loads(one) for one in re.findall(r'^[\d.]+: (\{"type":"match".*)$', text, re.M)]
    elapsed = {"buy": "sell", "sell": "buy"}
    wanted = sorted(
        (one["product_id"], one["trade_id"], float(one["price"]), float(one["size"]), elapsed[one["side"]])
        for one in matches
    )
    assert len(wanted) == 97
    result = tried(path, exactly=True)
    names = ["symbol", "seq", "price", "size", "side"]
    assert sorted(query(result.tables["tape"]).select(names).rows()) == wanted
    lines = sum(1 for line in text.splitlines() if line)
    assert result.account.to_dict() == {
        "read": lines,
        "counted": 97,
        "filtered": lines - 98,
        "late": 0,
        "dead_lettered": 1,
    }
    flow = query(result.tables["flow"])
    for symbol, trades_, bought, sold in flow.select("symbol", "trades", "bought", "sold").rows():
        mine = [one for one in wanted if one[0] == symbol]
        assert trades_ == len(mine)
        for side, size in (("buy", bought), ("sell", sold)):
            assert (size or 0) == pytest.approx(sum(one[3] for one in mine if one[4] == side))
    assert all_inside(result.answers)


def test_the_capture_s_aggregated_trades(recordings: Path) -> None:
    result = tried(recordings / "stocks" / "binance_websocket_capture.txt", parts=["tape"])
    rows = query(result.tables["tape"]).select("symbol", "seq", "price", "size", "side").rows()
    assert sorted(rows) == [
        ("LRCBTC", 9213679, 6.38e-06, 177.0, "buy"),
        ("NKNUSDT", 15683430, 0.3528, 58.0, "buy"),
    ]
    assert (result.account.read, result.account.dead_lettered) == (266, 1)


@pytest.mark.slow
def test_all_that_happens_in_the_twin_is_reported_once(on_twin: Tried) -> None:
    reported = {rule: on_twin.of(rule) for rule in WANTED}
    for rule, wanted in WANTED.items():
        keys = [alert["key"] for alert in reported[rule]]
        assert keys == wanted if isinstance(wanted, list) else len(keys) == wanted, rule
    assert set(Counter(alert["rule"] for alert in on_twin.alerts)) <= {*WANTED, "return score"}
    before = [one for one in trades() if one["S"] == "UP" and one["t"] < "2026-06-02"][-1]["p"]
    crossed = next(
        one for one in trades() if one["S"] == "UP" and one["t"] > "2026-06-02" and one["p"] >= 1.1 * before
    )
    [gain] = reported["session gain"]
    assert gain["at"] == crossed["t"].replace("Z", "+00:00")
    assert gain["value"] == gain["lower"] == gain["upper"] == pytest.approx(100 * (crossed["p"] / before - 1))
    assert gain["limit"] == 10 and gain["kind"] == "gain" and gain["app"] == "stocks"
    assert reported["split"][0]["value"] == 4
    assert reported["block by shares"][0]["value"] == 20_000 and reported["large trade"][0]["why"].count(
        "p99.9"
    )


def test_the_twin_s_account_and_answers_are_exact(on_twin: Tried) -> None:
    sent = len(recording())
    assert on_twin.account.to_dict() == {
        "read": sum(line.count(b'"T"') for line in recording()) + 1,
        "counted": len(trades()),
        "filtered": 3,
        "late": 0,
        "dead_lettered": 1,
    }
    assert sent < on_twin.account.read and all_inside(on_twin.answers)
    for row in on_twin.answers["movers"]:
        day = str(row["window_start"])[:10]
        mine = [one["p"] for one in trades() if one["S"] == row["symbol"] and one["t"].startswith(day)]
        assert (row["open"], row["high"], row["low"], row["close"]) == (
            mine[0],
            max(mine),
            min(mine),
            mine[-1],
        )
    assert {row["venues"]["exact"] for row in on_twin.answers["flow"]} == {4}
    assert all(len(row["blocks"]["values"]) == 20 for row in on_twin.answers["flow"])


@pytest.mark.slow
def test_what_happens_in_the_example_is_reported() -> None:
    example = app_of("stocks").example
    job = Job.of(app_of("stocks"), example.format, example.settings)
    made = list(itertools.takewhile(lambda one: one.sent_ms < NOW + 12_000, example.messages(1, NOW)))
    alerts = [(one["rule"], one["key"]) for one in fed(job, made, parts=["tape"]).alerts]
    assert all(alerts.count(event) == 1 for event in example.events) and len(alerts) < 6


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"gain": "much"}, "--set gain must be a number from 0 on, got much"),
        ({"drop": "-3"}, "--set drop must be a number from 0 on, got -3"),
        ({"luld": "maybe"}, "--set luld must be yes or no, got maybe"),
        ({"zone": "Mars"}, "got 'Mars'"),
        ({"fall_over": "soon"}, "over: 'soon' is not a duration"),
        ({"gian": "1"}, "stocks has no such setting"),
    ],
)
def test_what_can_not_be_set_is_said(given: dict, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        Job.of(app_of("stocks"), "alpaca", given)


@pytest.mark.slow
@each("form", [form.name for form in app_of("stocks").formats])
def test_a_stream_of_each_format_can_be_written_down_and_sent_to_workers(form: str) -> None:
    job = Job.of(app_of("stocks"), form)
    for stream in job.streams(Feed("trades", "nowhere:1")).values():
        assert pickle.loads(pickle.dumps(stream)).definition() == stream.definition()
        json.dumps(stream.definition())


def result_of(kafka: Any, twin: Path, engine: str) -> dict[str, Any]:
    job = Job.of(app_of("stocks"), None, SETTINGS, recording=twin)
    assert job.form.name == "alpaca"
    return replayed(AppReplay(job, [twin], engine), kafka.bootstrap_servers, Console(file=io.StringIO()))


@pytest.mark.slow
@pytest.mark.kafka
def test_a_broker_gives_the_same_as_none(kafka, twin: Path, on_twin: Tried) -> None:
    local = result_of(kafka, twin, "local")
    assert [one["id"] for one in local["alerts"]] == [one["id"] for one in on_twin.alerts]
    assert local["account"] == on_twin.account.to_dict() and local["all_inside_bounds"]


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.soak
def test_both_engines_report_the_same(kafka, spark, twin: Path) -> None:
    pytest.importorskip("pyspark")
    local, other = (result_of(kafka, twin, engine) for engine in ("local", "spark"))
    assert {**other, "engine": "local", "answers": None} == {**local, "answers": None}
    for part in ("movers", "market"):
        assert other["answers"][part] == local["answers"][part]


@pytest.mark.slow
def test_a_symbol_whose_feed_is_behind_the_others_gives_the_same_alerts() -> None:
    """DOWN's trades come minutes after the others', and some of UP's eight seconds late."""
    some = [one for number, one in enumerate(trades()) if number // 3 % 3 == 0]
    in_time = [(datetime.fromisoformat(one["t"]).timestamp(), json.dumps(one).encode()) for one in some]
    dice = random.Random(1)
    delays = [150 if b'"DOWN"' in text else 8 * (dice.random() < 0.01) for _, text in in_time]
    order = sorted(range(len(in_time)), key=lambda number: in_time[number][0] + delays[number])
    assert sum(later < number for number, later in itertools.pairwise(order)) > 100
    wanted = alerts_of_tape([text for _, text in in_time])
    late = alerts_of_tape([in_time[number][1] for number in order])
    assert late - wanted == wanted - late == Counter()
    assert {rule for rule, *_ in wanted} > {"session gain", "sharp drop", "split"}


def alerts_of_tape(messages: list[bytes]) -> Counter[tuple[str, str, str, int]]:
    """What the live app's tape reports and does not withdraw, but for the order of trades."""
    job, alerts = Job.of(app_of("stocks"), "alpaca", SETTINGS), AlertList()
    (tape,) = (part for part in job.parts if part.name == "tape")
    alerting = job.alerting(tape, [alerts])
    assert alerting is not None
    streams = job.streams(Feed("stocks", "nowhere:9092"))
    tester = StreamTester(streams["tape"], start=datetime.now(UTC), sinks=[alerting])
    for low in range(0, len(messages), 500):
        tester.feed_messages(messages[low : low + 500])
    assert tester.finish().account.late == 0
    left = Counter[tuple[str, str, str, int]]()
    for one in alerts.alerts:
        state = one.details["withdrawn"] if one.state == "withdrawn" else one.state
        left[one.rule, state, str(one.key), one.at_us] += -1 if one.state == "withdrawn" else 1
    return Counter({one: n for one, n in left.items() if n and one[0] != "out of order"})
