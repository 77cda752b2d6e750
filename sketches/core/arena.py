"""Regions of many groups, side by side in arrays that grow together.

Each group owns a region, `size` places from `start` on, in one array or in several of one length. One that
outgrows its region takes a larger one behind the last and leaves a gap. Where a kernel finds no room it
stops, having changed nothing, and says so; Python brings the regions together in larger arrays (`packed`),
and the kernel goes on (`resume`). Two thirds of what they then hold is free, so a place is copied a bounded
number of times on average, however many regions there are; memory not yet written to costs nothing.

What there is of each group, its `start` among it, is a row of a record array (`with_rows`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .jit import inner, lean

EXTENT = np.dtype([("used", np.int64), ("wanted", np.int64)])
"""How many places are used or left as gaps, and how many were wanted when last there was no room."""


def new_extent() -> np.ndarray:
    """The extent of an arena in which nothing is used: an array of one `EXTENT`."""
    return np.zeros(1, EXTENT)


@inner
def allocate(extent, size, room):
    """The first of `size` places behind the last region, of `room` in all; −1 if there are too few."""
    at = extent[0].used
    if at + size > room:
        extent[0].wanted = size
        return np.int64(-1)
    extent[0].used = at + size
    return at


@lean
def _gather(source, starts, sizes, target):
    at = np.int64(0)
    for g in range(len(starts)):
        # Of slices, as a loop over them is compiled to a copy, and one over both arrays goes byte by byte.
        region, place = source[starts[g] : starts[g] + sizes[g]], target[at : at + sizes[g]]
        for i in range(len(region)):
            place[i] = region[i]
        at += sizes[g]


def packed(
    arrays: tuple[np.ndarray, ...], extent: np.ndarray, start: np.ndarray, size: np.ndarray, more: int = 0
) -> tuple[np.ndarray, ...]:
    """Larger arrays with the regions one after another, in the order of their groups.

    `start` and `size` have a number for each group (a size of 0: it has no region); `start` is changed to
    where the regions are now, and `extent` to what is used. There is room for what a kernel wanted, for
    `more` places, and for twice as many as are used. Places behind those used hold anything.

    >>> extent, start = new_extent(), np.array([4, 0])
    >>> (places,) = packed((np.array([1, 2, 0, 0, 3]),), extent, start, np.array([1, 2]), more=10)
    >>> places[: extent["used"][0]].tolist(), start.tolist(), len(places)
    ([3, 1, 2], [0, 1], 13)
    """
    sizes = np.ascontiguousarray(size, np.int64)
    ends = np.cumsum(sizes)
    used = int(ends[-1]) if len(ends) else 0
    room = used + max(2 * used, more, int(extent["wanted"][0]))
    starts = np.ascontiguousarray(start, np.int64)
    larger = []
    for array in arrays:
        # As bytes, so that one kernel serves arrays of every type.
        width = array.itemsize
        grown = np.empty(room, array.dtype)
        _gather(array.view(np.uint8), starts * width, sizes * width, grown.view(np.uint8))
        larger.append(grown)
    start[:] = ends - sizes
    extent["used"], extent["wanted"] = used, 0
    return tuple(larger)


def with_rows(rows: np.ndarray, n: int, empty: Callable[[int, int], np.ndarray]) -> np.ndarray:
    """At least `n` rows: those there are, and new ones as `empty(first, end)` gives them.

    Where there are too few, at least half as many again are made, so that growing by one at a time is cheap.

    >>> rows = with_rows(np.array([7]), 2, lambda first, end: np.zeros(end - first, int))
    >>> rows.tolist()
    [7, 0]
    """
    if n <= len(rows):
        return rows
    end = max(n, len(rows) * 3 // 2)
    return np.concatenate([rows, empty(len(rows), end)])
