"""A rule about a value that is farther from its season than it has been for weeks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...windows.durations import duration_text
from ..row import Row
from ..rule import LimitRule, Measured
from ..value_with_bounds import Figure, number
from .seasonal_past import DEVIATION, UNKNOWN, measure_deviations
from .time_zones import local_us, zone_of

_QUARTER_US = 900_000_000
_SEASONS = ("lately", "lately at this time of day", "lately at this time of the week")


@dataclass(frozen=True)
class Unusual(LimitRule):
    """A value is farther from what its key has at this time of day and week than on any of the last 35 days.

    warm
        How many rows a key must have, and three midnights, before anything is said of it.
    zone
        Whose days and weeks they are, such as ``"Europe/Rome"``; UTC's unless given.

    It learns from each key's own rows how far apart they are, its level, whether half hours of the day or of
    the week have a mean of their own, and how large deviations from that were on each day. Deviations are
    those of a row by itself and of the means of half an hour and of three hours (of six and 36 rows, if these
    are longer), so that a spike, a shift of the level and a day that is unlike its weekday all show. The
    limit is compared with the deviation divided by the largest one of before: ``above=1`` is any record,
    ``above=1.2`` one by a fifth. Half hours that vary more may deviate more, by the square root.

    The bound: if days are alike and independent, a day's largest deviation exceeds those of n days before by
    chance with probability 1/(n + 1), so ``above=1`` fires on at most 3/(n + 1) of a key's days, n up to 35:
    once in twelve days; with a larger limit it is rarer. It holds whatever the distribution is, as long as
    records are by less than a quarter of the limit: a larger one is remembered as one of a quarter, so that
    one event doesn't hide the next. After a shift the level follows, and the season after some days. A key's
    memory is 3 kB, for ever.

    All other fields are those of `LimitRule`; `each` and `absent` aren't possible. Raises `ValueError` or
    `TypeError` for a wrong one.

    >>> import math
    >>> import streamgauge as sg
    >>> rule, hour = sg.rules.Unusual("unusual", value="t", above=1.2, release="12h"), 3_600_000_000
    >>> values = [20 + 5 * math.sin(math.tau * at / 24) + at % 7 / 10 for at in range(24 * 21)]
    >>> values[-4] = 24.0
    >>> rows = [sg.rules.Row({}, at * hour, at * hour, {"t": value}) for at, value in enumerate(values)]
    >>> (alert,) = rule.window(rule.begin(), rows, 0, 21 * 24 * hour, 0)
    >>> alert.why.partition(";")[0]
    't is 24, 7.485 above what it was lately at this time of the week, 16.52'
    >>> alert.why.partition(";")[2]
    ' the largest deviation of 20 days was 4.169, times 1.796: above 1.2'
    """

    warm: int = field(default=300, kw_only=True)
    zone: str = field(default="UTC", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self.warm) is not int or self.warm < 1:
            raise ValueError(f"{self._where}: warm must be an integer ≥ 1, got {self.warm!r}")
        try:
            zone_of(self.zone)
        except ValueError as error:
            raise ValueError(f"{self._where}: {error}") from None
        if self.each or self.absent is not None:
            given = "each" if self.each else "absent"
            raise ValueError(
                f"{self._where}: {given} is given; an unusual value is one of a row, leave it out"
            )
        if not self.limit.upwards or self.limit.at < 1:
            raise ValueError(
                f"{self._where}: its limit is above or at_least a number ≥ 1, how many times the largest "
                "deviation of before"
            )

    @property
    def limits_value(self) -> bool:
        """See `LimitRule`."""
        return False

    def measure(self, memory: dict[str, Any], row: Row, figure: Figure) -> Measured | None:
        """See `LimitRule`."""
        columns = {
            name: np.array([memory.get(name, value)], np.asarray(value).dtype)
            for name, value in UNKNOWN.items()
        }
        times, values = self.local(np.array([row.start_us])), np.array([figure.value])
        measured = measure_deviations(columns, np.zeros(1, np.int64), times, values, self.warm, self.limit.at)
        memory |= {name: column[0].tolist() for name, column in columns.items()}
        return None if np.isnan(measured[0, 0]) else self.deviating(figure, *measured[:, 0].tolist())

    def local(self, times_us: np.ndarray) -> np.ndarray:
        """What clocks of the zone show at these times."""
        if self.zone == "UTC":
            return times_us
        quarters, numbers = np.unique(times_us // _QUARTER_US, return_inverse=True)
        starts = (quarters * _QUARTER_US).tolist()
        shifts = np.array([local_us(at, self.zone) - at for at in starts], np.int64)
        local: np.ndarray = times_us + shifts[numbers]
        return local

    def deviating(self, figure: Figure, *deviation: float) -> Measured:
        """What to hold against the limit, with what was measured of a row, by the names of `DEVIATION`."""
        of = dict(zip(DEVIATION, deviation))
        way = "above" if of["deviation"] > 0 else "below"
        apart, usual, before, times = (
            number(float(f"{part:.4g}"))
            for part in (abs(of["deviation"]), of["expected"], of["before"], of["times"])
        )
        # The interval is an estimate: its last seconds say nothing.
        seconds = 60 * round(of["length"] / 60) if of["length"] >= 600 else round(of["length"])
        length = duration_text(seconds * 1_000_000)
        over = f"; over {length} it was" if of["length"] else ","
        season = _SEASONS[int(of["season"])]
        then = f"{self.with_unit(apart)} {way} what it was {season}, {self.with_unit(usual)}"
        most = f"the largest deviation of {of['days']:g} days was {self.with_unit(before)}, times {times}"
        description = f"{self.value} is {self.with_unit(figure)}{over} {then}; {most}"
        return Measured(Figure.exactly(of["times"]), description)
