"""Instruments whose symbol says what they are, by rules that their exchange has published.

A symbol that no pattern matches as a whole is of an unknown instrument: only the exchange's file tells.
"""

from __future__ import annotations

from typing import NamedTuple

_FIAT = "USD|EUR|GBP|JPY|AUD|CAD|CHF|TRY|BRL|ZAR|UAH|RUB|NGN|PLN|RON|ARS|MXN|COP|CZK|SGD|HKD|AED|KRW|IDR"
_STABLE = "USDT|USDC|FDUSD|TUSD|BUSD|GUSD|RLUSD|PYUSD|USDP|PAX|USD1|USDE|DAI|EURI|EURC|AEUR|IDRT|BIDR|BVND"
_COINS = "BTC|XBT|ETH|BNB|SOL|XRP|TRX|DOGE|DOT|BCH|LTC|VAI"
_QUOTES = f"{_STABLE}|{_FIAT}|{_COINS}"
_DAY = r"\d{1,2}[A-Z]{3}\d{2}"
_OCC = r"[A-Z]+\d{6}[CP]\d{8}"
"""A standard option on US stocks; the root of one whose contract was adjusted ends in a digit."""


class NamePattern(NamedTuple):
    """Symbols that match `pattern` as a whole, and what they are: see `Instrument`.

    The currency is the pattern's first group where it has one. `shares` are sizes that count shares. Without
    a `contract` what one is worth isn't known. With a `venue`, a regular expression in lower case that must
    match as a whole, it is about rows of that venue alone.
    """

    pattern: str
    contract: float | None = 1.0
    inverse: bool = False
    currency: str = ""
    shares: bool = False
    venue: str = ""


BINANCE = (
    # Coin-margined: "the contract size is 100 USD for BTC, 10 USD for others"; others are in coins.
    NamePattern(r"BTC(USD)_(?:PERP|\d{6})", 100.0, inverse=True),
    NamePattern(r".+(USD)_(?:PERP|\d{6})", 10.0, inverse=True),
    NamePattern(rf".+?({_QUOTES})(?:_\d{{6}})?"),
)
COINBASE = (NamePattern(r"[^-]+-([^-]+)"),)
OKX = (NamePattern(r"[^-]+-([^-]+)"),)
"""Spot alone: swaps, futures and options are in contracts, whose size only the file tells."""
BYBIT = (
    NamePattern(r".+?(USDT|USDC|USDE|USD1|DAI|EUR|BTC|ETH|MNT|BRL|BRZ|TRY|PLN|AED)"),
    # Inverse contracts are of one dollar each.
    NamePattern(r"[A-Z0-9]+(USD)(?:[FGHJKMNQUVXZ]\d{2})?", 1.0, inverse=True),
    NamePattern(rf"[A-Z0-9]+?(USDT)-{_DAY}"),
    NamePattern(rf"[A-Z0-9]+(?:PERP|-{_DAY})", currency="USDC"),
)
KRAKEN = (
    NamePattern(r"[^/]+/([^/]+)"),
    # Perpetual and fixed inverse futures are of one dollar each, multi-collateral ones in coins.
    NamePattern(r"[PF]I_[A-Z0-9]+(USD)(?:_\d{6})?", 1.0, inverse=True),
    NamePattern(r"[PF]F_[A-Z0-9]+(USD|EUR|GBP)(?:_\d{6})?"),
)
BITSTAMP = (NamePattern(rf"(?i).+?({_QUOTES})(?:-perp)?"),)
GEMINI = (NamePattern(rf"(?i).+?({_QUOTES})(?:perp)?"),)
DERIBIT = (
    # The amount of a perpetual or a future in a coin is in dollars, of all else in coins.
    NamePattern(rf"[A-Z0-9]+-(?:PERPETUAL|{_DAY})", 1.0, inverse=True, currency="USD"),
    NamePattern(rf"[A-Z0-9]+_([A-Z0-9]+)(?:-(?:PERPETUAL|{_DAY})(?:-[\dd]+-[CP])?)?"),
    NamePattern(rf"([A-Z0-9]+)-{_DAY}-\d+-[CP]"),
)
BITMEX = (
    # Inverse contracts on bitcoin are of one dollar each; all others only the file tells.
    NamePattern(r"XBT(USD)", 1.0, inverse=True),
    NamePattern(r"XBT[FGHJKMNQUVXZ]\d{2}", 1.0, inverse=True, currency="USD"),
)
DYDX = (NamePattern(r"[^-]+-(USD)"),)
HYPERLIQUID = (
    NamePattern(r"[A-Z0-9]+/([A-Z0-9]+)"),
    # Perpetuals are in coins and quoted in dollars; spot pairs by number (@107) only the venue's list names.
    NamePattern(r"k?[A-Z0-9]+", currency="USD"),
)
BITGET = (NamePattern(r".+?(USDT|USDC|EUR|BTC|ETH|BRL)(?:_SPBL|_UMCBL|_CMCBL)?"),)
BITFLYER = (NamePattern(r"(?:FX_)?[A-Z]+_([A-Z]+)"), NamePattern(r"[A-Z]{3}(JPY)\d{2}[A-Z]{3}\d{4}"))
DELTA = (NamePattern(r"[A-Z0-9]+_([A-Z0-9]+)"),)
"""Spot alone: futures and options are in contracts, whose size only the file tells."""
UPBIT = (NamePattern(r"([A-Z]+)-.+"),)
HTX = (NamePattern(rf"(?i)[a-z0-9]+?({_QUOTES}|HUSD|HT)"),)
"""Spot alone: swaps and futures, which have a hyphen, are in contracts."""
GATE = (NamePattern(r"[^_]+_([^_]+)"),)
POLYGON = (
    NamePattern(r"[^-:]+-([A-Z]+)"),
    NamePattern(rf"O:{_OCC}", 100.0, currency="USD"),
    NamePattern(r"[^-:]+", currency="USD", shares=True),
)
ALPACA = (
    NamePattern(r"[^/]+/([A-Z]+)"),
    NamePattern(_OCC, 100.0, currency="USD"),
    NamePattern(r"[^/]+", currency="USD", shares=True),
)
STOCKS = (NamePattern(r".+", currency="USD", shares=True),)
_ANY = r"(?s).+"
_FILE = r"(?:-(?:trades|aggTrades|\d+[a-zA-Z]+)-.*)?"
_BY_VENUE = (
    # Files of data.binance.vision are called BTCUSD_PERP-trades-2024-01-01.
    ("binance.*", tuple(name._replace(pattern=f"(?:{name.pattern}){_FILE}") for name in BINANCE)),
    ("coinbase.*|gdax", COINBASE),
    ("ok(?:x|ex|coin).*", OKX),
    ("bybit.*", BYBIT),
    ("kraken.*|cryptofacilities", KRAKEN),
    ("bitstamp", BITSTAMP),
    ("gemini", GEMINI),
    ("deribit", DERIBIT),
    ("bitmex", BITMEX),
    ("dydx.*", DYDX),
    ("hyperliquid", HYPERLIQUID),
    ("bitget", BITGET),
    ("bitflyer", BITFLYER),
    ("delta.*", DELTA),
    ("upbit", UPBIT),
    ("(?:htx|huobi).*", HTX),
    ("gate(?:[._-]?io)?", GATE),
    ("gate.+futures|bitfinex.*|ftx.*|phemex|kucoin.*|mexc.*|crypto.com|cme|cbot|nymex|comex|ice.*|eurex", ()),
)
"""Venues as a file's column may name them, and what their symbols say; nothing of those without patterns."""

