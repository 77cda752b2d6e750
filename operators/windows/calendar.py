"""Windows on a calendar: aligned to a zone's clock, to months, or by an offset.

They have the names and methods of windows at multiples of their length since 1970 in UTC, which are separate
classes. Only the boundaries differ (`boundaries`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self

from ...sketches.core.lazy import np
from .boundaries import Boundaries
from .cumulate import CumulateTable, latest_of_each
from .durations import CalendarLength, Duration, calendar_length, signed_length
from .hopping import no_whole_span, none_end_to_end, regular_windows
from .local_clock import check_zone
from .paned import MOST_PANES, Paned
from .table import LargerWindows, TableWindows, check_inside
from .window import EARLIEST

_DAY_US = 86_400_000_000
_WEEK_US = 7 * _DAY_US
_MONDAY_US = 4 * _DAY_US
_LONGEST_SHIFT_US = 28 * _DAY_US
_SET_BACK_US = _DAY_US
"""The most that a zone's clock was ever set back: Alaska's in 1867."""


@dataclass(frozen=True, slots=True)
class CalendarWindows(Paned):
    """Windows of `size` that begin every `every`; `size_us` and `every_us` are their mean lengths.

    `offset` is how much later than at midnight of 1970-01-01 they begin (on a Monday, if their period is a
    number of weeks in a zone; on the first of a month, if it is a number of months); `zone` sets the
    midnight.
    """

    size: CalendarLength
    every: CalendarLength
    offset: CalendarLength
    zone: str | None

    of_panes: ClassVar[bool] = True
    calendar: ClassVar[bool] = True
    begin_together: ClassVar[bool] = False
    """Whether windows begin every `size`, and end every `every`."""

    @classmethod
    def at(
        cls, size: CalendarLength, every: CalendarLength, offset: CalendarLength, zone: str | None
    ) -> Self:
        """The windows with these lengths. Raises `ValueError` for lengths that the kind doesn't allow."""
        made = cls(size.mean_us, every.mean_us, size, every, offset, zone)
        made.check()
        return made

    def check(self) -> None:
        """Raise `ValueError` for lengths that give no windows of the kind, or too many panes."""
        count = self.size_us // self.pane_us
        if count > MOST_PANES:
            raise ValueError(
                f"{self.kind}: windows of {self.size.text} would have {count:,} panes of "
                f"{self._pane.text}; choose every= so that there are at most {MOST_PANES:,}"
            )

    def definition(self) -> dict[str, str]:
        """As plain JSON."""
        every = {} if self.every == self.size else {self.step: self.every.text}
        return {"window": self.kind, "size": self.size.text, **every, **self._place()}

    def _place(self) -> dict[str, str]:
        """Their alignment, as plain JSON; unset parts are omitted."""
        place = {} if self.offset == CalendarLength() else {"offset": self.offset.text}
        return place | ({} if self.zone is None else {"zone": self.zone})

    @property
    def text(self) -> str:
        """A description of the windows."""
        return f"windows of {self.size.text}{self._place_text()}"

    def _place_text(self) -> str:
        offset = "" if self.offset == CalendarLength() else f" from {self.offset.text} on"
        return offset + ("" if self.zone is None else f" in {self.zone}")

    def of_table(self) -> TableWindows:
        """See `StreamWindows`."""
        if self.zone is None and not self.size.months and not self.every.months:
            return self._fixed_table()
        return _TABLES[self.kind](self.size_us, self.every_us, 0, self)

    def _fixed_table(self) -> TableWindows:
        """The table's windows, if they differ from fixed windows only by an offset."""
        return regular_windows(self.size_us, self.every_us, self.offset.us)

    @property
    def _begin(self) -> CalendarLength:
        """The period at which windows begin."""
        return self.every

    @property
    def _pane(self) -> CalendarLength:
        months = math.gcd(self.size.months, self.every.months)
        return CalendarLength(months, 0 if months else math.gcd(self.size.us, self.every.us))

    @property
    def pane_us(self) -> int:
        """The mean length of a pane."""
        return self._pane.mean_us

    @property
    def longest_us(self) -> int:
        """See `Paned`."""
        size = 31 * _DAY_US * self.size.months if self.size.months else self.size.us
        return size + (0 if self.zone is None else _SET_BACK_US)

    def key_of(self, end_us: int) -> int:
        """See `Paned`."""
        return self.start_of(end_us) if self.single else end_us - self.size_us

    @property
    def panes_of_windows(self) -> Boundaries:
        """The boundaries of panes."""
        return _boundaries(self._begin, self._pane, self.offset, self.zone)

    @property
    def lengths(self) -> tuple[int, int]:
        """The number of panes in a window, and from one window's start to the next."""
        if self._pane.months:
            return self.size.months // self._pane.months, self.every.months // self._pane.months
        return self.size.us // self._pane.us, self.every.us // self._pane.us

    def pane_start(self, time_us: int) -> int:
        """See `Paned`."""
        panes = self.panes_of_windows
        return panes.start(panes.number(time_us))

    def pane_starts(self, times_us: np.ndarray) -> np.ndarray:
        """See `Paned`."""
        panes = self.panes_of_windows
        return panes.starts(panes.numbers(times_us))

    def _first_after(self, numbers: Any) -> Any:
        """The number of the pane that begins at the first window's end after the starts of these panes."""
        size, every = self.lengths
        return numbers - (numbers - size) % every + every

    def start_of(self, end_us: int) -> int:
        """See `Paned`."""
        return int(self.starts_of(np.array([end_us]))[0])

    def starts_of(self, ends_us: np.ndarray) -> np.ndarray:
        """The start of the window that ends at each time."""
        panes = self.panes_of_windows
        return panes.starts(self._first_after(panes.numbers(ends_us - 1)) - self.lengths[0])

    def block_of(self, start_us: int) -> tuple[int, int]:
        """See `Paned`."""
        panes, (size, _) = self.panes_of_windows, self.lengths
        number = panes.number(start_us)
        block = number - number % size
        return panes.start(block), panes.start(block + size)

    def first_end(self, time_us: int) -> int:
        """See `Paned`."""
        return int(self.first_ends(np.array([time_us]))[0])

    def first_ends(self, times_us: np.ndarray) -> np.ndarray:
        """See `Paned`."""
        panes = self.panes_of_windows
        return panes.starts(self._first_after(panes.numbers(times_us)))

    def last_end(self, time_us: int) -> int:
        """See `Paned`."""
        return int(self.last_ends(np.array([time_us]))[0])

    def last_ends(self, times_us: np.ndarray) -> np.ndarray:
        """See `Paned`."""
        panes, (size, every) = self.panes_of_windows, self.lengths
        numbers = panes.numbers(times_us)
        return panes.starts(numbers - numbers % every + size)

    def ended_by(self, time_us: int, reached_us: int) -> int:
        """See `Paned`."""
        latest = min(reached_us, self.last_end(time_us))
        return self.end_by(latest) if latest >= self.first_end(time_us) else EARLIEST

    def end_by(self, time_us: int) -> int:
        """The end of the last window that ends by `time_us`."""
        panes, (size, every) = self.panes_of_windows, self.lengths
        number = panes.number(time_us)
        return panes.start(number - (number - size) % every)


