"""A rule about a sum over several windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...windows.durations import Duration, duration_text
from ..alert import Alert
from ..event_state import row_lag
from ..row import Row
from ..rule import LimitRule, Measured, RuleState, key_text
from ..value_with_bounds import Figure


@dataclass(frozen=True)
class RollingSum(LimitRule):
    """The sum of a value over the last `over`, up to the end of the current window, is past a limit.

    This is a hopping window over tumbling ones: it contains an attack whole that the edge of a window would
    cut in two, and costs no more than the windows that it adds up. A reading (with `at` in `Alerting`) counts
    for exactly `over` from its own time on, which makes it a true sliding sum. With ``absent=0`` the sum also
    falls as time passes, window by window, or for readings at the exact moment; otherwise it falls only with
    the key's next row. Bounds of estimates add up.

    `LimitRule` has all other fields. Raises `ValueError` or `TypeError` for an invalid one.

    >>> import streamgauge as sg
    >>> rule = sg.rules.RollingSum("guessing", value="refused", at_least=5, over="3m", absent=0)
    >>> minute = 60_000_000
    >>> state, alerts = rule.begin(), []
    >>> for at, n in enumerate([2, 0, 3, 0, 0]):
    ...     begin, end = at * minute, (at + 1) * minute
    ...     rows = [Row({"address": "a"}, begin, end, {"refused": n})] if n else []
    ...     alerts += rule.window(state, rows, begin, end, minute)
    >>> [(one.state, one.at_us // minute, one.why) for one in alerts]  # doctest: +NORMALIZE_WHITESPACE
    [('fired', 3, 'refused adds up to 5 in 3m: at least 5'),
     ('cleared', 4, 'refused adds up to 3 in 3m: back from at least 5')]
    """

    over: Duration = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self._duration("over"):
            raise ValueError(f"{self._where}: over must be a duration such as '10m', got {self.over!r}")

    @property
    def needs_steps(self) -> bool:
        """See `Rule`: a sum of readings falls with time, whatever windows they arrive in."""
        return False

    def measure(self, memory: dict[str, Any], row: Row, figure: Figure) -> Measured:
        """See `LimitRule`."""
        since = row.at_us - self._duration("over")
        # A window that begins at the edge is entirely inside; a reading at the edge has expired.
        first = since + 1 if row.start_us == row.at_us else since
        kept = [one for one in memory.pop("rows", []) if one[0] >= first]
        if figure != Figure.exactly(0.0):
            kept.append([row.start_us, *figure])
        if kept:
            memory["rows"] = kept
        total = Figure(*(sum(one[part] for one in kept) for part in (1, 2, 3)))
        over = duration_text(self._duration("over"))
        return Measured(total, f"{self.value} adds up to {self.with_unit(total)} in {over}")

    def window(
        self, state: RuleState, rows: Sequence[Row], start_us: int, end_us: int, step_us: int
    ) -> Iterator[Alert]:
        """See `Rule`."""
        if self.absent is None or step_us:
            yield from super().window(state, rows, start_us, end_us, step_us)
            return
        for row in self.concerned(rows):
            lag_us = row_lag(row.at_us, start_us, end_us)
            for more, figure in self.figures(row):
                if figure is not None:
                    names = self.per or row.key
                    key = key_text([*(row.key[name] for name in names), *more])
                    # Values that expire at a reading's own time are evaluated together with it.
                    yield from self._lapse_one(state, key, row.at_us - 1)
                    yield from self._evaluate(state, key, row, figure, step_us, None, lag_us)
                    self._schedule(state, key)

    def advance(self, state: RuleState, time_us: int, step_us: int) -> Iterator[Alert]:
        """See `Rule`."""
        if self.absent is None or step_us:
            yield from super().advance(state, time_us, step_us)
            if self.absent is None and time_us >= state.get("sweep", time_us):
                self._sweep(state, time_us)
        else:
            yield from self._lapse(state, time_us)

    def _lapse(self, state: RuleState, time_us: int) -> Iterator[Alert]:
        """Remove values from sums as they expire, up to a time, in the order of expiry."""
        due, keys = state.get("due", {}), state["keys"]
        lags = {key: keys[key].get("lag", 0) if key in keys else 0 for key in due}
        while due and (next_one := min((at + lags[key], key) for key, at in due.items()))[0] <= time_us:
            yield from self._fall(state, next_one[1], due[next_one[1]])
        if time_us >= state.get("sweep", time_us):
            self._sweep(state, time_us)

    def _lapse_one(self, state: RuleState, key: str, time_us: int) -> Iterator[Alert]:
        """The same for one key, before its next reading: a key doesn't depend on the readings of others."""
        due = state.get("due", {})
        while key in due and due[key] <= time_us:
            yield from self._fall(state, key, due[key])

    def _fall(self, state: RuleState, key: str, at_us: int) -> Iterator[Alert]:
        """Remove expired values from a sum at a time."""
        lag_us = state["keys"].get(key, {}).get("lag", 0)
        nothing = Figure.exactly(self.absent or 0.0)
        yield from self._evaluate(state, key, Row({}, at_us, at_us, {}), nothing, 0, None, lag_us)
        self._schedule(state, key)

    def _schedule(self, state: RuleState, key: str) -> None:
        """Record when the passing of time will next change a key's state, if it will."""
        assert self.holds is not None
        due = state.setdefault("due", {})
        due.pop(key, None)
        kept = state["keys"].get(key)
        if kept is None or not kept["switch"]:
            return
        switch, times = (
            kept["switch"],
            [one[0] + self._duration("over") for one in kept["memory"].get("rows", ())],
        )
        if "back" in switch:
            times.append(switch["back"] + self.holds.release_us)
        if "past" in switch:
            times.append(switch["past"] + self.holds.hold_us)
        if later := [at for at in times if at > switch.get("seen", at - 1)]:
            due[key] = min(later)

    def _sweep(self, state: RuleState, time_us: int) -> None:
        """Drop keys at rest whose rows have all expired; only from time to time."""
        over = self._duration("over")
        for key, kept in list(state["keys"].items()):
            rows = kept["memory"].get("rows")
            if not kept["switch"] and (not rows or rows[-1][0] + over + kept.get("lag", 0) <= time_us):
                del state["keys"][key]
        state["sweep"] = time_us + over
