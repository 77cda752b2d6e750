"""Rules about what does not come, and about what does not change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..definition.durations import Duration, written
from .alert import Alert
from .figure import Figure
from .limit import Limit
from .row import Row
from .rule import LimitRule, Measured, Rule, RuleState, _text


@dataclass(frozen=True)
class Absence(Rule):
    """A key that had rows has had none for longer than `longer`; cleared by its next row.

    The event is at the very time at which the silence became too long, whenever that is found out: by the
    key's next row, or by windows that close without it. Of windows, silence is from the end of the last with
    rows to the beginning of the next. A key is known from its first row on, and with `forget` for so long
    after its last. `absence` of the whole stream needs a stream without keys; that nothing at all comes is
    what `Alerting(stale=…)` tells by the wall clock.

    Raises `ValueError` for a `longer` that isn't a length of time.

    >>> dead, state = Absence("dead", longer="1m"), None
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
            raise ValueError(
                f"{self._where}: longer is {self.longer!r}; write a length of time, such as '2h'"
            )
        self._duration("forget")

    def window(
        self, state: RuleState, rows: Sequence[Row], start_us: int, end_us: int, step_us: int
    ) -> Iterator[Alert]:
        """See `Rule`."""
        for row in self.concerned(rows):
            key = _text(list(row.key.values()))
            last = state["keys"].get(key)
            begin_us = row.at_us - step_us if step_us else row.start_us
            if last is not None:
                if begin_us - last["seen"] > self._duration("longer") and "on" not in last:
                    yield self._fired(key, last)
                if "on" in last:
                    gap = Figure.exactly((begin_us - last["seen"]) / 1e6)
                    why = f"it is back after {written(begin_us - last['seen'])}"
                    at = row.start_us, row.at_us
                    yield self._alert("cleared", key, *at, gap, self._duration("longer") / 1e6, why)
            state["keys"][key] = {"seen": max(row.at_us, last["seen"] if last else row.at_us)}

    def passed(self, state: RuleState, time_us: int, step_us: int) -> Iterator[Alert]:
        """See `Rule`."""
        longer, forget = self._duration("longer"), self._duration("forget")
        for key, last in list(state["keys"].items()):
            if "on" not in last and time_us - last["seen"] > longer:
                yield self._fired(key, last)
            if forget and time_us - last["seen"] > max(longer, forget):
                del state["keys"][key]

    def _fired(self, key: str, last: dict[str, Any]) -> Alert:
        longer = self._duration("longer")
        last["on"] = at = last["seen"] + longer
        seconds = Figure.exactly(longer / 1e6)
        why = f"nothing for longer than {written(longer)}"
        return self._alert("fired", key, last["seen"], at, seconds, seconds.value, why)


@dataclass(frozen=True)
class Flatline(LimitRule):
    """A value has stayed the same for `longer`, give or take `within`; cleared when it moves.

    The value is compared with the first of the stretch. What else it can be given stands with `LimitRule`;
    its limit, in seconds, is `longer`. Raises `ValueError` for a `longer` that isn't a length of time.

    >>> stuck = Flatline("stuck", value="t", longer="2m", within=0.1)
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
            raise ValueError(
                f"{self._where}: longer is {self.longer!r}; write a length of time, such as '6h'"
            )
        if isinstance(self.within, bool) or not isinstance(self.within, int | float) or not self.within >= 0:
            raise ValueError(f"{self._where}: within is {self.within!r}; it is a number from 0 on")
        super().__post_init__()

    @property
    def limit(self) -> Limit:
        """See `LimitRule`."""
        return Limit("at_least", self._duration("longer") / 1e6)

    def measure(self, memory: dict[str, Any], row: Row, figure: Figure) -> Measured:
        """See `LimitRule`."""
        if not memory or not abs(figure.value - memory["value"]) <= self.within:
            memory.update(value=figure.value, since=row.start_us)
        length = row.at_us - memory["since"]
        return Measured(Figure.exactly(length / 1e6), f"{self.value} has been {figure} for {written(length)}")

    def _because(self, said: Any, figure: Figure) -> str:
        return "; it moves again" if said == "cleared" else f": at least {written(self._duration('longer'))}"
