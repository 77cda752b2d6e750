"""Exchanges' own files of instruments, as their APIs return them.

A file is one JSON value, or one per line, possibly after the time at which it was received; other lines are
skipped. The exchange is recognised by the content; `_READERS` lists the exchanges.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...recordings.compressed_files import opened
from ..captured import frame_of
from .instrument import Instrument

_HOW = "as the exchange's interface gives it: see the page on stocks for which"
_ENTRY = Mapping[str, Any]


def read_instruments(paths: str) -> dict[str, Instrument]:
    """Read the instruments in files (comma-separated names), by their symbols as feeds write them.

    Raises `ValueError` for a file that can't be read or whose form is unknown.
    """
    collected: dict[str, Instrument] = {}
    for name in (part.strip() for part in paths.split(",")):
        if name:
            collected.update(
                _instruments(Path(name), Path(name).stat().st_mtime_ns if Path(name).is_file() else 0)
            )
    return collected


@lru_cache(maxsize=16)
def _instruments(path: Path, changed_ns: int) -> dict[str, Instrument]:
    try:
        with opened(path) as file:
            data = file.read()
    except OSError as error:
        raise ValueError(f"--set instruments={path}: {error.strerror or error}") from None
    try:
        result = dict(pair for value in _values(data) for pair in _pairs(value))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"--set instruments={path} can't be read ({error!r}); save it {_HOW}") from None
    if not result:
        raise ValueError(f"--set instruments={path} holds no instrument; save it {_HOW}")
    return result


def _values(data: bytes) -> Iterator[Any]:
    try:
        yield json.loads(data)
    except ValueError:
        for line in data.splitlines():
            frame = frame_of(line.strip())
            if frame[:1] in (b"{", b"["):
                yield json.loads(frame)


def _pairs(value: Any) -> Iterator[tuple[str, Instrument]]:
    for entries in _lists(value):
        for entry in entries:
            for fits, pairs in _READERS:
                if fits(entry):
                    yield from pairs(entry)
                    break


def _lists(value: Any) -> Iterator[Iterable[_ENTRY]]:
    """Return the lists of instruments in an API's response."""
    if isinstance(value, list):
        yield [one for one in value if isinstance(one, dict)]
        return
    if not isinstance(value, dict):
        return
    for name in ("symbols", "data", "result", "instruments", "list", "products"):
        inner = value.get(name)
        if name in ("result", "data") and isinstance(inner, dict):
            yield from (
                _lists(inner)
                if {"list", "instruments", "data"} & inner.keys()
                else [[{"pair": pair, **one} for pair, one in inner.items() if isinstance(one, dict)]]
            )
        elif isinstance(inner, list):
            yield from _lists(inner)
    if "hd" in value or "symbol" in value:
        yield [value]


def _has(*names: str) -> Callable[[_ENTRY], bool]:
    return lambda entry: all(name in entry for name in names)


def _plain(entry: _ENTRY) -> Iterator[tuple[str, Instrument]]:
    yield (
        entry["symbol"],
        Instrument(entry["currency"], float(entry["contract"]), entry.get("inverse") in (True, "true")),
    )


def _okx(entry: _ENTRY) -> Iterator[tuple[str, Instrument]]:
    if not entry.get("ctVal"):
        if entry.get("quoteCcy"):
            yield entry["instId"], Instrument(entry["quoteCcy"])
        return
    contract = float(entry["ctVal"]) * float(entry.get("ctMult") or 1)
    inverse = entry.get("ctType") == "inverse"
    # The value of an inverse contract is in `ctValCcy`; others have prices in their settlement currency.
    yield entry["instId"], Instrument(entry["ctValCcy" if inverse else "settleCcy"], contract, inverse)


def _binance(entry: _ENTRY) -> Iterator[tuple[str, Instrument]]:
    # Only coin-margined contracts have a size, in their quote currency; all others are in coins.
    size = entry.get("contractSize")
    yield entry["symbol"], Instrument(entry["quoteAsset"], float(size or 1), size is not None)


def _bybit(entry: _ENTRY) -> Iterator[tuple[str, Instrument]]:
    inverse = str(entry.get("contractType", "")).startswith("Inverse")
    yield entry["symbol"], Instrument(entry["quoteCoin"], 1.0, inverse)


def _bybit_before_v5(entry: _ENTRY) -> Iterator[tuple[str, Instrument]]:
    yield entry["name"], Instrument(entry["quote_currency"], 1.0, entry["quote_currency"] == "USD")


def _deribit(entry: _ENTRY) -> Iterator[tuple[str, Instrument]]:
    # A trade's amount is already in dollars or coins, whatever the contract's size.
    quote = entry["quote_currency"]
    default = "reversed" if entry["kind"] == "future" and quote == "USD" else "linear"
    inverse = entry["kind"] == "future" and entry.get("future_type", default) == "reversed"
    yield entry["instrument_name"], Instrument(quote, 1.0, inverse)


