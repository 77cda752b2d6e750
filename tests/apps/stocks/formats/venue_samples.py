"""What venues send, made up in the form that their documentation has, and what must be read of it."""

from __future__ import annotations

import gzip
from typing import Any, NamedTuple


class Sample(NamedTuple):
    """Frames with trades, other frames of the venue, and the trades.

    A trade is its symbol, price, size, the taker's side, its number (None without one, a name below 0 as -1),
    and its value in dollars (None if only the venue's file tells).
    """

    format: str
    trades: list[Any]
    others: list[Any]
    rows: list[tuple[str, float, float, str | None, int | None, float | None]]


AT_MS = 1_700_000_000_123
ISO = "2023-11-14T22:13:20.123"
"""The time of all trades."""


def _bitget(kind: str, instrument: str, data: list[Any], action: str = "update") -> dict[str, Any]:
    topic = {"instType": kind, "channel": "trade", "instId": instrument}
    return {"action": action, "arg": topic, "data": data, "ts": AT_MS}


def _coinbase(kind: str, *trades: dict[str, Any]) -> dict[str, Any]:
    return {
        "channel": "market_trades",
        "client_id": "",
        "timestamp": f"{ISO}Z",
        "sequence_num": 7,
        "events": [{"type": kind, "trades": list(trades)}],
    }


