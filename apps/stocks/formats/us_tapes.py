"""Sale conditions of the consolidated tapes of US stocks: trades that do not set the last price.

Such a trade has a volume, but its price is not the market's at that moment: it was agreed on before, is an
average, is settled on another day, or is reported late. Some may still set the day's high and low.

Source: the tables of consolidated processing in the Consolidated Tape System's and the UTP Trade Data Feed's
specifications, and the vendors' numbers for the conditions.
"""

from __future__ import annotations

from typing import NamedTuple

import polars as pl


class Condition(NamedTuple):
    """A reason why a trade doesn't set the last price, by numbers and codes, and whether it sets high and
    low."""

    why: str
    numbers: tuple[int, ...]
    codes: str
    extremes: bool = False


CONDITIONS = (
    Condition("average price", (2,), "W"),
    Condition("cash settlement", (7,), "C"),
    Condition("next-day settlement", (20,), "N"),
    Condition("price variation", (21,), "H"),
    Condition("odd lot", (37,), "I"),
    Condition("contingent", (52, 53), "V7"),
    Condition("late, outside the hours", (13,), "U"),
    Condition("seller's settlement", (29,), "R", extremes=True),
    Condition("derivatively priced", (10,), "4", extremes=True),
    Condition("prior reference price", (22,), "P", extremes=True),
    Condition("late", (5, 32, 33), "GZ", extremes=True),
)
"""A trade's first condition in this order counts: those that don't set high and low come first."""

ODD_LOT = "odd lot"
"""Too small to set the last price, although at the market's price."""

CORRECTED = "corrected"
"""Reported in place of a cancelled trade, some time after it."""

_AVERAGE = ("average price", '"B"')
"""On tapes A and B, B is an average price; on C, it is a bunched trade, which sets the price."""


def by_numbers(conditions: pl.Expr) -> dict[str, pl.Expr]:
    """Return the columns `unpriced` and `extremes` from a list of Polygon's numbers as text.

    >>> texts = pl.Series(["[14,37]", "[0]", "[53]", "[33]"])
    >>> pl.select(**by_numbers(pl.lit(texts))).rows()
    [('odd lot', False), (None, None), ('contingent', False), ('late', True)]
    """
    return _columns([rf"\b(?:{'|'.join(map(str, one.numbers))})\b" for one in CONDITIONS], conditions)


def by_codes(conditions: pl.Expr, tape: pl.Expr) -> dict[str, pl.Expr]:
    """The same from a list of the tapes' codes as text, and the tape (A, B or C).

    >>> texts, tapes = pl.Series(['["@","I"]', '[" ","B"]', '["@","B"]']), pl.Series(["C", "A", "C"])
    >>> pl.select(**by_codes(pl.lit(texts), pl.lit(tapes))).rows()
    [('odd lot', False), ('average price', False), (None, None)]
    """
    columns = _columns([f'"[{one.codes}]"' for one in CONDITIONS], conditions)
    why, code = _AVERAGE
    average = (tape.is_in(["A", "B"]) & conditions.str.contains(code, literal=True)).fill_null(False)
    return {
        "unpriced": pl.when(average).then(pl.lit(why)).otherwise(columns["unpriced"]),
        "extremes": pl.when(average).then(False).otherwise(columns["extremes"]),
    }


def _columns(patterns: list[str], conditions: pl.Expr) -> dict[str, pl.Expr]:
    has = [conditions.str.contains(pattern) for pattern in patterns]
    return {
        "unpriced": pl.coalesce(
            *(pl.when(one).then(pl.lit(known.why)) for one, known in zip(has, CONDITIONS))
        ),
        "extremes": pl.coalesce(*(pl.when(one).then(known.extremes) for one, known in zip(has, CONDITIONS))),
    }
