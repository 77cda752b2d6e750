"""Read and write many count-min sketches in both formats, those of `images` and `images_sparse`.

An image is accepted here only if it is valid and has the groups' own depth, width and seed. `parse` and
`parse_sparse` report what is wrong with other images.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from ..core.compilation.jit import inner, lean
from ..core.hashing.bits import swapped64
from ..core.hashing.java_random import next_ints, seeds_of
from ..core.hashing.words import load32, load64, store64
from ..core.resume import DONE, NO_ROOM
from ..core.values.item_kinds import ARE_KINDS
from .images import SEED_SIZE, UNKNOWN, header, tail
from .images_sparse import CHECK, KIND_AT, SEED_AT, add_rows, are_rows, mark, put_rows, sparse_header
from .log import LINE, add_line, log_rows

REFUSED = 1
"""The fault that `merge` returns for an image that it can't merge."""
_SPARSE_TOTAL, _DENSE_TOTAL = 9, 4
"""The position of the sum of all weights in the headers."""
_UNKNOWN = UNKNOWN[0]
MOST_TAIL = 1 + SEED_SIZE
"""The most bytes that can follow Spark's."""


class Headers(NamedTuple):
    """The headers of a sketch with zero weight, sparse and Spark's own (uint8); what follows Spark's
    counters,
    also for an empty sketch; and all seeds of the same hash functions, as the big-endian words of an image
    (uint32)."""

    sparse: np.ndarray
    dense: np.ndarray
    tail: np.ndarray
    empty_tail: np.ndarray
    seeds: np.ndarray


class State(NamedTuple):
    """Tables and log of many groups (`LazyTables`), the log's bytes, and the sum of each group's weights."""

    tables: np.ndarray
    slots: np.ndarray
    totals: np.ndarray
    log: np.ndarray
    data: np.ndarray
    logged: np.ndarray


@cache
def headers(seed: int, depth: int, width: int, item_kind: str | None = None) -> Headers:
    """Return the headers for sketches of one shape, seed and kind of items."""
    factors = next_ints(seed, depth)
    before = sparse_header(seed, 0, depth, width, item_kind), header(0, depth, width, factors)
    behind = tail(seed, depth, item_kind), tail(seed, depth, None)
    seeds = np.array(seeds_of(factors), ">i4").view(np.uint32)
    sparse, dense, end, empty_end = (np.frombuffer(one, np.uint8) for one in (*before, *behind))
    return Headers(sparse, dense, end, empty_end, seeds)


@inner
def _begins(data, begin, head, total_at):
    """Whether an image begins with this header, whatever its total, seed and the kind of its items."""
    for i in range(len(head)):
        # In Spark's header, the bytes of kind and seed belong to the total.
        skipped = KIND_AT <= i < SEED_AT + SEED_SIZE or total_at <= i < total_at + 8
        if data[begin + i] != head[i] and not skipped:
            return False
    return True


@inner
def _has_seed(data, at, seeds, first):
    """Whether an image has one of the seeds from number `first` on."""
    word = load32(data, at)
    known = False
    for i in range(first, len(seeds)):
        known |= word == seeds[i]
    return known


@inner
def _are_dense(data, begin, depth, width, total):
    """Whether every row of Spark's counters, from `begin` on, adds up to `total`, and none is negative."""
    for r in range(depth):
        first = begin + 8 * r * width
        # By halves, which can't overflow and need no branch: a negative count has a high half of at least
        # 2^31.
        high, low = np.uint64(0), np.uint64(0)
        for c in range(width):
            count = swapped64(load64(data, first + 8 * c))
            high += count >> np.uint64(32)
            low += count & np.uint64(0xFFFFFFFF)
        if high >> np.uint64(31) or (high << np.uint64(32)) + low != np.uint64(total):
            return False
    return True


@inner
def _total(data, begin, end, heads, depth, width, check_sum):
    """Return the weight in an image of this shape, −1 for anything else."""
    long = end - begin >= len(heads.sparse) + CHECK
    if long and _begins(data, begin, heads.sparse, _SPARSE_TOTAL):
        total = np.int64(swapped64(load64(data, begin + _SPARSE_TOTAL)))
        rows = data[begin + len(heads.sparse) : end - CHECK]
        check = swapped64(load64(data, end - 8)) & np.uint64(0xFFFFFFFF)
        sound = total >= 0 and check == np.uint64(check_sum) and are_rows(rows, depth, width, total)
        sound = sound and _has_seed(data, begin + SEED_AT, heads.seeds, 0)
        return total if sound else np.int64(-1)
    size = len(heads.dense) + 8 * depth * width
    # Spark's bytes may be followed by the kind of the items, and by a seed that isn't the smallest.
    behind = end - begin - size
    if behind != 0 and behind != 1 and behind != MOST_TAIL:
        return np.int64(-1)
    if not _begins(data, begin, heads.dense, _DENSE_TOTAL):
        return np.int64(-1)
    if behind > 1 and not _has_seed(data, begin + size + 1, heads.seeds, 1):
        return np.int64(-1)
    total = np.int64(swapped64(load64(data, begin + _DENSE_TOTAL)))
    sound = total >= 0 and _are_dense(data, begin + len(heads.dense), depth, width, total)
    return total if sound else np.int64(-1)


