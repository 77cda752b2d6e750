"""Windows with fixed edges that consist of whole panes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from ...sketches.core.lazy import np, pa
from .durations import Duration, duration_text
from .table import TableWindows
from .window import EARLIEST

MOST_PANES = 100_000
"""The most panes that a window may have: the merger has work for each window that a row is in."""


def _multiples(times_us: np.ndarray, step_us: int) -> np.ndarray:
    """The last multiple of a step up to each time; NumPy's `//` by a constant is ten times as fast as `%`."""
    result = times_us // np.int64(step_us)
    result *= np.int64(step_us)
    return result


@dataclass(frozen=True, slots=True)
class Paned:
    """Windows of one length that begin every `every_us` from 1970-01-01 00:00 UTC on.

    A kind whose windows begin elsewhere overrides `pane_start`, `pane_starts`, `first_end`, `first_ends`,
    `last_end` and `last_ends`, which must agree. A kind with windows of several lengths also overrides
    `start_of`. On a calendar (`calendar`) `size_us` and `every_us` are mean lengths: use the methods.
    """

    size_us: int
    every_us: int

    kind: ClassVar[str]
    step: ClassVar[str] = "every"
    """The name of `every_us` in definitions."""
    of_panes: ClassVar[bool] = False
    by_group: ClassVar[bool] = False
    of_time: ClassVar[bool] = True
    by: ClassVar[tuple[str, ...] | None] = None
    calendar: ClassVar[bool] = False
    """Whether windows are on a calendar, so that their lengths are means."""
    added_keys: ClassVar[Mapping[str, pa.DataType]] = {}

    @classmethod
    def of(cls, size: Duration, step: Duration) -> Self:
        """The windows with these lengths. Raises `ValueError` for lengths that the kind doesn't allow."""
        raise NotImplementedError

    def definition(self) -> dict[str, str]:
        """As plain JSON."""
        lengths = {"size": duration_text(self.size_us), self.step: duration_text(self.every_us)}
        return {"window": self.kind, **lengths}

    @classmethod
    def from_definition(cls, definition: Mapping[str, str]) -> Self:
        """See `StreamWindows`."""
        return cls.of(definition["size"], definition[cls.step])

    def of_table(self) -> TableWindows:
        """See `StreamWindows`."""
        raise NotImplementedError

    @property
    def text(self) -> str:
        """A description of the windows."""
        return f"windows of {duration_text(self.size_us)}"

    @property
    def single(self) -> bool:
        """Whether each window is one pane."""
        return self.size_us == self.every_us

    @property
    def longest_us(self) -> int:
        """See `StreamWindows`."""
        return self.last_end(0)

    def key_of(self, end_us: int) -> int:
        """The identity of the window that ends at `end_us`: its start, if each window is one pane."""
        return end_us - self.size_us

    def block_of(self, start_us: int) -> tuple[int, int]:
        """The start and the end of the block, as long as a window, in which a window begins."""
        block = start_us - start_us % self.size_us
        return block, block + self.size_us

    @property
    def pane_us(self) -> int:
        """The length of a pane: each lies entirely inside a window or entirely outside it."""
        return math.gcd(self.size_us, self.every_us)

    @property
    def begin_every_us(self) -> int:
        """How often windows begin; equal to their length if windows with a common time begin together."""
        return self.every_us

    def pane_start(self, time_us: int) -> int:
        """The start of the pane that contains a time."""
        return time_us - time_us % self.pane_us

    def pane_starts(self, times_us: np.ndarray) -> np.ndarray:
        """The start of each time's pane."""
        return _multiples(times_us, self.pane_us)

    def panes(self, first_us: int, last_us: int) -> range | None:
        """The starts of all panes from one to another; None for a kind that overrides `pane_start`.

        >>> list(Paned(60, 60).panes(0, 120))
        [0, 60, 120]
        """
        if type(self).pane_start is not Paned.pane_start:
            return None
        return range(first_us, last_us + 1, self.pane_us)

    def start_of(self, end_us: int) -> int:
        """The start of the window that ends at `end_us`."""
        return end_us - self.size_us

    def first_end(self, time_us: int) -> int:
        """The end of the first window that ends after a time."""
        return time_us - (time_us - self.size_us) % self.every_us + self.every_us

    def first_ends(self, times_us: np.ndarray) -> np.ndarray:
        """`first_end` of each time."""
        size, every = np.int64(self.size_us), np.int64(self.every_us)
        return _multiples(times_us - size, self.every_us) + (size + every)

    def whole_until(self, time_us: int) -> int:
        """A row of this time counts in all its windows if its partition's watermark was below the result."""
        return self.first_end(time_us)

    def last_end(self, time_us: int) -> int:
        """The end of the last window that contains a time: a row counts until then."""
        return time_us - time_us % self.begin_every_us + self.size_us

    def last_ends(self, times_us: np.ndarray) -> np.ndarray:
        """`last_end` of each time."""
        return _multiples(times_us, self.begin_every_us) + np.int64(self.size_us)

    def pane_over(self, pane_us: int) -> int:
        """The time after which no row of the pane that begins at `pane_us` counts."""
        return self.last_end(pane_us)

    def ended_by(self, time_us: int, reached_us: int) -> int:
        """The end of the last window with this time that ends by `reached_us`; `EARLIEST` if none does.

        >>> Paned(3_000_000, 1_000_000).ended_by(5_000_000, 7_500_000)
        7000000
        """
        first, latest = self.first_end(time_us), min(reached_us, self.last_end(time_us))
        return latest - (latest - first) % self.every_us if latest >= first else EARLIEST

    def ends_of(self, pane_us: int) -> Iterator[int]:
        """The ends of all windows that contain a pane, earliest first."""
        end, last = self.first_end(pane_us), self.last_end(pane_us)
        while end <= last:
            yield end
            end = self.first_end(end)


def check_steps(window: Paned, a_step: str) -> None:
    """Raise `ValueError` unless windows consist of whole steps; `a_step` says what to choose."""
    if window.size_us % window.every_us:
        raise ValueError(
            f"{window.kind}: windows of {duration_text(window.size_us)} aren't a multiple of the step "
            f"{duration_text(window.every_us)}; choose {a_step} that divides the length"
        )


def check_panes(window: Paned, option: str) -> None:
    """Raise `ValueError` for windows of too many panes; `option` is the option that reduces them."""
    count = window.size_us // window.pane_us
    if count > MOST_PANES:
        raise ValueError(
            f"{window.kind}: windows of {duration_text(window.size_us)} would have {count:,} panes of "
            f"{duration_text(window.pane_us)}; choose {option} so that there are at most {MOST_PANES:,}"
        )
