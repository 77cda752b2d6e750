"""Rows brought together by their group, each group's in their order: a counting sort.

Kernels that take a stretch of one group at a time are several times faster than those that hop from table to
table, and what a group's table needs stays in the cache.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel


@kernel
def _count(groups, ends):
    """Rows a group into ``ends[1:]``; returns how often the group changes from one row to the next."""
    changes = 0
    last = groups[0]
    for i in range(len(groups)):
        g = groups[i]
        ends[g + 1] += 1
        changes += g != last
        last = g
    return changes


@kernel
def _fill(groups, ends, order):
    for g in range(1, len(ends)):
        ends[g] += ends[g - 1]
    for i in range(len(groups)):
        g = groups[i]
        order[ends[g]] = i
        ends[g] += 1


def by_group(groups: np.ndarray, n: int) -> np.ndarray | None:
    """The rows in the order of their groups (int64, below `n`), stable.

    None where it isn't worth it: they lie together already, or most groups have but a row or two.

    >>> by_group(np.array([1, 0] * 40), 2)[:3].tolist()
    [1, 3, 5]
    """
    if len(groups) < 64 or n > len(groups) // 2:
        return None
    ends = np.zeros(n + 1, np.int64)
    if 32 * _count(groups, ends) < len(groups):
        return None
    order = np.empty(len(groups), np.int64)
    _fill(groups, ends, order)
    return order
