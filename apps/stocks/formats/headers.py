"""Recognise the columns of a CSV file of bars or trades by its header."""

from __future__ import annotations

import re
from functools import lru_cache

from ...recordings.csv_records import cells_of

NAMES = {
    "at": "date datetime timestamp time opentime day t unix unixtime transacttime tradetime eventtime",
    "clock": "time hour",
    "open": "open o openprice",
    "high": "high h highprice dayhigh",
    "low": "low l lowprice daylow",
    "price": "close c closelast closeprice last lastprice price p settle adjclose adjustedclose value",
    "adjusted": "adjclose adjustedclose adjcloseprice",
    "size": "volume vol v size qty quantity q shares amount volumebtc basevolume",
    "symbol": "symbol ticker sym s instrument product productid pair stock name",
    "side": "side takerside",
    "maker": "isbuyermaker buyermaker m",
    "seq": "tradeid aggtradeid id a sequence seq",
    "venue": "exchange venue x market",
    "split": "splitratio stocksplits splitfactor splitcoefficient",
}
"""Names of columns, in lower case, letters and digits only; the first name of a list that a header has is
used."""

_WITHOUT = (
    (12, "opentime,open,high,low,close,volume,closetime,quotevolume,trades,takerbase,takerquote,ignore"),
    (8, "aggtradeid,price,quantity,firsttradeid,lasttradeid,transacttime,isbuyermaker,isbestmatch"),
    (7, "id,price,qty,quoteqty,time,isbuyermaker,isbestmatch"),
    (6, "id,price,qty,quoteqty,time,isbuyermaker"),
)
"""The columns of the files of data.binance.vision, which have no header."""
BINANCE = frozenset(header for _, header in _WITHOUT)
"""Headers that only these files have."""

_OF_BOOKS = {"issnapshot", "updatetype", "firstupdateid", "lastupdateid"}
"""Columns of files with an order book's levels and their changes."""


@lru_cache(maxsize=64)
def places(header: str) -> dict[str, int]:
    """Find the positions of a header's columns.

    Raises `ValueError` for one without a time or a price, and for an order book's.

    >>> places("Date,Open,High,Low,Close,Adj Close,Volume")["adjusted"], places("t;p")["price"]
    (5, 1)
    """
    given = [re.sub(r"[^a-z0-9]", "", name.lower()) for name in cells(header, header)]
    if not _OF_BOOKS.isdisjoint(given):
        raise ValueError(f"the header belongs to an order book, not to trades or bars: {header[:200]}")
    places_: dict[str, int] = {}
    for what, names in NAMES.items():
        place = next((given.index(name) for name in names.split() if name in given), None)
        if place is not None:
            places_[what] = place
    if places_.get("clock") == places_.get("at"):
        places_.pop("clock", None)
    needed = {"at": "date or time", "price": "close or price"}
    if missing := [label for what, label in needed.items() if what not in places_]:
        raise ValueError(f"the header has no {' and no '.join(missing)}: {header[:200]}")
    return places_


def cells(line: str, header: str) -> list[str]:
    """Split a record into fields by its header's delimiter; none if its quotes are broken."""
    return cells_of(line, mark_of(header), skipinitialspace=True)


def mark_of(header: str) -> str:
    """Return the delimiter of a header and its records.

    >>> mark_of("t;o;c")
    ';'
    """
    return max(",;\t|", key=header.count)


def header_of(line: str) -> str | None:
    """Return the header in a file's first line, or the known header of a file without one; None if neither.

    >>> header_of("14595855,64000.1,0.5,14595855,14595855,1617753600011,True,True").split(",")[0]
    'aggtradeid'
    """
    try:
        places(line)
    except ValueError:
        first = cells(line, line)
        if not first or not all(re.fullmatch(r"[-+0-9.eE]+|[Tt]rue|[Ff]alse", cell) for cell in first):
            return None
        return next((header for width, header in _WITHOUT if width == len(first)), None)
    return line
