"""Moves of a price: from the previous session's close, within a span of time, and as scores."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

from ....operators.rules.alert import State
from ....operators.rules.kinds.baselines import Ewma
from ....operators.rules.row import Row
from ....operators.rules.rule import Measured
from ....operators.rules.value_with_bounds import Figure, number
from ....operators.windows.durations import Duration, duration_text
from .prices import PriceRule, Tick

_BUCKETS = 120
_TIMES = 2


@dataclass(frozen=True)
class SessionMove(PriceRule):
    """A price has moved by a percentage from the previous session's close; fired once per session.

    `value` selects the price: ``"price"``, or for bars also ``"low"`` or ``"high"``. After `until`, a time of
    day such as ``15:25``, only daily bars are reported. All other fields are as in `PriceRule`. Raises
    `ValueError` or `TypeError` for an invalid one.
    """

    until: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            _ = self._until
        except ValueError:
            raise ValueError(
                f"{self._where}: until must be a time of day such as 15:25, got {self.until!r}"
            ) from None

    @cached_property
    def _until(self) -> float:
        if not self.until:
            return math.inf
        hour, minute = self.until.split(":")
        return int(hour) * 3600 + int(minute) * 60

    def measure(self, memory: dict[str, Any], row: Row, figure: Figure) -> Measured | None:
        """See `LimitRule`."""
        tick = self.tick(memory, row)
        if tick.opens:
            memory.pop("reported", None)
        if tick.prior is None or tick.prior <= 0 or tick.at.second >= self._until:
            return None
        prior = tick.prior
        moved = figure.map(lambda price: 100 * (price - prior) / prior)
        if "reported" in memory:
            return None
        if self.limit.side(moved) == "past":
            memory["reported"] = row.at_us
        where = "" if self.value == "price" else f"the {self.value} "
        percent, date = number(moved.value), tick.at.date
        why = f"{where}{figure} is {percent} % from {number(prior)}, the close before {date}"
        return Measured(moved, f"{why}{_after(tick)}")

    def _next_states(self, switch: dict[str, Any], measured: Measured, row: Row) -> State | None:
        return "fired" if self.limit.side(measured.figure) == "past" else None

    def take_back(self, memory: dict[str, Any], at_us: int) -> None:
        """See `LimitRule`: the session may be reported again."""
        if memory.get("reported") == at_us:
            del memory["reported"]


Against = Literal["first", "high", "low"]


@dataclass(frozen=True)
class RollingMove(PriceRule):
    """A price has moved by a percentage within the span `over`; cleared when it is back.

    It is compared (`against`) with the ``"first"`` price of that span, the one `over` ago, or its ``"high"``
    or ``"low"``. These are stored in slices of a 120th of `over`, so prices at its far end may be older by
    that much. Rows that themselves last as long as `over` are ignored. All other fields are as in
    `PriceRule`. Raises `ValueError` or `TypeError` for an invalid one.
    """

    against: Against = field(default="first", kw_only=True)
    over: Duration = field(default="24h", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.against not in get_args(Against):
            wanted = ", ".join(get_args(Against))
            raise ValueError(f"{self._where}: against must be one of {wanted}, got {self.against!r}")
        if not self._duration("over"):
            raise ValueError(f"{self._where}: over must be a duration such as '24h', got {self.over!r}")

    def measure(self, memory: dict[str, Any], row: Row, figure: Figure) -> Measured | None:
        """See `LimitRule`."""
        tick, over = self.tick(memory, row), self._duration("over")
        if row.answers["span"] * 1_000_000 >= over:
            return None
        past = memory.setdefault("past", [])
        if tick.split is not None:
            past[:] = [[at, *(price / tick.split.factor for price in prices)] for at, *prices in past]
        width = max(1, over // _BUCKETS)
        while past and (past[0][0] + 1) * width <= row.at_us - over:
            del past[0]
        reference = self._reference(past)
        opened, high, low = (row.answers[name] for name in ("open", "high", "low"))
        # A bar's opening price came before its other prices.
        reference = (
            opened if reference is None else max(reference, opened) if self.against == "high" else reference
        )
        reference = min(reference, opened) if self.against == "low" else reference
        _keep(past, row.at_us // width, opened, high, low)
        if reference <= 0:
            return None
        moved = figure.map(lambda price: 100 * (price - reference) / reference)
        what = {"first": f"{duration_text(over)} before", "high": "the highest", "low": "the lowest"}[
            self.against
        ]
        within = "" if self.against == "first" else f" of {duration_text(over)}"
        why = f"{figure} is {number(moved.value)} % from {number(reference)}, {what}{within}"
        return Measured(moved, f"{why}{_after(tick)}")

    def _reference(self, past: list[list[float]]) -> float | None:
        if not past:
            return None
        if self.against == "first":
            return past[0][1]
        return max(one[2] for one in past) if self.against == "high" else min(one[3] for one in past)


def _keep(past: list[list[float]], bucket: int, opened: float, high: float, low: float) -> None:
    if past and past[-1][0] == bucket:
        past[-1][2:] = [max(past[-1][2], high), min(past[-1][3], low)]
    else:
        past.append([bucket, opened, high, low])


@dataclass(frozen=True)
class ReturnScore(PriceRule):
    """A return is a number of standard deviations away from the mean of the symbol's earlier returns.

    Returns are differences of logarithms between steps of length `step`; longer bars are steps themselves.
    Mean and deviation are exponentially weighted over `over` returns, and need at least `warm`. A return of
    less than `least` percent is never past the limit. There is no return from one session to the next, except
    between bars that are sessions. All other fields are as in `PriceRule`. Raises `ValueError` or `TypeError`
    for an invalid one.
    """

    step: Duration = field(default="1m", kw_only=True)
    over: int = field(default=60, kw_only=True)
    warm: int = field(default=30, kw_only=True)
    least: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self._duration("step"):
            raise ValueError(f"{self._where}: step must be a duration such as '1m', got {self.step!r}")
        for name in ("over", "warm"):
            if type(given := getattr(self, name)) is not int or given < _TIMES:
                raise ValueError(f"{self._where}: {name} must be an integer ≥ {_TIMES}, got {given!r}")

    def measure(self, memory: dict[str, Any], row: Row, figure: Figure) -> Measured | None:
        """See `LimitRule`."""
        tick, price = self.tick(memory, row), figure.value
        if price <= 0:
            return None
        step = self._duration("step")
        longer = row.answers["span"] * 1_000_000 >= step
        number_of = row.at_us if longer else row.at_us // step
        if tick.split is not None and "last" in memory:
            memory["last"] /= tick.split.factor
        before = memory.setdefault("returns", {})
        if number_of != memory.get("step"):
            if memory.get("from") is not None:
                Ewma(2 / (self.over + 1)).learn(before, row.at_us, math.log(memory["last"] / memory["from"]))
            of_another = tick.opens and not (longer and row.answers["span"] >= 86_400)
            memory.update(step=number_of, **{"from": None if of_another else memory.get("last")})
        memory["last"] = price
        past = Ewma(2 / (self.over + 1)).past(before, row.at_us)
        if memory["from"] is None or past is None or past.rows < self.warm or not past.spread:
            return None
        grown = math.log(price / memory["from"])
        score = (grown - past.mean) / past.spread
        percent = 100 * math.expm1(grown)
        why = (
            f"{number(percent)} % to {figure} is {number(score)} standard deviations from the mean of "
            f"{past.rows} returns before, {100 * past.mean:.3g} ± {100 * past.spread:.3g} %{_after(tick)}"
        )
        return Measured(Figure.exactly(score), why, abs(percent) >= self.least)


@dataclass(frozen=True)
class SplitSeen(PriceRule):
    """A session began with a split: earlier prices are compared with later ones in today's shares.

    The limit is compared with the number of new shares per old share. All other fields are as in `PriceRule`.
    """

    def measure(self, memory: dict[str, Any], row: Row, figure: Figure) -> Measured | None:
        """See `LimitRule`."""
        tick = self.tick(memory, row)
        if tick.split is None or tick.split.unit:
            return None
        factor = tick.split.factor
        shares = f"{factor:g} new shares for 1" if factor >= 1 else f"1 new share for {1 / factor:g}"
        return Measured(Figure.exactly(factor), f"{shares}: {tick.split.why}")

    def _next_states(self, switch: dict[str, Any], measured: Measured, row: Row) -> State | None:
        return "fired" if self.limit.side(measured.figure) == "past" else None

    def _because(self, said: State, figure: Figure) -> str:
        return ""


@dataclass(frozen=True)
class UnitChange(SplitSeen):
    """Prices are a hundred times the earlier ones, or a hundredth: pence for pounds, cents for dollars.

    Earlier prices are then compared with later ones in the new unit. If a session begins with it, it may also
    be a split of 1 to 100, unless a column names the split. The limit is compared with the ratio of the
    prices. All other fields are as in `PriceRule`.
    """

    def measure(self, memory: dict[str, Any], row: Row, figure: Figure) -> Measured | None:
        """See `LimitRule`."""
        tick = self.tick(memory, row)
        if tick.split is None or not tick.split.unit:
            return None
        or_split = ", or a split" if tick.opens else ""
        why = f"another unit, such as pence for pounds{or_split}: {tick.split.why}"
        return Measured(Figure.exactly(1 / tick.split.factor), why)


def _after(tick: Tick) -> str:
    if tick.split is None:
        return ""
    return f" (after a {'change of unit' if tick.split.unit else 'split'}, 1 to {tick.split.factor:g})"
