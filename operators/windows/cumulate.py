"""Windows with a common beginning and ends one step apart, up to a length: Flink's ``CUMULATE``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from ...sketches.core.lazy import np
from ...sketches.core.protocol import SketchError
from .durations import Duration, duration_text
from .paned import Paned, check_panes, check_steps
from .table import LargerWindows, TableWindows, check_inside
from .window import window_length


@dataclass(frozen=True, slots=True)
class CumulateTable(TableWindows):
    """Cumulating windows in a table: each contains the rows of the earlier ones with the same beginning.

    So the window of full length contains each row of the stream once; until it exists, the latest one does.
    """

    kind: ClassVar[str] = "cumulate"
    in_steps: ClassVar[bool] = True

    def contain(self, starts: np.ndarray, ends: np.ndarray) -> bool:
        """See `TableWindows`."""
        lengths = ends - starts
        fit = (lengths > 0) & (lengths <= self.size_us) & (lengths % self.every_us == 0)
        return bool((fit & ((starts - self.offset_us) % self.size_us == 0)).all())

    def once_within(self, starts: np.ndarray, ends: np.ndarray, larger: LargerWindows) -> np.ndarray | None:
        """See `TableWindows`: the windows of full length.

        If one doesn't exist yet, no earlier one stands in for it: merged tables may come from several
        machines, or be several states of one, which can't be distinguished.
        """
        mask = ends - starts == self.size_us
        if larger.calendar:
            check_inside(self, starts[mask], ends[mask], larger)
        elif larger.size_us % self.size_us or self.offset_us:
            raise SketchError(
                f"merge: {self} don't fit into {larger.text}; choose a multiple of their full length"
            )
        return mask

    def once_in_all(
        self, starts: np.ndarray, ends: np.ndarray, groups: Callable[[], np.ndarray]
    ) -> np.ndarray | None:
        """See `TableWindows`: for each group and beginning, the latest window."""
        return latest_of_each(starts, ends, groups())

    def __str__(self) -> str:
        text = f"windows of up to {duration_text(self.size_us)} that grow by {duration_text(self.every_us)}"
        return text + (f" from {duration_text(self.offset_us)} on" if self.offset_us else "")


def latest_of_each(starts: np.ndarray, ends: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """A mask of the latest window of each group and beginning."""
    order = np.lexsort((ends, starts, groups))
    groups, sorted_starts = groups[order], starts[order]
    followed = (groups[1:] == groups[:-1]) & (sorted_starts[1:] == sorted_starts[:-1])
    mask = np.ones(len(order), bool)
    mask[order[:-1][followed]] = False
    return mask


@dataclass(frozen=True, slots=True)
class Cumulate(Paned):
    """Windows that begin every `size_us`, and end every `every_us` from there up to that length.

    >>> day = Cumulate.of("1d", every="6h")
    >>> [end // 3_600_000_000 for end in day.ends_of(6 * 3_600_000_000)]
    [12, 18, 24]
    """

    kind: ClassVar[str] = "cumulate"
    of_panes: ClassVar[bool] = True

    @classmethod
    def of(cls, size: Duration, every: Duration) -> Cumulate:
        """Windows of these lengths. Raises `ValueError` if invalid, or if `every` doesn't divide `size`."""
        window = cls(
            window_length("cumulate: a window must be longer", size),
            window_length("cumulate: every= must be longer", every),
        )
        check_steps(window, "an every=")
        check_panes(window, "every=")
        return window

    def of_table(self) -> CumulateTable:
        """See `StreamWindows`."""
        return CumulateTable(self.size_us, self.every_us)

    @property
    def begin_every_us(self) -> int:
        """See `Paned`: windows of each length begin there."""
        return self.size_us

    def start_of(self, end_us: int) -> int:
        """The start of the window that ends at `end_us`."""
        return (end_us - 1) - (end_us - 1) % self.size_us
