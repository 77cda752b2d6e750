"""Instruments that are defined by their symbol, by rules that their exchange has published.

A symbol that no pattern matches as a whole is an unknown instrument, which only the exchange's file defines.
"""

from __future__ import annotations

from typing import NamedTuple

_FIAT = "USD|EUR|GBP|JPY|AUD|CAD|CHF|TRY|BRL|ZAR|UAH|RUB|NGN|PLN|RON|ARS|MXN|COP|CZK|SGD|HKD|AED|KRW|IDR"
_STABLE = "USDT|USDC|FDUSD|TUSD|BUSD|GUSD|RLUSD|PYUSD|USDP|PAX|USD1|USDE|DAI|EURI|EURC|AEUR|IDRT|BIDR|BVND"
_COINS = "BTC|XBT|ETH|BNB|SOL|XRP|TRX|DOGE|DOT|BCH|LTC|VAI"
_QUOTES = f"{_STABLE}|{_FIAT}|{_COINS}"
_DAY = r"\d{1,2}[A-Z]{3}\d{2}"
_OCC = r"[A-Z]+\d{6}[CP]\d{8}"
"""A standard option on US stocks; roots of adjusted contracts end in a digit."""


class NamePattern(NamedTuple):
    """The `Instrument` of symbols that match `pattern` as a whole.

    The currency is the pattern's first group, if it has one. `shares` means that sizes count shares. Without
    a `contract`, the value is unknown. With a `venue`, a regular expression in lower case that must match as
    a whole, it applies only to rows of that venue.
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
"""Spot only: swaps, futures and options are in contracts, whose size is only in the file."""
BYBIT = (
    NamePattern(r".+?(USDT|USDC|USDE|USD1|DAI|EUR|BTC|ETH|MNT|BRL|BRZ|TRY|PLN|AED)"),
    # Inverse contracts are worth one dollar each.
    NamePattern(r"[A-Z0-9]+(USD)(?:[FGHJKMNQUVXZ]\d{2})?", 1.0, inverse=True),
    NamePattern(rf"[A-Z0-9]+?(USDT)-{_DAY}"),
    NamePattern(rf"[A-Z0-9]+(?:PERP|-{_DAY})", currency="USDC"),
)
KRAKEN = (
    NamePattern(r"[^/]+/([^/]+)"),
    # Perpetual and fixed inverse futures are worth one dollar each, multi-collateral ones are in coins.
    NamePattern(r"[PF]I_[A-Z0-9]+(USD)(?:_\d{6})?", 1.0, inverse=True),
    NamePattern(r"[PF]F_[A-Z0-9]+(USD|EUR|GBP)(?:_\d{6})?"),
)
BITSTAMP = (NamePattern(rf"(?i).+?({_QUOTES})(?:-perp)?"),)
GEMINI = (NamePattern(rf"(?i).+?({_QUOTES})(?:perp)?"),)
DERIBIT = (
    # Amounts of coin-settled perpetuals and futures are in dollars, all others in coins.
    NamePattern(rf"[A-Z0-9]+-(?:PERPETUAL|{_DAY})", 1.0, inverse=True, currency="USD"),
    NamePattern(rf"[A-Z0-9]+_([A-Z0-9]+)(?:-(?:PERPETUAL|{_DAY})(?:-[\dd]+-[CP])?)?"),
    NamePattern(rf"([A-Z0-9]+)-{_DAY}-\d+-[CP]"),
)
BITMEX = (
    # Inverse contracts on bitcoin are worth one dollar each; all others are only in the file.
    NamePattern(r"XBT(USD)", 1.0, inverse=True),
    NamePattern(r"XBT[FGHJKMNQUVXZ]\d{2}", 1.0, inverse=True, currency="USD"),
)
DYDX = (NamePattern(r"[^-]+-(USD)"),)
HYPERLIQUID = (
    NamePattern(r"[A-Z0-9]+/([A-Z0-9]+)"),
    # Perpetuals are in coins and quoted in dollars; numbered spot pairs (@107) are only in the venue's list.
    NamePattern(r"k?[A-Z0-9]+", currency="USD"),
)
BITGET = (NamePattern(r".+?(USDT|USDC|EUR|BTC|ETH|BRL)(?:_SPBL|_UMCBL|_CMCBL)?"),)
BITFLYER = (NamePattern(r"(?:FX_)?[A-Z]+_([A-Z]+)"), NamePattern(r"[A-Z]{3}(JPY)\d{2}[A-Z]{3}\d{4}"))
DELTA = (NamePattern(r"[A-Z0-9]+_([A-Z0-9]+)"),)
"""Spot only: futures and options are in contracts, whose size is only in the file."""
UPBIT = (NamePattern(r"([A-Z]+)-.+"),)
HTX = (NamePattern(rf"(?i)[a-z0-9]+?({_QUOTES}|HUSD|HT)"),)
"""Spot only: swaps and futures, which have a hyphen, are in contracts."""
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
"""Venues as a file's column may name them, and the patterns of their symbols; some have none."""

TABLES = (
    *(
        name._replace(venue=venue)
        for venue, of_venue in _BY_VENUE
        for name in (*of_venue, NamePattern(_ANY, None))
    ),
    NamePattern(r"BTC(USD)_(?:PERP|\d{6})(?:-.*)?", 100.0, inverse=True),
    NamePattern(r"[A-Z0-9]+(USD)_(?:PERP|\d{6})(?:-.*)?", 10.0, inverse=True),
    NamePattern(rf"(?:O:)?{_OCC}", 100.0, currency="USD"),
    # Contracts whose size depends on the exchange: swaps, perpetuals, dated futures and options; futures'
    # codes with a month and a year, such as ESZ4, and Yahoo's, such as CL=F.
    NamePattern(r"(?i).+[-_./ ](?:perp|perpetual|swap|p|c|futures?)", None),
    NamePattern(r"(?i).+perp|[/@].+|.+=[fx]|xbt.*", None),
    NamePattern(rf".+-(?:{_DAY}|\d{{6,8}})(?:-.*)?", None),
    NamePattern(r"[A-Z0-9]{1,3}[FGHJKMNQUVXZ]\d{1,2}", None),
    # Pairs are coins, priced in their quote currency. Names without a separator are longer than any stock's.
    NamePattern(rf"(?i)[a-z0-9]+[-_/]({_QUOTES})"),
    NamePattern(r"[A-Z0-9]{2,}?(USDT|USDC|FDUSD|BUSD)(?:[-_].*)?"),
    NamePattern(r"[A-Z0-9]{3,}(BTC|ETH|BNB|EUR|GBP|TRY|BRL|JPY)" + _FILE),
    # A file's prices are in its reader's currency.
    NamePattern(_ANY, currency="*", shares=True),
)
"""For files: by the column of venues, if there is one, or else by the symbol's form."""
