"""The capacity of each level of a REQ sketch, by k and by its number of compactions.

A level is divided into sections. It begins with three sections of k items, and holds twice as many items as
the sections have. Each time its schedule, the number of its compactions, reaches 2^(sections − 1), it gets
twice as many sections, each smaller by √2, until a section would have fewer than four items.

Source: datasketches-cpp `req_compactor::ensure_enough_sections`.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from ..core.compilation.jit import inner

MIN_K, MAX_K = 4, 1024
FIRST_SECTIONS = 3
MOST_DOUBLINGS = 5
"""A level would have to be compacted 2^95 times for another doubling."""
_RELATIVE = math.sqrt(0.0512 / FIRST_SECTIONS)
_FIXED = 0.084


@cache
def raw_sizes() -> np.ndarray:
    """Return the unrounded size of a section (float32): a row per k / 2, a column per doubling.

    >>> raw_sizes()[6, :3].tolist()
    [12.0, 8.485281944274902, 6.000000476837158]
    """
    sizes = np.empty((MAX_K // 2 + 1, MOST_DOUBLINGS + 1), np.float32)
    sizes[:, 0] = np.arange(0, MAX_K + 1, 2)
    for column in range(MOST_DOUBLINGS):
        sizes[:, column + 1] = sizes[:, column] / np.float32(math.sqrt(2))
    return sizes


@cache
def section_sizes() -> np.ndarray:
    """Return the size of a section (int32) by k / 2 and doublings; 0 from the first size below four on.

    >>> section_sizes()[6].tolist()
    [12, 8, 6, 4, 4, 0]
    """
    even = 2 * np.floor(raw_sizes().astype(np.float64) / 2 + 0.5).astype(np.int32)
    return np.where(even < MIN_K, 0, even).astype(np.int32)


@inner
def doublings(sizes, k, schedule):
    """Return how often a level with this `schedule` has doubled its sections."""
    done = 0
    while (
        done < MOST_DOUBLINGS
        and sizes[k >> 1, done + 1] > 0
        and schedule >= np.int64(1) << ((FIRST_SECTIONS << done) - 1)
    ):
        done += 1
    return done


@inner
def capacity(sizes, k, doubled):
    """Return how many items a level with this number of doublings holds before it is compacted."""
    return 2 * (FIRST_SECTIONS << np.int64(doubled)) * np.int64(sizes[k >> 1, doubled])


@inner
def kept_back(sizes, k, doubled, schedule, count):
    """Return how many of `count` items a compaction keeps, so that an even number is compacted.

    Half the capacity is always kept. Of the other sections, the nearest is compacted every time, the next
    every second time, and so on by the trailing ones of the schedule.
    """
    sections, size = FIRST_SECTIONS << np.int64(doubled), np.int64(sizes[k >> 1, doubled])
    compacted = np.int64(1)
    while compacted < sections and (schedule >> (compacted - 1)) & 1:
        compacted += 1
    kept = sections * size + (sections - compacted) * size
    return kept + ((count - kept) & 1)


def rank_errors(k: Any, depth: Any, n: Any, ranks: Any, high_ranks: bool) -> Any:
    """Return one standard deviation of the error of `ranks`; all arguments are arrays or numbers that
    broadcast.

    It is 0 for exact ranks: while there is one level, and for as many items at the accurate end as its three
    sections hold.

    Source: datasketches-java `ReqSketch.getRankLB`, whose factors are measured, not proved.
    """
    held = FIRST_SECTIONS * k.astype(np.int64)
    share = held / np.maximum(n, 1)
    at_end = ranks >= 1.0 - share if high_ranks else ranks <= share
    exact = (depth == 1) | (n <= held) | at_end
    to_end = 1.0 - ranks if high_ranks else ranks
    return np.where(exact, 0.0, np.minimum(_RELATIVE * to_end, _FIXED) / k)
