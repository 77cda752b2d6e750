"""What four exchanges and vendors send, as rows: sides, numbers in strings, envelopes, lists."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from streamgauge.apps.jobs.job import Job
from streamgauge.apps.registry import app_of
from streamgauge.operators.table.query import query

from ..tried import Tried, tried

AT_MS = 1_700_000_000_123
AT = datetime.fromtimestamp(AT_MS // 1000, UTC).replace(microsecond=123_000)
ISO = AT.isoformat().replace("+00:00", "456789Z").replace("123000456789", "123000456")


def of(tmp_path: Path, lines: list[Any], **given: str) -> tuple[Tried, pl.DataFrame]:
    path = tmp_path / "feed.txt"
    path.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines) + "\n")
    result = tried(path, given, parts=["tape"])
    rows = query(result.tables["tape"]).with_columns(seq="number")
    names = ["symbol", "venue", "seq", "at", "price", "size", "side", "span", "open", "high", "low"]
    return result, rows.select(names).sort("symbol", "seq", nulls_last=True)


def test_binance_s_trades_in_envelopes_or_not(tmp_path: Path) -> None:
    trade = {
        "e": "trade",
        "E": AT_MS,
        "s": "BTCUSDT",
        "t": 7,
        "p": "0.0010",
        "q": "100",
        "T": AT_MS,
        "m": True,
    }
    summed = {"e": "aggTrade", "E": 1, "s": "BNBUSDT", "a": 9, "p": "2.5", "q": "3", "T": AT_MS, "m": False}
    book = {"e": "depthUpdate", "E": 1, "s": "BTCUSDT", "U": 1, "u": 2, "b": [["1", "2"]], "a": [], "T": 5}
    broken = {**trade, "p": "much"}
    lines = [
        trade,
        {"stream": "bnbusdt@aggTrade", "data": summed},
        {"stream": "btcusdt@depth@100ms", "data": book},
        {"stream": "x@bookTicker", "data": {"u": 1, "s": "X", "b": "1", "B": "2", "a": "3", "A": "4"}},
        {"stream": "x@kline_1m", "data": {"e": "kline", "E": 1, "s": "X", "k": {"t": 1, "c": "3"}}},
        {"result": None, "id": 1},
        broken,
        "oops",
    ]
    result, rows = of(tmp_path, lines)
    assert result.account.to_dict() == {
        "read": 8,
        "counted": 2,
        "filtered": 4,
        "late": 0,
        "dead_lettered": 2,
    }
    assert result.refused[0] == "not JSON: byte 0" and "much" in result.refused[1]
    assert rows.rows() == [
        ("BNBUSDT", "Binance", 9, AT, 2.5, 3.0, "buy", 0, 2.5, 2.5, 2.5),
        ("BTCUSDT", "Binance", 7, AT, 0.001, 100.0, "sell", 0, 0.001, 0.001, 0.001),
    ]


def test_binance_s_microseconds(tmp_path: Path) -> None:
    us = AT_MS * 1000 + 456
    trade = {"e": "trade", "s": "BTCUSDT", "t": 7, "p": "1", "q": "1", "T": us, "m": True}
    _, rows = of(tmp_path, [trade])
    assert rows["at"][0] == AT.replace(microsecond=123_456)


def test_coinbase_says_the_maker_s_side(tmp_path: Path) -> None:
    match = {
        "type": "match",
        "trade_id": 5,
        "side": "sell",
        "size": "0.5",
        "price": "14.7",
        "product_id": "BAND-GBP",
        "sequence": 9,
        "time": "2021-04-17T16:43:30.244075Z",
    }
    ticker = {**match, "type": "ticker", "side": "buy", "last_size": "0.5", "best_bid": "1"}
    del ticker["size"]
    lines = [
        "wss://ws-feed.pro.coinbase.com <-> 1618677816.8434298",
        'wss://ws-feed.pro.coinbase.com <- 1618677817.02: {"type":"subscribe","channels":["matches"]}',
        f"1618677817.06: {json.dumps(match)}",
        ticker,
        {**match, "type": "last_match", "trade_id": 4},
        {"type": "l2update", "product_id": "X", "changes": [["sell", "1", "2"]], "time": "soon"},
        {**match, "trade_id": 6, "time": "soon"},
    ]
    result, rows = of(tmp_path, lines)
    account = result.account
    assert (account.read, account.counted, account.filtered, account.dead_lettered) == (7, 1, 4, 2)
    assert rows.select("seq", "side", "price", "size").rows() == [(5, "buy", 14.7, 0.5)]
    _, tickers = of(tmp_path, lines, events="ticker")
    assert tickers.select("seq", "side", "price", "size").rows() == [(5, "buy", 14.7, 0.5)]


def test_polygon_s_lists(tmp_path: Path) -> None:
    trade = {
        "ev": "T",
        "sym": "MSFT",
        "x": 4,
        "i": "12",
        "z": 3,
        "p": 114.125,
        "s": 100,
        "c": [0, 12],
        "t": AT_MS,
        "q": 31,
    }
    coin = {
        "ev": "XT",
        "pair": "BTC-USD",
        "p": 33021.9,
        "t": AT_MS,
        "s": 0.01,
        "c": [2],
        "i": "14272084",
        "x": 1,
    }
    bar = {
        "ev": "AM",
        "sym": "GTE",
        "v": 4110,
        "o": 0.4372,
        "c": 0.4488,
        "h": 0.45,
        "l": 0.4371,
        "s": AT_MS,
        "e": AT_MS + 60_000,
    }
    lines = [
        [{"ev": "status", "status": "connected"}],
        [trade, bar, {"ev": "Q", "sym": "MSFT", "bp": 1}],
        coin,
    ]
    result, rows = of(tmp_path, lines)
    account = result.account
    assert (account.read, account.counted, account.filtered) == (5, 3, 2)
    assert rows.rows() == [
        ("BTC-USD", "1", 14272084, AT, 33021.9, 0.01, "buy", 0, 33021.9, 33021.9, 33021.9),
        ("GTE", None, None, AT, 0.4488, 4110.0, None, 60, 0.4372, 0.45, 0.4371),
        ("MSFT", "4", 31, AT, 114.125, 100.0, None, 0, 114.125, 114.125, 114.125),
    ]


def test_alpaca_s_lists(tmp_path: Path) -> None:
    trade = {
        "T": "t",
        "i": 96921,
        "S": "AAPL",
        "x": "D",
        "p": 126.55,
        "s": 1,
        "t": ISO,
        "c": ["@", "I"],
        "z": "C",
    }
    coin = {"T": "t", "S": "BTC/USD", "p": 45000.5, "s": 0.2, "t": ISO, "i": 3, "tks": "S"}
    bar = {"T": "b", "S": "SPY", "o": 388.9, "h": 389.1, "l": 388.7, "c": 389.0, "v": 49378, "t": ISO}
    day = {**bar, "T": "d", "t": "2021-02-22T05:00:00Z"}
    lines = [
        [{"T": "success", "msg": "connected"}],
        [trade, bar],
        coin,
        day,
        {"T": "q", "S": "A", "bp": 1, "t": ISO},
    ]
    result, rows = of(tmp_path, lines)
    assert (result.account.read, result.account.counted, result.account.filtered) == (6, 3, 3)
    assert rows.select("symbol", "venue", "seq", "price", "size", "side", "span").rows() == [
        ("AAPL", "D", 96921, 126.55, 1.0, None, 0),
        ("BTC/USD", None, 3, 45000.5, 0.2, "sell", 0),
        ("SPY", None, None, 389.0, 49378.0, None, 60),
    ]
    assert set(rows["at"]) == {AT}
    _, days = of(tmp_path, lines, events="d")
    assert days.select("at", "span").rows() == [(datetime(2021, 2, 22, tzinfo=UTC), 86_400)]


def test_a_list_of_events_in_one_message_is_rows() -> None:
    from streamgauge.apps.app import Message

    from ..tried import fed

    job = Job.of(app_of("stocks"), "alpaca")
    trade = {"T": "t", "S": "AAPL", "x": "D", "p": 126.55, "s": 1, "t": ISO}
    frame = [{**trade, "i": number} for number in range(3)]
    result = fed(job, [Message(json.dumps(frame).encode())], parts=["tape"])
    assert result.account.counted == 1 and result.tables["tape"].num_rows == 3


@pytest.mark.parametrize(("format", "wrong"), [("binance", "kline"), ("coinbase", ""), ("alpaca", "t,z")])
def test_events_that_there_are_not_are_refused(format: str, wrong: str) -> None:
    from streamgauge.apps.app import Feed

    job = Job.of(app_of("stocks"), format, {"events": wrong})
    with pytest.raises(ValueError, match="--set events="):
        job.streams(Feed("t", "nowhere:1"))


@pytest.mark.slow
def test_polygon_s_trades_are_named_by_their_ids_not_by_sequence_numbers(tmp_path: Path) -> None:
    def trade(number: str | None, size: int, q: int = 7, **more: int) -> dict:
        stamp = {"t": 1_780_000_000_000, "q": q}
        return {"ev": "T", "sym": "AB", "x": 4, "i": number, "p": 9.5, "s": size, "z": 1, **stamp, **more}

    sent = [trade("1", 100), trade("2", 100), trade("3", 300), trade("3", 300), trade("4", 5, q=8)]
    # The same trade again under another number; one id at two facilities; trades without an id.
    sent += [trade("4", 5, q=9), trade("4", 6, q=10, trfi=201), trade(None, 7, q=11), trade(None, 8, q=12)]
    path = tmp_path / "trades.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in sent))
    result = tried(path, format="polygon")
    (day,) = pl.from_arrow(result.tables["movers"]).select("symbol").rows()
    assert day == ("AB",)
    assert [alert["key"][:3] for alert in result.of("duplicate")] == [["AB", "4", "3 1"], ["AB", "4", "4 1"]]
    flow = query(result.tables["flow"])
    assert flow["trades"].to_list() == [7]
    assert not result.of("out of order")
    late = [trade("1", 100, q=9), trade("2", 100, q=8)]
    path.write_text("".join(json.dumps(one) + "\n" for one in late))
    assert len(tried(path, format="polygon", parts=["tape"]).of("out of order")) == 1
