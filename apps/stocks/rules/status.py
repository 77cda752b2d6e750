"""Rules about a symbol's trading status: halted, or silent although not halted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ....operators.rules.alert import Alert
from ....operators.rules.kinds.time_zones import zone_of
from ....operators.rules.row import Row
from ....operators.rules.rule import LimitRule, Measured, Rule, RuleState
from ....operators.rules.value_with_bounds import Figure
from ....operators.windows.durations import Duration, duration_text
from ..formats.us_tapes import CORRECTED
from .prices import in_order
from .sessions import Hours, local

_SECOND = 1_000_000


@dataclass(frozen=True)
class Halt(LimitRule):
    """The exchange has halted trading in a symbol; cleared when trading resumes.

    `value` is 1 while trading is halted and 0 otherwise. It has the fields of `LimitRule` and no others.
    """

    per: Sequence[str] = field(default=("symbol",), kw_only=True)

    def paths(self) -> Iterable[str]:
        """See `Rule`."""
        return (*super().paths(), "reason", "arrived")

    def window(
        self, state: RuleState, rows: Sequence[Row], start_us: int, end_us: int, step_us: int
    ) -> Iterator[Alert]:
        """See `Rule`."""
        yield from super().window(state, in_order(rows), start_us, end_us, step_us)

    def measure(self, memory: dict[str, Any], row: Row, figure: Figure) -> Measured | None:
        """See `LimitRule`."""
        said = "trading is halted" if figure.value else "trading continues"
        return Measured(figure, f"{said}: {row.answers['reason'] or 'no reason is given'}")

    def _because(self, said: Any, figure: Figure) -> str:
        return ""


@dataclass(frozen=True)
class SilentSymbol(Rule):
    """A symbol that traded has had no trade for longer than `longer` while its market was open.

    It clears with the next trade. Time in which the market is closed (`zone`, `hours`, as for `PriceRule`) or
    a status reports a halt doesn't count as silence. After a halt, silence begins when trading resumes, which
    only a status reports. Raises `ValueError` for a `longer` that isn't a duration, and for invalid hours or
    zones.
    """

    longer: Duration = field(default="", kw_only=True)
    zone: str = field(default="UTC", kw_only=True)
    hours: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self._duration("longer"):
            raise ValueError(f"{self._where}: longer must be a duration such as '5m', got {self.longer!r}")
        try:
            zone_of(self.zone)
            _ = self.open
        except ValueError as error:
            raise ValueError(f"{self._where}: {error}") from None

    @cached_property
    def open(self) -> Hours:
        """The hours in which the market is open."""
        return Hours.of(self.hours)

    @cached_property
    def longer_us(self) -> int:
        """`longer` in microseconds."""
        return self._duration("longer")

    @property
    def together(self) -> tuple[str, ...]:
        """See `Rule`."""
        return ("symbol",)

    def names(self) -> Iterable[str]:
        """See `Rule`."""
        return (*super().names(), "symbol")

    def paths(self) -> Iterable[str]:
        """See `Rule`."""
        return "price", "halted", "arrived", "unpriced"

    def window(
        self, state: RuleState, rows: Sequence[Row], start_us: int, end_us: int, step_us: int
    ) -> Iterator[Alert]:
        """See `Rule`."""
        for row in in_order(self.concerned(rows)):
            key = json.dumps([row.key["symbol"]], ensure_ascii=False, separators=(",", ":"))
            memory = state["keys"].get(key)
            if memory is not None:
                yield from self._due(memory, key, row.at_us)
            halted = row.answers["halted"]
            if row.answers.get("unpriced") == CORRECTED:
                continue
            if halted is None:
                before = {} if memory is None else memory
                if "on" in before:
                    yield self._cleared(key, row.at_us, row.at_us - before["seen"])
                seen = max(row.at_us, before.get("seen", row.at_us))
                # Trades that are reported late don't end a halt.
                state["keys"][key] = {"seen": seen, "halted": before.get("halted", False)}
            elif memory is not None and "on" not in memory:
                memory.update(seen=max(row.at_us, memory["seen"]), halted=bool(halted))

    def advance(self, state: RuleState, time_us: int, step_us: int) -> Iterator[Alert]:
        """See `Rule`."""
        for key, memory in state["keys"].items():
            yield from self._due(memory, key, time_us)

    def _due(self, memory: dict[str, Any], key: str, time_us: int) -> Iterator[Alert]:
        """The alert that a symbol has been silent for too long at a time."""
        if "on" in memory or memory.get("halted") or time_us - memory["seen"] <= self.longer_us:
            return
        at_us = self._too_long_at(memory["seen"])
        if time_us > at_us:
            memory["on"] = True
            why = f"no trade for longer than {duration_text(self.longer_us)}"
            seconds = Figure.exactly(self.longer_us / _SECOND)
            yield self._alert("fired", key, memory["seen"], at_us, seconds, seconds.value, why)

    def _too_long_at(self, seen_us: int) -> int:
        """When a silence that began at a time is too long: time while the market is closed doesn't count."""
        if self.open.all_day:
            return seen_us + self.longer_us
        at, remaining = seen_us, self.longer_us
        opens, closes = self.open.opens * _SECOND, self.open.closes * _SECOND
        while True:
            second_us = round(local(at, self.zone).second * _SECOND)
            if second_us < opens:
                at += opens - second_us
            elif second_us >= closes:
                at += 86_400 * _SECOND - second_us
            elif second_us + remaining <= closes:
                return at + remaining
            else:
                remaining -= closes - second_us
                at += closes - second_us

    def _cleared(self, key: str, at_us: int, silence_us: int) -> Alert:
        gap, limit = Figure.exactly(silence_us / _SECOND), self.longer_us / _SECOND
        return self._alert(
            "cleared", key, at_us, at_us, gap, limit, f"it trades again after {duration_text(silence_us)}"
        )
