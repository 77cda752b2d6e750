"""The common columns of all formats of trades and bars, and how to make them from raw feeds.

at        when: of a trade its own time, of a bar its beginning (UTC; a day's is its date at midnight)
symbol    as the feed writes it
kind      "trades", "bars", "status": that a symbol's trading has halted or resumed; or "corrections": that a
          trade was cancelled (`busted`), or as what it is reported instead
price     of a bar, its close; `open`, `high`, `low` and `close` are the price, too, of a trade
size      shares, coins or contracts; of a bar, its volume
value     what it is worth, in the currency of the settings; null where that isn't known, and `unvalued` why:
          the size of a `contract`, or the rate of a `currency`
shares    the size, where it counts shares
side      of a trade, what the aggressor (the taker) did: "buy" or "sell"; null where the feed doesn't say
venue     where; null where the feed doesn't say
seq       the trade's number, as its symbol's numbers rise at its venue; below 0 if it only names the trade
identity  what names the trade at its venue instead, in formats whose numbers only order trades
unpriced  why a trade doesn't set the last price (`us_tapes`); null if it does. If not, `close` and `open` are
          null, and so are `high` and `low` unless it sets these
span      seconds that the row covers: 0 of a trade, 86,400 of a day
adjusted  the close as adjusted later; split  into how many shares each became on that day
auction   of a trade in an auction, which: "opening", "closing", "reopening" or "crossing"
busted    1 if the exchange has cancelled the trade with this number; `kind` is "corrections"
halted    of a status, 1 for a halt and 0 if trading continues; reason  what the exchange says of it
event     what names the trade, by its number, or the bar, by all that it says; null of a trade without number

A number that can't be read makes its message a dead letter. Messages that are neither trade, bar nor status
are filtered.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import polars as pl

from ....operators.definition.stream import Stream
from ...app import Settings
from ..instruments.corporate_actions import listed_split
from ..instruments.instrument_names import NamePattern
from ..instruments.valuation import valued
from ..symbol_lists import SymbolList

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
    "auction": pl.String(),
    "unpriced": pl.String(),
    "extremes": pl.Boolean(),
    "busted": pl.Float64(),
    "halted": pl.Float64(),
    "reason": pl.String(),
    "arrived": pl.Int64(),
}
ALL_DAY = {"zone": "UTC", "hours": "", "block_shares": "", "luld": "no", "splits": "0"}
"""Settings of exchanges that never close and don't trade shares."""
_PLACES = 100_000
"""More events than any frame holds."""


def as_trades(
    stream: Stream,
    settings: Settings,
    names: Sequence[NamePattern],
    named: pl.Expr | None = None,
    identity: pl.Expr | None = None,
    negative: bool = False,
    **given: pl.Expr,
) -> Stream:
    """Convert a format's rows to the common columns; missing columns are null.

    `identity` identifies trades whose numbers don't. Prices at or below 0, which futures, spreads and rates
    have had, count if `negative` is set.

    Rows stay in the order of arrival: the stream already has the column `arrived`, and also `place`, a row's
    position in its message, if messages hold several. Instruments are defined by their files, or else by
    `names` where `named` is true. Raises `ValueError` for invalid settings.
    """
    place = pl.col("place") if "place" in stream.columns else pl.lit(0)
    rows = stream.select(
        **{
            name: given.get(name, pl.col("arrived") if name == "arrived" else pl.lit(None)).cast(kind)
            for name, kind in COLUMNS.items()
        },
        place=place,
        named=pl.lit(True) if named is None else named.fill_null(False),
        **({} if identity is None else {"identity": identity.cast(pl.String)}),
    )
    if (split := listed_split(settings)) is not None:
        rows = rows.with_columns(split=pl.coalesce(split, "split"))
    listed = SymbolList.of(settings["symbols"], "symbols").matches(pl.col("symbol"))
    if listed is not None:
        rows = rows.filter(listed)
    sets = pl.col("unpriced").is_null()
    prices = {
        name: pl.when(sets | pl.col("extremes") if name in ("high", "low") else sets).then(given_price)
        for name, given_price in (
            *((name, pl.coalesce(name, "price")) for name in ("open", "high", "low")),
            ("close", pl.col("price")),
        )
    }
    where = ("symbol", pl.col("venue").fill_null(""), pl.col("at").cast(pl.Int64))
    is_trade = pl.col("kind") == "trades"
    number_text = pl.col("seq").cast(pl.String)
    named_by = number_text if identity is None else pl.coalesce("identity", number_text)
    trade = pl.concat_str(*where, named_by, separator=" ")
    # Rows of prices without high and low may be trades, and several trades may be equal.
    bar = pl.when(pl.col("high").is_not_null()).then(
        pl.concat_str(*where, "span", *(pl.col(name).fill_null(0) for name in _OF_BAR), separator=" ")
    )
    priced = pl.col("price").is_finite() if negative else pl.col("price") > 0
    value = pl.col("value").abs() if negative else pl.col("value")
    worth = valued(settings, names, pl.col("named"))
    # Trades without a number are identified by where they came from, so that equal ones all count.
    unnumbered = -(pl.col("arrived") * _PLACES + pl.col("place")) - 1
    return (
        rows.filter(priced | (pl.col("kind") == "status") | pl.col("busted").is_not_null())
        .with_columns(
            **prices,
            event=pl.when(is_trade).then(trade).when(pl.col("kind") == "bars").then(bar),
            value=worth.value,
            unvalued=pl.when(is_trade & pl.col("size").is_not_null()).then(worth.unvalued),
            shares=worth.shares,
            bought=pl.when(pl.col("side") == "buy").then(pl.col("size")),
            sold=pl.when(pl.col("side") == "sell").then(pl.col("size")),
        )
        .with_columns(
            seq=pl.when(pl.col("kind").is_in(["bars", "restated"]))
            .then("seq")
            .otherwise(pl.coalesce("seq", unnumbered)),
        )
        .with_columns(
            **({} if identity is None else {"identity": named_by}),
            trade=pl.when(is_trade).then(
                pl.struct(pl.col("at").dt.to_string(_ISO), "symbol", "side", "price", "size", "venue")
            ),
            weight=pl.when(is_trade).then(value.fill_null(0.0)).otherwise(0.0),
        )
    )


