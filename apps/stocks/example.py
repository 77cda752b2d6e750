"""A fictional exchange with eight coins, for demos."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator

from ..app import Example, Message

_EVERY_MS = 5_000
_TICKS = 720
"""Trades per coin in the hour before now."""
_COINS = {
    "BTC": 60_000.0,
    "ETH": 3_000.0,
    "SOL": 150.0,
    "XRP": 0.6,
    "ADA": 0.4,
    "DOT": 6.0,
    "LTC": 80.0,
    "NOVA": 9.0,
}
_FALLS, _BIG, _TWICE = "NOVAUSDT", ("BTCUSDT", _TICKS * len(_COINS)), ("SOLUSDT", _TICKS * len(_COINS) + 10)


def messages(seed: int, now_ms: int) -> Iterator[Message]:
    """Generate a trade of each coin every five seconds, starting an hour ago.

    Now, a block of bitcoin is bought; five seconds later, a trade is sent twice, and NOVA is 8 % lower.
    """
    dice = random.Random(seed)
    prices = dict(_COINS)
    number = 0
    for tick in range(-_TICKS, 1 << 40):
        for place, coin in enumerate(_COINS):
            prices[coin] *= math.exp(dice.gauss(0, 0.0003))
            symbol = f"{coin}USDT"
            price = prices[coin] * (0.92 if symbol == _FALLS and tick >= 1 else 1)
            size = dice.lognormvariate(0, 1) * 200 / _COINS[coin]
            if (symbol, number) == _BIG:
                size = 25.0
            at = now_ms + tick * _EVERY_MS + place * (_EVERY_MS // len(_COINS))
            trade = {"e": "trade", "E": at, "s": symbol, "t": number, "p": f"{price:.6f}", "q": f"{size:.8f}"}
            value = json.dumps({**trade, "T": at, "m": number % 3 == 0 and (symbol, number) != _BIG}).encode()
            yield Message(value, symbol.encode(), at)
            if (symbol, number) == _TWICE:
                yield Message(value, symbol.encode(), at)
            number += 1


EXAMPLE = Example(
    "binance",
    messages,
    {},
    (
        ("block by value", [_BIG[0], "Binance", _BIG[1]]),
        ("duplicate", [_TWICE[0], "Binance", _TWICE[1]]),
        ("sharp drop", _FALLS),
    ),
)
