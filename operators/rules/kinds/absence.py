"""Rules about missing rows, and about values that don't change."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ...windows.durations import Duration, duration_text
from ..alert import Alert
from ..event_state import lag_after, row_lag
from ..limit import Limit
from ..row import Row
from ..rule import LimitRule, Measured, Rule, RuleState, key_text
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
            key = key_text(list(row.key.values()))
            last = state["keys"].get(key)
            begin_us = row.at_us - step_us if step_us else row.start_us
            if last is not None:
                silence = begin_us, row.at_us, self.longer_us, last["seen"], "on" in last
                fired, cleared, seen_us = silence_before(*silence)
                if fired:
                    yield self.fired(key, last["seen"])
                if cleared:
                    yield self.cleared(key, row.start_us, row.at_us, begin_us - last["seen"])
            seen = {"seen": seen_us if last else row.at_us}
            lag = lag_after(last.get("lag", 0) if last else 0, row_lag(row.at_us, start_us, end_us))
            state["keys"][key] = seen | ({"lag": lag} if lag else {})

    def advance(self, state: RuleState, time_us: int, step_us: int) -> Iterator[Alert]:
        """See `Rule`."""
        for key, last in list(state["keys"].items()):
            limits = self.longer_us, self.forget_us
            fired, gone = silence_until(time_us, *limits, last["seen"], last.get("lag", 0), "on" in last)
            if fired:
                last["on"] = True
                yield self.fired(key, last["seen"])
            if gone:
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
        """The alert for a key that has been silent for too long."""
        seconds = Figure.exactly(self.longer_us / 1e6)
        why = f"nothing for longer than {duration_text(self.longer_us)}"
        return self._alert("fired", key, seen_us, seen_us + self.longer_us, seconds, seconds.value, why)

    def cleared(self, key: str, start_us: int, at_us: int, silence_us: int) -> Alert:
        """The alert for a key that has a row again."""
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
        known = memory.get("value", math.nan), memory.get("since", row.start_us)
        memory["value"], memory["since"] = stretch_after(figure.value, row.start_us, self.within, *known)
        return self.stretch(figure, row.at_us - memory["since"])

    def stretch(self, figure: Figure, length_us: int) -> Measured:
        """A description of how long a value has stayed the same, up to this row."""
        description = f"{self.value} has been {self.with_unit(figure)} for {duration_text(length_us)}"
        return Measured(Figure.exactly(length_us / 1e6), description)

    def _because(self, said: Any, figure: Figure) -> str:
        return (
            "; it moves again"
            if said == "cleared"
            else f": at least {duration_text(self._duration('longer'))}"
        )


def stretch_after(
    value: float, start_us: int, within: float, first: float, since_us: int
) -> tuple[float, int]:
    """The first value of a stretch and its beginning after a row; kernels compile this function.

    >>> stretch_after(20.05, 60, 0.1, 20.0, 0), stretch_after(21.0, 60, 0.1, 20.0, 0)
    ((20.0, 0), (21.0, 60))
    """
    return (first, since_us) if abs(value - first) <= within else (value, start_us)


def silence_before(
    begin_us: int, end_us: int, longer_us: int, seen_us: int, on: bool
) -> tuple[bool, bool, int]:
    """Whether a key's silence fires with its next row, whether it clears, and when the key was last seen.

    Kernels compile this function.

    >>> silence_before(9, 10, 5, 3, False), silence_before(6, 7, 5, 3, False)
    ((True, True, 10), (False, False, 7))
    """
    fired = begin_us - seen_us > longer_us and not on
    return fired, fired or on, max(end_us, seen_us)


def silence_until(
    time_us: int, longer_us: int, forget_us: int, seen_us: int, lag_us: int, on: bool
) -> tuple[bool, bool]:
    """Whether a key's silence fires as time passes without a row, and whether the key is forgotten.

    Kernels compile this function.

    >>> silence_until(10, 5, 20, 3, 0, False), silence_until(30, 5, 20, 3, 0, True)
    ((True, False), (False, True))
    """
    silent = time_us - seen_us - lag_us
    return silent > longer_us and not on, forget_us > 0 and silent > forget_us
