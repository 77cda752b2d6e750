"""Where windows begin: the only module that knows about months, zones and offsets, for all engines.

Time is divided into numbered intervals of one length. Windows, and their panes, consist of a number of these;
so definitions by number are the same for days of a zone as for minutes.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...sketches.core.lazy import np
from .durations import CalendarLength
from .local_clock import first_shown, shown


@dataclass(frozen=True, slots=True)
class Boundaries:
    """Consecutive intervals of `length` on the clock of `zone`; in UTC without one.

    Number 0 begins `offset` after 1970-01-01 00:00. A boundary that a zone's clock skipped when it was put
    forward lies where that happened; a boundary that it showed twice lies where it did first. So an interval
    may be empty: the day that was skipped.

    >>> days = Boundaries(CalendarLength(us=86_400_000_000), CalendarLength(), "Europe/Helsinki")
    >>> starts = days.starts(days.numbers(np.array([1_774_735_200_000_000])) + np.arange(3))
    >>> (np.diff(starts) / 3_600_000_000).tolist()  # clocks were put forward on 2026-03-29
    [23.0, 24.0]
    """

    length: CalendarLength
    offset: CalendarLength
    zone: str | None = None

    def numbers(self, times_us: np.ndarray) -> np.ndarray:
        """The number of the interval that contains each time (int64 microseconds since 1970 in UTC)."""
        clock = times_us if self.zone is None else shown(times_us, self.zone)
        clock = clock - np.int64(self.offset.us)
        if not self.length.months:
            return clock // np.int64(self.length.us)
        months = clock.view("datetime64[us]").astype("datetime64[M]").view(np.int64)
        return (months - np.int64(self.offset.months)) // np.int64(self.length.months)

    def starts(self, numbers: np.ndarray) -> np.ndarray:
        """The start of each interval."""
        if self.length.months:
            months = numbers * np.int64(self.length.months) + np.int64(self.offset.months)
            clock = months.view("datetime64[M]").astype("datetime64[us]").view(np.int64)
        else:
            clock = numbers * np.int64(self.length.us)
        clock = clock + np.int64(self.offset.us)
        return clock if self.zone is None else first_shown(clock, self.zone)

    def number(self, time_us: int) -> int:
        """The number of the interval that contains a time."""
        return int(self.numbers(np.array([time_us]))[0])

    def start(self, number: int) -> int:
        """The start of an interval."""
        return int(self.starts(np.array([number]))[0])
