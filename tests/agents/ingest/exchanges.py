"""What exchanges hear and send, as their documentation has it."""

from __future__ import annotations

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


AT = 1_780_315_200_123
EXCHANGES = [
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
    ),
]
