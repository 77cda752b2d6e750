"""What exchanges hear and send, as their documentation has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Exchange(NamedTuple):
    """A preset, what it is given, what the exchange has to hear, and what it sends then.

    These are trades, others that go into the topic, and what the preset drops.
    """

    preset: str
    given: dict[str, str]
    requests: list[Any]
    trades: list[Any]
    others: list[Any]
    dropped: list[Any]
    error: Any
    """What it says of a subscription that it refuses."""
    numbered: list[Any]
    """Further trades, of which some are missing; `missing` is what a warning says of that."""
    missing: tuple[str, ...] = ()


def _numbered(make: Callable[[int], Any]) -> list[Any]:
    return [make(number) for number in (7, 8, 8, 12, 13)]


AT = 1_780_315_200_123
EXCHANGES = [
    Exchange(
        "coinbase",
        {"products": "BTC-USD"},
        [{"type": "subscribe", "product_ids": ["BTC-USD"], "channels": ["matches"]}],
        [
            {"type": "match", "trade_id": 6, "side": "sell", "size": "5.2", "price": "400.23"}
            | {"product_id": "BTC-USD", "time": "2026-01-01T00:00:00.028459Z"}
        ],
        [],
        [{"type": "subscriptions", "channels": [{"name": "matches", "product_ids": ["BTC-USD"]}]}],
        {"type": "error", "message": "Failed to subscribe", "reason": "X-Y is not a valid product"},
        _numbered(lambda n: {"type": "match", "trade_id": n, "product_id": "BTC-USD"}),
        ("3 messages of BTC-USD are missing (trade_id 9 to 11)",),
    ),
    Exchange(
        "binance",
        {"symbols": "BTCUSDT"},
        [],
        [
            {
                "stream": "btcusdt@trade",
                "data": {"e": "trade", "s": "BTCUSDT", "t": 6, "p": "0.001", "q": "100", "m": True}
                | {"E": 1767225600100, "T": 1767225600100},
            }
        ],
        [],
        [],
        {"error": {"code": 2, "msg": "Invalid request: unknown variant"}},
        _numbered(lambda n: {"stream": "btcusdt@trade", "data": {"e": "trade", "s": "BTCUSDT", "t": n}}),
        ("3 messages of BTCUSDT are missing (data.t 9 to 11)",),
    ),
    Exchange(
        "okx",
        {"instruments": "BTC-USDT, BTC-USD-SWAP"},
        [
            {
                "op": "subscribe",
                "args": [
                    {"channel": "trades", "instId": "BTC-USDT"},
                    {"channel": "trades", "instId": "BTC-USD-SWAP"},
                ],
            }
        ],
        [
            {
                "arg": {"channel": "trades", "instId": "BTC-USDT"},
                "data": [
                    {
                        "instId": "BTC-USDT",
                        "tradeId": "130639474",
                        "px": "42219.9",
                        "sz": "0.12060306",
                        "side": "buy",
                        "ts": str(AT),
                        "count": "3",
                    }
                ],
            }
        ],
        [{"event": "subscribe", "arg": {"channel": "trades", "instId": "BTC-USDT"}, "connId": "a4d3ae55"}],
        ["pong"],
        {"event": "error", "code": "60012", "msg": "Invalid request", "connId": "a4d3ae55"},
        _numbered(
            lambda n: {
                "arg": {"channel": "trades", "instId": "BTC-USDT"},
                "data": [{"instId": "BTC-USDT", "tradeId": str(n)}],
            }
        ),
    ),
    Exchange(
        "bybit",
        {"category": "inverse", "symbols": ",".join(f"S{n}USD" for n in range(12))},
        [
            {"op": "subscribe", "args": [f"publicTrade.S{n}USD" for n in range(10)]},
            {"op": "subscribe", "args": ["publicTrade.S10USD", "publicTrade.S11USD"]},
        ],
        [
            {
                "topic": "publicTrade.S1USD",
                "type": "snapshot",
                "ts": AT,
                "data": [
                    {
                        "T": AT,
                        "s": "S1USD",
                        "S": "Buy",
                        "v": "97",
                        "p": "16578.50",
                        "L": "PlusTick",
                        "i": "20f43950-d8dd-5b31-9112-a178eb6023af",
                        "BT": False,
                    }
                ],
            }
        ],
        [{"success": True, "ret_msg": "", "conn_id": "2324d924", "op": "subscribe"}],
        [
            {"success": True, "ret_msg": "pong", "conn_id": "2324d924", "op": "ping"},
            {"op": "pong", "args": ["1"]},
        ],
        {"success": False, "ret_msg": "error:handler not found", "conn_id": "2324d924", "op": "subscribe"},
        _numbered(
            lambda n: {"topic": "publicTrade.S1USD", "type": "snapshot", "ts": AT, "data": [{"i": str(n)}]}
        ),
    ),
    Exchange(
        "kraken",
        {"symbols": "MATIC/USD"},
        [{"method": "subscribe", "params": {"channel": "trade", "symbol": ["MATIC/USD"], "snapshot": False}}],
        [
            {
                "channel": "trade",
                "type": "update",
                "data": [
                    {
                        "symbol": "MATIC/USD",
                        "side": "sell",
                        "price": 0.5117,
                        "qty": 40.0,
                        "ord_type": "market",
                        "trade_id": 4665906,
                        "timestamp": "2026-06-01T12:00:00.123000Z",
                    }
                ],
            }
        ],
        [
            {"channel": "status", "type": "update", "data": [{"system": "online", "api_version": "v2"}]},
            {"method": "subscribe", "success": True, "result": {"channel": "trade", "symbol": "MATIC/USD"}},
        ],
        [{"channel": "heartbeat"}],
        {"method": "subscribe", "success": False, "error": "Currency pair not supported X/Y"},
        _numbered(
            lambda n: {
                "channel": "trade",
                "type": "update",
                "data": [{"symbol": "MATIC/USD", "trade_id": n}, {"symbol": "ETH/USD", "trade_id": 7}],
            }
        ),
        ("3 messages of MATIC/USD are missing (data.trade_id 9 to 11)",),
    ),
    Exchange(
        "kraken-futures",
        {"products": "PI_XBTUSD"},
        [{"event": "subscribe", "feed": "trade", "product_ids": ["PI_XBTUSD"]}],
        [
            {
                "feed": "trade",
                "product_id": "PI_XBTUSD",
                "uid": "05af78ac-a774-478c-a50c-8b9c234e071e",
                "side": "sell",
                "type": "fill",
                "seq": 653355,
                "time": AT,
                "qty": 15000,
                "price": 34969.5,
            }
        ],
        [
            {"event": "info", "version": 1},
            {"event": "subscribed", "feed": "trade", "product_ids": ["PI_XBTUSD"]},
            {"feed": "trade_snapshot", "product_id": "PI_XBTUSD", "trades": []},
        ],
        [],
        {"event": "error", "message": "Invalid product id"},
        _numbered(lambda n: {"feed": "trade", "product_id": "PI_XBTUSD", "seq": n}),
        ("3 messages of PI_XBTUSD are missing (seq 9 to 11)",),
    ),
    Exchange(
        "bitstamp",
        {"pairs": "BTCUSD,ethusd"},
        [
            {"event": "bts:subscribe", "data": {"channel": "live_trades_btcusd"}},
            {"event": "bts:subscribe", "data": {"channel": "live_trades_ethusd"}},
        ],
        [
            {
                "event": "trade",
                "channel": "live_trades_btcusd",
                "data": {
                    "id": 214539405,
                    "timestamp": str(AT // 1000),
                    "microtimestamp": str(AT * 1000),
                    "amount": 0.00251495,
                    "amount_str": "0.00251495",
                    "price": 46340.58,
                    "price_str": "46340.58",
                    "type": 0,
                    "buy_order_id": 1,
                    "sell_order_id": 2,
                },
            }
        ],
        [{"event": "bts:subscription_succeeded", "channel": "live_trades_btcusd", "data": {}}],
        [],
        {"event": "bts:error", "channel": "", "data": {"code": None, "message": "Incorrect JSON format."}},
        _numbered(lambda n: {"event": "trade", "channel": "live_trades_btcusd", "data": {"id": n}}),
    ),
    Exchange(
        "gemini",
        {"symbols": "BTCUSD"},
        [{"type": "subscribe", "subscriptions": [{"name": "l2", "symbols": ["BTCUSD"]}]}],
        [
            {
                "type": "trade",
                "symbol": "BTCUSD",
                "event_id": 3575573053,
                "timestamp": AT,
                "price": "9004.21000000",
                "quantity": "0.09110000",
                "side": "buy",
            }
        ],
        [],
        [
            {"type": "l2_updates", "symbol": "BTCUSD", "changes": [["buy", "9122.04", "0.00121425"]]},
            {"type": "heartbeat", "timestamp": AT},
        ],
        {"result": "error", "reason": "InvalidJson"},
        _numbered(lambda n: {"type": "trade", "symbol": "BTCUSD", "event_id": n}),
    ),
    Exchange(
        "deribit",
        {"instruments": "BTC-PERPETUAL"},
        [
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "public/subscribe",
                "params": {"channels": ["trades.BTC-PERPETUAL.100ms"]},
            }
        ],
        [
            {
                "jsonrpc": "2.0",
                "method": "subscription",
                "params": {
                    "channel": "trades.BTC-PERPETUAL.100ms",
                    "data": [
                        {
                            "trade_seq": 30289442,
                            "trade_id": "48079269",
                            "timestamp": AT,
                            "tick_direction": 2,
                            "price": 8950,
                            "mark_price": 8948.9,
                            "instrument_name": "BTC-PERPETUAL",
                            "index_price": 8955.88,
                            "direction": "sell",
                            "amount": 10,
                        }
                    ],
                },
            }
        ],
        [{"jsonrpc": "2.0", "id": 1, "result": ["trades.BTC-PERPETUAL.100ms"], "testnet": False}],
        [],
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 11050, "message": "bad_request"}},
        _numbered(
            lambda n: {
                "jsonrpc": "2.0",
                "method": "subscription",
                "params": {
                    "channel": "trades.BTC-PERPETUAL.100ms",
                    "data": [{"trade_seq": n, "instrument_name": "BTC-PERPETUAL"}],
                },
            }
        ),
        ("3 messages of BTC-PERPETUAL are missing (params.data.trade_seq 9 to 11)",),
    ),
]
