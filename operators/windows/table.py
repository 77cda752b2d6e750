"""The windows of a table of sketches: what its metadata describes, and which rows may be merged.

Overlapping windows contain some rows of the stream twice, so a sum over them would count those twice. Windows
that end where a group has rows can't be put end to end at all. Sessions contain each row once, but have any
length.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol, Self

from ...sketches.core.lazy import np
from ...sketches.core.protocol import SketchError
from .durations import duration_text, microseconds


class LargerWindows(Protocol):
    """Adjacent windows, into which a table's windows are merged: `paned.Paned` with one pane each."""

    calendar: ClassVar[bool]
    """Whether `size_us` is a mean length."""

    @property
    def size_us(self) -> int:
        """Their length."""

    @property
    def text(self) -> str:
        """A description of the windows."""

    def pane_starts(self, times_us: np.ndarray) -> np.ndarray:
        """The start of the window that contains each time."""

    def last_ends(self, times_us: np.ndarray) -> np.ndarray:
        """The end of the window that contains each time."""


@dataclass(frozen=True, slots=True)
class TableWindows:
    """Windows of one length (microseconds) that begin at `offset_us` and every `every_us` from there.

    A kind with other lengths documents them. Windows of the same kind and lengths are equal.
    """

    size_us: int
    every_us: int = 1
    offset_us: int = 0

    kind: ClassVar[str]
    """Its name in stored tables, which is the name in definitions."""
    side_by_side: ClassVar[bool] = False
    """Whether windows are adjacent, so that each row is in one window and a reading is emitted once."""
    in_steps: ClassVar[bool] = False
    """Whether windows end at set times, so that a closed window means that those before it have closed."""
    common_edges: ClassVar[bool] = True
    """Whether windows of different groups begin and end together."""
    merging: ClassVar[bool] = False
    """Whether rows between two windows of a group join them, so that a window may be emitted again, longer.
    """
    apart: ClassVar[bool] = False
    """Whether windows of one group may overlap in ways that only the rows show."""
    all_time: ClassVar[bool] = False
    """Whether it is the only window of a table without windows, which is never shown."""
    rolls_up: ClassVar[bool] = True
    """Whether windows can be merged into larger ones of one length."""

    def definition(self) -> dict[str, str]:
        """As plain JSON."""
        lengths = {"size": self.size_us, "every": self.every_us, "offset": self.offset_us}
        return {"kind": self.kind, **{name: duration_text(length) for name, length in lengths.items()}}

    @classmethod
    def from_definition(cls, definition: Mapping[str, str]) -> Self:
        """The windows of a definition of this kind. Raises `KeyError` or `ValueError` for an invalid one."""
        size, every, offset = (microseconds(definition[name]) for name in ("size", "every", "offset"))
        return cls(size, every, offset % every)

    def contain(self, starts: np.ndarray, ends: np.ndarray) -> bool:
        """Whether all rows are in windows of this kind."""
        fit = (ends - starts == self.size_us) & ((starts - self.offset_us) % self.every_us == 0)
        return bool(fit.all())

    @property
    def zone(self) -> str | None:
        """The zone by whose clock they begin; None for UTC."""
        return None

    def last_end(self, time_us: int) -> int:
        """The end of the last window that ends at or before a time, for windows that end at set times."""
        return time_us - (time_us - self.offset_us - self.size_us) % self.every_us

    @property
    def step_us(self) -> int:
        """The time from a window's end to the next, for windows that end at set times; 0 if it varies."""
        return self.every_us if self.in_steps else 0

    def fit_into(self, larger: LargerWindows) -> bool:
        """Whether larger windows can be formed from these, as far as that doesn't depend on the rows."""
        return larger.calendar or larger.size_us % self.size_us == 0

    def once_within(self, starts: np.ndarray, ends: np.ndarray, larger: LargerWindows) -> np.ndarray | None:
        """A mask of the rows that make up larger, adjacent windows, with each row of the stream in only one.

        None means all rows. It depends only on each row's own window, so a table may be processed in pieces.
        Raises `SketchError` if there are none.
        """
        check_inside(self, starts, ends, larger)
        return None

    def once_in_all(
        self, starts: np.ndarray, ends: np.ndarray, groups: Callable[[], np.ndarray]
    ) -> np.ndarray | None:
        """A mask of the rows that contain each row of the stream once over the whole span; None means all.

        `groups` numbers the rows by group. Raises `SketchError` if there are none.
        """
        return None

    def __str__(self) -> str:
        text = f"windows of {duration_text(self.size_us)}"
        return text + (f" from {duration_text(self.offset_us)} on" if self.offset_us else "")


ALL_TIME = -9_214_560_000_000_000, 9_214_646_400_000_000
"""The only window of tables without windows, 1678-01-01 to 2262-01-01: the widest that pandas can hold."""


@dataclass(frozen=True, slots=True)
class AllTime(TableWindows):
    """The only window of tables without windows."""

    size_us: int = ALL_TIME[1] - ALL_TIME[0]
    every_us: int = ALL_TIME[1] - ALL_TIME[0]
    offset_us: int = ALL_TIME[0]

    kind: ClassVar[str] = "all"
    all_time: ClassVar[bool] = True
    rolls_up: ClassVar[bool] = False

    def definition(self) -> dict[str, str]:
        """As plain JSON."""
        return {"kind": self.kind}

    @classmethod
    def from_definition(cls, definition: Mapping[str, str]) -> Self:
        """The only window."""
        return cls()

    def once_within(self, starts: np.ndarray, ends: np.ndarray, larger: LargerWindows) -> np.ndarray | None:
        """Raises `SketchError`: it can't be divided."""
        raise SketchError(f"merge: this table has {self}, so it can't be cut into {larger.text}")

    def __str__(self) -> str:
        return "one window for all rows"


def check_inside(
    windows: TableWindows | None, starts: np.ndarray, ends: np.ndarray, larger: LargerWindows
) -> None:
    """Raise `SketchError` if a row's window lies in two of the larger windows, which are adjacent."""
    outside = ends > larger.last_ends(starts)
    if not outside.any():
        return
    what = windows or f"windows of {duration_text(int((ends - starts).max()))}"
    if not larger.calendar and (windows is None or windows.zone is None):
        raise SketchError(f"merge: {what} don't fit into {larger.text}; choose a multiple")
    at = int(np.argmax(outside))
    raise SketchError(
        f"merge: {what} don't fit into {larger.text}: the one from {moment(int(starts[at]))} to "
        f"{moment(int(ends[at]))} (UTC) would lie in two of them; choose a length, an offset= and a zone= "
        "whose windows begin where the table's do, or sketch shorter windows"
    )


def moment(time_us: int) -> str:
    """A time as text, to the second."""
    return str(np.datetime64(int(time_us), "us").astype("datetime64[s]")).replace("T", " ")
