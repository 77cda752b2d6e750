"""Rank counters from the largest on, ties by the items' words.

A heap finds a few counters without sorting all; if all are requested, it sorts them.
"""

from __future__ import annotations

import numpy as np

from ..core.compilation.jit import inner, lean


@inner
def _before(cells, second, a, b):
    """Whether the counter in the cell at word `a` comes before that at `b`."""
    if cells[a + 1] != cells[b + 1]:
        return cells[a + 1] > cells[b + 1]
    if cells[a] != cells[b]:
        return cells[a] < cells[b]
    return cells[a + second] < cells[b + second]


@inner
def _sift(cells, second, heap, n, at, cell):
    """Put a cell at place `at` of a heap of `n`, and move it down as far as it belongs."""
    below = 2 * at + 1
    while below < n:
        if below + 1 < n and _before(cells, second, heap[below + 1], heap[below]):
            below += 1
        if not _before(cells, second, heap[below], cell):
            break
        heap[at] = heap[below]
        at = below
        below = 2 * at + 1
    heap[at] = cell


@inner
def ranked(tables, g, k, heap, out):
    """Fill `out` with the cells of a group's `k` largest counters, in order, and of ties with the last.

    Returns how many; `heap` and `out` have room for all of the group's counters.
    """
    group, cells, width = tables.groups[g], tables.cells, len(tables.cell)
    if group.active == 0:
        return np.int64(0)
    n = np.int64(0)
    for at in range(group.base, group.base + (width << group.lg), width):
        if cells[at + 1] != 0:
            heap[n] = at
            n += 1
    for at in range(n // 2 - 1, -1, -1):
        _sift(cells, width - 2, heap, n, at, heap[at])
    n_ranked = np.int64(0)
    while n > 0 and (n_ranked < k or (n_ranked > 0 and cells[heap[0] + 1] == cells[out[n_ranked - 1] + 1])):
        out[n_ranked] = heap[0]
        n_ranked += 1
        n -= 1
        _sift(cells, width - 2, heap, n, 0, heap[n])
    return n_ranked


@lean
def rank(tables, first, k, heap, out, n_ranked):
    """Apply `ranked` to the groups from `first` on, concatenated in `out`; `n_ranked` gets the counts."""
    at = np.int64(0)
    for i in range(len(n_ranked)):
        n_ranked[i] = ranked(tables, first + i, k, heap, out[at:])
        at += n_ranked[i]
    return at
