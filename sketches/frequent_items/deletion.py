"""Delete rows from the tables of `store`.

A deletion lowers the item's counter; deletions of an item without a counter are ignored. Since an item is not
deleted more often than it was added, counters remain lower bounds, and counters plus offset upper bounds.

Source: Zhao, Maiyya, Wiener, Agrawal and El Abbadi, "SpaceSaving±: An Optimal Algorithm for Frequency
Estimation and Frequent Items in the Bounded-Deletion Model", VLDB 2021 (the lazy variant).
"""

from __future__ import annotations

import numpy as np

from ..core.compilation.jit import inner, lean
from .store import home
from .update import find


@inner
def _free(cells, base, lg, cell, at):
    """Empty the cell at word `at`, and close the gap so that every search still ends at a free cell."""
    width, mask = len(cell), (np.int64(1) << lg) - 1
    gap = (at - base) // width
    q = (gap + 1) & mask
    while cells[base + width * q + 1] != 0:
        here = base + width * q
        first = home(cells[here], cells[here + width - 2], cell, lg)
        if ((q - first) & mask) >= ((q - gap) & mask):
            for w in range(width):
                cells[base + width * gap + w] = cells[here + w]
            gap = q
        q = (q + 1) & mask
    for w in range(width):
        cells[base + width * gap + w] = 0


@lean
def delete(tables, rows):
    """Delete rows one by one."""
    cells = tables.cells
    for i in range(len(rows.keys)):
        group = tables.groups[np.int64(0) if len(rows.groups) == 0 else rows.groups[i]]
        each = rows.weights[i] if len(rows.weights) > 0 else np.int64(1)
        group.weight -= each
        if group.lg > 0:
            at = find(tables, group.base, group.lg, rows.keys[i], rows.mores[i], rows.data, rows.begins[i])
            if cells[at + 1] > each:
                cells[at + 1] -= each
            elif cells[at + 1] > 0:
                _free(cells, group.base, group.lg, tables.cell, at)
                group.active -= 1
        if group.weight == 0 and group.active == 0:
            group.offset = 0  # nothing is left, so every frequency is known to be 0


@lean
def overdrawn(tables, groups):
    """Return the first group whose counters exceed its weight, −1 if none: it deleted rows never added."""
    for g in groups:
        group = tables.groups[g]
        counted = np.int64(0)
        if group.lg > 0:
            for at in range(group.base, group.base + (len(tables.cell) << group.lg), len(tables.cell)):
                counted += tables.cells[at + 1]
        if counted > group.weight:
            return g
    return np.int64(-1)
