"""Many Theta sketches in a few arrays: each a hash table of the smallest hashes it has seen.

A sketch keeps every distinct 63-bit hash below its `theta`. While theta is 2^63 − 1 that is all of them; once
more than 1.5 × 2^lg_k are kept, theta becomes the (2^lg_k + 1)-th smallest and what is not below it goes.
After `trim`, which every answer and every image begins with, a sketch depends on nothing but the set of
values it has seen: the order of the stream and of merges leaves no trace.

Kernels that find too little room stop before they change anything and say so; Python enlarges the arrays
(`with_room`), and the same call goes on.

Source: Dasgupta, Lang, Rhodes, Thaler, A Framework for Estimating Stream Expression Cardinalities (2016);
datasketches-java 6.2.0 `theta.HeapQuickSelectSketch`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.group_numbers import grown
from ..core.jit import lean

MAX_THETA = (1 << 63) - 1
LG_SMALLEST = 3

SKETCH = np.dtype(
    [("where", np.int64), ("theta", np.int64), ("count", np.uint32), ("lg", np.uint8), ("seen", np.uint8)],
    align=True,
)
"""What there is of each sketch: the first word and the lg of the places of its table (0: none yet), how many
hashes are in it, theta, and whether it has seen anything."""

_ARENA_END = 63


class Store(NamedTuple):
    """The arrays; a kernel's one argument.

    `free[b]` heads the chain of free blocks of 2^b words (−1: none), `free[63]` is the end of the used part
    of `words`. `lg_k` holds the lg of how many hashes a sketch keeps; `scratch` one table's hashes.
    """

    sketches: np.ndarray
    words: np.ndarray
    free: np.ndarray
    lg_k: np.ndarray
    scratch: np.ndarray


def new_store(n: int, lg_k: int) -> Store:
    """`n` empty sketches."""
    free = np.full(64, -1, np.int64)
    free[_ARENA_END] = 0
    return Store(
        sketches=_empty_sketches(n),
        words=np.zeros(1 << LG_SMALLEST, np.int64),
        free=free,
        lg_k=np.array([lg_k], np.int64),
        scratch=np.empty(2 << lg_k, np.int64),
    )


def _empty_sketches(n: int) -> np.ndarray:
    sketches = np.zeros(n, SKETCH)
    sketches["theta"] = MAX_THETA
    return sketches


def with_sketches(store: Store, n: int) -> Store:
    """The same store with `n` sketches, the new ones empty."""
    sketches = grown(store.sketches, n)
    sketches["theta"][len(store.sketches) :] = MAX_THETA
    return store._replace(sketches=sketches)


def with_room(store: Store) -> Store:
    """The same store with room for any one step: a table of the largest size."""
    used = int(store.free[_ARENA_END])
    needed = used + (2 << int(store.lg_k[0]))
    if needed <= len(store.words):
        return store
    words = np.zeros(max(needed, len(store.words) * 2), np.int64)  # pages not yet used cost no memory
    words[:used] = store.words[:used]
    return store._replace(words=words)


@lean
def _allocate(store, lg):
    """The first of 2^lg zeroed words, or −1 if the arena is full."""
    size = np.int64(1) << lg
    at = store.free[lg]
    if at >= 0:
        store.free[lg] = store.words[at]
    else:
        at = store.free[_ARENA_END]
        if at + size > len(store.words):
            return np.int64(-1)
        store.free[_ARENA_END] = at + size
    store.words[at : at + size] = 0
    return at


@lean
def _release(store, at, lg):
    """Chain a block into its free list; its first word holds the place of the next."""
    store.words[at] = store.free[lg]
    store.free[lg] = at


@lean
def _put(words, at, lg, value):
    """Put a hash that is not there yet into the table of 2^lg places at `at`."""
    mask = (np.uint64(1) << np.uint64(lg)) - np.uint64(1)
    place = np.uint64(value) & mask
    while words[np.uint64(at) + place]:
        place = (place + np.uint64(1)) & mask
    words[np.uint64(at) + place] = value


@lean
def hashes_of(store, g, out):
    """Copy a sketch's hashes out, in no order; how many there are."""
    sketch = store.sketches[g]
    n = np.int64(0)
    if sketch.lg:
        for value in store.words[sketch.where : sketch.where + (np.int64(1) << sketch.lg)]:
            if value:
                out[n] = value
                n += 1
    return n


@lean
def select(values, k):
    """The k-th smallest (from 0), found by quick-select, which moves the values about."""
    left = np.int64(0)
    right = np.int64(len(values) - 1)
    while left < right:
        pivot = values[(left + right) >> 1]
        i, j = left, right
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if k <= j:
            right = j
        elif k >= i:
            left = i
        else:
            break
    return values[k]


@lean
def lower_theta(store, g, theta):
    """Lower a sketch's theta, and drop the hashes that are not below."""
    n = hashes_of(store, g, store.scratch)
    sketch = store.sketches[g]
    lg, at = np.int64(sketch.lg), sketch.where
    if lg:
        store.words[at : at + (np.int64(1) << lg)] = 0
    kept = np.int64(0)
    for value in store.scratch[:n]:
        if value < theta:
            _put(store.words, at, lg, value)
            kept += 1
    store.sketches[g].count = kept
    store.sketches[g].theta = theta


@lean
def trim(store, g):
    """Keep the 2^lg_k smallest hashes; theta becomes the next one's value."""
    k = np.int64(1) << store.lg_k[0]
    if store.sketches[g].count > k:
        n = hashes_of(store, g, store.scratch)
        lower_theta(store, g, select(store.scratch[:n], k))


@lean
def trim_all(store, n):
    """`trim` the first `n` sketches."""
    for g in range(n):
        trim(store, g)


@lean
def _grow(store, g):
    """Give a sketch its first table or one twice as large. False, and nothing done, if there is no room."""
    old = np.int64(store.sketches[g].lg)
    lg = old + 1 if old else np.int64(LG_SMALLEST)
    to = _allocate(store, lg)
    if to < 0:
        return False
    at = store.sketches[g].where
    if old:
        for i in range(at, at + (np.int64(1) << old)):
            if store.words[i]:
                _put(store.words, to, lg, store.words[i])
        _release(store, at, old)
    store.sketches[g].where = to
    store.sketches[g].lg = lg
    return True


@lean
def add_hash(store, g, value):
    """Keep a hash if it is below theta and new. False, and nothing done, if there is no room."""
    sketch = store.sketches[g]
    if value <= 0 or value >= sketch.theta:
        return True
    if sketch.lg:
        mask = (np.uint64(1) << np.uint64(sketch.lg)) - np.uint64(1)
        at = np.uint64(sketch.where)
        place = np.uint64(value) & mask
        while True:  # ends: at most three quarters are used
            found = store.words[at + place]
            if found == value:
                return True
            if found == 0:
                break
            place = (place + np.uint64(1)) & mask
        if 4 * (np.int64(sketch.count) + 1) <= 3 * (np.int64(1) << sketch.lg):
            store.words[at + place] = value
            store.sketches[g].count += 1
            return True
    if sketch.lg <= store.lg_k[0]:
        if not _grow(store, g):
            return False
    else:
        trim(store, g)
        if value >= store.sketches[g].theta:
            return True
    _put(store.words, store.sketches[g].where, np.int64(store.sketches[g].lg), value)
    store.sketches[g].count += 1
    store.sketches[g].seen = 1
    return True
