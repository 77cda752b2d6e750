"""Keys that have far more than usual, among too many keys to store each separately."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ..alert import Alert
from ..event_state import turn
from ..row import Row
from ..rule import LimitRule, RuleState, key_text
from ..value_with_bounds import Figure, number
from .count_min_baseline import HashedMoments, Usual

_HOUR_US, _DAY_US = 3_600_000_000, 86_400_000_000


@dataclass(frozen=True)
class Burst(LimitRule):
    """A key's value in a window is far above its usual one: tags, words, addresses, of any number.

    The score is the number of standard deviations by which the value exceeds the mean of the key's earlier
    windows, (x − μ)/√(max(σ², μ) + 1): the standard deviation of its own past, or at least that of a random
    count. A window without a row of the key counts as 0. The limit is `above` or `at_least`; `LimitRule` has
    its other options.

    over
        The span of the exponentially weighted mean: a number of windows n with weight 2/(n + 1).
    warm
        The number of windows that are required before it fires.
    least
        The support: smaller values are never a burst. A value below a quarter of it is not even learned, and
        each key is assumed to have at least that.
    daily
        If a key burst at this hour of the day (UTC), or an adjacent one, within this number of days, that
        value is the mean: a burst that recurs each morning is reported once. 0 disables this.

    The means lie in count-min cells of fixed size (`count_min_baseline`), so the state does not grow with the
    number of keys. Keys that share all cells may hide each other's small bursts, but never cause one. All
    keys of a window are in one partition of the table topic, however many partitions it has.

    Raises `ValueError` or `TypeError` for an invalid field.

    >>> import streamgauge as sg
    >>> trend = sg.rules.Burst("trend", value="authors", above=5, least=10, warm=3)
    >>> minute, state, alerts = 60_000_000, trend.begin(), []
    >>> for at in range(30):
    ...     begin, end = at * minute, (at + 1) * minute
    ...     having = {"#cats": 40, "#rain": 2 if at < 25 else 80}
    ...     rows = [Row({"tag": tag}, begin, end, {"authors": n}) for tag, n in having.items()]
    ...     alerts += trend.window(state, rows, begin, end, minute)
    >>> [(alert.key, alert.at_us // minute, alert.why[:32]) for alert in alerts if alert.state == "fired"]
    [(('#rain',), 26, 'authors is 80, never seen before')]
    """

    over: int = field(default=48, kw_only=True)
    warm: int = field(default=12, kw_only=True)
    least: float = field(default=10.0, kw_only=True)
    daily: int = field(default=7, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, lowest in (("over", 1), ("warm", 1), ("daily", 0)):
            if type(given := getattr(self, name)) is not int or given < lowest:
                raise ValueError(f"{self._where}: {name} must be an integer ≥ {lowest}, got {given!r}")
        if isinstance(self.least, bool) or not isinstance(self.least, int | float) or self.least <= 0:
            raise ValueError(f"{self._where}: least must be a number above 0, got {self.least!r}")
        if not self.limit.upwards:
            raise ValueError(f"{self._where}: a burst needs its limit as above or at_least; give one of them")
        if self.every or self.absent is not None or self.per:
            raise ValueError(f"{self._where}: a burst has neither every, absent nor per; leave them out")

    @property
    def needs_steps(self) -> bool:
        """See `Rule`."""
        return True

    @property
    def together(self) -> tuple[str, ...]:
        """See `Rule`: keys share cells, and learning begins with the very first window."""
        return ()

    @cached_property
    def _noise(self) -> float:
        return self.least / 4

    def begin(self) -> RuleState:
        """See `Rule`."""
        return {"keys": {}, "cells": HashedMoments().text(), "windows": 0, "daily": {}}

    def window(
        self, state: RuleState, rows: Sequence[Row], start_us: int, end_us: int, step_us: int
    ) -> Iterator[Alert]:
        """See `Rule`."""
        yield from self.advance(state, end_us - step_us, step_us)
        cells, learned, seen = HashedMoments.of_text(state["cells"]), {}, set()
        for row in self.concerned(rows):
            for more, figure in self.figures(row):
                small = figure is None or figure.value < self._noise
                if small and not state["keys"]:
                    continue
                key = key_text([*row.key.values(), *more])
                if small and key not in state["keys"]:
                    continue
                seen.add(key)
                if figure is None:
                    continue
                if not small:
                    learned[key] = figure.value
                yield from self._score(state, key, row, figure, cells.usual(key))
        for key in [key for key in state["keys"] if key not in seen]:
            row = Row({}, start_us, end_us, {})
            yield from self._score(state, key, row, Figure.exactly(0.0), cells.usual(key))
        cells.learn(learned, self._weight(state))
        state.update(cells=cells.text(), windows=state["windows"] + 1, end=end_us)

    def advance(self, state: RuleState, time_us: int, step_us: int) -> Iterator[Alert]:
        """See `Rule`. Windows without any row have passed."""
        if "end" not in state or state["end"] + step_us > time_us:
            return
        cells = HashedMoments.of_text(state["cells"])
        while state["keys"] and state["end"] + step_us <= time_us:
            row = Row({}, state["end"], state["end"] + step_us, {})
            for key in list(state["keys"]):
                yield from self._score(state, key, row, Figure.exactly(0.0), cells.usual(key))
            cells.learn({}, self._weight(state))
            state.update(windows=state["windows"] + 1, end=row.at_us)
        left = (time_us - state["end"]) // step_us
        cells.fade(left, self._weight(state))
        state.update(cells=cells.text(), windows=state["windows"] + left, end=state["end"] + left * step_us)

    def _weight(self, state: RuleState) -> float:
        # The first windows have equal weights: otherwise the very first would dominate for long.
        return float(max(2 / (self.over + 1), 1 / (state["windows"] + 1)))

    def _score(self, state: RuleState, key: str, row: Row, figure: Figure, usual: Usual) -> Iterator[Alert]:
        kept = state["keys"].get(key, {"switch": {}})
        known = state["windows"] >= self.warm
        mean = max(usual.mean, self._noise, self._of_the_hour(state, key, row.at_us))
        spread = math.sqrt(max(usual.variance, mean) + 1)
        score = figure.map(lambda value: (value - mean) / spread)
        enough = known and figure.value >= self.least
        side = self.limit.side(score) if enough else "back"
        said = turn(kept["switch"], side, row.start_us, row.at_us, self.holds)
        if said is not None:
            past = f"usually {number(mean)} ± {number(spread)}"
            if mean == self._noise:
                # Smaller values are not learned.
                few = number(self._noise)
                unknown = f"never seen before (values below {few} are not stored)"
                past = f"usually fewer than {few}" if usual.mean else unknown
            description = f"{self.value} is {figure}, {past}, a burst of {score}"
            why = f"{description}{self._because(said, score)}{self._other_answers(said, row)}"
            yield self._alert(said, key, row.start_us, row.at_us, score, self.limit.at, why)
        if "on" in kept["switch"] and self.daily:
            self._record(state, key, row.at_us, figure.value)
        if kept["switch"]:
            state["keys"][key] = kept
        else:
            state["keys"].pop(key, None)

    def _of_the_hour(self, state: RuleState, key: str, at_us: int) -> float:
        hour = _hour(at_us)
        values = [
            value
            for one, (value, noted_us) in state["daily"].get(key, {}).items()
            if (int(one) - hour) % 24 in (0, 1, 23) and at_us - noted_us > _DAY_US // 2
        ]
        return max(values, default=0.0)

    def _record(self, state: RuleState, key: str, at_us: int, value: float) -> None:
        """Record a bursting key's value at this hour; entries older than `daily` days are dropped."""
        oldest = at_us - (self.daily * 24 + 1) * _HOUR_US
        for known, hours in list(state["daily"].items()):
            kept = {hour: noted for hour, noted in hours.items() if noted[1] >= oldest}
            state["daily"][known] = kept
            if not kept:
                del state["daily"][known]
        noted = state["daily"].setdefault(key, {}).get(str(_hour(at_us)))
        today = noted is not None and at_us - noted[1] < _DAY_US // 2
        state["daily"][key][str(_hour(at_us))] = [max(value, noted[0]) if today else value, at_us]


def _hour(at_us: int) -> int:
    # A window that ends at six belongs to the hour before.
    return (at_us - 1) // _HOUR_US % 24
