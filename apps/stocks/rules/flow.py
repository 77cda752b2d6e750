"""The order flow in a window: who the aggressor was, and the average price."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ....operators.rules.row import Row
from ....operators.rules.rule import LimitRule, Measured
from ....operators.rules.value_with_bounds import Figure, number


@dataclass(frozen=True)
class OrderImbalance(LimitRule):
    """Almost all of what aggressors traded in a window was bought, or almost all was sold.

    Its `value` is the volume bought, `sold` the volume sold. The limit is compared with the size of the
    difference divided by the sum: 0 is balance, 1 is one side alone. `LimitRule` has all other fields.

    Source: Chordia, Roll, Subrahmanyam, "Order imbalance, liquidity, and market returns", J. Financial
    Economics 2002.
    """

    value: str = field(default="bought", kw_only=True)
    sold: str = field(default="sold", kw_only=True)

    def paths(self) -> Iterable[str]:
        """See `Rule`."""
        return (*super().paths(), self.sold)

    def figures(self, row: Row) -> Iterator[tuple[tuple[Any, ...], Figure | None]]:
        """See `LimitRule`. A side that has nothing is 0."""
        for more, figure in super().figures(row):
            enough = all(self._enough(row, path, least) for path, least in self.support.items())
            nothing = Figure.exactly(0.0) if enough and row.answers[self.value] is None else None
            yield more, figure or nothing

    def measure(self, memory: dict[str, Any], row: Row, figure: Figure) -> Measured | None:
        """See `LimitRule`."""
        bought, sold = figure.value, row.answers[self.sold] or 0.0
        share = imbalance(bought, sold)
        if share is None:
            return None
        side = "bought" if share > 0 else "sold"
        why = f"{number(abs(100 * share))} % more was {side}: {number(bought)} bought, {number(sold)} sold"
        return Measured(Figure.exactly(abs(share)), why)


def imbalance(bought: float | None, sold: float | None) -> float | None:
    """The volume bought minus the volume sold, divided by their sum; None if both are 0.

    >>> imbalance(30.0, 10.0), imbalance(None, 5.0), imbalance(None, None)
    (0.5, -1.0, None)
    """
    total = (bought or 0.0) + (sold or 0.0)
    return ((bought or 0.0) - (sold or 0.0)) / total if total else None


def with_averages(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of windows with their average price by volume, their share of the day's, and the imbalance.

    `share` is the share of the volume of all the symbol's windows that begin on the same day in UTC.
    """
    days: dict[tuple[Any, Any], float] = defaultdict(float)
    for row in rows:
        days[row["symbol"], row["window_start"].date()] += row["volume"] or 0.0
    for row in rows:
        volume, day = row["volume"], days[row["symbol"], row["window_start"].date()]
        row["vwap"] = row["points"] / volume if volume else None
        row["share"] = volume / day if volume and day else None
        row["imbalance"] = imbalance(row["bought"], row["sold"])
    return rows
