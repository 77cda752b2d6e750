"""The columns that all formats of trades and bars have, and how they come from what feeds send.

at        when: of a trade its own time, of a bar its beginning (UTC; a day's is its date at midnight)
symbol    as the feed writes it
kind      "trades" or "bars"
price     of a bar, its close; `open`, `high` and `low` are the price, too, of a trade
size      shares, coins or contracts; of a bar, its volume
side      of a trade, what the aggressor (the taker) did: "buy" or "sell"; null where the feed doesn't say
venue     where; null where the feed doesn't say
seq       the trade's number, as its symbol's numbers rise at its venue
span      seconds that the row covers: 0 of a trade, 86,400 of a day
adjusted  the close as adjusted later; split  into how many shares each became on that day
event     what names the trade, by its number, or the bar, by all that it says; null of a trade without number

A number that can't be read makes its message a dead letter. Messages that are neither trade nor bar are
filtered.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import polars as pl

from ....operators.definition.stream import Stream

TIME = pl.Datetime("us", "UTC")
DAY = 86_400
_OF_BAR = ("price", "open", "high", "low", "size")
_ISO = "%Y-%m-%dT%H:%M:%S%.6fZ"

COLUMNS = {
    "at": TIME,
    "symbol": pl.String(),
    "kind": pl.String(),
    "price": pl.Float64(),
    "open": pl.Float64(),
    "high": pl.Float64(),
    "low": pl.Float64(),
    "size": pl.Float64(),
    "side": pl.String(),
    "venue": pl.String(),
    "seq": pl.Int64(),
    "span": pl.Int64(),
    "adjusted": pl.Float64(),
    "split": pl.Float64(),
    "arrived": pl.Int64(),
}


def as_trades(stream: Stream, **given: pl.Expr) -> Stream:
    """A format's rows in the columns of all; those that aren't given are null.

    Rows follow in the order in which they arrived: `arrived` is a column of the stream's already.
    """
    rows = stream.select(
        **{
            name: given.get(name, pl.col("arrived") if name == "arrived" else pl.lit(None)).cast(kind)
            for name, kind in COLUMNS.items()
        }
    )
    prices = {name: pl.coalesce(name, "price") for name in ("open", "high", "low")}
    where = ("symbol", pl.col("venue").fill_null(""), pl.col("at").cast(pl.Int64))
    trade = pl.concat_str(*where, "seq", separator=" ")
    # Rows of prices without extremes may be trades, and several trades may be alike.
    bar = pl.when(pl.col("high").is_not_null()).then(
        pl.concat_str(*where, "span", *(pl.col(name).fill_null(0) for name in _OF_BAR), separator=" ")
    )
    value = pl.col("price") * pl.col("size")
    return rows.filter(pl.col("price") > 0).with_columns(
        **prices,
        event=pl.when(pl.col("kind") == "trades").then(trade).otherwise(bar),
        value=value,
        bought=pl.when(pl.col("side") == "buy").then(pl.col("size")),
        sold=pl.when(pl.col("side") == "sell").then(pl.col("size")),
        trade=pl.when(pl.col("kind") == "trades").then(
            pl.struct(pl.col("at").dt.to_string(_ISO), "symbol", "side", "price", "size", "venue")
        ),
        weight=pl.when(pl.col("kind") == "trades").then(value.fill_null(0.0)).otherwise(0.0),
    )


def text(raw: pl.Expr) -> pl.Expr:
    """JSON text of a string or a number, without quotes; null of null."""
    text_ = raw.cast(pl.String).str.strip_chars('"')
    return pl.when(text_ != "null").then(text_)


def number(raw: pl.Expr, where: pl.Expr, needed: bool = True) -> pl.Expr:
    """A number, which may stand as a string, of the rows `where` it is one; others aren't looked at.

    With `needed` a row without it is a dead letter, too.
    """
    digits = text(raw)
    return pl.when(where).then(digits.fill_null("missing") if needed else digits).cast(pl.Float64)


def whole(raw: pl.Expr, where: pl.Expr) -> pl.Expr:
    """A whole number, of the rows `where` there may be one; null where it is not one."""
    return pl.when(where).then(text(raw)).cast(pl.Int64, strict=False)


def since_1970(given: pl.Expr) -> pl.Expr:
    """A time from a number since 1970 in s, ms, us or ns: which of them follows from its size.

    >>> pl.select(since_1970(pl.lit(1_633_998_523_963))).item().isoformat()
    '2021-10-12T00:28:43.963000+00:00'
    """
    size = given.abs()
    us = (
        pl.when(size < 100_000_000_000)
        .then(given * 1_000_000)
        .when(size < 100_000_000_000_000)
        .then(given * 1_000)
        .when(size < 100_000_000_000_000_000)
        .then(given)
        .otherwise(given // 1_000)
    )
    return us.cast(TIME)


def iso_time(raw: pl.Expr) -> pl.Expr:
    """A time from RFC 3339 text, to the microsecond; null where it is not one.

    >>> pl.select(iso_time(pl.lit('"2021-02-22T15:51:44.208123456Z"'))).item().isoformat()
    '2021-02-22T15:51:44.208123+00:00'
    """
    return text(raw).str.to_datetime("%+", time_unit="us", time_zone="UTC", strict=False)


def chosen(given: Mapping[str, str], name: str, known: Collection[str]) -> list[str]:
    """The parts of a setting that lists names. Raises `ValueError` for one that isn't known."""
    names = [part.strip() for part in given[name].split(",") if part.strip()]
    if unknown := [part for part in names if part not in known] or ([""] if not names else []):
        raise ValueError(f"--set {name}={given[name]}: {unknown[0]!r} is not one of {', '.join(known)}")
    return names