def halves(stream: Stream, both: pl.Expr) -> Stream:
    """Split each row that cancels a trade and reports a replacement in two, with 0 and 1 in column `half`.

    All others stay one row, with half 0.
    """
    return stream.with_columns(half=pl.int_ranges(0, pl.when(both).then(2).otherwise(1))).explode("half")


def text(raw: pl.Expr) -> pl.Expr:
    """Return the JSON text of a string or a number, without quotes; null for null."""
    text_ = raw.cast(pl.String).str.strip_chars('"')
    return pl.when(text_ != "null").then(text_)


def number(raw: pl.Expr, where: pl.Expr, needed: bool = True) -> pl.Expr:
    """Read a number, which may be a string, in the rows selected by `where`.

    If `needed`, rows without it are dead letters, too.
    """
    digits = text(raw)
    return pl.when(where).then(digits.fill_null("missing") if needed else digits).cast(pl.Float64)


def whole(raw: pl.Expr, where: pl.Expr) -> pl.Expr:
    """Read a whole number in the rows selected by `where`; null if it isn't one."""
    return pl.when(where).then(text(raw)).cast(pl.Int64, strict=False)


def name_number(raw: pl.Expr, where: pl.Expr) -> pl.Expr:
    """Convert an id to a number: itself, or 60 bits of a UUID, below 0 because UUIDs are not in order.

    >>> import polars as pl
    >>> raw = pl.Series(["7", '"20f43950-d8dd-5b31-9112-a178eb6023af"', '"x"'])
    >>> pl.select(name_number(pl.lit(raw), pl.lit(True))).to_series().to_list()
    [7, -148411620183102900, None]
    """
    digits = text(raw).str.replace_all("-", "").str.slice(0, 15)
    hexadecimal = text(raw).str.contains(r"^[0-9a-f]{8}-[0-9a-f-]{27}$")
    bits = pl.when(hexadecimal).then(digits).str.to_integer(base=16, strict=False)
    return pl.when(where).then(pl.coalesce(text(raw).cast(pl.Int64, strict=False), -bits - 1))


def auction_of(conditions: pl.Expr, auctions: Sequence[tuple[str, str]]) -> pl.Expr:
    """Return the name of the first of `auctions`, pairs of pattern and name, that matches a trade's
    conditions."""
    return pl.coalesce(
        *(pl.when(conditions.str.contains(codes)).then(pl.lit(name)) for codes, name in auctions)
    )


def since_1970(given: pl.Expr) -> pl.Expr:
    """Convert s, ms, us or ns since 1970 to a time; the unit follows from the size.

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


def unix_time(raw: pl.Expr) -> pl.Expr:
    """The same for a message's raw whole number; null if it isn't one."""
    return since_1970(text(raw).cast(pl.Int64, strict=False))


def iso_time(raw: pl.Expr) -> pl.Expr:
    """Convert RFC 3339 text to a time, to the microsecond; null if it isn't one.

    >>> pl.select(iso_time(pl.lit('"2021-02-22T15:51:44.208123456Z"'))).item().isoformat()
    '2021-02-22T15:51:44.208123+00:00'
    """
    return text(raw).str.to_datetime("%+", time_unit="us", time_zone="UTC", strict=False)


def chosen(given: Mapping[str, str], name: str, known: Collection[str]) -> list[str]:
    """Return the names in a setting that is a list. Raises `ValueError` for an unknown name."""
    names = [part.strip() for part in given[name].split(",") if part.strip()]
    if unknown := [part for part in names if part not in known] or ([""] if not names else []):
        raise ValueError(f"--set {name}={given[name]}: {unknown[0]!r} is not one of {', '.join(known)}")
    return names
