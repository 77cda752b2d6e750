"""Rules about single trades: large ones and their takers, and the order of their numbers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ....operators.rules.alert import Alert
from ....operators.rules.kinds.beyond import Beyond
from ....operators.rules.row import Row
from ....operators.rules.rule import LimitRule, Measured, Rule, RuleState
from ....operators.rules.value_with_bounds import Figure, number
from ..formats.us_tapes import CORRECTED
from .prices import in_order

_SHOWN = ("price", "size", "value", "side", "span", "auction", "unpriced", "arrived")


class Tape(LimitRule):
    """The common parts of rules about single trades: their order, and the taker's side.

    If a feed doesn't name the taker, the tick test decides: a trade above the last different price was
    bought, a trade below it was sold.

    Source: Lee, Ready, "Inferring Trade Direction from Intraday Data", J. Finance 1991.
    """

    def paths(self) -> Iterable[str]:
        """See `Rule`."""
        return dict.fromkeys((self.value, *_SHOWN))

    def concerned(self, rows: Iterable[Row]) -> Iterator[Row]:
        """See `Rule`."""
        return (row for row in super().concerned(rows) if row.answers["span"] == 0)

    def window(
        self, state: RuleState, rows: Sequence[Row], start_us: int, end_us: int, step_us: int
    ) -> Iterator[Alert]:
        """See `Rule`."""
        yield from super().window(state, in_order(rows), start_us, end_us, step_us)

    def taker_side(self, memory: dict[str, Any], answers: Mapping[str, Any]) -> str:
        """A description of a trade's taker, and the side."""
        price, last, unpriced = answers["price"], memory.get("last"), answers.get("unpriced")
        given = {"buy": "bought", "sell": "sold"}.get(answers["side"] or "")
        if unpriced:
            guess = f"traded ({unpriced})"  # its price tells nothing about the aggressor
        else:
            if last is not None and price != last:
                memory["tick"] = "bought" if price > last else "sold"
            memory["last"] = price
            guess = f"{memory['tick']}, by the tick test" if "tick" in memory else "traded"
        value = answers.get("value")
        money = "of unknown worth" if value is None else f"{number(value)} in all"
        auction = f" in the {answers['auction']} auction" if answers.get("auction") else ""
        return f"{given or guess}{auction}: {number(answers['size'])} at {number(price)}, {money}"


@dataclass(frozen=True)
class Block(Tape):
    """A trade is large by its `value`: ``"size"``, ``"shares"``, or ``"value"`` in money.

    Auction prints are not blocks, unless `auctions` is True; then the alert mentions the auction. `LimitRule`
    has all other fields.
    """

    per: Sequence[str] = field(default=("symbol",), kw_only=True)
    every: bool = field(default=True, kw_only=True)
    auctions: bool = field(default=False, kw_only=True)

    def measure(self, memory: dict[str, Any], row: Row, figure: Figure) -> Measured | None:
        """See `LimitRule`."""
        taker = self.taker_side(memory, row.answers)
        if row.answers.get("auction") and not self.auctions:
            return None
        what = {"shares": "size"}.get(self.value, self.value)
        return Measured(figure, f"{taker}; its {what} is {figure}")


@dataclass(frozen=True)
class LargeTrade(Tape, Beyond):
    """A trade is larger than its symbol's trades usually are, by their quantile sketch; auctions don't count.

    All fields are those of `Beyond`.
    """

    per: Sequence[str] = field(default=("symbol",), kw_only=True)
    every: bool = field(default=True, kw_only=True)

    def measure(self, memory: dict[str, Any], row: Row, figure: Figure) -> Measured | None:
        """See `LimitRule`."""
        taker = self.taker_side(memory.setdefault("tape", {}), row.answers)
        if row.answers.get("auction"):
            return None
        measured = Beyond.measure(self, memory.setdefault("sizes", {}), row, figure)
        return None if measured is None else measured._replace(description=f"{taker}; {measured.description}")


@dataclass(frozen=True)
class OutOfOrder(Rule):
    """Trades of a symbol at a venue arrived after others with higher numbers; fired once for each window.

    The figure is their number. Numbers that rise with gaps, as in most feeds, are in order. Negative numbers
    only identify trades.
    """

    def paths(self) -> Iterable[str]:
        """See `Rule`."""
        return ("arrived", "span", "number", "unpriced")

    def names(self) -> Iterable[str]:
        """See `Rule`."""
        return [*super().names(), "symbol", "venue"]

    @property
    def together(self) -> tuple[str, ...]:
        """See `Rule`."""
        return "symbol", "venue"

    def key_names(self, keys: Sequence[str]) -> Sequence[str]:
        """See `Rule`."""
        return ("symbol", "venue")

    def window(
        self, state: RuleState, rows: Sequence[Row], start_us: int, end_us: int, step_us: int
    ) -> Iterator[Alert]:
        """See `Rule`."""
        by_key: dict[tuple[Any, Any], list[Row]] = {}
        for row in self.concerned(rows):
            number_ = row.answers["number"]
            in_turn = row.answers["span"] == 0 and row.answers.get("unpriced") != CORRECTED
            if number_ is not None and number_ >= 0 and in_turn:
                by_key.setdefault((row.key["symbol"], row.key["venue"]), []).append(row)
        for (symbol, venue), trades in sorted(by_key.items(), key=str):
            key = _key([symbol, venue])
            yield from self._look(state["keys"].setdefault(key, {}), key, trades)

    def _look(self, memory: dict[str, Any], key: str, trades: list[Row]) -> Iterator[Alert]:
        """Go through a window's trades as they arrived, with the highest of the windows before among them."""
        arrived = [(row.answers["arrived"], row.answers["number"], row) for row in trades]
        known = [(memory["arrived"], memory["seq"], None)] if memory else []
        high, late = None, []
        for _, seq, row in sorted([*arrived, *known], key=lambda one: one[0]):
            if high is not None and seq < high:
                late.append((seq, high, row))
            high = seq if high is None else max(high, seq)
        memory["arrived"], memory["seq"] = max(
            ((at, seq) for at, seq, _ in [*arrived, *known]), key=lambda one: (one[1], one[0])
        )
        if late:
            seq, high, row = late[0]
            at = min(one.at_us for one in trades) if row is None else row.at_us
            why = f"{len(late)} of {len(trades)} came late: the first is {seq}, after {high}"
            yield self._alert("fired", key, at, at, Figure.exactly(len(late)), 0.0, why)


def _key(parts: Sequence[Any]) -> str:
    return json.dumps(list(parts), ensure_ascii=False, separators=(",", ":"))
