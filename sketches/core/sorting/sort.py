"""Sort and merge runs of items without unpredictable branches, on which ordinary sorts spend their time.

Both process chunks of 64 items in vector registers (`sorting_network`), in a fraction of the time of Numba's
own sort and of a merge item by item.
"""

from __future__ import annotations

import numpy as np

from ..compilation.jit import inner
from .sorting_network import CHUNK, merge_chunk, sort_chunk

_FEW = 8
_FEW_FALLS = 6
"""A run with at most this many descents, ascending in between, is merged instead of sorted."""


@inner
def copy(source, target):
    """Copy all of `source` to the start of `target`, which may overlap it from below. (Assigning a slice to a
    slice would copy it first, and lean kernels can't allocate memory.)"""
    for i in range(len(source)):
        target[i] = source[i]


@inner
def _share(a, i, b, j):
    """Return how many of the 64 lowest items from ``a[i]`` and ``b[j]`` on come from `a`."""
    low, high = max(0, CHUNK - (len(b) - j)), min(CHUNK, len(a) - i)
    while low < high:
        middle = (low + high) >> 1
        below = b[j + CHUNK - 1 - middle] < a[i + middle]
        high = middle if below else high
        low = low if below else middle + 1
    return low


@inner
def merge_sorted(a, b, out, top, spare):
    """Merge two sorted runs into `out`, which overlaps neither; `top` is at least their largest item.

    The 64 items after the end of either run are read, with any content, so they must lie within its array.
    `spare` has room for 64 items.
    """
    i, j, done = 0, 0, 0
    while len(out) - done >= CHUNK:
        from_a = _share(a, i, b, j)
        merge_chunk(a, i, from_a, b, j, CHUNK - from_a, top, out[done:])
        i, j, done = i + from_a, j + CHUNK - from_a, done + CHUNK
    if done < len(out):
        merge_chunk(a, i, len(a) - i, b, j, len(b) - j, top, spare)
        copy(spare[: len(out) - done], out[done:])


@inner
def merge_apart(a, b, out, top, scratch):
    """Merge two sorted runs of any arrays into `out`; `scratch` has room for their items and 192 more."""
    second = len(a) + CHUNK
    rest = second + len(b) + CHUNK
    copy(a, scratch)
    copy(b, scratch[second:])
    merge_sorted(scratch[: len(a)], scratch[second : rest - CHUNK], out, top, scratch[rest:])


@inner
def _insertion(run):
    for i in range(1, len(run)):
        x = run[i]
        j = i - 1
        while j >= 0 and x < run[j]:
            run[j + 1] = run[j]
            j -= 1
        run[j + 1] = x


@inner
def _falls(run, first):
    """Return the end of the ascending run that begins at item `first`."""
    at = first + 1
    while at < len(run) and run[at] >= run[at - 1]:
        at += 1
    return at


@inner
def sort(run, scratch, top):
    """Sort `run` in place; `scratch` holds twice its items and 256 more, `top` is at least its maximum."""
    n = len(run)
    if n <= _FEW:
        _insertion(run)
        return
    falls = np.int64(0)
    for i in range(1, n):
        falls += run[i] < run[i - 1]
    if falls <= _FEW_FALLS:  # for example levels of other sketches, one after another
        middle = _falls(run, 0)
        while middle < n:
            end = _falls(run, middle)
            merge_apart(run[:middle], run[middle:end], run[:end], top, scratch)
            middle = end
        return
    half = len(scratch) // 2
    source, target = scratch[:half], scratch[half:]
    end = (n + CHUNK - 1) // CHUNK * CHUNK
    copy(run, target)
    for i in range(n, end):
        target[i] = top
    for at in range(0, end, CHUNK):
        sort_chunk(target[at:], source[at:])
    length = CHUNK
    while length < end:
        for at in range(0, end, 2 * length):
            middle, stop = min(at + length, end), min(at + 2 * length, end)
            merge_sorted(source[at:middle], source[middle:stop], target[at:stop], top, target)
        source, target = target, source
        length *= 2
    copy(source[:n], run)
