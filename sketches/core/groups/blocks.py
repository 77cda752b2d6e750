"""Ranges of neighbouring groups that are processed at once, so that temporary arrays stay small."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

_MOST_GROUPS = 1 << 16


def blocks(sizes: np.ndarray, at_once: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of groups whose sizes add up to `at_once` at most, or a single group; at most 65,536.

    >>> list(blocks(np.array([4, 5, 12, 1]), at_once=10))
    [(0, 2), (2, 3), (3, 4)]
    """
    ends, first = np.cumsum(sizes, dtype=np.int64), 0
    while first < len(sizes):
        before = int(ends[first - 1]) if first else 0
        end = int(np.searchsorted(ends, before + at_once, "right"))
        yield first, (end := min(max(end, first + 1), first + _MOST_GROUPS))
        first = end
