"""Report once that trades could not be valued, with the remedy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ....operators.rules.row import Row
from ....operators.rules.rule import LimitRule, Measured
from ....operators.rules.value_with_bounds import Figure, figure_of, number

_WHY = {
    "contract": "the size of a contract is not known; name the exchange's own file by --set instruments=FILE",
    "currency": "their currency's rate is not known; give it by --set rates=EUR=1.08, or --set currency=EUR",
}


@dataclass(frozen=True)
class NotValued(LimitRule):
    """A venue's trades have no value, so rules about money ignore them; reported once for each reason.

    All fields are those of `LimitRule`.
    """

    def paths(self) -> Iterable[str]:
        """See `Rule`."""
        return (*super().paths(), "symbols", "examples")

    def names(self) -> Iterable[str]:
        """See `Rule`."""
        return (*super().names(), "unvalued")

    def concerned(self, rows: Iterable[Row]) -> Iterator[Row]:
        """See `Rule`. Those without a reason have a value."""
        return (row for row in super().concerned(rows) if row.key["unvalued"] is not None)

    def measure(self, memory: dict[str, Any], row: Row, figure: Figure) -> Measured | None:
        """See `LimitRule`."""
        symbols = figure_of(row.answers["symbols"])
        examples = ", ".join(str(one["item"]) for one in row.answers["examples"] or ())
        many = 0 if symbols is None else round(symbols.value)
        of = (
            f"{figure} trades of {examples}"
            if many <= 1
            else f"{figure} trades of {number(many)} symbols, such as {examples},"
        )
        return Measured(figure, f"{of} have no value: {_WHY[row.key['unvalued']]}")

    def _because(self, said: Any, figure: Figure) -> str:
        return ""
