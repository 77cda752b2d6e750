"""Limit up, limit down: the price bands of US stocks, derived from trades.

The reference price is the mean of the trades of the last five minutes; a new one takes effect if it is at
least 1 % away and the previous one has stood for 30 seconds (Plan, section V). It stays if there are no
trades in five minutes, and while the stock is in a limit state. The bands are a percentage of it on either
side (Appendix A), by the security's tier and by its close the day before:

    close before      Tier 1   Tier 2
    above $3.00        5 %      10 %
    $0.75 to $3.00    20 %      20 %
    below $0.75       the lesser of $0.15 and 75 %

They are doubled from 15:35 to the close for Tier 1, and for Tier 2 at or below $3.00. Before 2020-02-24
(Amendment 18) all were doubled from 9:30 to 9:45 and from 15:35 to the close. A stock whose best quote stays
at a band for 15 seconds is paused for five minutes. Quotes aren't read here: a trade at a band stands for the
limit state.

Source: Plan to Address Extraordinary Market Volatility, luldplan.com.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any, NamedTuple

from ....operators.rules.row import Row
from ....operators.rules.rule import Measured
from ....operators.rules.value_with_bounds import Figure, number
from ..symbol_lists import SymbolList
from .prices import DAY, PriceRule, Tick
from .sessions import Hours

REGULAR = Hours(34_200, 57_600)
"""Bands apply from 9:30 to 16:00."""
_AMENDED = date(2020, 2, 24).toordinal() - date(1970, 1, 1).toordinal()
_OPENING_ENDS, _CLOSING_BEGINS = 9 * 3_600 + 45 * 60, 15 * 3_600 + 35 * 60
_MEAN_US, _STANDS_US, _PAUSE_US = 300_000_000, 30_000_000, 300_000_000
_MOVED = 0.01


class Bands(NamedTuple):
    """The two prices between which trades must lie, and how they were derived."""

    lower: float
    upper: float
    why: str


def bands(reference: float, close: float, tier: int, day: int, second: float) -> Bands:
    """The bands around a reference price, for a close the day before, at a second of a day since 1970.

    >>> bands(100.0, 98.0, 1, 19_000, 40_000.0)[:2], bands(100.0, 98.0, 1, 19_000, 57_000.0)[:2]
    ((95.0, 105.0), (90.0, 110.0))
    >>> bands(100.0, 98.0, 2, 19_000, 57_000.0)[:2], bands(0.5, 0.5, 2, 19_000, 40_000.0)[:2]
    ((90.0, 110.0), (0.35, 0.65))
    """
    doubled = second >= _CLOSING_BEGINS and (tier == 1 or close <= 3 or day < _AMENDED)
    doubled = doubled or (second < _OPENING_ENDS and day < _AMENDED)
    times = 2 if doubled else 1
    if close < 0.75:
        width = min(0.15, 0.75 * reference) * times
        share = "the lesser of $0.15 and 75 %"
    else:
        percent = (5 if tier == 1 else 10) if close > 3 else 20
        width = reference * percent * times / 100
        share = f"{percent} %"
    why = f"{share}{' doubled' * doubled} around {number(round(reference, 4))} (Tier {tier})"
    return Bands(max(round(reference - width, 2), 0.0), round(reference + width, 2), why)


@dataclass(frozen=True)
class PriceBand(PriceRule):
    """A price has reached a band of limit up, limit down; cleared when it is back between the bands.

    The limit is compared with how far the price is on its way from the reference to the band, in percent:
    ``at_least=100`` is at the band. With ``hold="15s"`` it indicates a trading pause. `tier1` lists the
    symbols of Tier 1, by name or wildcard (`SymbolList`); all others are in Tier 2. A bar's lowest and
    highest price are compared with the bands; daily bars are ignored. `PriceRule` has the other fields.
    """

    tier1: tuple[str, ...] = field(default=(), kw_only=True)

    @cached_property
    def _first_tier(self) -> SymbolList:
        return SymbolList(tuple(self.tier1))

    def figures(self, row: Row) -> Iterator[tuple[tuple[Any, ...], Figure | None]]:
        """See `LimitRule`."""
        for more, figure in super().figures(row):
            # Around a price at or below 0 there is no band.
            lowest = min(row.answers["open"] or 0, row.answers["price"] or 0)
            yield more, None if (row.answers["span"] or 0) >= DAY or lowest <= 0 else figure

    def measure(self, memory: dict[str, Any], row: Row, figure: Figure) -> Measured | None:
        """See `LimitRule`."""
        tick = self.tick(memory, row)
        if not REGULAR.opens <= tick.at.second < REGULAR.closes:
            return None
        reference = self._reference(memory, tick, row)
        tier = 1 if self.tier1 and row.key["symbol"] in self._first_tier else 2
        close = tick.prior if tick.prior is not None else reference
        bands_ = bands(reference, close, tier, tick.at.day, tick.at.second)
        low, high = row.answers["low"], row.answers["high"]
        down = (reference - low) / (reference - bands_.lower) if reference > bands_.lower else 0.0
        up = (high - reference) / (bands_.upper - reference) if bands_.upper > reference else 0.0
        # At the band it is at the band, whatever the rounding.
        down, up = max(down, float(low <= bands_.lower)), max(up, float(high >= bands_.upper))
        memory["limited"] = max(up, down) >= 1
        price, band, name = (high, bands_.upper, "upper") if up >= down else (low, bands_.lower, "lower")
        way = 100 * max(up, down)
        why = f"{number(price)} is {number(way)} % of the way to the {name} band {number(band)}, {bands_.why}"
        return Measured(Figure.exactly(way), why)

    def _reference(self, memory: dict[str, Any], tick: Tick, row: Row) -> float:
        """The reference price for this row, which then counts for the next one's."""
        price, at = row.answers["price"], row.at_us
        past = memory.setdefault("trades", [])
        if tick.at.day != memory.get("banded") or _resumes(memory, at):
            # An opening or reopening auction sets the first reference.
            past.clear()
            memory.update(banded=tick.at.day, reference=row.answers["open"], since=at)
        while past and past[0][0] < at - _MEAN_US:
            del past[0]
        if past and at - memory["since"] >= _STANDS_US and not memory.get("limited"):
            mean = sum(total for _, total, _ in past) / sum(n for _, _, n in past)
            if abs(mean / memory["reference"] - 1) >= _MOVED:
                memory.update(reference=mean, since=at)
        second = at // 1_000_000 * 1_000_000
        if past and past[-1][0] == second:
            past[-1][1:] = [past[-1][1] + price, past[-1][2] + 1]
        else:
            past.append([second, price, 1])
        memory["seen"] = at
        return float(memory["reference"])


def _resumes(memory: dict[str, Any], at_us: int) -> bool:
    """Whether this is the first trade after a pause."""
    return bool(memory.get("limited")) and at_us - memory.get("seen", at_us) >= _PAUSE_US
