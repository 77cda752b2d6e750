"""What more exchanges send, as their documentation or recordings have it: sides, times, ids, lists."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from streamgauge.apps.app import Message
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.registry import app_of
from streamgauge.operators.table.query import query

from ....agents.ingest.exchanges import AT as TRADED_MS
from ....agents.ingest.exchanges import EXCHANGES, Exchange
from ..tried import Tried, fed, tried

AT_MS = 1_700_000_000_123
AT = datetime.fromtimestamp(AT_MS // 1000, UTC).replace(microsecond=123_000)


def of(tmp_path: Path, lines: list[Any], format: str, **given: str) -> tuple[Tried, pl.DataFrame]:
    path = tmp_path / "feed.txt"
    path.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines) + "\n")
    assert Job.of(app_of("stocks"), recording=path).form.name == format
    result = tried(path, given, parts=["tape"])
    names = ["symbol", "seq", "at", "price", "size", "value", "side"]
    return result, query(result.tables["tape"]).select(names).sort("symbol", "at", "price")


def account(result: Tried) -> tuple[int, int, int]:
    """How many messages were counted, filtered, dead-lettered."""
    return result.account.counted, result.account.filtered, result.account.dead_lettered


@pytest.mark.slow
@pytest.mark.parametrize("exchange", EXCHANGES, ids=[one.preset for one in EXCHANGES])
def test_what_a_preset_brings_is_read(exchange: Exchange) -> None:
    job = Job.of(app_of("stocks"), exchange.preset.partition("-")[0])
    both = (*exchange.others, *exchange.trades)
    sent = [Message(json.dumps(one).encode(), None, TRADED_MS) for one in both]
    result = fed(job, sent, parts=["tape"])
    assert account(result) == (len(exchange.trades), len(exchange.others), 0)
    rows = query(result.tables["tape"])
    assert rows.height == 1 and rows["side"].is_not_null().all() and rows["value"][0] > 0


def test_okcoin_s_recordings_are_not_okx_s(tmp_path: Path) -> None:
    trade = {"instId": "BTC-USD", "tradeId": "9", "px": "0.016", "sz": "50", "side": "buy", "ts": str(AT_MS)}
    frame = json.dumps({"arg": {"channel": "trades", "instId": "BTC-USD"}, "data": [trade]})
    path = tmp_path / "feed.txt"
    for host, recognised in (("ws.okx.com", True), ("real.okcoin.com", False)):
        path.write_text(f"wss://{host}:8443/ws/v5/public <-> 1685221666.3\n{frame}\n")
        if recognised:
            assert Job.of(app_of("stocks"), recording=path).form.name == "okx"
        else:
            with pytest.raises(ValueError, match=r"recorded from real\.okcoin\.com, matches no format"):
                Job.of(app_of("stocks"), recording=path)


def test_okx_s_lists(tmp_path: Path) -> None:
    trade = {"instId": "BTC-USDT", "tradeId": "9", "px": "0.016", "sz": "50", "side": "buy", "ts": str(AT_MS)}
    more = {**trade, "tradeId": "10", "px": "0.017", "side": "sell"}
    swap = {**trade, "instId": "BTC-USDT-SWAP", "tradeId": "3"}
    lines = [
        {"event": "subscribe", "arg": {"channel": "trades", "instId": "BTC-USDT"}},
        {"arg": {"channel": "trades", "instId": "BTC-USDT"}, "data": [trade, more]},
        {"arg": {"channel": "trades-all", "instId": "BTC-USDT-SWAP"}, "data": [swap]},
        {"arg": {"channel": "books", "instId": "BTC-USDT"}, "action": "update", "data": [{"asks": []}]},
        {"arg": {"channel": "candle1D", "instId": "BTC-USDT"}, "data": [["1597026383085", "8533.02"]]},
        {"arg": {"channel": "trades", "instId": "BTC-USDT"}, "data": [{**trade, "px": "much"}]},
        {"arg": {"channel": "trades", "instId": "BTC-USDT"}, "data": [3]},
        "pong",
    ]
    result, rows = of(tmp_path, lines, "okx")
    assert account(result) == (2, 3, 3)
    assert '"data[0]" is 3, not an object' in result.refused
    assert rows.rows() == [
        ("BTC-USDT", 9, AT, 0.016, 50.0, pytest.approx(0.8), "buy"),
        ("BTC-USDT", 10, AT, 0.017, 50.0, pytest.approx(0.85), "sell"),
        ("BTC-USDT-SWAP", 3, AT, 0.016, 50.0, None, "buy"),
    ]
    assert of(tmp_path, lines, "okx", events="trades-all")[1]["symbol"].to_list() == ["BTC-USDT-SWAP"]


def test_bybit_s_trades_of_both_versions(tmp_path: Path) -> None:
    id_ = "20f43950-d8dd-5b31-9112-a178eb6023af"
    now = {"T": AT_MS, "s": "BTCUSDT", "S": "Buy", "v": "0.001", "p": "16578.50", "i": id_, "BT": False}
    before = {
        "trade_time_ms": AT_MS,
        "symbol": "BTCUSD",
        "side": "Sell",
        "size": 97,
        "price": 60622.5,
        "trade_id": "413bca3a-34a8-50aa-a2ae-47ad720be505",
    }
    lines = [
        {"success": True, "op": "subscribe"},
        {
            "topic": "publicTrade.BTCUSDT",
            "type": "snapshot",
            "ts": AT_MS,
            "data": [now, {**now, "i": "7", "p": "2"}],
        },
        {"topic": "trade.BTCUSD", "data": [before]},
        {
            "topic": "orderbook.50.BTCUSDT",
            "type": "delta",
            "ts": 1,
            "data": {"s": "BTCUSDT", "b": [["1", "2"]]},
        },
    ]
    result, rows = of(tmp_path, lines, "bybit")
    assert account(result) == (2, 2, 0)
    assert rows.rows() == [
        ("BTCUSD", -293785811714475275, AT, 60622.5, 97.0, 97.0, "sell"),
        ("BTCUSDT", 7, AT, 2.0, 0.001, pytest.approx(0.002), "buy"),
        ("BTCUSDT", -148411620183102900, AT, 16578.5, 0.001, pytest.approx(16.5785), "buy"),
    ]
    # The same id counts once, and ids that are no numbers have no order.
    assert not result.of("out of order") and not result.of("duplicate")
    twice, _ = of(tmp_path, [*lines, lines[2]], "bybit")
    assert [one["key"] for one in twice.of("duplicate")] == [["BTCUSD", "Bybit", -293785811714475275]]


def test_kraken_s_three_kinds_of_frames(tmp_path: Path) -> None:
    first = [
        337,
        [
            ["5541.20000", "0.15850568", "1700000000.123000", "s", "l", ""],
            ["6060.0", "2.0", "1700000000.123000", "b", "m", ""],
        ],
        "trade",
        "XBT/USD",
    ]
    second = {
        "symbol": "MATIC/USD",
        "side": "sell",
        "price": 0.5117,
        "qty": 40.0,
        "ord_type": "market",
        "trade_id": 4665906,
        "timestamp": "2023-11-14T22:13:20.123000Z",
    }
    futures = {
        "feed": "trade",
        "product_id": "PI_XBTUSD",
        "uid": "05af78ac-a774-478c-a50c-8b9c234e071e",
        "side": "sell",
        "type": "fill",
        "seq": 653355,
        "time": AT_MS,
        "qty": 15000,
        "price": 34969.5,
    }
    lines = [
        {"event": "systemStatus", "status": "online", "version": "1.8.3"},
        {"channelID": 337, "channelName": "trade", "event": "subscriptionStatus", "pair": "XBT/USD"},
        first,
        [0, {"as": [["5541.30000", "2.50700000", "1534614248.123678"]]}, "book-100", "XBT/USD"],
        {"channel": "trade", "type": "snapshot", "data": [{**second, "trade_id": 4665905}]},
        {"channel": "trade", "type": "update", "data": [second]},
        {"channel": "heartbeat"},
        {"event": "subscribed", "feed": "trade", "product_ids": ["PI_XBTUSD"]},
        {"feed": "trade_snapshot", "product_id": "PI_XBTUSD", "trades": [futures]},
        futures,
        [337, 5],
        [337, [["x"]], "trade", "XBT/USD"],
    ]
    result, rows = of(tmp_path, lines, "kraken")
    assert account(result) == (3, 7, 2)
    assert rows.drop("seq").rows() == [
        ("MATIC/USD", AT, 0.5117, 40.0, pytest.approx(20.468), "sell"),
        ("PI_XBTUSD", AT, 34969.5, 15000.0, 15000.0, "sell"),
        ("XBT/USD", AT, 5541.2, 0.15850568, pytest.approx(878.31167), "sell"),
        ("XBT/USD", AT, 6060.0, 2.0, 12120.0, "buy"),
    ]
    # Trades of one time without ids stay two, and none is a duplicate.
    assert not result.of("duplicate") and not result.of("out of order")


def test_bitstamp_s_types(tmp_path: Path) -> None:
    data = {
        "id": 216000506,
        "timestamp": "1700000000",
        "amount": 2.73248242,
        "amount_str": "2.73248242",
        "price": 3800.8,
        "price_str": "3800.80",
        "type": 1,
        "microtimestamp": "1700000000123000",
        "buy_order_id": 1443875826053121,
    }
    trade = {"data": data, "channel": "live_trades_ethusd", "event": "trade"}
    lines = [
        {"event": "bts:subscription_succeeded", "channel": "live_trades_ethusd", "data": {}},
        trade,
        {**trade, "data": {**data, "id": 216000507, "type": 0, "price_str": "3801"}},
        {"data": {"bids": [["1", "2"]]}, "channel": "diff_order_book_ethusd", "event": "data"},
        {"event": "bts:request_reconnect", "channel": "", "data": ""},
    ]
    result, rows = of(tmp_path, lines, "bitstamp")
    assert account(result) == (2, 3, 0)
    assert rows.select("symbol", "seq", "at", "price", "side").rows() == [
        ("ethusd", 216000506, AT, 3800.8, "sell"),
        ("ethusd", 216000507, AT, 3801.0, "buy"),
    ]


def test_gemini_s_takers(tmp_path: Path) -> None:
    trade = {
        "type": "trade",
        "symbol": "BTCUSD",
        "event_id": 3575573053,
        "timestamp": AT_MS,
        "price": "9004.21000000",
        "quantity": "0.09110000",
        "side": "buy",
        "tid": 2840140800042677,
    }
    without = {key: value for key, value in trade.items() if key != "tid"}
    lines = [
        {"type": "l2_updates", "symbol": "BTCUSD", "changes": [["buy", "1", "2"]], "trades": [trade]},
        trade,
        {**without, "side": "sell", "price": "9005"},
        {"type": "heartbeat", "timestamp": AT_MS},
    ]
    result, rows = of(tmp_path, lines, "gemini")
    assert account(result) == (2, 2, 0)
    assert rows.select("symbol", "seq", "at", "price", "side").rows() == [
        ("BTCUSD", 2840140800042677, AT, 9004.21, "buy"),
        ("BTCUSD", 3575573053, AT, 9005.0, "sell"),
    ]


def test_deribit_s_amounts(tmp_path: Path) -> None:
    trade = {
        "trade_seq": 30289442,
        "trade_id": "48079269",
        "timestamp": AT_MS,
        "price": 8950.0,
        "instrument_name": "BTC-PERPETUAL",
        "index_price": 8955.88,
        "direction": "sell",
        "amount": 10.0,
    }
    option = {**trade, "instrument_name": "BTC-24SEP21-40000-P", "price": 0.05, "amount": 2.0, "trade_seq": 4}

    def sent(channel: str, data: Any) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "method": "subscription", "params": {"channel": channel, "data": data}}

    lines = [
        {"jsonrpc": "2.0", "id": 0, "result": ["trades.BTC-PERPETUAL.raw"]},
        sent("trades.BTC-PERPETUAL.raw", [trade]),
        sent("trades.option.BTC.100ms", [option]),
        sent("ticker.BTC-PERPETUAL.raw", {"timestamp": AT_MS, "last_price": 8950.0}),
        sent("book.BTC-PERPETUAL.raw", {"bids": [["new", 1, 2]]}),
    ]
    result, rows = of(tmp_path, lines, "deribit")
    assert account(result) == (2, 3, 0)
    assert rows.rows() == [
        ("BTC-24SEP21-40000-P", 4, AT, 0.05, 2.0, None, "sell"),
        ("BTC-PERPETUAL", 30289442, AT, 8950.0, 10.0, 10.0, "sell"),
    ]
    assert of(tmp_path, lines, "deribit", rates="BTC=40000")[1]["value"][0] == pytest.approx(4000)


def test_databento_s_records_plain_and_readable(tmp_path: Path) -> None:
    header = {"ts_event": "1700000000123000000", "rtype": 0, "publisher_id": 2, "instrument_id": 38}
    trade = {
        "action": "T",
        "side": "A",
        "depth": 0,
        "price": "114125000000",
        "size": 100,
        "flags": 0,
        "sequence": 7,
    }
    readable = {
        "hd": {**header, "ts_event": "2023-11-14T22:13:20.123000000Z"},
        **trade,
        "side": "B",
        "price": "114.250000000",
        "symbol": "MSFT",
    }
    mbo = {"hd": {**header, "rtype": 160, "publisher_id": 1}, "order_id": "5", **trade, "symbol": "ESZ3"}
    bar = {
        "hd": {**header, "rtype": 33},
        "open": "1000000000",
        "high": "3000000000",
        "low": "500000000",
        "close": "2000000000",
        "volume": "40",
        "symbol": "GTE",
    }
    lines = [
        {"hd": header, **trade},
        readable,
        mbo,
        {**mbo, "action": "F"},
        {**mbo, "action": "A", "price": "9223372036854775807"},
        bar,
    ]
    result, rows = of(tmp_path, lines, "databento")
    assert account(result) == (4, 2, 0)
    assert rows.drop("seq").rows() == [
        ("38", AT, 114.125, 100.0, 11412.5, "sell"),
        ("ESZ3", AT, 114.125, 100.0, None, "sell"),
        ("GTE", AT, 2.0, 40.0, 80.0, None),
        ("MSFT", AT, 114.25, 100.0, 11425.0, "buy"),
    ]
    spread = {"hd": header, **trade, "price": "-37630000000", "symbol": "CLK0"}
    assert of(tmp_path, [spread, {**spread, "price": "-0.25"}, {**spread, "price": "0"}], "databento")[1][
        "price"
    ].to_list() == [-37.63, -0.25, 0.0]
    definitions = tmp_path / "definitions.json"
    definition = {"hd": header, "raw_symbol": "ESZ3", "unit_of_measure_qty": "50000000000", "currency": "USD"}
    definitions.write_text(json.dumps(definition))
    _, rows = of(tmp_path, lines, "databento", instruments=str(definitions))
    assert rows["value"][1] == pytest.approx(114.125 * 100 * 50)


def test_iex_s_messages_in_three_forms(tmp_path: Path) -> None:
    data = {
        "price": 156.1,
        "size": 100,
        "tradeId": 517341294,
        "isISO": False,
        "isSinglePriceCross": False,
        "timestamp": AT_MS,
    }
    deep = {"symbol": "SNAP", "messageType": "trades", "data": data, "seq": 142124}
    cross = {**deep, "data": {**data, "price": 156.2, "tradeId": 517341295, "isSinglePriceCross": True}}
    hist = {
        "type": "trade_report",
        "flags": 8,
        "timestamp": "2023-11-14T22:13:20.123000+00:00",
        "symbol": "ZVZZT",
        "size": 5,
        "price": 100.05,
        "trade_id": 429974,
    }
    lines = [
        deep,
        cross,
        hist,
        [{"symbol": "AIG", "price": 111.76, "size": 5, "time": AT_MS}],
        {"symbol": "SNAP", "messageType": "book", "data": {"bids": []}, "seq": 1},
        {
            "type": "quote_update",
            "flags": 0,
            "timestamp": "2023-11-14T22:13:20+00:00",
            "symbol": "A",
            "bid_size": 1,
        },
    ]
    result, rows = of(tmp_path, lines, "iex")
    assert account(result) == (4, 2, 0)
    assert rows.select("symbol", "at", "price", "size", "side").rows() == [
        ("AIG", AT, 111.76, 5.0, None),
        ("SNAP", AT, 156.1, 100.0, None),
        ("SNAP", AT, 156.2, 100.0, None),
        ("ZVZZT", AT, 100.05, 5.0, None),
    ]
    auctions = query(result.tables["tape"]).sort("symbol", "price").select("auction").to_series().to_list()
    assert auctions == [None, None, "crossing", "crossing"]
    odd = [
        {**hist, "flags": 0x60},
        {**deep, "data": {**data, "isOddLot": True}},
        {**hist, "flags": 0x40, "trade_id": 7},
    ]
    tape = query(of(tmp_path, odd, "iex")[0].tables["tape"]).sort("symbol", "number")
    assert tape["unpriced"].to_list() == ["odd lot", None, "odd lot"]


def test_trades_without_a_number_are_not_one(tmp_path: Path) -> None:
    trade = {"T": "t", "S": "AAPL", "x": "D", "p": 126.55, "s": 100, "t": "2026-06-01T14:00:00Z"}
    path = tmp_path / "feed.jsonl"
    path.write_text(json.dumps([trade, {**trade, "s": 20_000}, trade]) + "\n")
    result = tried(path, parts=["tape"])
    assert sorted(query(result.tables["tape"])["size"]) == [100, 100, 20_000]
    assert len(result.of("block by shares")) == 1 and not result.of("duplicate")