TABLES = (
    *(
        name._replace(venue=venue)
        for venue, of_venue in _BY_VENUE
        for name in (*of_venue, NamePattern(_ANY, None))
    ),
    NamePattern(r"BTC(USD)_(?:PERP|\d{6})(?:-.*)?", 100.0, inverse=True),
    NamePattern(r"[A-Z0-9]+(USD)_(?:PERP|\d{6})(?:-.*)?", 10.0, inverse=True),
    NamePattern(rf"(?:O:)?{_OCC}", 100.0, currency="USD"),
    # Contracts whose size depends on the exchange: swaps, perpetuals, dated futures and options; the codes of
    # futures with a month and a year, such as ESZ4, and those of Yahoo, such as CL=F.
    NamePattern(r"(?i).+[-_./ ](?:perp|perpetual|swap|p|c|futures?)", None),
    NamePattern(r"(?i).+perp|[/@].+|.+=[fx]|xbt.*", None),
    NamePattern(rf".+-(?:{_DAY}|\d{{6,8}})(?:-.*)?", None),
    NamePattern(r"[A-Z0-9]{1,3}[FGHJKMNQUVXZ]\d{1,2}", None),
    # Pairs are in coins of their quote currency. Names without a mark are longer than any stock's.
    NamePattern(rf"(?i)[a-z0-9]+[-_/]({_QUOTES})"),
    NamePattern(r"[A-Z0-9]{2,}?(USDT|USDC|FDUSD|BUSD)(?:[-_].*)?"),
    NamePattern(r"[A-Z0-9]{3,}(BTC|ETH|BNB|EUR|GBP|TRY|BRL|JPY)" + _FILE),
    # Prices of a file stand in the currency of whoever reads it.
    NamePattern(_ANY, currency="*", shares=True),
)
"""Of files, whose column of venues decides if there is one, else what the symbol looks like."""
