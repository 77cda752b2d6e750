"""Halts and auctions as feeds say them: a status is an event, an auction's print is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from streamgauge.operators.table.query import query

from ..tried import Tried, tried

TRADE = {"T": "t", "S": "AAPL", "x": "D", "p": 100.0, "s": 20_000, "t": "2026-06-01T14:00:00Z", "z": "C"}


def of(tmp_path: Path, lines: list[Any], parts: tuple[str, ...] = ("tape",), **given: str) -> Tried:
    path = tmp_path / "feed.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return tried(path, given, parts=parts)


def halts(result: Tried) -> list[tuple[Any, ...]]:
    return [(one["key"], one["at"], one["cleared"], one["why"]) for one in result.of("trading halt")]


def test_alpaca_s_halts_of_both_tapes(tmp_path: Path) -> None:
    halt = {"T": "s", "S": "AAPL", "sc": "H", "sm": "Trading Halt", "rc": "T12", "rm": "News", "z": "C"}
    lines = [
        TRADE | {"i": 1},
        halt | {"t": "2026-06-01T14:01:00Z"},
        halt | {"S": "F", "sc": "2", "rc": "", "rm": "", "z": "A", "t": "2026-06-01T14:01:30Z"},
        halt | {"sc": "Q", "sm": "Quotation Resumption", "t": "2026-06-01T14:05:00Z"},
        halt | {"sc": "T", "sm": "Trading Resumption", "t": "2026-06-01T14:06:00Z"},
    ]
    result = of(tmp_path, lines)
    assert (result.account.counted, result.account.filtered, result.account.dead_lettered) == (4, 1, 0)
    aapl, ford = halts(result)
    assert aapl[:3] == ("AAPL", "2026-06-01T14:01:00+00:00", "2026-06-01T14:06:00+00:00")
    assert aapl[3] == "trading is halted: Trading Halt, T12, News"
    assert ford[:3] == ("F", "2026-06-01T14:01:30+00:00", None)


def test_a_status_is_no_trade_of_the_other_parts(tmp_path: Path) -> None:
    halt = {"T": "s", "S": "AAPL", "sc": "H", "sm": "Trading Halt", "t": "2026-06-01T14:01:00Z"}
    result = of(tmp_path, [TRADE | {"i": 1}, halt, halt], ("hours", "tape", "minutes", "market"))
    assert result.account.counted == 1 and not result.of("duplicate")
    for part in ("hours", "minutes"):
        assert query(result.tables[part]).height == 1
    assert query(result.tables["market"])["rows"].to_list() == [1]


def test_auctions_are_no_blocks_unless_set_and_no_vwap(tmp_path: Path) -> None:
    lines = [
        TRADE | {"i": 1, "c": ["@", "O", "X"], "p": 90.0},
        TRADE | {"i": 2, "c": ["@", "6"], "p": 95.0},
        TRADE | {"i": 3, "c": ["@", "M"], "p": 95.0},
        TRADE | {"i": 4, "c": ["@", "I"], "p": 100.0, "s": 100},
        TRADE | {"i": 5, "p": 101.0, "s": 300},
    ]
    result = of(tmp_path, lines, ("tape", "vwap"))
    assert not result.of("block by shares")
    [row] = query(result.tables["vwap"]).to_dicts()
    assert (row["volume"], row["points"], row["auctioned"]) == (400, 40_300, 40_000)
    named = of(tmp_path, lines, auctions="yes").of("block by shares")
    assert [one["why"].split(":")[0] for one in named] == [
        "traded in the opening auction",
        "bought, by the tick test in the closing auction",
    ]
    # The official close repeats the auction's price: nothing was traded.
    assert query(result.tables["tape"]).height == 4


def test_polygon_s_conditions(tmp_path: Path) -> None:
    trade = {"ev": "T", "sym": "MSFT", "x": 4, "p": 114.0, "s": 20_000, "t": 1_700_000_000_123}
    conditions: list[Any] = [[17, 41], [8], [28], [16], [9, 41], [0, 12], None]
    lines = [trade | {"q": n, "c": one} for n, one in enumerate(conditions)]
    rows = query(of(tmp_path, lines).tables["tape"]).sort("number")
    assert rows["auction"].to_list() == ["opening", "closing", "reopening", "crossing", None, None]


def test_polygon_s_halts_are_those_of_its_indicators(tmp_path: Path) -> None:
    trade = {"ev": "T", "sym": "MSFT", "x": 4, "p": 114.0, "s": 100, "t": 1_700_000_000_000, "q": 1}
    bands = {"ev": "LULD", "T": "MSFT", "h": 125.4, "l": 102.6, "i": [5], "z": 3, "q": 2}
    lines = [
        trade,
        bands | {"t": 1_700_000_010_000},
        bands | {"t": 1_700_000_020_000, "i": [17, 1]},
        bands | {"t": 1_700_000_080_000, "i": [18], "h": 120, "l": 100},
        bands | {"T": "AAPL", "t": 1_700_000_090_000, "i": [17]},
        [bands | {"t": 1_700_000_100_000, "i": [117]}, trade | {"t": 1_700_000_110_000, "q": 5}],
    ]
    result = of(tmp_path, lines)
    assert (result.account.filtered, result.account.dead_lettered) == (2, 0)
    why = "trading is halted: limit up, limit down: 102.6 to 125.4"
    assert halts(result) == [
        ("MSFT", "2023-11-14T22:13:40+00:00", "2023-11-14T22:14:40+00:00", why),
        ("AAPL", "2023-11-14T22:14:50+00:00", None, why),
    ]
    none = of(tmp_path, lines, events="T")
    assert not halts(none) and query(none.tables["tape"]).height == 2


def test_databento_s_and_iex_s_statuses(tmp_path: Path) -> None:
    header = {"rtype": 18, "publisher_id": 2, "instrument_id": 38}
    actions = ((7, 0), (9, 60), (3, 90), (7, 120))
    lines = [
        {
            "hd": {**header, "ts_event": str((1_700_000_000 + seconds) * 1_000_000_000)},
            "action": action,
            "reason": 0,
            "is_trading": "~",
            "symbol": "AAPL",
        }
        for action, seconds in actions
    ]
    [halt] = halts(of(tmp_path, lines))
    assert halt[1:] == (
        "2023-11-14T22:14:20+00:00",
        "2023-11-14T22:15:20+00:00",
        "trading is halted: pause, reason 0",
    )
    status = {"type": "trading_status", "symbol": "ZIEXT", "reason": "T1"}
    deep = {"symbol": "SNAP", "messageType": "tradingstatus", "seq": 1}
    lines = [
        status | {"status": "H", "timestamp": "2023-11-14T22:13:20+00:00"},
        status | {"status": "O", "timestamp": "2023-11-14T22:13:30+00:00"},
        status | {"status": "T", "reason": "", "timestamp": "2023-11-14T22:13:40+00:00"},
        deep | {"data": {"status": "P", "reason": "LULD", "timestamp": 1_700_000_000_123}},
    ]
    first, second = halts(of(tmp_path, lines))
    assert first == (
        "ZIEXT",
        "2023-11-14T22:13:20+00:00",
        "2023-11-14T22:13:40+00:00",
        "trading is halted: halted across all markets, T1",
    )
    assert second[0] == "SNAP" and second[2] is None
