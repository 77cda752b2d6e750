"""Which windows a table of sketches has, and which of its rows may be merged.

Overlapping windows hold some rows of the stream twice, so a sum over them would count those twice. Windows
that end where a group has rows ("trailing") can't be put end to end at all. Sessions hold each row once, but
are of any length. A table's schema says in its metadata which windows it has; where that was lost, as in
Spark's SQL, the rows tell.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa

from ...sketches.core.columns import as_array
from ...sketches.core.protocol import SketchError
from ..definition.aggregate import METADATA
from ..definition.durations import microseconds, written
from ..definition.windows import ByCount, Session, Sliding, Window
from ..sketching.grouping import GroupIndex

START, END = "window_start", "window_end"

ALL_TIME = -9_214_560_000_000_000, 9_214_646_400_000_000
"""The one window of tables without windows, 1678-01-01 to 2262-01-01: the widest that pandas can hold."""

Kind = Literal["tumbling", "sliding", "trailing", "session", "count", "all"]


@dataclass(frozen=True, slots=True)
class TableWindows:
    """Windows of one length (microseconds) that begin at `offset_us` and every `slide_us` from there.

    Of sessions, `length_us` is the gap, which each is at least as long as; of windows by count it is a
    number of rows.

    >>> TableWindows.of(120_000_000, 60_000_000).definition()
    {'kind': 'sliding', 'length': '2m', 'slide': '1m', 'offset': '0s'}
    """

    kind: Kind
    length_us: int
    slide_us: int
    offset_us: int = 0

    @classmethod
    def of(cls, length_us: int, slide_us: int | None = None, offset_us: int = 0) -> Self:
        """Tumbling windows, or sliding ones if a slide is given."""
        slide_us = length_us if slide_us is None else slide_us
        kind: Kind = "tumbling" if slide_us == length_us else "sliding"
        return cls(kind, length_us, slide_us, offset_us % slide_us)

    @classmethod
    def of_kind(cls, window: Window) -> Self:
        """The windows of a stream's table."""
        if isinstance(window, Session):
            return cls("session", window.gap_us, 1)
        if isinstance(window, ByCount):
            return cls("count", window.rows, 1)
        if isinstance(window, Sliding):
            return cls("trailing", window.size_us, window.every_us, window.size_us % window.every_us)
        return cls.of(window.size_us, window.every_us)

    @classmethod
    def all_time(cls) -> Self:
        """The one window of tables without windows."""
        first, end = ALL_TIME
        return cls("all", end - first, end - first, first)

    def definition(self) -> dict[str, str]:
        """As plain JSON."""
        if self.kind == "all":
            return {"kind": "all"}
        if self.kind == "session":
            return {"kind": "session", "gap": written(self.length_us)}
        if self.kind == "count":
            return {"kind": "count", "rows": str(self.length_us)}
        lengths = {"length": self.length_us, "slide": self.slide_us, "offset": self.offset_us}
        return {"kind": self.kind, **{name: written(length) for name, length in lengths.items()}}

    @classmethod
    def from_definition(cls, found: Any) -> Self:
        """The windows of a definition. Raises `SketchError` if it is not one."""
        try:
            if found["kind"] == "all":
                return cls.all_time()
            if found["kind"] == "session":
                return cls("session", microseconds(found["gap"]), 1)
            if found["kind"] == "count":
                return cls("count", int(found["rows"]), 1)
            if found["kind"] == "trailing":
                return replace(cls._read(found), kind="trailing")
            return cls._read(found)
        except (TypeError, KeyError, ValueError, ZeroDivisionError):
            raise SketchError(f"{found!r} doesn't define a table's windows") from None

    @classmethod
    def _read(cls, found: Any) -> Self:
        return cls.of(*(microseconds(found[name]) for name in ("length", "slide", "offset")))

    def hold(self, starts: np.ndarray, ends: np.ndarray) -> bool:
        """Whether all rows are in windows of this kind."""
        if self.kind == "session":
            return bool((ends - starts >= self.length_us).all())
        if self.kind == "count":
            return True
        fit = (ends - starts == self.length_us) & ((starts - self.offset_us) % self.slide_us == 0)
        return bool(fit.all())

    def __str__(self) -> str:
        if self.kind == "all":
            return "one window for all rows"
        if self.kind == "session":
            return f"sessions with a gap of {written(self.length_us)}"
        if self.kind == "count":
            return f"windows of {self.length_us} rows"
        told = f"windows of {written(self.length_us)}"
        if self.kind == "trailing":
            return f"{told} that end where a group has rows"
        if self.kind == "sliding":
            told += f" every {written(self.slide_us)}"
        return told + (f" from {written(self.offset_us)} on" if self.offset_us else "")


def windows_told(schema: pa.Schema) -> TableWindows | None:
    """The windows that a table's metadata names; None if it names none."""
    told = json.loads((schema.metadata or {}).get(METADATA, b"{}")).get("windows")
    return None if told is None else TableWindows.from_definition(told)


