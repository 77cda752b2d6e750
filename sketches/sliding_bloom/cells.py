"""Cells of one byte, each with the time it was last set, in blocks of 256: a Bloom filter's bits with times.

A value selects one block and one cell in each of its eight lanes of 32, as in a blocked Bloom filter
(`bloom.update`). Time is divided into steps of `width` microseconds. A cell holds 0 or the number of the last
step that set it, counted from its sketch's `base`: the step before the first step of the window. Other values
can only make a cell's step later, so the earliest of a value's eight steps is never before the value's own
step: a value isn't forgotten too soon.

A window has at most 128 steps and a cell counts to 255, so `base` has to move about once per window.

Source: Kong, He, Shao, Gui, Cheng, "Time-Out Bloom Filter: A New Sampling Method for Recording More Flows",
ICOIN 2006; the blocks are those of Putze, Sanders and Singler (2007).
"""

from __future__ import annotations

import numpy as np

from ..bloom.update import bit_of, block_of
from ..core.compilation.jit import inner, lean

LANES = 8
LANE = 32
CELLS = LANES * LANE
"""Cells in a block."""
STEPS = 128
"""The number of steps in a window."""
MOST = 255
"""The largest step that a cell can hold."""
NEVER = -(1 << 63)
LATEST, BASE = 0, 1
"""The fields of a sketch's head: the latest time seen, and the step from which its cells count."""
NOTHING = (NEVER, NEVER)
"""The head of an empty sketch."""


def width_of(window_us: int) -> int:
    """Return the length of a step in microseconds: 1/128 of the window, rounded up.

    >>> width_of(3_600_000_000), width_of(1)
    (28125000, 1)
    """
    return -(-window_us // STEPS)


def first_step(latest_us: int, window_us: int) -> int:
    """Return the first step with times later than a window before the latest time."""
    return (latest_us - window_us + 1) // width_of(window_us)


@inner
def cell_of(key, blocks, j):
    """Return the key's cell in lane `j`."""
    return block_of(key, blocks) * CELLS + j * LANE + np.int64(bit_of(key, j))


@inner
def _age(cells, by):
    """Move the base of all cells' steps by `by` steps."""
    if by >= MOST:
        for i in range(len(cells)):
            cells[i] = np.uint8(0)
        return
    less = np.uint8(by)
    for i in range(len(cells)):
        cells[i] = max(cells[i], less) - less


@inner
def _rebase(cells, head, width, window):
    """Move the base to the beginning of the latest time's window."""
    base = (head[LATEST] - window + 1) // width - 1
    if head[BASE] != NEVER:
        _age(cells, base - head[BASE])
    head[BASE] = base


@inner
def _set(cells, head, key, time, width, window):
    """Record a value at a time that the head has seen."""
    step = time // width
    if head[BASE] == NEVER or head[LATEST] // width - head[BASE] > MOST:
        _rebase(cells, head, width, window)
    number = step - head[BASE]
    if number < 1:  # before the window of a later row
        return
    mark, blocks = np.uint8(number), len(cells) // CELLS
    for j in range(LANES):
        at = cell_of(key, blocks, j)
        cells[at] = max(cells[at], mark)


@lean
def add_grouped(tables, slots, heads, groups, keys, times, width, window, log, lines, logged):
    """Record values in their groups' cells, or as lines (group, key, time) of the log for groups without.

    Returns the length of the log.
    """
    for i in range(len(keys)):
        g, time = groups[i], times[i]
        heads[g, LATEST] = max(heads[g, LATEST], time)
        if slots[g] < 0:
            log[lines, 0] = g
            log[lines, 1] = keys[i]
            log[lines, 2] = time
            lines += 1
            logged[g] += 1
        else:
            _set(tables[slots[g]], heads[g], keys[i], time, width, window)
    return lines


@lean
def replay(tables, slots, heads, log, width, window, keep):
    """Record the log's lines of groups with cells in these; return how many lines are left.

    The other lines are moved to the front, unless `keep` preserves the log.
    """
    left = 0
    for i in range(len(log)):
        g = log[i, 0]
        s = slots[g]
        if s >= 0:
            _set(tables[s], heads[g], log[i, 1], log[i, 2], width, window)
        elif not keep:
            for w in range(log.shape[1]):
                log[left, w] = log[i, w]
            left += 1
    return left


@lean
def fold(cells, head, their_cells, their_latest, width, window):
    """Merge another sketch's cells, which count from the beginning of its own latest time's window."""
    head[LATEST] = max(head[LATEST], their_latest)
    _rebase(cells, head, width, window)
    later = head[BASE] - (
        (their_latest - window + 1) // width - 1
    )  # never negative: its window began earlier
    if later >= MOST:
        return
    less = np.uint8(later)
    for i in range(len(cells)):
        cells[i] = max(cells[i], max(their_cells[i], less) - less)


@lean
def trim(cells, head, width, window):
    """Count from the beginning of the latest time's window, and forget earlier steps."""
    if head[LATEST] != NEVER:
        _rebase(cells, head, width, window)


@lean
def places(keys, blocks, cells):
    """Return every key's eight cells, one row per key."""
    for i in range(len(keys)):
        for j in range(LANES):
            cells[i, j] = cell_of(keys[i], blocks, j)


@lean
def earliest(cells, keys, steps):
    """Find for every key the earliest step of its cells, 0 if one was never set."""
    blocks = len(cells) // CELLS
    for i in range(len(keys)):
        least = np.uint8(MOST)
        for j in range(LANES):
            least = min(least, cells[cell_of(keys[i], blocks, j)])
        steps[i] = least


@lean
def chance(cells, first):
    """Return the mean over blocks of the product of their lanes' shares of cells set in step `first` or
    later.

    This is the probability that a random value is found.
    """
    total = 0.0
    for begin in range(0, len(cells), CELLS):
        share = 1.0
        for j in range(LANES):
            n = 0
            for at in range(begin + j * LANE, begin + (j + 1) * LANE):
                n += cells[at] >= first
            share *= n / LANE
        total += share
    return total / (len(cells) // CELLS)
