"""Regions for many groups, side by side in arrays that grow together.

Each group owns a region, `size` places from `start` on, in one array or in several of the same length. A
group that outgrows its region moves to a larger one at the end and leaves a gap. If a kernel finds no room,
it stops without having changed anything and reports it; Python then compacts the regions into larger arrays
(`packed`), and the kernel continues (`resume`). Two thirds of the new arrays are free, so on average a place
is copied a bounded number of times, however many regions there are; memory that was never written costs
nothing.

The fields of each group, including its `start`, are a row of a record array (`with_rows`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..compilation.jit import inner, lean

EXTENT = np.dtype([("used", np.int64), ("wanted", np.int64)])
"""The number of places that are used or gaps, and the number requested when room last ran out."""


def new_extent() -> np.ndarray:
    """Return the extent of an empty arena: an array of one `EXTENT`."""
    return np.zeros(1, EXTENT)


@inner
def allocate(extent, size, room):
    """Allocate `size` places after the last region, out of `room`; return the first, −1 if too few remain."""
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
        # With slices: a loop over slices compiles to a memory copy, one over whole arrays goes byte by byte.
        region, place = source[starts[g] : starts[g] + sizes[g]], target[at : at + sizes[g]]
        for i in range(len(region)):
            place[i] = region[i]
        at += sizes[g]


def packed(
    arrays: tuple[np.ndarray, ...], extent: np.ndarray, start: np.ndarray, size: np.ndarray, more: int = 0
) -> tuple[np.ndarray, ...]:
    """Return larger arrays with the regions one after another, in the order of their groups.

    `start` and `size` have a number for each group (size 0 means no region); `start` is updated to the new
    positions, and `extent` to the places used. There is room for what a kernel requested, for `more` places,
    and for twice as many as are used. Unused places have arbitrary content.

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
        # As bytes, so that one kernel handles arrays of every type.
        width = array.itemsize
        grown = np.empty(room, array.dtype)
        _gather(array.view(np.uint8), starts * width, sizes * width, grown.view(np.uint8))
        larger.append(grown)
    start[:] = ends - sizes
    extent["used"], extent["wanted"] = used, 0
    return tuple(larger)


def with_rows(rows: np.ndarray, n: int, empty: Callable[[int, int], np.ndarray]) -> np.ndarray:
    """Return at least `n` rows: the existing ones, and new ones from `empty(first, end)`.

    If there are too few, it adds at least half as many again, so that growing by one at a time is cheap.

    >>> rows = with_rows(np.array([7]), 2, lambda first, end: np.zeros(end - first, int))
    >>> rows.tolist()
    [7, 0]
    """
    if n <= len(rows):
        return rows
    end = max(n, len(rows) * 3 // 2)
    return np.concatenate([rows, empty(len(rows), end)])
