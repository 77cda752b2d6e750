"""A rate that rises suddenly, by the seismologists' detector: short-term against long-term average."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from ...windows.durations import Duration, duration_text
from ..alert import Alert
from ..event_state import turn
from ..row import Row
from ..rule import LimitRule, Measured, RuleState
from ..value_with_bounds import Figure, number

_MINUTE_US = 60_000_000


@dataclass(frozen=True)
class StaLta(LimitRule):
    """A minute has far more than usual: STA/(times · LTA + offset) is past a limit.

    short, long
        The spans of the means STA and LTA, up to the end of the row. Both are values per minute.
    times, offset
        The factor by which the short average must exceed the long one, and the amount per minute in addition,
        so that the first few rows of a quiet stream are not an event. Both are relative to the limit 1.
    least
        The support: with less than this within `short`, nothing is past the limit.

    `value` is a count, or another amount that adds up over windows; a span without rows counts as 0. The
    ratio therefore also falls between rows, and an event is over at the exact time at which the ratio has
    fallen far enough, even if that is detected later. Until the stream is as old as `long`, LTA is the mean
    since its beginning. The limit is `above` or `at_least`; `LimitRule` has all other fields. A key's values
    within `long` are stored, one per window.

    Raises `ValueError` or `TypeError` for an invalid field.

    Source: R. Allen, "Automatic earthquake recognition and timing from single traces", BSSA 68 (1978); for
    counts of posts, with the factor 5 and 2 per minute: P. Earle, D. Bowden, M. Guy, "Twitter earthquake
    detection", Annals of Geophysics 54 (2012).

    >>> import streamgauge as sg
    >>> onset = sg.rules.StaLta("onset", value="posts", at_least=1, clear=0.5, short="1m", long="1h")
    >>> minute, state, alerts = 60_000_000, onset.begin(), []
    >>> for at, posts in ((60, 1), (110, 2), (120, 30), (121, 20)):
    ...     rows = [Row({}, (at - 1) * minute, at * minute, {"posts": posts})]
    ...     alerts += onset.window(state, rows, (at - 1) * minute, at * minute, minute)
    >>> alerts += onset.advance(state, 200 * minute, minute)
    >>> [(alert.state, alert.at_us // minute) for alert in alerts]
    [('fired', 120), ('cleared', 122)]
    """

    short: Duration = field(default="1m", kw_only=True)
    long: Duration = field(default="1h", kw_only=True)
    times: float = field(default=5.0, kw_only=True)
    offset: float = field(default=2.0, kw_only=True)
    least: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self._duration("short") < self._duration("long"):
            raise ValueError(
                f"{self._where}: short must be shorter than long, got {self.short!r} and {self.long!r}"
            )
        for name in ("times", "offset", "least"):
            given = getattr(self, name)
            if isinstance(given, bool) or not isinstance(given, int | float) or not given >= 0:
                raise ValueError(f"{self._where}: {name} must be a number ≥ 0, got {given!r}")
        if not self.times and not self.offset:
            raise ValueError(f"{self._where}: times and offset are both 0; set at least one of them above 0")
        if not self.limit.upwards:
            raise ValueError(
                f"{self._where}: a rising rate needs its limit as above or at_least; give one of them"
            )
        if self.absent is not None or self.every:
            raise ValueError(
                f"{self._where}: absent and every don't apply here, where a key without rows counts as 0; "
                "leave them out"
            )

    def window(
        self, state: RuleState, rows: Sequence[Row], start_us: int, end_us: int, step_us: int
    ) -> Iterator[Alert]:
        """See `Rule`."""
        state.setdefault("begin", start_us)
        yield from super().window(state, rows, start_us, end_us, step_us)

    def advance(self, state: RuleState, time_us: int, step_us: int) -> Iterator[Alert]:
        """See `Rule`."""
        for key, kept in list(state["keys"].items()):
            yield from self._fall(key, kept, time_us)
            switch, times = kept["switch"], kept["memory"]["at"]
            rests = "on" not in switch and switch.get("quiet", time_us) <= time_us
            if rests and times[-1] <= time_us - self._duration("long"):
                del state["keys"][key]

    def measure(self, memory: dict[str, Any], row: Row, figure: Figure) -> Measured:
        """See `LimitRule`."""
        times, values = memory["at"], memory["value"]
        gone = bisect_right(times, row.at_us - self._duration("long"))
        del times[:gone], values[:gone]
        times.append(row.at_us)
        values.append(figure.value)
        ratio, description, enough = self._ratio(memory, row.at_us)
        near, far = (self._ratio(memory, row.at_us, bound - figure.value)[0] for bound in figure[1:])
        return Measured(Figure(ratio, near, far), description, enough)

    def new_memory(self, state: RuleState, windows: int) -> dict[str, Any]:
        """See `LimitRule`: the times of rows and their values, and since when rows were possible."""
        return {"begin": state["begin"], "at": [], "value": []}

    def forgets(self, memory: dict[str, Any]) -> bool:
        """See `LimitRule`; `advance` drops old keys as time passes."""
        return False

    def _evaluate(
        self,
        state: RuleState,
        key: str,
        row: Row,
        figure: Figure,
        step_us: int,
        alert_key: str | None = None,
        lag_us: int = 0,
    ) -> Iterator[Alert]:
        if (kept := state["keys"].get(key)) is not None:
            yield from self._fall(key, kept, row.start_us)
        yield from super()._evaluate(state, key, row, figure, step_us, alert_key, lag_us)

    def _fall(self, key: str, kept: dict[str, Any], until_us: int) -> Iterator[Alert]:
        """Follow the ratio of an active event from the last row to a time, while no row arrives."""
        switch, memory, short = kept["switch"], kept["memory"], self._duration("short")
        if "on" not in switch:
            return
        falls = [at + short for at in memory["at"] if switch["seen"] < at + short < until_us]
        edges = [switch["seen"], *falls, until_us]
        for begin, end in pairwise(edges):
            if begin >= end:
                continue
            ratio, description, _ = self._ratio(memory, begin)
            figure = Figure.exactly(ratio)
            side = self.limit.side(figure)
            over = switch.get("back", begin) + self.holds.release_us
            at = max(begin, over) if side == "back" and over <= end else end
            if turn(switch, side, begin, at, self.holds) is not None:
                why = f"{description}{self._because('cleared', figure)}"
                yield self._alert("cleared", key, begin, at, figure, self.limit.at, why)
                return

    def _ratio(self, memory: dict[str, Any], time_us: int, more: float = 0.0) -> tuple[float, str, bool]:
        """The ratio at a time, its description, and whether it has support."""
        times, values = memory["at"], memory["value"]
        short, long = self._duration("short"), self._duration("long")
        within = sum(values[bisect_right(times, time_us - short) :]) + more
        known = min(max(time_us - memory["begin"], short), long)
        sta = within * _MINUTE_US / short
        lta = (sum(values[bisect_right(times, time_us - long) :]) + more) * _MINUTE_US / known
        floor = self.times * lta + self.offset
        description = (
            f"{number(within)} {self.value} in {duration_text(short)}, "
            f"{number(lta)} a minute in {duration_text(known)}: "
            f"STA/LTA {number(sta / floor if floor else 0.0)}"
        )
        return (sta / floor if floor else 0.0), description, within >= self.least
