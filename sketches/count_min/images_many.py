"""Many count-min sketches from and to their bytes, in both formats: those of `images` and of `images_sparse`.

An image is taken here only if it is valid and of the groups' own depth, width and seed. What else is wrong
with one is told by `parse` and `parse_sparse`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.bits import swapped64
from ..core.java_random import next_ints
from ..core.jit import inner, lean
from ..core.resume import DONE, NO_ROOM
from ..core.words import load64, store64
from .images import header
from .images_sparse import CHECK, add_rows, are_rows, mark, put_rows, sparse_header
from .log import LINE, add_line, log_rows

REFUSED = 1
"""What `merge` calls the fault of an image that it can't take."""
_SPARSE_TOTAL, _DENSE_TOTAL = 9, 4
"""Where the sum of all weights is in the headers."""


class Headers(NamedTuple):
    """The bytes before the counters of a sketch without a count, sparse and Spark's own (uint8)."""

    sparse: np.ndarray
    dense: np.ndarray


class State(NamedTuple):
    """Tables and log of many groups (`LazyTables`), the log's bytes, and the sum of each group's weights."""

    tables: np.ndarray
    slots: np.ndarray
    totals: np.ndarray
    log: np.ndarray
    data: np.ndarray
    logged: np.ndarray


def headers(seed: int, depth: int, width: int) -> Headers:
    """Those of all sketches of one shape and seed."""
    both = sparse_header(seed, 0, depth, width), header(0, depth, width, next_ints(seed, depth))
    return Headers(*(np.frombuffer(one, np.uint8) for one in both))


@inner
def _begins(data, begin, head, total_at):
    """Whether an image begins with this header, whatever its total."""
    for i in range(len(head)):
        if data[begin + i] != head[i] and not total_at <= i < total_at + 8:
            return False
    return True


@inner
def _take_dense(data, begin, total, table):
    """Whether every row of Spark's counters, from `begin` on, adds up to `total`; if so they are added."""
    depth, width = table.shape
    for r in range(depth):
        first = begin + 8 * r * width
        left = total
        for c in range(width):
            count = np.int64(swapped64(load64(data, first + 8 * c)))
            if count < 0 or count > left:
                return False
            left -= count
        if left > 0:
            return False
    for r in range(depth):
        first = begin + 8 * r * width
        row = table[r]
        for c in range(width):
            row[c] += np.int64(swapped64(load64(data, first + 8 * c)))
    return True


@lean
def merge(state, lines, limit, heads, data, offsets, groups, sums, no_bits, at):
    """Add the counters of image i, from ``offsets[i]`` on, to group ``groups[i]``, from number `at` on.

    As `resume` has it, with the log's new length besides: it ends at an image that is `REFUSED`, or for which
    the log has no room. ``sums[i]`` is the check sum of a sparse image as it should be; a group that an image
    of Spark's size goes to has a table.
    """
    tables, slots, totals = state.tables, state.slots, state.totals
    depth, width = tables.shape[1], tables.shape[2]
    dense_size = len(heads.dense) + 8 * depth * width
    for i in range(at, len(groups)):
        begin, end = offsets[i], offsets[i + 1]
        g = groups[i]
        slot = slots[g]
        long = end - begin >= len(heads.sparse) + CHECK
        sparse = long and _begins(data, begin, heads.sparse, _SPARSE_TOTAL)
        if not sparse and (end - begin != dense_size or not _begins(data, begin, heads.dense, _DENSE_TOTAL)):
            return i, lines, REFUSED
        total_at = begin + (_SPARSE_TOTAL if sparse else _DENSE_TOTAL)
        total = np.int64(swapped64(load64(data, total_at)))
        if total < 0 or total >= limit - totals[g]:
            return i, lines, REFUSED
        if sparse:
            rows = data[begin + len(heads.sparse) : end - CHECK]
            check = swapped64(load64(data, end - 8)) & np.uint64(0xFFFFFFFF)
            if check != np.uint64(sums[i]) or not are_rows(rows, depth, width, total):
                return i, lines, REFUSED
            if slot >= 0:
                add_rows(tables[slot], no_bits, rows)
            else:
                if lines + 2 + len(rows) // LINE > len(state.log):
                    return i, lines, NO_ROOM
                after = log_rows(state.log, state.data, lines, g, rows)
                state.logged[g] += after - lines
                lines = after
        elif not _take_dense(data, begin + len(heads.dense), total, tables[slot]):
            return i, lines, REFUSED
        totals[g] += total
    return len(groups), lines, DONE


@inner
def _put_header(head, total, total_at, out, at):
    for i in range(len(head)):
        out[at + i] = head[i]
    store64(out, at + total_at, swapped64(np.uint64(total)))
    return at + len(head)


@inner
def _forget(table, touched):
    """Set what the bits say was counted to 0, and the bits."""
    depth, width = table.shape
    for r in range(depth):
        for w in range(touched.shape[1]):
            if touched[r, w]:
                table[r, 64 * w : min(64 * w + 64, width)] = 0
                touched[r, w] = 0


@lean
def write(state, n, order, firsts, factors, factor, shift, heads, scratch, touched, room, out, offsets, at):
    """The images of groups `at` to n − 1, g's from ``offsets[g]`` on, as `resume` has it.

    Check sums of sparse ones are left out. Lines ``order[firsts[g]:firsts[g + 1]]`` of the log are those of
    group g. `scratch` is a table without a count and `touched` its bits (`mark`). Sparse are rows that take
    at most `room` bytes.
    """
    depth, width = scratch.shape
    dense_size = len(heads.dense) + 8 * depth * width
    for g in range(at, n):
        if len(out) - offsets[g] < dense_size:
            return g, NO_ROOM
        slot = state.slots[g]
        table = state.tables[slot] if slot >= 0 else scratch
        if slot >= 0:
            mark(table, touched)
        else:
            for j in range(firsts[g], firsts[g + 1]):
                add_line(table, touched, state.log, state.data, order[j], factors, factor, shift)
        end = _put_header(heads.sparse, state.totals[g], _SPARSE_TOTAL, out, offsets[g])
        end = put_rows(table, touched, out, end, end + room)
        if end >= 0:
            end += CHECK
        else:
            end = _put_header(heads.dense, state.totals[g], _DENSE_TOTAL, out, offsets[g])
            for r in range(depth):
                for c in range(width):
                    store64(out, end, swapped64(np.uint64(table[r, c])))
                    end += 8
        offsets[g + 1] = end
        if slot >= 0:
            touched[:] = 0
        else:
            _forget(table, touched)
    return n, DONE
