"""Count items, both longs and strings, and look them up in the tables of `store`.

Rows are added strictly in order, so that the counters don't depend on the batches. Within a run of rows that
can't overfill a table, order doesn't matter: there, items found by the first probe are counted without a
branch before the others are looked up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.compilation.jit import inner, lean
from ..core.resume import DONE, NO_ROOM
from .store import LONG, NO_SCRATCH, can_purge, capacity, hashed, home, limit, purge_to_capacity, roomy
from .string_arena import keep_text, same_text, size_of

_STRETCH = 1024
"""Rows that are looked up together."""
_FEW = 24


class Rows(NamedTuple):
    """Items to count, by their two words; a string's bytes begin at `begins` in `data`.

    `groups` is empty if all items belong to group 0, `weights` if all are 1. For longs, `mores` and `begins`
    are the keys again. All arrays are read-only.
    """

    groups: np.ndarray
    keys: np.ndarray
    mores: np.ndarray
    begins: np.ndarray
    weights: np.ndarray
    data: np.ndarray


class Work(NamedTuple):
    """Scratch for a run of rows."""

    homes: np.ndarray
    missed: np.ndarray


def new_work() -> Work:
    """Return scratch for one caller."""
    return Work(np.empty(_STRETCH, np.uint64), np.empty(_STRETCH + 1, np.int64))


@inner
def find(tables, base, lg, key, more, data, begin):
    """Find the cell that counts an item, or the free cell where it belongs."""
    cells, width = tables.cells, len(tables.cell)
    end = base + (width << lg)
    at = base + width * home(key, more, tables.cell, lg)
    whole = more >= 0 or width == LONG  # the words are the complete item
    # Terminates, because `limit` leaves a cell free.
    while cells[at + 1] != 0:
        if (
            cells[at] == key
            and cells[at + width - 2] == more
            and (whole or same_text(tables.texts, cells[at + 3], data, begin, size_of(more)))
        ):
            break
        at += width
        if at == end:
            at = base
    return at


@inner
def insert(tables, base, lg, key, more, data, begin, weight):
    """Count one item in a table with room; 1 if it is new there, else 0."""
    cells, width = tables.cells, len(tables.cell)
    at = find(tables, base, lg, key, more, data, begin)
    new = np.int64(cells[at + 1] == 0)
    if new:
        cells[at] = key
        cells[at + width - 2] = more
        if more < 0 and width > LONG:
            cells[at + 3] = keep_text(tables, data, begin, size_of(more))
    cells[at + 1] += weight
    return new


@inner
def _count_hits(table, cell, lg, keys, mores, weights, work):
    """Count the items found in their first cell, without a branch; ``work.missed`` gets the other rows.

    Long strings are looked up with the others.
    """
    weighted, longs = len(weights) > 0, np.int64(len(cell) == LONG)
    shift, second = np.uint64(64 - lg), np.uint64(len(cell) - 2)
    homes, missed = work.homes[: len(keys)], work.missed
    for i in range(len(keys)):
        homes[i] = np.uint64(len(cell)) * (hashed(keys[i], mores[i], cell) >> shift)
    misses = np.uint64(0)
    for i in range(len(keys)):
        at = homes[i]
        same = np.int64(table[at] == keys[i]) & np.int64(table[at + second] == mores[i])
        hit = same & np.int64(table[at + np.uint64(1)] > 0) & (longs | np.int64(mores[i] >= 0))
        table[at + np.uint64(1)] += hit * (weights[i] if weighted else 1)
        missed[misses] = i
        misses += np.uint64(1 - hit)
    return np.int64(misses)


@inner
def _count(tables, g, rows, first, end, work):
    """Count a run of rows in a group whose table they can't overfill."""
    group, weighted = tables.groups[g], len(rows.weights) > 0
    keys, mores, begins = rows.keys[first:end], rows.mores[first:end], rows.begins[first:end]
    weights = rows.weights[first:end] if weighted else rows.weights
    base, lg, left, new = group.base, group.lg, end - first, np.int64(0)
    if left >= _FEW:
        table = tables.cells[base : base + (len(tables.cell) << lg)]
        left = _count_hits(table, tables.cell, lg, keys, mores, weights, work)
    for m in range(left):
        i = work.missed[m] if end - first >= _FEW else m
        each = weights[i] if weighted else np.int64(1)
        new += insert(tables, base, lg, keys[i], mores[i], rows.data, begins[i], each)
    group.active += new
    total = np.int64(end - first)
    if weighted:
        total = np.int64(0)
        for weight in weights:
            total += weight
    group.weight += total


@lean
def add(tables, rows, work, start):
    """Count rows from number `start` on, as a step of `resume`."""
    n, lg_max = len(rows.keys), tables.lg_max
    single = len(rows.groups) == 0
    i = start
    while i < n:
        g = np.int64(0) if single else rows.groups[i]
        group = tables.groups[g]
        if group.active > limit(group.lg, lg_max) and not roomy(tables, g):
            return i, NO_ROOM
        last = min(n, i + _STRETCH)
        end = last if single else i + 1
        while end < last and rows.groups[end] == g:
            end += 1
        # As many rows as there is room for if each is a new item: within these, order doesn't matter.
        end = i + max(min(end - i, limit(group.lg, lg_max) - group.active), 1)
        if group.active + end - i > capacity(lg_max) and not can_purge(tables, group.active + end - i):
            return i, NO_SCRATCH
        _count(tables, g, rows, i, end, work)
        if group.active > capacity(lg_max):
            purge_to_capacity(tables, g)
        i = end
    return n, DONE


@lean
def count_of(tables, g, rows):
    """Return the counter of a single item, 0 if it has none."""
    group = tables.groups[g]
    if group.lg == 0:
        return np.int64(0)
    at = find(tables, group.base, group.lg, rows.keys[0], rows.mores[0], rows.data, rows.begins[0])
    return tables.cells[at + 1]