@dataclass(frozen=True, slots=True)
class CalendarTumbling(CalendarWindows):
    """Adjacent windows of one length on a calendar.

    >>> day = calendar_windows("tumbling", "1d", zone="Europe/Helsinki")
    >>> (day.first_end(1_774_735_200_000_000) - day.pane_start(1_774_735_200_000_000)) // 3_600_000_000
    23
    """

    kind: ClassVar[str] = "tumbling"

    @property
    def single(self) -> bool:
        """See `Paned`."""
        return True


@dataclass(frozen=True, slots=True)
class CalendarHopping(CalendarWindows):
    """Overlapping windows of one length on a calendar, one beginning every `every`."""

    kind: ClassVar[str] = "hopping"

    @property
    def text(self) -> str:
        """See `CalendarWindows`."""
        return f"windows of {self.size.text} every {self.every.text}{self._place_text()}"

    def check(self) -> None:
        """See `CalendarWindows`."""
        size, every = self.size, self.every
        if bool(size.months) != bool(every.months):
            raise ValueError(
                f"hopping: windows of {size.text} every {every.text} have no fixed number of steps; choose "
                'both in months, as in hopping("3mo", every="1mo"), or neither, as in '
                'hopping("30d", every="1d")'
            )
        if every.mean_us > size.mean_us:
            raise ValueError(
                f"hopping: windows of {size.text} every {every.text} leave rows out; every= may be at most "
                "the windows' length"
            )
        CalendarWindows.check(self)

    def of_table(self) -> TableWindows:
        """See `StreamWindows`."""
        if self.single:
            return CalendarTumbling.at(self.size, self.every, self.offset, self.zone).of_table()
        return CalendarWindows.of_table(self)


