"""Sort rows by group with a stable counting sort.

Kernels that process a run of one group at a time are several times faster than kernels that jump from table
to table, because a group's table stays in the cache.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from ..compilation.jit import lean
from .group_numbers import as_groups, frozen

Numbers = TypeVar("Numbers", bound=np.ndarray)


@lean
def _changes(groups):
    """Count how often the group changes from one row to the next."""
    n_changes = np.int64(0)
    for i in range(1, len(groups)):
        n_changes += groups[i] != groups[i - 1]
    return n_changes


@lean
def _order(groups, values, ends, out):
    """Write `values` to `out` by group; ``ends[g]`` (zeros, one more than groups) becomes the end of g's.

    Returns False, without an order, if a group number is out of range.
    """
    n = np.uint64(len(ends) - 1)
    for i in range(len(groups)):
        ends[min(np.uint64(groups[i]), n)] += 1
    if ends[n] > 0:
        return False
    before = np.int64(0)
    for g in range(len(ends)):
        count = ends[g]
        ends[g] = before
        before += count
    for i in range(len(values)):
        group = np.uint64(groups[i])  # signed indexes would be checked for being negative
        place = ends[group]
        out[np.uint64(place)] = values[i]
        ends[group] = place + 1
    return True


def by_group(groups: np.ndarray, values: Numbers, n: int) -> tuple[np.ndarray, Numbers]:
    """Sort values by group, stably; return where each of the `n` groups ends (int64), and the values.

    `groups` holds the group of each value (int64), `values` numbers of 4 or 8 bytes. Raises `IndexError` for
    a group number outside 0 … n − 1.

    >>> ends, ordered = by_group(np.array([1, 0, 1]), np.array([2.5, 3.5, 4.5]), 2)
    >>> ends.tolist(), ordered.tolist()
    ([1, 3], [3.5, 2.5, 4.5])
    """
    ends, ordered = np.zeros(n + 1, np.int64), np.empty_like(values)
    bits = f"u{values.itemsize}"  # move raw bits: one kernel for all numbers of a size
    if not _order(frozen(groups), frozen(values.view(bits)), ends, ordered.view(bits)):
        as_groups(groups, len(groups), n)
    return ends[:-1], ordered


def is_scattered(groups: np.ndarray, n: int) -> bool:
    """Whether sorting rows by group pays: they aren't contiguous, and most of `n` groups have several.

    >>> is_scattered(np.array([1, 0] * 40), 2), is_scattered(np.repeat([0, 1], 40), 2)
    (True, False)
    """
    return 64 <= len(groups) >= 2 * n and 32 * int(_changes(frozen(groups))) >= len(groups)
