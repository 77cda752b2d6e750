"""The log of count-min sketches without a table of counters: counted values, and merged rows.

A line is `WORDS` int64: (group, key, weight, type of line). Rows of counters are stored in the format of
`images_sparse`, which takes a fraction of the counters' size.
"""

from __future__ import annotations

import numpy as np

from ..core.compilation.jit import inner, lean
from .images_sparse import add_rows, count_in
from .update import PAIR, ROWS, bucket, pair_bucket

LINE = 32
"""The number of bytes of a line."""


@inner
def lines_of(log, i):
    """Return the number of lines that the entry at line i occupies."""
    return 1 + (log[i, 1] + LINE - 1) // LINE if log[i, 3] == ROWS else np.int64(1)


@inner
def add_line(table, touched, log, data, i, factors, factor, shift):
    """Add line i of a log, whose bytes are `data`, to a table; `touched` as for `add_rows`."""
    depth, width = table.shape
    wide = np.uint64(width)
    key, each, kind = log[i, 1], log[i, 2], log[i, 3]
    if kind == ROWS:
        first = LINE * (i + 1)
        add_rows(table, touched, data[first : first + key])
        return
    for r in range(depth):
        if kind == PAIR:
            c = pair_bucket(key, r, wide, factor, shift)
        else:
            c = bucket(key, factors[r], wide, factor, shift)
        count_in(table, touched, r, c, each)


@inner
def log_rows(log, data, lines, g, rows):
    """Append rows of counters to the log, which has room; return the log's new length."""
    log[lines, 0], log[lines, 1], log[lines, 2], log[lines, 3] = g, len(rows), 0, ROWS
    first = LINE * (lines + 1)
    for i in range(len(rows)):
        data[first + i] = rows[i]
    return lines + lines_of(log, lines)


@lean
def replay(tables, slots, log, data, factors, factor, shift, touched, keep):
    """Add the log's lines of groups that have a table to it; returns how many lines are left.

    The other lines are moved to the front, unless `keep` preserves the log.
    """
    left = np.int64(0)
    i = np.int64(0)
    while i < len(log):
        s = slots[log[i, 0]]
        next_line = i + lines_of(log, i)
        if s >= 0:
            add_line(tables[s], touched, log, data, i, factors, factor, shift)
        elif not keep:
            for line in range(i, next_line):
                for w in range(log.shape[1]):
                    log[left, w] = log[line, w]
                left += 1
        i = next_line
    return left


@lean
def by_group(log, firsts, order):
    """The lines of group g are ``order[firsts[g]:firsts[g + 1]]``; returns how many there are in all."""
    n = len(firsts) - 1
    firsts[:] = 0
    i = np.int64(0)
    while i < len(log):
        firsts[log[i, 0] + 1] += 1
        i += lines_of(log, i)
    for g in range(n):
        firsts[g + 1] += firsts[g]
    i = np.int64(0)
    while i < len(log):
        g = log[i, 0]
        order[firsts[g]] = i
        firsts[g] += 1
        i += lines_of(log, i)
    for g in range(n, 0, -1):
        firsts[g] = firsts[g - 1]
    firsts[0] = 0
    return firsts[n]
