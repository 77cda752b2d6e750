"""The windows of a table of sketches: what its metadata says of them, and which rows may be merged.

Overlapping windows hold some rows of the stream twice, so a sum over them would count those twice. Windows
that end where a group has rows can't be put end to end at all. Sessions hold each row once, but are of any
length.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from ...sketches.core.lazy import np
from ...sketches.core.protocol import SketchError
from .durations import duration_text, microseconds


@dataclass(frozen=True, slots=True)
class TableWindows:
    """Windows of one length (microseconds) that begin at `offset_us` and every `every_us` from there.

    What other lengths than these a kind has, it says itself. Windows of the same kind and lengths are equal.
    """

    size_us: int
    every_us: int = 1
    offset_us: int = 0

    kind: ClassVar[str]
    """Its name in stored tables, that of definitions."""
    side_by_side: ClassVar[bool] = False
    """Whether windows lie end to end, so that each row is in one and a reading is given once."""
    in_steps: ClassVar[bool] = False
    """Whether windows end at set times: then one that closes says that those before it have closed."""
    common_edges: ClassVar[bool] = True
    """Whether windows of different groups begin and end together."""
    merging: ClassVar[bool] = False
    """Whether rows between two windows of a group make one of them, so that one may be emitted again, longer.
    """
    apart: ClassVar[bool] = False
    """Whether windows of one group may overlap in ways that only the rows show."""
    all_time: ClassVar[bool] = False
    """Whether it is the one window of a table without windows, which is never shown."""
    rolls_up: ClassVar[bool] = True
    """Whether windows can be merged into larger ones of one length."""

    def definition(self) -> dict[str, str]:
        """As plain JSON."""
        lengths = {"size": self.size_us, "every": self.every_us, "offset": self.offset_us}
        return {"kind": self.kind, **{name: duration_text(length) for name, length in lengths.items()}}

    @classmethod
    def from_definition(cls, definition: Mapping[str, str]) -> Self:
        """The windows of a definition of this kind. Raises `KeyError` or `ValueError` if it isn't one."""
        size, every, offset = (microseconds(definition[name]) for name in ("size", "every", "offset"))
        return cls(size, every, offset % every)

    def contain(self, starts: np.ndarray, ends: np.ndarray) -> bool:
        """Whether all rows are in windows of this kind."""
        fit = (ends - starts == self.size_us) & ((starts - self.offset_us) % self.every_us == 0)
        return bool(fit.all())

    def fit_into(self, larger_us: int) -> bool:
        """Whether windows of `larger_us` can be made of these, as far as that doesn't depend on the rows."""
        return larger_us % self.size_us == 0

    def once_within(self, starts: np.ndarray, ends: np.ndarray, larger_us: int) -> np.ndarray | None:
        """A mask of the rows that make up windows of `larger_us` with each row of the stream in one of them.

        None means all. It depends on each row's own window alone, so tables may be judged in pieces. Raises
        `SketchError` if there are none.
        """
        check_inside(self, starts, ends, larger_us)
        return None

    def once_in_all(
        self, starts: np.ndarray, ends: np.ndarray, groups: Callable[[], np.ndarray]
    ) -> np.ndarray | None:
        """A mask of the rows that hold each row of the stream once over the whole span; None means all.

        `groups` numbers the rows by group. Raises `SketchError` if there are none.
        """
        return None

    def __str__(self) -> str:
        text = f"windows of {duration_text(self.size_us)}"
        return text + (f" from {duration_text(self.offset_us)} on" if self.offset_us else "")


ALL_TIME = -9_214_560_000_000_000, 9_214_646_400_000_000
"""The one window of tables without windows, 1678-01-01 to 2262-01-01: the widest that pandas can hold."""


@dataclass(frozen=True, slots=True)
class AllTime(TableWindows):
    """The one window of tables without windows."""

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
        """The one window."""
        return cls()

    def once_within(self, starts: np.ndarray, ends: np.ndarray, larger_us: int) -> np.ndarray | None:
        """Raises `SketchError`: it can't be cut."""
        every = duration_text(larger_us)
        raise SketchError(f"merge: this table has {self}, so it can't be cut into windows of {every}")

    def __str__(self) -> str:
        return "one window for all rows"


def check_inside(windows: TableWindows | None, starts: np.ndarray, ends: np.ndarray, size_us: int) -> None:
    """Raise `SketchError` if a row's window lies in two windows of `size_us`."""
    if bool((ends > starts - starts % size_us + size_us).any()):
        what = windows or f"windows of {duration_text(int((ends - starts).max()))}"
        raise SketchError(
            f"merge: {what} don't fit into windows of {duration_text(size_us)}; choose a multiple"
        )


def moment(time_us: int) -> str:
    """A time in words, to the second."""
    return str(np.datetime64(int(time_us), "us").astype("datetime64[s]")).replace("T", " ")
