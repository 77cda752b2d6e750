"""A rule about a trend: a value that rises or falls steadily, however noisy it is."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...windows.durations import Duration, duration_text
from ..alert import Alert
from ..row import Row
from ..rule import LimitRule, Measured, RuleState
from ..value_with_bounds import Figure

_SLOTS = 120
"""The number of a key's rows that are compared: 7,140 pairs, which take a fifth of a millisecond."""
_Z = 1.959964
"""The interval of the slope has 95 % confidence."""


@dataclass(frozen=True)
class Slope(LimitRule):
    """A value has risen or fallen steadily over the last `over`, such as the memory of a program that leaks.

    over
        How far back rows count. Rows closer together than a 120th of it are thinned: the last in each 120th
        counts.
    rate
        The unit of time of the slope: with ``"1h"``, the limit is a change per hour.
    least
        The number of rows that are required before it fires.

    The slope is the median of the slopes between all pairs of rows (Theil–Sen), which outliers hardly change:
    up to 29 % of the rows may be wrong. Its bounds are Sen's interval of 95 % confidence, for rows with
    independent noise; with ``surely=True`` they must be past the limit. Bounds of estimates don't count. The
    limit has the sign of the slope: ``above=5`` for a rise, ``below=-5`` for a fall. A key is dropped once
    its rows are older than `over`, unless it is past the limit. `LimitRule` has all other fields. Raises
    `ValueError` or `TypeError` for an invalid one.

    Source: H. Theil (1950); P. K. Sen, "Estimates of the regression coefficient based on Kendall's tau",
    JASA 63 (1968).

    >>> import streamgauge as sg
    >>> leak, minute = sg.rules.Slope("leak", value="mb", above=50, over="1h"), 60_000_000
    >>> memory = [100, 101, 103, 400, 104, 106, 107, 107, 108, 110]
    >>> rows = [Row({}, at * minute, (at + 1) * minute, {"mb": mb}) for at, mb in enumerate(memory)]
    >>> (alert,) = leak.window(leak.begin(), rows, 0, 10 * minute, minute)
    >>> alert.why.split(", over")[0]
    'mb changes by about 60 (40 to 72) per 1h'
    """

    over: Duration = field(default="1h", kw_only=True)
    rate: Duration = field(default="1h", kw_only=True)
    least: int = field(default=10, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("over", "rate"):
            if not self._duration(name):
                raise ValueError(f"{self._where}: {name} must be longer than 0, got {getattr(self, name)!r}")
        if type(self.least) is not int or not 2 <= self.least <= _SLOTS:
            raise ValueError(
                f"{self._where}: least must be an integer from 2 to {_SLOTS}, got {self.least!r}"
            )

    @property
    def limits_value(self) -> bool:
        """See `LimitRule`."""
        return False

    def measure(self, memory: dict[str, Any], row: Row, figure: Figure) -> Measured | None:
        """See `LimitRule`."""
        times, values = memory.setdefault("at", []), memory.setdefault("value", [])
        over, slot = self._duration("over"), max(self._duration("over") // _SLOTS, 1)
        if times and times[-1] // slot == row.at_us // slot:
            times.pop()
            values.pop()
        times.append(row.at_us)
        values.append(figure.value)
        while times[0] <= row.at_us - over:
            del times[0], values[0]
        if len(times) < self.least:
            return None
        slope = theil_sen(np.asarray(times, np.int64) - times[0], np.asarray(values, np.float64))
        rate = self._duration("rate")
        per_unit = slope.map(lambda each: each * rate)
        changes = f"{self.value} changes by {self.with_unit(per_unit)} per {duration_text(rate)}"
        return Measured(per_unit, f"{changes}, over {len(times)} rows in {duration_text(over)}")

    def forgets(self, memory: dict[str, Any]) -> bool:
        """See `LimitRule`; `advance` drops old keys as time passes."""
        return False

    def advance(self, state: RuleState, time_us: int, step_us: int) -> Iterator[Alert]:
        """See `Rule`."""
        yield from super().advance(state, time_us, step_us)
        self._forget_old(state, time_us, self._duration("over"), lambda memory: memory["at"][-1])


def theil_sen(times: np.ndarray, values: np.ndarray) -> Figure:
    """The median slope of all pairs, with Sen's interval of 95 % confidence; times rise strictly.

    >>> theil_sen(np.arange(5), np.array([1.0, 3.0, 5.0, 7.0, 9.0]))
    Figure(value=2.0, lower=2.0, upper=2.0)
    """
    first, second = np.triu_indices(len(times), 1)
    slopes = np.sort((values[second] - values[first]) / (times[second] - times[first]))
    n, pairs = len(times), len(slopes)
    width = _Z * math.sqrt(n * (n - 1) * (2 * n + 5) / 18)
    low = max(math.floor((pairs - width) / 2) - 1, 0)
    high = min(math.ceil((pairs + width) / 2), pairs - 1)
    return Figure(float(np.median(slopes)), float(slopes[low]), float(slopes[high]))
