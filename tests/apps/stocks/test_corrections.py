"""Trades that an exchange cancels or corrects: the alerts that fired with them are withdrawn."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from streamgauge.apps.app import Feed
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.registry import app_of
from streamgauge.operators.table.query import query
from streamgauge.operators.testing import StreamTester

from ...operators.rules.plain import Kept
from .tried import tried

TRADE = {"T": "t", "S": "AAPL", "x": "D", "p": 100.0, "s": 200, "z": "C"}


def day(number: int, time: str) -> str:
    return f"2026-06-{number:02}T{time}Z"


def live(format: str, messages: Sequence[dict[str, Any]], every: int = 1) -> Iterator[list[str]]:
    """What rules report of each of these messages as it comes, with a restart behind every so many."""
    job = Job.of(app_of("stocks"), format)
    (part,) = (part for part in job.parts if part.name == "tape")
    kept = Kept()
    alerting = job.alerting(part, [kept])
    assert alerting is not None
    stream = job.streams(Feed("stocks", "nowhere:9092"))["tape"]
    tester = StreamTester(stream, start=datetime(2026, 6, 3, tzinfo=UTC), sinks=[alerting])
    for number, message in enumerate(messages):
        tester.feed_messages([json.dumps(message).encode()])
        if number % every == 0:
            tester.restart()
        yield _said(kept)
    tester.finish()
    yield _said(kept)


def _said(kept: Kept) -> list[str]:
    alerts, kept.alerts = kept.alerts, []
    return [f"{one.rule} {one.state}: {one.why}" for one in alerts]


def later(time: str) -> dict[str, Any]:
    """A trade that closes the windows before it."""
    return TRADE | {"i": int(time.replace(":", "")), "t": day(1, time)}


def test_a_cancelled_block_is_withdrawn() -> None:
    block = TRADE | {"i": 7, "s": 20_000, "t": day(1, "14:00:00")}
    bust = {"T": "x", "S": "AAPL", "i": 7, "x": "D", "p": 100, "s": 20_000, "a": "C", "z": "C"}
    coming = [
        block,
        later("14:01:00"),
        bust | {"i": 8, "t": day(1, "14:01:30")},  # another trade
        bust | {"x": "V", "t": day(1, "14:01:40")},  # the same number elsewhere
        bust | {"t": day(1, "14:02:00")},
        bust | {"t": day(1, "14:02:00")},
        later("14:03:00"),
        later("14:04:00"),
    ]
    said = list(live("alpaca", coming))
    assert said[1][0] == (
        "block by shares fired: traded: 20,000 at 100, 2,000,000 in all; its size is 20,000: at least 10,000"
    )
    assert [one for some in said[2:] for one in some] == [
        "block by shares withdrawn: its reading was cancelled",
        "block by value withdrawn: its reading was cancelled",
    ]


def test_a_corrected_block_is_withdrawn_and_reported_as_what_it_was() -> None:
    fix = {"T": "c", "S": "AAPL", "x": "D", "oi": 7, "op": 100, "os": 20_000, "oc": ["@"], "z": "C"}
    coming = [
        TRADE | {"i": 7, "s": 20_000, "t": day(1, "14:00:00")},
        later("14:01:00"),
        fix | {"ci": 9, "cp": 99.5, "cs": 12_000, "cc": ["@"], "t": day(1, "14:02:00")},
        later("14:03:00"),
    ]
    said = [one for some in live("alpaca", coming, every=2) for one in some]
    assert said[2:] == [
        "block by shares fired: traded (corrected): 12,000 at 99.5, 1,194,000 in all; its size is 12,000: at "
        "least 10,000",
        "block by value fired: traded (corrected): 12,000 at 99.5, 1,194,000 in all; its value is 1,194,000: "
        "at least 200,000",
        "block by shares withdrawn: its reading was cancelled",
        "block by value withdrawn: its reading was cancelled",
    ]


def test_a_gain_by_a_cancelled_trade_is_withdrawn_and_reported_once_it_is_one() -> None:
    coming = [
        TRADE | {"i": 1, "t": day(1, "19:00:00")},
        TRADE | {"i": 2, "p": 115.0, "t": day(2, "14:00:00")},
        TRADE | {"i": 3, "p": 101.0, "t": day(2, "14:20:00")},
        {"T": "x", "S": "AAPL", "i": 2, "x": "D", "a": "E", "t": day(2, "14:21:00")},
        TRADE | {"i": 4, "p": 112.0, "t": day(2, "14:40:00")},
        TRADE | {"i": 5, "p": 112.0, "t": day(2, "14:41:00")},
    ]
    gains = [one for some in live("alpaca", coming) for one in some if one.startswith("session gain")]
    assert [one.partition(":")[0] for one in gains] == [
        "session gain fired",
        "session gain withdrawn",
        "session gain fired",
    ]
    assert "112 is 12 % from 100" in gains[2]


def test_a_price_that_is_cancelled_at_once_was_never_the_highest() -> None:
    """Within `lateness` rules evaluate the symbol's trades again, also those that came after it."""
    coming = [
        TRADE | {"i": 1, "t": day(1, "14:00:00")},
        TRADE | {"i": 2, "p": 120.0, "t": day(1, "14:00:10")},
        TRADE | {"i": 3, "t": day(1, "14:00:12")},
        {"T": "x", "S": "AAPL", "i": 2, "x": "D", "a": "E", "t": day(1, "14:00:16")},
        TRADE | {"i": 4, "t": day(1, "14:00:21")},
        TRADE | {"i": 5, "t": day(1, "14:00:40")},
    ]
    drops = [one for some in live("alpaca", coming) for one in some if one.startswith("sharp drop")]
    assert [one.partition(":")[0] for one in drops] == ["sharp drop fired", "sharp drop withdrawn"]