def windows_in(table: pa.Table) -> TableWindows | None:
    """The windows that a table's metadata names; None if it names none, or if rows are in other windows."""
    told = windows_told(table.schema)
    return told if told is not None and told.hold(*edges(table)) else None


def edges(table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """The start and the end of each row's window (int64 microseconds)."""
    starts, ends = (as_array(table.column(name)).view(pa.int64()).to_numpy() for name in (START, END))
    return starts, ends


def within(table: pa.Table, keys: Sequence[str], size_us: int) -> np.ndarray | None:
    """A mask of the rows that make up windows of `size_us` with each row of the stream in one of them.

    None means all rows, as with windows side by side; of overlapping ones, those that lie end to end. Raises
    `SketchError` if none do, and for windows that don't fit into the larger ones, such as a session over two
    of them.
    """
    starts, ends = edges(table)
    windows = windows_in(table)
    every = written(size_us)
    if windows is not None and windows.kind == "all":
        raise SketchError(f"merge: this table has {windows}, so it can't be cut into windows of {every}")
    if windows is not None and windows.kind == "sliding":
        if size_us % windows.length_us:
            raise SketchError(
                f"merge: {windows} don't fit into windows of {every}; choose a multiple of their length"
            )
        if windows.length_us % windows.slide_us or windows.offset_us % windows.slide_us:
            raise SketchError(
                f"merge: {windows} overlap, and none of them lie end to end in windows of {every}: some rows "
                "would count twice or not at all; sketch tumbling windows for that"
            )
        return starts % windows.length_us == 0
    if windows is None or windows.kind == "trailing":
        check_apart(table, keys)
    if bool((ends > starts - starts % size_us + size_us).any()):
        told = windows or f"windows of {written(int((ends - starts).max()))}"
        raise SketchError(f"merge: {told} don't fit into windows of {every}; choose a multiple")
    return None


def end_to_end(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    """The rows of a table that together hold each row of the stream once, over its whole span.

    Raises `SketchError` if windows overlap and don't lie end to end from the first to the last.
    """
    windows = windows_in(table)
    if windows is None or windows.kind == "trailing":
        check_apart(table, keys)
    if windows is None or windows.kind != "sliding" or not table.num_rows:
        return table
    starts, ends = edges(table)
    first, last = int(starts.min()), int(ends.max())
    if (last - first) % windows.length_us or windows.length_us % windows.slide_us:
        raise SketchError(
            f"{windows} overlap, and those from {_moment(first)} on do not lie end to end up to "
            f"{_moment(last)}; choose a span that is a multiple of {written(windows.length_us)}"
        )
    return table.filter(pa.array((starts - first) % windows.length_us == 0))


def check_apart(table: pa.Table, keys: Sequence[str]) -> None:
    """Raise `SketchError` if different windows of one group overlap."""
    starts, ends = edges(table)
    groups = GroupIndex().number(np.zeros(len(starts), np.int64), [as_array(table.column(k)) for k in keys])
    order = np.lexsort((ends, starts, groups))
    groups, starts, ends = groups[order], starts[order], ends[order]
    same = (starts[1:] == starts[:-1]) & (ends[1:] == ends[:-1])
    at = np.flatnonzero((groups[1:] == groups[:-1]) & ~same & (starts[1:] < ends[:-1]))
    if len(at):
        one, other = (f"{_moment(starts[i])} to {_moment(ends[i])}" for i in (at[0], at[0] + 1))
        raise SketchError(
            f"the windows {one} and {other} of one group overlap, and the table's metadata doesn't say "
            "that they lie end to end: rows that are in both would count twice; keep only windows that don't "
            "overlap"
        )


def not_covered(table: pa.Table, later: pa.Table) -> np.ndarray:
    """A mask of the rows of a table that lie in no window of the same group in a later one.

    The later table's own windows of one group must not cover each other.
    """
    keys, index = table.schema.names[2 : len(table.schema) - len(_aggregates(table.schema))], GroupIndex()
    both = [later, table]
    own = [
        index.number(np.zeros(one.num_rows, np.int64), [as_array(one.column(key)) for key in keys])
        for one in both
    ]
    times = [edges(one) for one in both]
    old = np.repeat([False, True], [later.num_rows, table.num_rows])
    groups = np.concatenate(own)
    starts, ends = (np.concatenate([time[at] for time in times]) for at in (0, 1))
    order = np.lexsort((old, starts, groups))
    groups, ends, old_sorted = groups[order], ends[order], old[order]
    # The last of the later windows that begins no later, if it is of the same group.
    last = np.maximum.accumulate(np.where(old_sorted, -1, np.arange(len(order))))
    covered = (last >= 0) & old_sorted & (groups[last] == groups) & (ends[last] >= ends)
    found = np.empty(len(order), bool)
    found[order] = covered
    return ~found[later.num_rows :]


def _aggregates(schema: pa.Schema) -> list[str]:
    return [field.name for field in schema if field.metadata and METADATA in field.metadata]


def _moment(time_us: int) -> str:
    return str(np.datetime64(int(time_us), "us").astype("datetime64[s]")).replace("T", " ")
