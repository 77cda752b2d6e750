"""The common parts of rules about prices: rows in the order of arrival, sessions, and splits between them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from ....operators.rules.alert import Alert, State
from ....operators.rules.kinds.time_zones import zone_of
from ....operators.rules.row import Row
from ....operators.rules.rule import LimitRule, Measured, RuleState
from .sessions import AUCTION_SECONDS, Hours, Moment, day_of, local
from .splits import Opening, Split, split, unit_change

DAY = 86_400
_TURNOVER_DAYS = 20


class Tick(NamedTuple):
    """The position of a row: its moment, the close before its session, and a split with which it begins.

    `prior` is None in the first session of all; `opens` is whether the row is its session's first.
    """

    at: Moment
    prior: float | None
    opens: bool
    split: Split | None


@dataclass(frozen=True)
class PriceRule(LimitRule):
    """A rule about the prices of each symbol, in sessions.

    zone, hours
        The zone whose days count, and the hours in which the market is open, such as ``09:30-16:00``. A
        session's close is its last price in these hours, or in the minute after, for the closing auction.
        Empty hours mean all day.
    splits
        The percentage by which a session's first price may differ from a usual split to count as one, and by
        which any price may differ from a hundred times the previous one to count as another unit; 0 disables
        both guesses.
    matching
        A regular expression for the symbols that it applies to: by default all.

    `LimitRule` has all other fields.
    """

    zone: str = field(default="UTC", kw_only=True)
    hours: str = field(default="", kw_only=True)
    splits: float = field(default=3.0, kw_only=True)
    matching: str = field(default="", kw_only=True)
    value: str = field(default="price", kw_only=True)
    per: Sequence[str] = field(default=("symbol",), kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            zone_of(self.zone)
            _ = self.open, self.symbols
        except (ValueError, re.error) as error:
            raise ValueError(f"{self._where}: {error}") from None
        is_number = isinstance(self.splits, int | float) and not isinstance(self.splits, bool)
        if not is_number or not 0 <= self.splits < 20:
            raise ValueError(f"{self._where}: splits must be a percentage from 0 to 20, got {self.splits!r}")

    @cached_property
    def open(self) -> Hours:
        """The hours in which the market is open."""
        return Hours.of(self.hours)

    @cached_property
    def symbols(self) -> re.Pattern[str] | None:
        """The symbols that it applies to."""
        return re.compile(self.matching) if self.matching else None

    def paths(self) -> Iterable[str]:
        """See `Rule`."""
        shown = (
            "price",
            "open",
            "high",
            "low",
            "size",
            "side",
            "span",
            "adjusted",
            "split",
            "unpriced",
            "arrived",
        )
        return dict.fromkeys((self.value, *shown))

    def concerned(self, rows: Iterable[Row]) -> Iterator[Row]:
        """See `Rule`. Trades that don't set the last price are ignored."""
        concerned_ = (row for row in super().concerned(rows) if not row.answers.get("unpriced"))
        if self.symbols is None:
            return concerned_
        return (row for row in concerned_ if self.symbols.fullmatch(str(row.key.get("symbol"))))

    def window(
        self, state: RuleState, rows: Sequence[Row], start_us: int, end_us: int, step_us: int
    ) -> Iterator[Alert]:
        """See `Rule`."""
        yield from super().window(state, in_order(rows), start_us, end_us, step_us)

    def event(self, said: State, key: str, row: Row, measured: Measured) -> Alert:
        """See `LimitRule`: the alert names its trade, which may be cancelled later."""
        alert = super().event(said, key, row, measured)
        return alert if row.answers["span"] else replace(alert, details={"reading": dict(row.key)})

    def tick(self, memory: dict[str, Any], row: Row) -> Tick:
        """Add a row to the memory of its symbol's sessions."""
        answers = row.answers
        span, price = answers["span"] or 0, answers["price"]
        at = day_of(row.at_us) if span >= DAY else local(row.at_us, self.zone)
        if memory.get("day") is None or at.day > memory["day"]:
            opening = self._begin(memory, row)
            memory.update(day=at.day, regular=False)
            tick = Tick(at, memory.get("prior"), True, opening)
        else:
            unit = unit_change(memory["last_price"], price, self.splits) if self.splits else None
            if unit is not None:
                memory.update(
                    {name: memory[name] / unit.factor for name in ("close", "prior") if name in memory}
                )
            tick = Tick(at, memory.get("prior"), False, unit)
        memory["last_price"] = price
        regular = span >= DAY or self.open.opens <= at.second <= self.open.closes + AUCTION_SECONDS
        if regular or not memory["regular"]:
            memory.update(close=price, adjusted=answers["adjusted"], regular=regular)
        return tick

    def _begin(self, memory: dict[str, Any], row: Row) -> Split | None:
        """Begin a session: its prior close is the one before, in the shares of today."""
        close = memory.get("close")
        turnover = _turnover(row)
        opening = None
        if close is not None:
            answers = row.answers
            seen = Opening(answers["open"], answers["price"], answers["adjusted"], answers["split"], turnover)
            opening = split(seen, close, memory.get("adjusted"), memory.get("turnover"), self.splits)
            memory["prior"] = close / opening.factor if opening else close
        if turnover is not None:
            known = memory.get("turnover", turnover)
            memory["turnover"] = known + (turnover - known) / _TURNOVER_DAYS
        return opening


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Rows by their times, and rows with the same time in the order of arrival."""
    return sorted(rows, key=lambda row: (row.at_us, row.answers["arrived"] or 0))


def _turnover(row: Row) -> float | None:
    """Return the turnover in a daily bar; None for other rows, which don't tell the day's."""
    size = row.answers["size"]
    return row.answers["price"] * size if row.answers["span"] >= DAY and size else None