@inner
def _check(state, limit, heads, data, offsets, groups, sums, added, kind):
    """Add the weight of image i, from ``offsets[i]`` on, to group ``groups[i]``; return where and why it
    ends.

    If an image is `REFUSED`, none is added. ``added[i]`` gets the weight, ``kind[0]`` the kind of the items.
    """
    totals = state.totals
    depth, width = state.tables.shape[1], state.tables.shape[2]
    dense_size = len(heads.dense) + 8 * depth * width
    for i in range(len(groups)):
        begin, end = offsets[i], offsets[i + 1]
        added[i] = _total(data, begin, end, heads, depth, width, sums[i])
        wrong = added[i] < 0 or added[i] >= limit - totals[groups[i]]
        if not wrong:
            sparse = data[begin] == heads.sparse[0]  # Spark's bytes begin with 0
            code = kind[0]
            if sparse:
                code = data[begin + KIND_AT]
            elif end - begin > dense_size:
                code = data[begin + dense_size]
                unknown = end - begin > dense_size + 1 and code == _UNKNOWN
                wrong = not ARE_KINDS[code] and not unknown  # no checksum covers this byte
            if code != kind[0] and ARE_KINDS[code]:
                wrong = wrong or ARE_KINDS[kind[0]]
                kind[0] = kind[0] if wrong else code
        if wrong:
            for j in range(i):
                totals[groups[j]] -= added[j]
            return i, REFUSED
        totals[groups[i]] += added[i]
    return len(groups), DONE


@lean
def merge(state, lines, limit, heads, data, offsets, groups, sums, added, kind, no_bits, at):
    """Add the counters of image i, from ``offsets[i]`` on, to group ``groups[i]``, from number `at` on.

    A step of `resume` that also returns the log's new length. If an image is `REFUSED`, none is added.
    ``sums[i]`` is the expected checksum of a sparse image; `added`, −1 before the first call, gets the weight
    of each; ``kind[0]`` has the kind of the items, before and after. A group that gets an image of Spark's
    size must have a table.
    """
    if added[len(added) - 1] < 0:
        wrong, why = _check(state, limit, heads, data, offsets, groups, sums, added, kind)
        if why:
            return wrong, lines, why
    tables, slots = state.tables, state.slots
    depth, width = tables.shape[1], tables.shape[2]
    for i in range(at, len(groups)):
        begin, end = offsets[i], offsets[i + 1]
        g = groups[i]
        slot = slots[g]
        if data[begin] == heads.sparse[0]:  # Spark's bytes begin with 0
            rows = data[begin + len(heads.sparse) : end - CHECK]
            if slot >= 0:
                add_rows(tables[slot], no_bits, rows)
            else:
                if lines + 2 + len(rows) // LINE > len(state.log):
                    return i, lines, NO_ROOM
                after = log_rows(state.log, state.data, lines, g, rows)
                state.logged[g] += after - lines
                lines = after
        else:
            for r in range(depth):
                first = begin + len(heads.dense) + 8 * r * width
                row = tables[slot][r]
                for c in range(width):
                    row[c] += np.int64(swapped64(load64(data, first + 8 * c)))
    return len(groups), lines, DONE


@inner
def _put_header(head, total, total_at, out, at):
    for i in range(len(head)):
        out[at + i] = head[i]
    store64(out, at + total_at, swapped64(np.uint64(total)))
    return at + len(head)


@inner
def _forget(table, touched):
    """Reset the counters whose bits are set, and the bits."""
    depth, width = table.shape
    for r in range(depth):
        for w in range(touched.shape[1]):
            if touched[r, w]:
                table[r, 64 * w : min(64 * w + 64, width)] = 0
                touched[r, w] = 0


@lean
def write(state, n, order, firsts, factors, factor, shift, heads, scratch, touched, room, out, offsets, at):
    """Write the images of groups `at` to n − 1, g's from ``offsets[g]`` on, as a step of `resume`.

    Checksums of sparse images are left out. Lines ``order[firsts[g]:firsts[g + 1]]`` of the log belong to
    group g. `scratch` is a table of zeros and `touched` its bits (`mark`). Rows that take at most `room`
    bytes are written sparse.
    """
    depth, width = scratch.shape
    dense_size = len(heads.dense) + 8 * depth * width
    for g in range(at, n):
        if len(out) - offsets[g] < dense_size + MOST_TAIL:
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
            # An empty sketch has no kind yet.
            for byte in heads.tail if state.totals[g] else heads.empty_tail:
                out[end] = byte
                end += 1
        offsets[g + 1] = end
        if slot >= 0:
            touched[:] = 0
        else:
            _forget(table, touched)
    return n, DONE