def test_a_bar_that_is_restated_takes_the_place_of_the_first() -> None:
    bar = {"T": "b", "S": "AAPL", "o": 100, "h": 101, "l": 99, "c": 100, "v": 500}
    wrong = bar | {"h": 125, "c": 115, "t": day(2, "14:00:00")}
    coming = [
        bar | {"t": day(1, "19:00:00")},
        bar | {"t": day(2, "13:59:00")},
        wrong,
        wrong | {"T": "u", "h": 102, "c": 101, "v": 510},  # half a minute later
        bar | {"t": day(2, "14:01:00")},
        bar | {"t": day(2, "14:02:00")},
    ]
    said = [one for some in live("alpaca", coming) for one in some]
    assert not said, said
    silent = [*coming[:3], {"T": "s", "S": "MSFT", "sc": "T", "t": day(2, "14:00:20")}, *coming[3:]]
    said = [one for some in live("alpaca", silent) for one in some]
    names = {
        state: [one.partition(f" {state}:")[0] for one in said if f" {state}:" in one]
        for state in ("fired", "withdrawn")
    }
    assert sorted(names["fired"]) == ["price band", "rolling gain", "session gain", "trading pause"]
    assert sorted(names["withdrawn"]) == sorted(names["fired"]) and len(said) == 8


def test_polygon_s_correction_indicators() -> None:
    trade = {"ev": "T", "sym": "MSFT", "x": 4, "z": 3, "p": 100.0, "s": 20_000, "t": 1_700_000_000_000}
    close = trade | {"s": 100}
    coming = [
        trade | {"i": "51", "q": 1},
        trade | {"i": "52", "q": 2},
        close | {"i": "53", "q": 3, "t": trade["t"] + 60_000},
        trade | {"i": "51", "q": 4, "e": 10, "t": trade["t"] + 90_000},
        trade | {"i": "52", "q": 5, "e": 12, "s": 15_000, "t": trade["t"] + 91_000},
        close | {"i": "54", "q": 6, "t": trade["t"] + 120_000},
    ]
    said = [one for some in live("polygon", coming, 3) for one in some if one.startswith("block by shares")]
    assert [one.partition(":")[0].rpartition(" ")[2] for one in said] == [
        *("fired", "fired"),
        *("fired", "withdrawn", "withdrawn"),
    ]
    assert "traded (corrected): 15,000 at 100" in said[2]


def test_a_recording_has_neither_the_cancelled_trade_nor_a_volume_of_the_correction(tmp_path: Path) -> None:
    lines = [
        TRADE | {"i": 7, "s": 20_000, "t": day(1, "14:00:00")},
        TRADE | {"i": 8, "t": day(1, "14:00:01")},
        {"T": "x", "S": "AAPL", "i": 7, "x": "D", "t": day(1, "14:02:00")},
        {"T": "c", "S": "AAPL", "x": "D", "oi": 8, "ci": 9, "cp": 100, "cs": 210, "t": day(1, "14:03:00")},
    ]
    path = tmp_path / "feed.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    result = tried(path, parts=("hours", "tape", "minutes", "flow"))
    assert result.account.filtered == 2 and not result.alerts
    assert query(result.tables["hours"])["volume"].to_list() == [20_200]
    assert query(result.tables["flow"])["trades"].to_list() == [2]


def test_a_restated_bar_is_neither_a_bar_more_nor_a_duplicate(tmp_path: Path) -> None:
    bar = {"T": "b", "S": "AAPL", "o": 100, "h": 101, "l": 99, "c": 100, "v": 500}
    bars = [bar | {"t": day(1, f"14:{minute:02}:00")} for minute in range(3)]
    path = tmp_path / "bars.jsonl"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in [*bars, bars[1] | {"T": "u", "v": 520}]))
    result = tried(path, parts=("tape", "minutes"))
    assert not result.alerts and query(result.tables["minutes"])["volume"].to_list() == [500, 500, 500]
    tape = query(result.tables["tape"])
    assert tape["size"].to_list() == [500, 520, 500] and tape["times"].to_list() == [1, 1, 1]