_PUMP = {"trade_id": "41", "product_id": "DOGE-USD", "price": "0.5", "size": "8", "time": f"{ISO}456Z"}
_COIN = {"coin": "SOL", "side": "A", "px": "150.5", "sz": "2", "hash": "0x0", "time": AT_MS, "tid": 99}
_GUID = "20f43950-d8dd-5b31-9112-a178eb6023af"
_MEX = {"timestamp": f"{ISO}Z", "symbol": "XBTUSD", "side": "Sell", "size": 300, "price": 60000.5}
_MEX |= {"tickDirection": "ZeroMinusTick", "trdMatchID": _GUID, "homeNotional": 0.005}
_FLY = {"id": 71, "side": "BUY", "price": 6e6, "size": 0.01, "exec_date": f"{ISO}0063Z"}
_KRW = {"code": "KRW-BTC", "trade_price": 9e7, "trade_volume": 0.5, "ask_bid": "BID", "sequential_id": 17}
_KRW |= {"type": "trade", "timestamp": AT_MS + 9, "trade_timestamp": AT_MS, "change": "RISE"}
_SHORT = {"ty": "trade", "cd": "USDT-ETH", "tms": AT_MS + 9, "ttms": AT_MS, "tp": 3e3, "tv": 2, "ab": "ASK"}
_GATE = {"id": 5, "create_time": AT_MS // 1000, "create_time_ms": f"{AT_MS}.4578", "side": "sell"}
_HTX = {"id": 10**25, "ts": AT_MS, "tradeId": 31, "amount": 4, "price": 2.5, "direction": "sell"}
_ROLES = {"type": "all_trades", "product_id": 8, "timestamp": AT_MS * 1000}

SAMPLES = [
    Sample(
        "coinbase-advanced",
        # The side is the maker's.
        [_coinbase("update", {**_PUMP, "side": "SELL"}, {**_PUMP, "trade_id": "42", "side": "BUY"})],
        [
            {"type": "subscribe", "product_ids": ["DOGE-USD"], "channel": "market_trades"},
            _coinbase("snapshot", {**_PUMP, "side": "SELL"}),
            {**_coinbase("update"), "channel": "heartbeats", "events": [{"heartbeat_counter": "3"}]},
        ],
        [("DOGE-USD", 0.5, 8.0, "buy", 41, 4.0), ("DOGE-USD", 0.5, 8.0, "sell", 42, 4.0)],
    ),
    Sample(
        "bitmex",
        [{"table": "trade", "action": "insert", "data": [_MEX, {**_MEX, "symbol": "ETHUSD", "price": 3e3}]}],
        [
            {"success": True, "subscribe": "trade:XBTUSD", "request": {"op": "subscribe", "args": []}},
            {"table": "trade", "action": "partial", "keys": [], "data": [_MEX]},
            {"table": "orderBookL2", "action": "update", "data": [{"symbol": "XBTUSD", "id": 1, "size": 5}]},
        ],
        # What a contract on ether is worth in bitcoin, no name tells.
        [("ETHUSD", 3e3, 300.0, "sell", -1, None), ("XBTUSD", 60000.5, 300.0, "sell", -1, 300.0)],
    ),
    Sample(
        "dydx",
        [
            {
                "type": "channel_data",
                "id": "ETH-USD",
                "channel": "v3_trades",
                "contents": {
                    "trades": [{"size": "2", "side": "SELL", "price": "3000", "createdAt": f"{ISO}Z"}]
                },
            },
            {
                "type": "channel_batch_data",
                "id": "BTC-USD",
                "channel": "v4_trades",
                "contents": [
                    {
                        "trades": [
                            {
                                "id": "00ab",
                                "size": "0.5",
                                "side": "BUY",
                                "price": "6e4",
                                "createdAt": f"{ISO}Z",
                                "type": "LIMIT",
                            }
                        ]
                    }
                ],
            },
        ],
        [
            {"type": "subscribed", "channel": "v4_trades", "id": "ETH-USD", "contents": {"trades": [{}]}},
            {"type": "channel_data", "channel": "v3_orderbook", "id": "A-USD", "contents": {"asks": []}},
        ],
        [("BTC-USD", 6e4, 0.5, "buy", -1, 3e4), ("ETH-USD", 3e3, 2.0, "sell", None, 6e3)],
    ),
    Sample(
        "hyperliquid",
        [{"channel": "trades", "data": [_COIN, {**_COIN, "coin": "@107", "side": "B"}]}],
        [
            {"channel": "subscriptionResponse", "data": {"method": "subscribe", "subscription": {}}},
            {"channel": "l2Book", "data": {"coin": "SOL", "levels": [[], []], "time": AT_MS}},
        ],
        [("@107", 150.5, 2.0, "buy", -1, None), ("SOL", 150.5, 2.0, "sell", -1, 301.0)],
    ),
    Sample(
        "bitget",
        [
            _bitget("sp", "EOSUSDT", [[str(AT_MS), "2.5", "4", "buy"]]),
            _bitget(
                "SPOT",
                "TRXUSDT",
                [{"ts": str(AT_MS), "price": "0.25", "size": "8", "side": "sell", "tradeId": "13"}],
            ),
            _bitget("mc", "BTCUSD", [[str(AT_MS), "60000", "4", "buy"]]),
        ],
        [
            {"event": "subscribe", "arg": {"instType": "sp", "channel": "trade", "instId": "EOSUSDT"}},
            _bitget("sp", "EOSUSDT", [[str(AT_MS), "2.5", "4", "buy"]], "snapshot"),
            {
                "action": "update",
                "arg": {"instType": "sp", "channel": "books", "instId": "EOSUSDT"},
                "data": [],
            },
        ],
        [
            ("BTCUSD", 6e4, 4.0, "buy", None, None),
            ("EOSUSDT", 2.5, 4.0, "buy", None, 10.0),
            ("TRXUSDT", 0.25, 8.0, "sell", 13, 2.0),
        ],
    ),
    Sample(
        "bitflyer",
        [
            {
                "jsonrpc": "2.0",
                "method": "channelMessage",
                "params": {"channel": "lightning_executions_FX_BTC_JPY", "message": [_FLY]},
            },
            {
                "jsonrpc": "2.0",
                "method": "channelMessage",
                # An auction has no taker.
                "params": {
                    "channel": "lightning_executions_ETH_JPY",
                    "message": [{**_FLY, "side": "", "id": 72}],
                },
            },
        ],
        [
            {
                "method": "subscribe",
                "params": {"channel": "lightning_executions_BTC_JPY"},
            },
            {
                "jsonrpc": "2.0",
                "method": "channelMessage",
                "params": {"channel": "lightning_board_BTC_JPY", "message": {"mid_price": 1, "bids": []}},
            },
        ],
        [("ETH_JPY", 6e6, 0.01, None, 72, 600.0), ("FX_BTC_JPY", 6e6, 0.01, "buy", 71, 600.0)],
    ),
    Sample(
        "delta",
        [
            {**_ROLES, "symbol": "BTC_USDT", "price": "60000", "size": "0.5", "buyer_role": "taker"},
            {**_ROLES, "symbol": "BTCUSD", "price": "60000", "size": 9, "buyer_role": "maker"},
        ],
        [
            {"type": "subscriptions", "channels": [{"name": "all_trades", "symbols": ["BTCUSD"]}]},
            {"type": "all_trades_snapshot", "symbol": "BTCUSD", "trades": []},
            {"type": "l2_orderbook", "symbol": "BTCUSD", "product_id": 27, "buy": []},
        ],
        [("BTCUSD", 6e4, 9.0, "sell", None, None), ("BTC_USDT", 6e4, 0.5, "buy", None, 3e4)],
    ),
    Sample(
        "upbit",
        [{**_KRW, "stream_type": "REALTIME"}, {**_SHORT, "sid": 18, "st": "REALTIME"}],
        [
            {**_KRW, "stream_type": "SNAPSHOT"},
            {"type": "orderbook", "code": "KRW-BTC", "stream_type": "REALTIME", "orderbook_units": []},
        ],
        [("KRW-BTC", 9e7, 0.5, "buy", -1, 45e3), ("USDT-ETH", 3e3, 2.0, "sell", -1, 6e3)],
    ),
    Sample(
        "htx",
        [
            {"ch": "market.trxusdt.trade.detail", "ts": AT_MS, "tick": {"id": 1, "ts": 2, "data": [_HTX]}},
            {
                "ch": "market.BTC-USD.trade.detail",
                "ts": AT_MS,
                "tick": {"data": [{**_HTX, "tradeId": None, "quantity": "0.01", "direction": "buy"}]},
            },
        ],
        [
            {"id": "1", "subbed": "market.trxusdt.trade.detail", "status": "ok", "ts": AT_MS},
            {"ping": AT_MS},
            {"ch": "market.trxusdt.depth.step0", "ts": AT_MS, "tick": {"bids": [], "asks": []}},
        ],
        [("BTC-USD", 2.5, 4.0, "buy", -1, None), ("trxusdt", 2.5, 4.0, "sell", 31, 10.0)],
    ),
    Sample(
        "gate",
        [
            {
                "time": 1,
                "channel": "spot.trades",
                "event": "update",
                "result": {**_GATE, "currency_pair": "GT_USDT", "amount": "4", "price": "5"},
            }
        ],
        [
            {"time": 1, "channel": "spot.trades", "event": "subscribe", "result": {"status": "success"}},
            {"time": 1, "channel": "spot.tickers", "event": "update", "result": {"last": "5"}},
        ],
        [("GT_USDT", 5.0, 4.0, "sell", 5, 20.0)],
    ),
    Sample(
        "gate-futures",
        [
            {
                "time": 1,
                "channel": "futures.trades",
                "event": "update",
                "result": [
                    {"size": -108, "id": 6, "create_time_ms": AT_MS, "price": "96.4", "contract": "BTC_USD"},
                    {"size": 7, "id": 7, "create_time_ms": AT_MS, "price": "96.5", "contract": "BTC_USD"},
                ],
            }
        ],
        [{"time": 1, "channel": "futures.trades", "event": "subscribe", "result": {"status": "success"}}],
        [("BTC_USD", 96.4, 108.0, "sell", 6, None), ("BTC_USD", 96.5, 7.0, "buy", 7, None)],
    ),
]

PACKED = gzip.compress(b'{"ch":"market.trxusdt.trade.detail","ts":1,"tick":{"data":[]}}')
"""A frame as HTX sends it."""

FOREIGN: dict[str, list[Any]] = {
    "BIT.COM": [
        {"type": "subscribe", "channels": ["depth"], "pairs": ["BTC-USD"]},
        {
            "channel": "trade",
            "timestamp": 1,
            "data": [{"created_at": 1, "trade_id": "1", "pair": "A-B", "price": "7"}],
        },
    ],
    "Tradier": [{"type": "trade", "symbol": "SPY", "exch": "J", "price": "281.85", "size": "100"}],
    "HitBTC": [{"jsonrpc": "2.0", "method": "updateTrades", "params": {"symbol": "A", "data": [{"id": 1}]}}],
    "Pacifica": [{"channel": "trades", "data": [{"h": 8, "s": "BTC", "a": "0.1", "p": "8", "t": AT_MS}]}],
    "Poloniex": [
        {"channel": "trades", "data": [{"symbol": "BTC_USDT", "quantity": "4", "takerSide": "buy"}]}
    ],
    "KuCoin": [{"topic": "/market/match:A-B", "type": "message", "data": {"symbol": "A-B", "price": "1"}}],
    "Bitfinex": [
        {"event": "subscribed", "channel": "trades", "chanId": 1, "symbol": "tBTCUSD"},
        [1, "te", [2, AT_MS, 1, 6e4]],
    ],
    "Finnhub": [{"type": "trade", "data": [{"s": "AAPL", "p": 7, "v": 1, "t": AT_MS}]}],
}
"""Frames of venues that nothing here reads, some of which look like those of others."""
