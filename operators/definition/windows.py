"""Which windows of event time a row is part of.

A kind cuts time into **panes**, the stretches that rows are sketched by, once, however many windows a row is
part of. Windows are made of whole panes, which the merger puts together as the window closes; a tumbling
window is its own single pane. Sessions have no fixed edges: rows are sketched by stretches without a gap,
which are put together where they meet (`sketching.sessions`), and their panes only count messages. Windows
by count have no edges in time at all.
All times are int64 microseconds since 1970 in UTC; windows include their start and not their end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .durations import Duration, microseconds, written

LATEST = 2**62
"""After all times: when windows end that no time ends."""

EARLIEST = -(2**62)
"""Before all times: what a partition knows before its first row, with room to subtract a delay from."""

MOST_PANES = 100_000
"""The most panes that a window may have: each window that rows are part of costs the merger something."""


@dataclass(frozen=True, slots=True)
class Paned:
    """Windows of one length that begin every `every_us`, aligned to 1970-01-01 00:00 UTC."""

    size_us: int
    every_us: int

    @property
    def pane_us(self) -> int:
        """The length of a pane: each lies wholly inside a window or wholly outside it."""
        return math.gcd(self.size_us, self.every_us)

    def pane_start(self, time_us: int) -> int:
        """The start of the pane that holds a time."""
        return time_us - time_us % self.pane_us

    def pane_starts(self, times_us: np.ndarray) -> np.ndarray:
        """The start of each time's pane."""
        return times_us - times_us % np.int64(self.pane_us)

    def first_end(self, time_us: int) -> int:
        """The end of the first window that ends after a time."""
        return time_us - (time_us - self.size_us) % self.every_us + self.every_us

    def first_ends(self, times_us: np.ndarray) -> np.ndarray:
        """`first_end` of each time."""
        size, every = np.int64(self.size_us), np.int64(self.every_us)
        return times_us - (times_us - size) % every + every

    def whole_until(self, time_us: int) -> int:
        """A row of this time is in all of its windows if its partition's watermark was below this."""
        return self.first_end(time_us)

    def last_end(self, time_us: int) -> int:
        """The end of the last window that holds a time: a row matters until then."""
        return time_us - time_us % self.every_us + self.size_us

    def last_ends(self, times_us: np.ndarray) -> np.ndarray:
        """`last_end` of each time."""
        return times_us - times_us % np.int64(self.every_us) + np.int64(self.size_us)

    def pane_over(self, pane_us: int) -> int:
        """When no row of the pane that begins there matters any more."""
        return self.last_end(pane_us)

    def ended_by(self, time_us: int, reached_us: int) -> int:
        """The end of the last window with this time that ends at or before another; `EARLIEST` if none does.

        >>> Hopping.of("3s", every="1s").ended_by(5_000_000, 7_500_000)
        7000000
        """
        latest = min(reached_us, self.last_end(time_us))
        end = latest - (latest - self.size_us) % self.every_us
        return end if end > time_us else EARLIEST

    def ends_of(self, pane_us: int) -> range:
        """The ends of all windows that hold a pane, earliest first."""
        return range(self.first_end(pane_us), self.last_end(pane_us) + 1, self.every_us)


@dataclass(frozen=True, slots=True)
class Tumbling(Paned):
    """Windows of one length, side by side.

    >>> hours = Tumbling.every("1h")
    >>> hours.pane_starts(np.array([-1, 0, 3_600_000_001])).tolist()
    [-3600000000, 0, 3600000000]
    """

    @classmethod
    def every(cls, size: Duration) -> Tumbling:
        """Windows of `size`, such as ``"1m"``. Raises `ValueError` for an empty one."""
        return cls.of_length(_length("a window must be longer", size))

    @classmethod
    def of_length(cls, size_us: int) -> Tumbling:
        """Windows of so many microseconds."""
        return cls(size_us, size_us)

    def definition(self) -> dict[str, str]:
        """As plain JSON."""
        return {"window": "tumbling", "size": written(self.size_us)}


@dataclass(frozen=True, slots=True)
class Hopping(Paned):
    """Windows of one length that begin every so often, so that they overlap.

    >>> hopping = Hopping.of("90s", every="1m")
    >>> hopping.pane_us, list(hopping.ends_of(60_000_000))
    (30000000, [90000000, 150000000])
    """

    @classmethod
    def of(cls, size: Duration, every: Duration) -> Hopping:
        """Raises `ValueError` for lengths that give no windows, leave rows out, or give too many panes."""
        found = cls(
            _length("hopping: a window must be longer", size),
            _length("hopping: every= must be longer", every),
        )
        if found.every_us > found.size_us:
            raise ValueError(
                f"hopping: windows of {written(found.size_us)} every {written(found.every_us)} leave rows "
                "out; every= may be at most the windows' length"
            )
        _check_panes("hopping", found.size_us, found.pane_us, "every=")
        return found

    def definition(self) -> dict[str, str]:
        """As plain JSON."""
        return {"window": "hopping", "size": written(self.size_us), "every": written(self.every_us)}