@dataclass(frozen=True, slots=True)
class CalendarCumulate(CalendarWindows):
    """Windows on a calendar with a common beginning and ends one step apart.

    >>> month = calendar_windows("cumulate", "1mo", "1d", zone="UTC")
    >>> first = 1_769_904_000_000_000  # 2026-02-01
    >>> len(list(month.ends_of(first)))
    28
    """

    kind: ClassVar[str] = "cumulate"
    begin_together: ClassVar[bool] = True

    @property
    def text(self) -> str:
        """See `CalendarWindows`."""
        return f"windows of up to {self.size.text} that grow by {self.every.text}{self._place_text()}"

    def check(self) -> None:
        """See `CalendarWindows`."""
        size, step = self.size, self.every
        # Any whole number of steps makes up a day, or of months a window.
        whole = size.months % step.months if step.months else (_DAY_US if size.months else size.us) % step.us
        if whole or (step.months and not size.months):
            steps = "1d, what divides it, or months that divide the window" if size.months else "a divisor"
            raise ValueError(
                f"cumulate: windows of {size.text} aren't a multiple of the step {step.text}; choose an "
                f"every= of {steps}"
            )
        CalendarWindows.check(self)

    def _fixed_table(self) -> TableWindows:
        return CumulateTable(self.size_us, self.every_us, self.offset.us)

    @property
    def _begin(self) -> CalendarLength:
        return self.size

    @property
    def _pane(self) -> CalendarLength:
        return self.every

    @property
    def windows(self) -> Boundaries:
        """The boundaries of full windows."""
        return _boundaries(self.size, self.size, self.offset, self.zone)

    def starts_of(self, ends_us: np.ndarray) -> np.ndarray:
        """See `CalendarWindows`."""
        windows = self.windows
        return windows.starts(windows.numbers(ends_us - 1))

    def block_of(self, start_us: int) -> tuple[int, int]:
        """See `Paned`."""
        windows = self.windows
        number = windows.number(start_us)
        return windows.start(number), windows.start(number + 1)

    def _first_after(self, numbers: Any) -> Any:
        return numbers + 1

    def last_ends(self, times_us: np.ndarray) -> np.ndarray:
        """See `Paned`."""
        windows = self.windows
        return windows.starts(windows.numbers(times_us) + 1)

    def end_by(self, time_us: int) -> int:
        """See `CalendarWindows`."""
        return self.pane_start(time_us)


@dataclass(frozen=True, slots=True)
class CalendarTable(TableWindows):
    """Windows on a calendar in a table; `size_us` and `every_us` are mean lengths."""

    windows: CalendarWindows | None = None

    in_steps: ClassVar[bool] = True

    @property
    def _windows(self) -> CalendarWindows:
        assert self.windows is not None
        return self.windows

    def definition(self) -> dict[str, str]:
        """As plain JSON."""
        definition = self._windows.definition()
        return {"kind": definition.pop("window"), **definition}

    @property
    def zone(self) -> str | None:
        """See `TableWindows`."""
        return self._windows.zone

    def contain(self, starts: np.ndarray, ends: np.ndarray) -> bool:
        """See `TableWindows`."""
        windows = self._windows
        return bool(((windows.first_ends(ends - 1) == ends) & (windows.starts_of(ends) == starts)).all())

    def last_end(self, time_us: int) -> int:
        """See `TableWindows`."""
        return self._windows.end_by(time_us)

    @property
    def step_us(self) -> int:
        """See `TableWindows`."""
        return 0

    def fit_into(self, larger: LargerWindows) -> bool:
        """See `TableWindows`: the rows decide."""
        return True

    def __str__(self) -> str:
        return self._windows.text


@dataclass(frozen=True, slots=True)
class CalendarTumblingTable(CalendarTable):
    """Adjacent windows on a calendar in a table."""

    kind: ClassVar[str] = "tumbling"
    side_by_side: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class CalendarHoppingTable(CalendarTable):
    """Overlapping windows on a calendar in a table."""

    kind: ClassVar[str] = "hopping"

    def once_within(self, starts: np.ndarray, ends: np.ndarray, larger: LargerWindows) -> np.ndarray | None:
        """See `TableWindows`."""
        windows, (size, every) = self._windows, self._windows.lengths
        panes = windows.panes_of_windows
        first, last = larger.pane_starts(starts), larger.last_ends(starts)
        low, high = panes.numbers(first), panes.numbers(last)
        exact = (panes.starts(low) == first) & (panes.starts(high) == last)
        if size % every or not (exact & (low % every == 0) & ((high - low) % size == 0)).all():
            raise none_end_to_end(self, larger)
        mask = (panes.numbers(starts) - low) % size == 0
        check_inside(self, starts[mask], ends[mask], larger)
        return mask

    def once_in_all(
        self, starts: np.ndarray, ends: np.ndarray, groups: Callable[[], np.ndarray]
    ) -> np.ndarray | None:
        """See `TableWindows`."""
        if not len(starts):
            return None
        windows, (size, every) = self._windows, self._windows.lengths
        numbers = windows.panes_of_windows.numbers(np.append(starts, ends.max()))
        first, last = int(numbers.min()), int(numbers[-1])
        if (last - first) % size or size % every:
            raise no_whole_span(self, int(starts.min()), int(ends.max()), windows.size.text)
        return (numbers[:-1] - first) % size == 0


