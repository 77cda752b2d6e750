"""A rule about a value that deviates more from its season than it has for weeks."""

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
    """A value deviates more from its usual one at this time of day and week than on any of the last 35 days.

    warm
        The number of rows that a key must have, in addition to three midnights, before anything is reported.
    zone
        The time zone of days and weeks, such as ``"Europe/Rome"``; UTC by default.

    From each key's own rows it learns the interval between rows, the level, whether half hours of the day or
    of the week have means of their own, and how large the deviations from these were on each day. It measures
    the deviation of a single row, and of the means of half an hour and of three hours (of six and 36 rows, if
    these are longer), so it detects a spike, a shift of the level, and a day that differs from its weekday.
    The limit is compared with the deviation divided by the largest earlier one: ``above=1`` is any record,
    ``above=1.2`` a record by a fifth. Half hours that vary more may deviate more, by the square root.

    False alarms are bounded: if days are alike and independent, a day's largest deviation exceeds those of
    the previous n days by chance with probability 1/(n + 1), so ``above=1`` fires on at most 3/(n + 1) of a
    key's days, with n up to 35, that is, once in twelve days; with a larger limit it is rarer. This is true
    for any distribution, as long as records exceed the previous one by less than a quarter of the limit: a
    larger record is remembered as one by a quarter, so that one event doesn't hide the next. After a shift,
    the level adapts, and the season does after some days. A key takes 3 kB of memory, for ever.

    `LimitRule` has all other fields; `each` and `absent` aren't possible. Raises `ValueError` or `TypeError`
    for an invalid one.

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
                f"{self._where}: {given} doesn't apply to unusual values, which are compared row by row; "
                "leave it out"
            )
        if not self.limit.upwards or self.limit.at < 1:
            raise ValueError(
                f"{self._where}: set its limit, above or at_least, to a number ≥ 1: a multiple of the "
                "largest deviation so far"
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
        """The zone's local times at these times."""
        if self.zone == "UTC":
            return times_us
        quarters, numbers = np.unique(times_us // _QUARTER_US, return_inverse=True)
        starts = (quarters * _QUARTER_US).tolist()
        shifts = np.array([local_us(at, self.zone) - at for at in starts], np.int64)
        local: np.ndarray = times_us + shifts[numbers]
        return local

    def deviating(self, figure: Figure, *deviation: float) -> Measured:
        """The values to compare with the limit, and a row's measurements, by the names of `DEVIATION`."""
        of = dict(zip(DEVIATION, deviation))
        way = "above" if of["deviation"] > 0 else "below"
        apart, usual, before, times = (
            number(float(f"{part:.4g}"))
            for part in (abs(of["deviation"]), of["expected"], of["before"], of["times"])
        )
        # The interval is an estimate, so seconds are omitted.
        seconds = 60 * round(of["length"] / 60) if of["length"] >= 600 else round(of["length"])
        length = duration_text(seconds * 1_000_000)
        over = f"; over {length} it was" if of["length"] else ","
        season = _SEASONS[int(of["season"])]
        then = f"{self.with_unit(apart)} {way} what it was {season}, {self.with_unit(usual)}"
        most = f"the largest deviation of {of['days']:g} days was {self.with_unit(before)}, times {times}"
        description = f"{self.value} is {self.with_unit(figure)}{over} {then}; {most}"
        return Measured(Figure.exactly(of["times"]), description)
