"""Overlapping windows of one length, one beginning every `every`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from ...sketches.core.lazy import np
from ...sketches.core.protocol import SketchError
from .durations import Duration, duration_text
from .paned import Paned, check_panes
from .table import LargerWindows, TableWindows, check_inside, moment
from .tumbling import TumblingTable
from .window import window_length


@dataclass(frozen=True, slots=True)
class HoppingTable(TableWindows):
    """Overlapping windows in a table: adjacent ones contain each row of the stream once."""

    kind: ClassVar[str] = "hopping"
    in_steps: ClassVar[bool] = True

    def once_within(self, starts: np.ndarray, ends: np.ndarray, larger: LargerWindows) -> np.ndarray | None:
        """See `TableWindows`."""
        if not larger.calendar and larger.size_us % self.size_us:
            raise SketchError(
                f"merge: {self} don't fit into {larger.text}; choose a multiple of their length"
            )
        first, last = larger.pane_starts(starts), larger.last_ends(starts)
        exact = (first - self.offset_us) % self.every_us == 0
        if self.size_us % self.every_us or not (exact & ((last - first) % self.size_us == 0)).all():
            raise none_end_to_end(self, larger)
        mask = (starts - first) % self.size_us == 0
        check_inside(self, starts[mask], ends[mask], larger)
        return mask

    def once_in_all(
        self, starts: np.ndarray, ends: np.ndarray, groups: Callable[[], np.ndarray]
    ) -> np.ndarray | None:
        """See `TableWindows`."""
        if not len(starts):
            return None
        first, last = int(starts.min()), int(ends.max())
        if (last - first) % self.size_us or self.size_us % self.every_us:
            raise no_whole_span(self, first, last, duration_text(self.size_us))
        return (starts - first) % self.size_us == 0

    def __str__(self) -> str:
        text = f"windows of {duration_text(self.size_us)} every {duration_text(self.every_us)}"
        return text + (f" from {duration_text(self.offset_us)} on" if self.offset_us else "")


def regular_windows(
    size_us: int, every_us: int | None = None, offset_us: int = 0
) -> TumblingTable | HoppingTable:
    """Adjacent windows in a table, or overlapping ones if they begin more often.

    >>> regular_windows(120_000_000, 60_000_000).definition()
    {'kind': 'hopping', 'size': '2m', 'every': '1m', 'offset': '0s'}
    """
    every_us = size_us if every_us is None else every_us
    kind = TumblingTable if every_us == size_us else HoppingTable
    return kind(size_us, every_us, offset_us % every_us)


@dataclass(frozen=True, slots=True)
class Hopping(Paned):
    """Overlapping windows of one length, one beginning every `every`.

    >>> hopping = Hopping.of("90s", every="1m")
    >>> hopping.pane_us, list(hopping.ends_of(60_000_000))
    (30000000, [90000000, 150000000])
    """

    kind: ClassVar[str] = "hopping"
    of_panes: ClassVar[bool] = True

    @classmethod
    def of(cls, size: Duration, every: Duration) -> Hopping:
        """Windows of these lengths. Raises `ValueError` if invalid, or if rows would be skipped."""
        window = cls(
            window_length("hopping: a window must be longer", size),
            window_length("hopping: every= must be longer", every),
        )
        if window.every_us > window.size_us:
            raise ValueError(
                f"hopping: windows of {duration_text(window.size_us)} every {duration_text(window.every_us)} "
                "leave rows out; every= may be at most the windows' length"
            )
        check_panes(window, "every=")
        return window

    def of_table(self) -> TumblingTable | HoppingTable:
        """See `StreamWindows`."""
        return regular_windows(self.size_us, self.every_us)


def none_end_to_end(windows: TableWindows, larger: LargerWindows) -> SketchError:
    """The error if a table's overlapping windows can't be merged into larger ones."""
    return SketchError(
        f"merge: {windows} overlap, and none of them lie end to end in {larger.text}: some rows "
        "would count twice or not at all; sketch tumbling windows for that"
    )


def no_whole_span(windows: TableWindows, first_us: int, last_us: int, size: str) -> SketchError:
    """The error if a span doesn't consist of whole windows, for overlapping windows."""
    return SketchError(
        f"{windows} overlap, and those from {moment(first_us)} on do not lie end to end up to "
        f"{moment(last_us)}; choose a span that is a multiple of {size}"
    )