@dataclass(frozen=True, slots=True)
class CalendarCumulateTable(CalendarTable):
    """Cumulating windows on a calendar in a table."""

    kind: ClassVar[str] = "cumulate"

    def once_within(self, starts: np.ndarray, ends: np.ndarray, larger: LargerWindows) -> np.ndarray | None:
        """See `TableWindows`: the windows of full length."""
        mask = self._windows.last_ends(starts) == ends
        check_inside(self, starts[mask], ends[mask], larger)
        return mask

    def once_in_all(
        self, starts: np.ndarray, ends: np.ndarray, groups: Callable[[], np.ndarray]
    ) -> np.ndarray | None:
        """See `TableWindows`."""
        return latest_of_each(starts, ends, groups())


_TABLES: dict[str, type[CalendarTable]] = {
    kind.kind: kind for kind in (CalendarTumblingTable, CalendarHoppingTable, CalendarCumulateTable)
}

_CLASSES: dict[str, type[CalendarWindows]] = {
    kind.kind: kind for kind in (CalendarTumbling, CalendarHopping, CalendarCumulate)
}


@lru_cache(maxsize=256)
def _boundaries(
    begin: CalendarLength, step: CalendarLength, offset: CalendarLength, zone: str | None
) -> Boundaries:
    """Intervals of one length, of which windows begin with one every `begin`."""
    offset = _normal(begin, offset)
    monday = zone is not None and not begin.months and begin.us % _WEEK_US == 0
    shift = CalendarLength(0 if not step.months else offset.months, offset.us + (_MONDAY_US if monday else 0))
    return Boundaries(step, shift, zone)


def _normal(begin: CalendarLength, offset: CalendarLength) -> CalendarLength:
    """The equivalent offset that is shorter than the period at which windows begin."""
    if begin.months:
        return CalendarLength(offset.months % begin.months, offset.us)
    return CalendarLength(0, offset.us % begin.us)


def calendar_windows(
    kind: str,
    size: Duration,
    every: Duration | None = None,
    offset: Duration | None = None,
    zone: str | None = None,
) -> CalendarWindows | None:
    """The windows of a kind on a calendar; None for those at multiples of a length since 1970 in UTC.

    Raises `ValueError` for text that isn't a length or a zone, and for lengths that give no such windows.

    >>> calendar_windows("tumbling", "1d", offset="24h") is None
    True
    >>> calendar_windows("tumbling", "1d", offset="-2h").definition()
    {'window': 'tumbling', 'size': '1d', 'offset': '22h'}
    """
    length, step = calendar_length(size), calendar_length(size if every is None else every)
    shift = CalendarLength() if offset is None else signed_length(offset)
    for one, given, what in ((length, size, "a window"), (step, every, "every=")):
        if one.mean_us < 1:
            raise ValueError(f"{kind}: {what} must be longer than {given!r}")
        if one.months and one.us:
            raise ValueError(
                f"{kind}: {what} must be of months, such as 1mo, 1q or 1y, or of a fixed length, "
                f"got {given!r}"
            )
    if zone is not None:
        zone = check_zone(zone)
    begin = length if _CLASSES[kind].begin_together else step
    if shift.months and not begin.months:
        raise ValueError(f"{kind}: only windows of months have an offset in months, got offset={offset!r}")
    if begin.months and abs(shift.us) >= _LONGEST_SHIFT_US:
        raise ValueError(
            f"{kind}: an offset must be shorter than 28d beside whole months, since they are of 28 to 31 "
            f'days; write months, as in offset="1mo2d", got {offset!r}'
        )
    fixed = zone is None and not length.months and not step.months
    if fixed and (not begin.us or not shift.us % begin.us):
        return None
    return _CLASSES[kind].at(length, step, _normal(begin, shift), zone)


def of_definition(kind: str, definition: Mapping[str, str]) -> CalendarWindows | None:
    """The windows that a definition describes; None for windows without a calendar.

    Raises `KeyError` or `ValueError` for an invalid definition.
    """
    given = (definition.get(name) for name in ("every", "offset", "zone"))
    return calendar_windows(kind, definition["size"], *given)


def table_of_definition(kind: str, definition: Mapping[str, str]) -> TableWindows | None:
    """The windows of a table according to its metadata; None for windows without a calendar."""
    if "zone" not in definition and not calendar_length(definition["size"]).months:
        return None
    windows = of_definition(kind, definition)
    return None if windows is None else windows.of_table()
