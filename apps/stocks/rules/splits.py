"""Splits, which look like a crash but are the same value in more shares.

Evidence is used in this order: a column or a file that names the split; a close with an adjusted close, if
their ratio changes; a session's first price near the previous close divided by a usual ratio. A guess also
considers the turnover, if it is known: a day with three times the usual turnover was not a split. A ratio of
100 is more often a change of units, pence for pounds or cents for dollars, and is reported as that.
"""

from __future__ import annotations

from typing import NamedTuple

USUAL = (1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 100.0)
"""New shares per old share, and in reverse splits old shares per new share."""
_LEAST = 1.2
"""Smaller changes of an adjustment are dividends."""
_EXACT = 0.01
_UNIT = 100.0
_BUSY = 3.0


class Opening(NamedTuple):
    """A session's first row: its first price, its close, its adjusted close, and its turnover."""

    price: float
    close: float
    adjusted: float | None
    split: float | None
    turnover: float | None


class Split(NamedTuple):
    """The number of shares that each became, or of units of the price, and the evidence."""

    factor: float
    why: str
    unit: bool = False


def split(
    seen: Opening, close: float, adjusted: float | None, usual: float | None, within: float
) -> Split | None:
    """The split between a close (with its adjusted close) and the next session, if there was one.

    `usual` is the turnover of earlier days, `within` the percentage by which a guess may be off; 0 disables
    guesses.

    >>> aapl = Opening(127.58, 129.04, None, None, None)
    >>> split(aapl, 499.23, None, None, 3.0).why
    'it opened at 127.58 after 499.23, 1 to 3.913'
    >>> split(Opening(28.19, 25.75, None, None, None), 53.5, None, None, 3.0)
    """
    if seen.split is not None and seen.split > 0 and seen.split != 1:
        return Split(seen.split, "the feed or the file of corporate actions names it")
    if adjusted and seen.adjusted and min(adjusted, seen.adjusted, close, seen.close) > 0:
        change = (close / adjusted) / (seen.close / seen.adjusted)
        if max(change, 1 / change) < _LEAST:
            return None
        ratio = _near(change, _EXACT)
        return Split(ratio or change, f"the adjustment of closes changes by {change:.4g}")
    if within <= 0 or seen.price <= 0 or close <= 0:
        return None
    if (unit := unit_change(close, seen.price, within)) is not None:
        return unit
    ratio = _near(close / seen.price, within / 100)
    busy = usual and seen.turnover and seen.turnover > _BUSY * usual
    if ratio is None or busy:
        return None
    return Split(ratio, f"it opened at {seen.price:g} after {close:g}, {_ratio(close / seen.price)}")


def unit_change(before: float, price: float, within: float) -> Split | None:
    """A price that is a hundred times the previous one, or a hundredth, within a percentage.

    >>> unit_change(1.25, 126.0, 3.0).factor, unit_change(125.0, 126.0, 3.0)
    (0.01, None)
    """
    if before <= 0 or price <= 0:
        return None
    for factor in (_UNIT, 1 / _UNIT):
        if abs(before / price / factor - 1) <= within / 100:
            times = "100 times" if factor < 1 else "a hundredth of"
            return Split(factor, f"{price:g} is {times} {before:g}, the price before", unit=True)
    return None


def _near(ratio: float, within: float) -> float | None:
    every = [*USUAL, *(1 / one for one in USUAL)]
    near = min(every, key=lambda one: abs(ratio / one - 1))
    return near if abs(ratio / near - 1) <= within else None


def _ratio(ratio: float) -> str:
    return f"1 to {ratio:.4g}" if ratio >= 1 else f"{1 / ratio:.4g} to 1"
