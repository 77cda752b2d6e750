"""Rules about missing rows, and about values that don't change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ...windows.durations import Duration, duration_text
from ..alert import Alert
from ..event_state import lag_after, row_lag
from ..limit import Limit
from ..row import Row
from ..rule import LimitRule, Measured, Rule, RuleState, _text
from ..value_with_bounds import Figure


@dataclass(frozen=True)
class Absence(Rule):
    """A key that had rows has had none for longer than `longer`; cleared by its next row.

    The event has the exact time at which the silence became too long, even if it is detected later: by the
    key's next row, or by windows that close without it. For windows, silence lasts from the end of the last
    one with rows to the beginning of the next. A key is known from its first row on, and with `forget` for
    that long after its last. To detect absence in the whole stream, use a stream without keys;
    `Alerting(stale=…)` detects by the wall clock that nothing arrives at all.

    Raises `ValueError` for a `longer` that isn't a duration.

    >>> import streamgauge as sg
    >>> dead, state = sg.rules.Absence("dead", longer="1m"), None
    >>> minute = 60_000_000
    >>> rows = [Row({"sensor": "a"}, at * minute, at * minute, {}) for at in (0, 1, 4)]
    >>> alerts = list(dead.window(dead.begin(), rows, 0, 5 * minute, 0))
    >>> [(alert.state, alert.at_us // minute, alert.why) for alert in alerts]
    [('fired', 2, 'nothing for longer than 1m'), ('cleared', 4, 'it is back after 3m')]
    """

    longer: Duration = field(default="", kw_only=True)
    forget: Duration = field(default="0s", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self._duration("longer"):
            raise ValueError(f"{self._where}: longer must be a duration such as '2h', got {self.longer!r}")
        self._duration("forget")

    @property
    def together(self) -> None:
        """See `Rule`."""
        return None

    def window(
        self, state: RuleState, rows: Sequence[Row], start_us: int, end_us: int, step_us: int
    ) -> Iterator[Alert]:
        """See `Rule`."""
        for row in self.concerned(rows):
            key = _text(list(row.key.values()))
            last = state["keys"].get(key)
            begin_us = row.at_us - step_us if step_us else row.start_us
            if last is not None:
                if begin_us - last["seen"] > self.longer_us and "on" not in last:
                    last["on"] = True
                    yield self.fired(key, last["seen"])
                if "on" in last:
                    yield self.cleared(key, row.start_us, row.at_us, begin_us - last["seen"])
            seen = {"seen": max(row.at_us, last["seen"] if last else row.at_us)}
            lag = lag_after(last.get("lag", 0) if last else 0, row_lag(row.at_us, start_us, end_us))
            state["keys"][key] = seen | ({"lag": lag} if lag else {})

    def advance(self, state: RuleState, time_us: int, step_us: int) -> Iterator[Alert]:
        """See `Rule`."""
        for key, last in list(state["keys"].items()):
            silent_us = time_us - last["seen"] - last.get("lag", 0)
            if "on" not in last and silent_us > self.longer_us:
                last["on"] = True
                yield self.fired(key, last["seen"])
            if self.forget_us and silent_us > self.forget_us:
                del state["keys"][key]

    @cached_property
    def longer_us(self) -> int:
        """`longer` in microseconds."""
        return self._duration("longer")

    @cached_property
    def forget_us(self) -> int:
        """How long a key is known after its last row, in microseconds; 0 for ever."""
        forget = self._duration("forget")
        return max(self.longer_us, forget) if forget else 0

    def fired(self, key: str, seen_us: int) -> Alert:
        """A key was seen last at a time, and that is too long ago."""
        seconds = Figure.exactly(self.longer_us / 1e6)
        why = f"nothing for longer than {duration_text(self.longer_us)}"
        return self._alert("fired", key, seen_us, seen_us + self.longer_us, seconds, seconds.value, why)

    def cleared(self, key: str, start_us: int, at_us: int, silence_us: int) -> Alert:
        """A key has a row again."""
        gap, limit = Figure.exactly(silence_us / 1e6), self.longer_us / 1e6
        why = f"it is back after {duration_text(silence_us)}"
        return self._alert("cleared", key, start_us, at_us, gap, limit, why)


@dataclass(frozen=True)
class Flatline(LimitRule):
    """A value has stayed within `within` of itself for `longer`; cleared when it moves.

    The value is compared with the first one of the period. `LimitRule` has its other options; its limit, in
    seconds, is `longer`. Raises `ValueError` for a `longer` that isn't a duration.

    >>> import streamgauge as sg
    >>> stuck = sg.rules.Flatline("stuck", value="t", longer="2m", within=0.1)
    >>> minute, readings = 60_000_000, [20, 20.05, 20, 20, 21]
    >>> rows = [Row({}, at * minute, at * minute, {"t": value}) for at, value in enumerate(readings)]
    >>> alerts = stuck.window(stuck.begin(), rows, 0, 5 * minute, 0)
    >>> [(alert.state, alert.at_us // minute) for alert in alerts]
    [('fired', 2), ('cleared', 4)]
    """

    longer: Duration = field(default="", kw_only=True)
    within: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        limits = [
            name
            for name in ("above", "at_least", "below", "at_most", "clear")
            if getattr(self, name) is not None
        ]
        if limits:
            raise ValueError(
                f"the rule {self.name!r}: {limits[0]} is given; a flatline has only longer and within"
            )
        if not self._duration("longer"):
            raise ValueError(f"{self._where}: longer must be a duration such as '6h', got {self.longer!r}")
        if isinstance(self.within, bool) or not isinstance(self.within, int | float) or not self.within >= 0:
            raise ValueError(f"{self._where}: within must be a number ≥ 0, got {self.within!r}")
        super().__post_init__()

    @property
    def limit(self) -> Limit:
        """See `LimitRule`."""
        return Limit("at_least", self._duration("longer") / 1e6)

    def measure(self, memory: dict[str, Any], row: Row, figure: Figure) -> Measured:
        """See `LimitRule`."""
        if not memory or not abs(figure.value - memory["value"]) <= self.within:
            memory.update(value=figure.value, since=row.start_us)
        return self.stretch(figure, row.at_us - memory["since"])

    def stretch(self, figure: Figure, length_us: int) -> Measured:
        """That a value has stayed the same for so long, up to this one."""
        description = f"{self.value} has been {self.with_unit(figure)} for {duration_text(length_us)}"
        return Measured(Figure.exactly(length_us / 1e6), description)

    def _because(self, said: Any, figure: Figure) -> str:
        return (
            "; it moves again"
            if said == "cleared"
            else f": at least {duration_text(self._duration('longer'))}"
        )
