"""The value of trades in one currency; null if unknown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from ...app import Settings
from .instrument_files import read_instruments
from .instrument_names import NamePattern

_DOLLARS = (
    *("USD", "USDT", "USDC", "USDP", "PAX", "BUSD", "TUSD", "FDUSD", "GUSD", "PYUSD", "RLUSD", "USD1"),
    *("USDE", "USDS", "DAI"),
)
"""Dollars, and coins that are pegged to them."""


class Valued(NamedTuple):
    """Columns with the value of trades.

    `value` is in the currency of the settings; `unvalued` is why there is no value, ``"contract"`` if the
    instrument is unknown and ``"currency"`` if its rate is; `shares` is the size if it counts shares.
    """

    value: pl.Expr
    unvalued: pl.Expr
    shares: pl.Expr


def valued(settings: Settings, names: Sequence[NamePattern], decided: pl.Expr | None = None) -> Valued:
    """Value rows of `symbol`, `price`, `size` and `venue` by the instruments' files, or else by `names`.

    Names apply where `decided` is true, or everywhere without it. Raises `ValueError` for invalid settings.
    """
    symbol, price, size = pl.col("symbol"), pl.col("price"), pl.col("size")
    given, rates = read_instruments(settings["instruments"]), _rates(settings)
    by_name = [
        symbol.str.contains(_whole(one.pattern)) & _of_venue(one) & (True if decided is None else decided)
        for one in names
    ]
    contract = _of_names(by_name, [pl.lit(one.contract) for one in names])
    inverse = _of_names(by_name, [pl.lit(one.inverse) for one in names])
    currency = _of_names(by_name, [_currency(one, settings["currency"]) for one in names])
    shares = _of_names(by_name, [pl.lit(one.shares) for one in names])
    if given:
        keys, known = list(given), list(given.values())
        listed = symbol.is_in(keys)
        contract = pl.coalesce(_mapped(symbol, keys, [one.contract for one in known], pl.Float64()), contract)
        inverse = pl.coalesce(_mapped(symbol, keys, [one.inverse for one in known], pl.Boolean()), inverse)
        currency = pl.coalesce(_mapped(symbol, keys, [one.currency for one in known], pl.String()), currency)
        shares = shares & ~listed
    rate = _mapped(currency, list(rates), list(rates.values()), pl.Float64())
    units = size * contract * rate
    value = pl.when(inverse.fill_null(False)).then(units).otherwise(price * units)
    unvalued = (
        pl.when(contract.is_null()).then(pl.lit("contract")).when(rate.is_null()).then(pl.lit("currency"))
    )
    return Valued(value, unvalued, pl.when(shares).then(size))


def _whole(pattern: str) -> str:
    flags = pattern[: pattern.index(")") + 1] if pattern.startswith(("(?i)", "(?s)")) else ""
    return f"{flags}^(?:{pattern.removeprefix(flags)})$"


def _of_names(by_name: Sequence[pl.Expr], values: Sequence[pl.Expr]) -> pl.Expr:
    """Return the value of the first name that matches, which may be null."""
    result = pl.lit(None)
    for here, value in reversed([*zip(by_name, values)]):
        result = pl.when(here.fill_null(False)).then(value).otherwise(result)
    return result


def _of_venue(one: NamePattern) -> pl.Expr:
    if not one.venue:
        return pl.lit(True)
    return pl.col("venue").str.to_lowercase().str.contains(_whole(one.venue)).fill_null(False)


def _currency(one: NamePattern, own: str) -> pl.Expr:
    if one.currency:
        return pl.lit(own if one.currency == "*" else one.currency)
    return pl.col("symbol").str.extract(_whole(one.pattern)).str.to_uppercase()


def _mapped(column: pl.Expr, keys: list[str], values: list[object], kind: pl.DataType) -> pl.Expr:
    return column.replace_strict(keys, values, default=None, return_dtype=kind)


def _rates(settings: Settings) -> dict[str, float]:
    """Return the value of one unit of each currency in the currency of the settings. Raises `ValueError`.

    >>> rates = _rates({"currency": "EUR", "rates": "USD=0.9, BTC=50000"})
    >>> [rates.get(name) for name in ("EUR", "BTC", "USDT", "GBP")]
    [1.0, 50000.0, 0.9, None]
    """
    own = settings["currency"].strip().upper()
    if not own:
        raise ValueError("--set currency must be one, such as USD")
    rates = {own: 1.0}
    for part in (part.strip() for part in settings["rates"].split(",")):
        name, _, text = part.partition("=")
        if not part:
            continue
        try:
            rate = float(text)
        except ValueError:
            rate = math.nan
        if not name.strip() or not 0 < rate < math.inf:
            raise ValueError(
                f"--set rates={settings['rates']}: {part!r} is not a currency and its rate; write EUR=1.08"
            )
        rates[name.strip().upper()] = rate
    for dollar in _DOLLARS if "USD" in rates else ():
        rates.setdefault(dollar, rates["USD"])
    return rates