_KRAKEN_V2 = {"XBT": "BTC", "XDG": "DOGE"}


def _kraken(entry: _ENTRY) -> Iterator[tuple[str, Instrument]]:
    base, _, quote = entry["wsname"].partition("/")
    instrument = Instrument(_KRAKEN_V2.get(quote, quote), float(entry.get("lot_multiplier") or 1))
    yield entry["wsname"], instrument
    yield f"{_KRAKEN_V2.get(base, base)}/{_KRAKEN_V2.get(quote, quote)}", instrument


def _kraken_futures(entry: _ENTRY) -> Iterator[tuple[str, Instrument]]:
    if not entry.get("contractSize"):
        return
    symbol = entry["symbol"].upper()
    quote = entry.get("quote") or symbol.split("_")[1][-3:]
    inverse = entry["type"] == "futures_inverse"
    yield symbol, Instrument(quote.upper(), float(entry["contractSize"]), inverse)


def _quoted(entry: _ENTRY) -> Iterator[tuple[str, Instrument]]:
    """Coinbase's products and Gemini's details."""
    quote = entry.get("contract_price_currency") or entry["quote_currency"]
    if str(entry.get("contract_type", "vanilla")).lower() in ("vanilla", "linear", "spot"):
        yield entry.get("id") or entry["symbol"], Instrument(quote.upper())


def _bitstamp(entry: _ENTRY) -> Iterator[tuple[str, Instrument]]:
    yield entry["url_symbol"], Instrument(entry["name"].partition("/")[2].upper())


def _databento(entry: _ENTRY) -> Iterator[tuple[str, Instrument]]:
    size = float(entry["unit_of_measure_qty"])
    # Whole numbers of billionths, unless the file has decimals; the largest integer means undefined.
    size = size / 1e9 if "." not in str(entry["unit_of_measure_qty"]) else size
    if 0 < size < 9e9 and entry.get("currency"):
        instrument = Instrument(entry["currency"], size)
        header = entry.get("hd") or entry
        for name in (entry.get("raw_symbol"), entry.get("symbol"), header.get("instrument_id")):
            if name is not None:
                yield str(name), instrument


def _bitmex(entry: _ENTRY) -> Iterator[tuple[str, Instrument]]:
    if entry.get("isQuanto"):
        return  # it is settled in another currency than its price's
    if entry.get("isInverse") and entry.get("underlyingToSettleMultiplier"):
        size = abs(float(entry["multiplier"]) / float(entry["underlyingToSettleMultiplier"]))
        yield entry["symbol"], Instrument(entry["quoteCurrency"], size, True)
    elif entry.get("underlyingToPositionMultiplier"):
        size = 1 / float(entry["underlyingToPositionMultiplier"])
        yield entry["symbol"], Instrument(entry["quoteCurrency"], size)


def _gate_futures(entry: _ENTRY) -> Iterator[tuple[str, Instrument]]:
    quote, size = entry["name"].split("_")[1], float(entry["quanto_multiplier"])
    # An inverse contract is worth one dollar, and has no multiplier.
    if entry.get("type") == "inverse" and not size:
        yield entry["name"], Instrument(quote, 1.0, True)
    elif size and quote != "USD":
        yield entry["name"], Instrument(quote, size)


def _delta(entry: _ENTRY) -> Iterator[tuple[str, Instrument]]:
    if not entry.get("is_quanto"):
        quote, size = entry["quoting_asset"]["symbol"], float(entry["contract_value"])
        yield entry["symbol"], Instrument(quote, size, entry["notional_type"] == "inverse")


_READERS: tuple[
    tuple[Callable[[_ENTRY], bool], Callable[[_ENTRY], Iterator[tuple[str, Instrument]]]], ...
] = (
    (_has("symbol", "contract", "currency"), _plain),
    (_has("instId", "instType"), _okx),
    (_has("symbol", "quoteAsset"), _binance),
    (_has("symbol", "quoteCoin"), _bybit),
    (_has("instrument_name", "kind", "quote_currency"), _deribit),
    (_has("wsname", "quote"), _kraken),
    (_has("symbol", "type", "tradeable"), _kraken_futures),
    (_has("url_symbol", "name"), _bitstamp),
    (_has("unit_of_measure_qty"), _databento),
    (_has("symbol", "isInverse", "multiplier"), _bitmex),
    (_has("name", "quanto_multiplier"), _gate_futures),
    (_has("symbol", "contract_value", "notional_type", "quoting_asset"), _delta),
    (_has("name", "base_currency", "quote_currency", "price_filter"), _bybit_before_v5),
    (_has("quote_currency"), _quoted),
)
"""The fields by which an entry is recognised, and its reader; the first match counts."""