@dataclass(frozen=True, slots=True)
class Sliding(Paned):
    """For each group, windows that end where it has rows: with each step of `every_us` that holds one.

    >>> Sliding.of("1m", step="1s").definition()
    {'window': 'sliding', 'size': '1m', 'step': '1s'}
    """

    @classmethod
    def of(cls, size: Duration, step: Duration) -> Sliding:
        """Raises `ValueError` for lengths that give no windows, and a step that doesn't divide the window."""
        found = cls(
            _length("sliding: a window must be longer", size), _length("sliding: step= must be longer", step)
        )
        if found.size_us % found.every_us:
            raise ValueError(
                f"sliding: windows of {written(found.size_us)} can't be made of whole steps of "
                f"{written(found.every_us)}; choose a step that divides the length"
            )
        _check_panes("sliding", found.size_us, found.pane_us, "step=")
        return found

    def definition(self) -> dict[str, str]:
        """As plain JSON."""
        return {"window": "sliding", "size": written(self.size_us), "step": written(self.every_us)}


@dataclass(frozen=True, slots=True)
class NoWindows(Paned):
    """Rows are sent on as they come: each is a moment by itself, late once its partition is past it."""

    size_us: int = 1
    every_us: int = 1

    def definition(self) -> dict[str, str]:
        """As plain JSON."""
        return {"window": "none"}


@dataclass(frozen=True, slots=True)
class Session:
    """For each group, stretches of rows of which none follows the one before by `gap_us` or more.

    >>> Session.of("30m").last_end(0)
    1800000000
    """

    gap_us: int

    @classmethod
    def of(cls, gap: Duration) -> Session:
        """Sessions that a pause of `gap` ends. Raises `ValueError` for an empty one."""
        return cls(_length("session: a gap must be longer", gap))

    @property
    def pane_us(self) -> int:
        """The length of the panes by which messages are counted."""
        return self.gap_us

    def pane_start(self, time_us: int) -> int:
        """The start of the pane that holds a time."""
        return time_us - time_us % self.gap_us

    def pane_starts(self, times_us: np.ndarray) -> np.ndarray:
        """The start of each time's pane."""
        return times_us - times_us % np.int64(self.gap_us)

    def whole_until(self, time_us: int) -> int:
        """A row of this time may meet any session if its partition's watermark was below this."""
        return time_us + 1

    def last_end(self, time_us: int) -> int:
        """The end of a session whose last row has this time."""
        return time_us + self.gap_us

    def last_ends(self, times_us: np.ndarray) -> np.ndarray:
        """`last_end` of each time."""
        return times_us + np.int64(self.gap_us)

    def pane_over(self, pane_us: int) -> int:
        """When no row of the pane that begins there matters any more."""
        return pane_us + 2 * self.gap_us - 1

    def ended_by(self, time_us: int, reached_us: int) -> int:
        """The end of a session whose last row has this time, if that is at or before `reached_us`."""
        end = time_us + self.gap_us
        return end if end <= reached_us else EARLIEST

    def definition(self) -> dict[str, str]:
        """As plain JSON."""
        return {"window": "session", "gap": written(self.gap_us)}


@dataclass(frozen=True, slots=True)
class ByCount:
    """For each group, windows of so many of its rows, in the order of its partition.

    They have no edges in time: no row is late for them, and one pane counts all messages.

    >>> ByCount.of(100).definition()
    {'window': 'count', 'size': '100 rows'}
    """

    rows: int

    @classmethod
    def of(cls, rows: int) -> ByCount:
        """Windows of so many rows. Raises `TypeError` for what is no whole number, `ValueError` below 1."""
        if type(rows) is not int:
            raise TypeError(f"count_window: {rows!r} is not a number of rows; write .count_window(100)")
        if rows < 1:
            raise ValueError(f"count_window: a window has at least one row, not {rows}")
        return cls(rows)

    @classmethod
    def read(cls, size: str) -> ByCount:
        """The windows of a definition's `size`. Raises `ValueError` if it is none."""
        return cls.of(int(size.removesuffix(" rows")))

    def pane_start(self, time_us: int) -> int:
        """The start of the one pane."""
        return 0

    def pane_starts(self, times_us: np.ndarray) -> np.ndarray:
        """The start of each time's pane."""
        return np.zeros(len(times_us), np.int64)

    def whole_until(self, time_us: int) -> int:
        """A row is in time whatever its partition's watermark was."""
        return LATEST

    def last_end(self, time_us: int) -> int:
        """A row matters for ever."""
        return LATEST

    def last_ends(self, times_us: np.ndarray) -> np.ndarray:
        """`last_end` of each time."""
        return np.full(len(times_us), LATEST)

    def pane_over(self, pane_us: int) -> int:
        """When no row matters any more."""
        return LATEST

    def ended_by(self, time_us: int, reached_us: int) -> int:
        """No time ends a window."""
        return EARLIEST

    def definition(self) -> dict[str, str]:
        """As plain JSON."""
        return {"window": "count", "size": f"{self.rows} rows"}


Window = Tumbling | Hopping | Sliding | Session | ByCount | NoWindows


def _length(told: str, length: Duration) -> int:
    found = microseconds(length)
    if found < 1:
        raise ValueError(f"{told} than {length!r}")
    return found


def _check_panes(kind: str, size_us: int, pane_us: int, option: str) -> None:
    if size_us // pane_us > MOST_PANES:
        raise ValueError(
            f"{kind}: windows of {written(size_us)} would be made of {size_us // pane_us:,} pieces of "
            f"{written(pane_us)}; choose {option} so that there are at most {MOST_PANES:,}"
        )
