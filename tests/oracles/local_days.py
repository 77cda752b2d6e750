"""Windows on a calendar in plain Python, by `zoneinfo`: what every engine must give."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

US = timedelta(microseconds=1)
DAY = timedelta(days=1)
EPOCH = datetime(1970, 1, 1)


def first_shown(clock: datetime, zone: str) -> datetime:
    """The first time at which clocks of a zone showed this time or, if it was skipped, a later one."""
    info = ZoneInfo(zone)
    time = clock.replace(tzinfo=info).astimezone(UTC)
    if time.astimezone(info).replace(tzinfo=None) == clock:
        return time
    low = clock.replace(tzinfo=info, fold=1).astimezone(UTC)
    low, high = min(low, time), max(low, time)
    while high - low > US:
        middle = low + (high - low) // 2
        if middle.astimezone(info).replace(tzinfo=None) >= clock:
            high = middle
        else:
            low = middle
    return high


def month_begin(number: int) -> datetime:
    """The first of a month, counted from January 1970."""
    years, month = divmod(number, 12)
    return datetime(1970 + years, month + 1, 1)


@dataclass(frozen=True)
class OnCalendar:
    """Windows of so many months or days that begin every so many, `offset` after midnight."""

    kind: str
    size: str
    every: str | None
    offset: str | None
    zone: str

    def boundary(self, number: int, length: str) -> datetime:
        """When the stretch of this number begins."""
        months, days = parts(length)
        more, shift = parts(self.offset or "0s")
        begin = parts(self.every if self.kind == "hopping" and self.every else self.size)
        if months:
            clock = month_begin(number * months + more) + shift
        else:
            monday = not begin[0] and begin[1] % timedelta(weeks=1) == timedelta(0)
            clock = EPOCH + number * days + shift + (4 * DAY if monday else timedelta(0))
        return first_shown(clock, self.zone)

    def windows_of(self, time: datetime) -> list[tuple[datetime, datetime]]:
        """The windows that a time is in, by their ends; of several that end together the longest."""
        windows_by_end: dict[datetime, datetime] = {}
        for start, end in self._around(time):
            if start <= time < end:
                windows_by_end[end] = min(start, windows_by_end.get(end, start))
        return sorted(((start, end) for end, start in windows_by_end.items()), key=lambda one: one[1])

    def _around(self, time: datetime) -> Iterator[tuple[datetime, datetime]]:
        every = self.every or self.size
        begin = every if self.kind == "hopping" else self.size
        (months, days), (of_size, size) = parts(begin), parts(self.size)
        since = time.replace(tzinfo=None) - EPOCH
        at = round(since / (days or timedelta(days=30.44 * months)))
        far = 2 if months else 2 + timedelta(hours=49) // days
        for number in range(at - far - (of_size // months if months else size // days), at + far):
            start = self.boundary(number, begin)
            if self.kind == "hopping":
                if months:
                    more, shift = parts(self.offset or "0s")
                    end = month_begin(number * months + more + of_size) + shift
                    yield start, first_shown(end, self.zone)
                else:
                    clock = EPOCH + number * days + parts(self.offset or "0s")[1] + size
                    monday = days % timedelta(weeks=1) == timedelta(0)
                    yield start, first_shown(clock + (4 * DAY if monday else timedelta(0)), self.zone)
                continue
            end = self.boundary(number + 1, self.size)
            if self.kind == "tumbling":
                yield start, end
                continue
            yield from ((start, one) for one in self._steps(number, end))

    def _steps(self, number: int, end: datetime) -> Iterator[datetime]:
        """The ends of the cumulating windows of one period."""
        assert self.every is not None
        months, step = parts(self.every)
        shift = parts(self.offset or "0s")[1]
        if months:
            more, of_size = parts(self.offset or "0s")[0], parts(self.size)[0]
            for month in range(months, of_size + 1, months):
                yield first_shown(month_begin(number * of_size + more + month) + shift, self.zone)
            return
        clock = self._clock(number) + step
        while (one := first_shown(clock, self.zone)) < end:
            yield one
            clock += step
        yield end

    def _clock(self, number: int) -> datetime:
        months, days = parts(self.size)
        more, shift = parts(self.offset or "0s")
        if months:
            return month_begin(number * months + more) + shift
        monday = days % timedelta(weeks=1) == timedelta(0)
        return EPOCH + number * days + shift + (4 * DAY if monday else timedelta(0))


_UNITS = {"s": timedelta(seconds=1), "m": timedelta(minutes=1), "h": timedelta(hours=1), "d": DAY}
_UNITS["w"] = timedelta(weeks=1)


def parts(length: str) -> tuple[int, timedelta]:
    """Months and the rest of a length of one unit."""
    sign, text = (-1, length[1:]) if length.startswith("-") else (1, length)
    for unit, months in (("mo", 1), ("q", 3), ("y", 12)):
        if text.endswith(unit):
            return sign * int(text.removesuffix(unit)) * months, timedelta(0)
    return 0, sign * int(text[:-1]) * _UNITS[text[-1]]
