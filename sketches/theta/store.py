"""Many Theta sketches in a few arrays: each has its smallest hashes, followed by newly added ones.

A sketch stores every distinct 63-bit hash below its `theta`. While theta is 2^63 − 1, these are all hashes;
when there are more than 2^lg_k, theta becomes the (2^lg_k + 1)-th smallest, and hashes from theta on are
dropped. After `tidy`, with which every answer and every image begins, a sketch depends only on the set of
values, not on the order of the stream or of merges.

Adding a hash below theta only appends it. Duplicates, and hashes that are no longer among the smallest, are
removed together when the region is full: by a linear probing sort, in a single table that stays in the cache
for all sketches. (With a hash table per sketch, each row of a thousand groups would wait for a cache line of
64 megabytes of tables.)

A kernel that finds too little room stops before it changes anything and reports this; Python enlarges the
arrays (`with_room`), and the same call continues (`resume`).

Source: Dasgupta, Lang, Rhodes, Thaler, A Framework for Estimating Stream Expression Cardinalities (2016);
datasketches-java 6.2.0 `theta.HeapQuickSelectSketch`; Gonnet and Munro, The Analysis of Linear Probing Sort
by the Use of a New Mathematical Transform (1984).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.compilation.jit import inner, lean
from ..core.groups.arena import allocate, new_extent, packed
from ..core.groups.group_numbers import grown

MAX_THETA = (1 << 63) - 1
SMALLEST = 8
"""Words of a sketch's first region; a full one has 2^(lg_k + 1)."""
QUICKER = 32
"""Regions of at least this many words grow fourfold, smaller ones twofold."""

SKETCH = np.dtype(
    [
        ("where", np.int64),
        ("theta", np.int64),
        ("room", np.uint32),
        ("count", np.uint32),
        ("tidy", np.uint32),
        ("seen", np.uint8),
    ],
    align=True,
)
"""The fields of each sketch: the start of its region in `Store.words` and its number of words; theta; the
number of hashes in the region, and how many of these, from the first on, are known to be distinct, in order
and below theta; whether it has seen any value."""


class Store(NamedTuple):
    """The arrays, passed to kernels as one argument.

    `words` is an arena with `extent`, `lg_k` the lg of the number of hashes that a sketch stores, `table` has
    three places for each word of the largest region.
    """

    sketches: np.ndarray
    words: np.ndarray
    extent: np.ndarray
    lg_k: np.ndarray
    table: np.ndarray


def new_store(n: int, lg_k: int) -> Store:
    """Return a store of `n` empty sketches."""
    sketches = np.zeros(n, SKETCH)
    sketches["theta"] = MAX_THETA
    words = np.empty(SMALLEST, np.int64)
    return Store(sketches, words, new_extent(), np.array([lg_k], np.int64), np.empty(0, np.int64))


def with_sketches(store: Store, n: int) -> Store:
    """Return the store grown to `n` sketches; the new ones are empty."""
    sketches = grown(store.sketches, n)
    sketches["theta"][len(store.sketches) :] = MAX_THETA
    return store._replace(sketches=sketches)


def with_room(store: Store) -> Store:
    """Return the store with room for the requested region, and a table to tidy it in."""
    sketches, wanted = store.sketches, int(store.extent["wanted"][0])
    if 3 * wanted > len(store.table):
        store = store._replace(table=np.empty(3 * wanted, np.int64))
    if int(store.extent["used"][0]) + wanted > len(store.words):
        where = sketches["where"].copy()
        (words,) = packed((store.words,), store.extent, where, sketches["room"], more=len(store.words))
        sketches["where"] = where
        store = store._replace(words=words)
    return store


@inner
def _sorted(store, at, n, theta):
    """Sort the `n` hashes from `at` on, without those from `theta` on and without repetitions.

    Hashes are uniform below theta, so each has a home in a table twice as large: it goes there, or after
    smaller hashes in its way, and pushes larger ones on. Returns how many are left.
    """
    table = store.table[: 3 * n]
    table[:] = 0
    scale = 2.0 * np.float64(n) / np.float64(theta)
    for i in range(at, at + n):
        value = store.words[i]
        if value >= theta:
            continue
        place = np.uint64(np.int64(np.float64(value) * scale))
        entry = table[place]
        # Homes ascend with values, and no value passes a smaller one, so the table is always in order.
        # Homes are in the first 2n of 3n places, so n values are never pushed past the end.
        while 0 < entry < value:
            place += np.uint64(1)
            entry = table[place]
        if entry == value:
            continue
        while entry:
            table[place] = value
            value = entry
            place += np.uint64(1)
            entry = table[place]
        table[place] = value
    kept = np.int64(0)
    for value in table:  # no branch on the value, which would be unpredictable
        store.words[at + kept] = value
        kept += value > 0
        if kept == n:
            break
    return kept


@inner
def tidy(store, g):
    """Reduce to the 2^lg_k smallest distinct hashes, in order; theta becomes the next larger hash."""
    sketch = store.sketches[g]
    if sketch.tidy == sketch.count and sketch.count <= np.int64(1) << store.lg_k[0]:
        return
    n = _sorted(store, sketch.where, np.int64(sketch.count), sketch.theta)
    k = np.int64(1) << store.lg_k[0]
    if n > k:
        # Without the (k + 1)-th smallest hash, k / theta is unbiased (Dasgupta and others 2016).
        store.sketches[g].theta = store.words[sketch.where + k]
        n = k
    store.sketches[g].count = n
    store.sketches[g].tidy = n


@lean
def tidy_all(store, n):
    """`tidy` the first `n` sketches."""
    for g in range(n):
        tidy(store, g)


@inner
def _enlarge(store, g):
    """Give a sketch its first region or a larger one. Returns False, with nothing done, if there is no
    room."""
    old = np.int64(store.sketches[g].room)
    size = max(np.int64(SMALLEST), 2 * old)
    if size > QUICKER:
        size = min(2 * size, np.int64(2) << store.lg_k[0])
    if 3 * size > len(store.table):
        store.extent[0].wanted = size
        return False
    to = allocate(store.extent, size, len(store.words))
    if to < 0:
        return False
    at = store.sketches[g].where
    for i in range(np.int64(store.sketches[g].count)):
        store.words[to + i] = store.words[at + i]
    store.sketches[g].where = to
    store.sketches[g].room = size
    return True


@inner
def make_place(store, g):
    """Make room in a full region. Returns False, without a visible change, if there is no room.

    A region is enlarged if more than half of it is distinct, so that each tidying pays for itself.
    """
    tidy(store, g)
    sketch = store.sketches[g]
    most = np.int64(2) << store.lg_k[0]
    return 2 * np.int64(sketch.count) <= np.int64(sketch.room) > 0 or (
        sketch.room >= most or _enlarge(store, g)
    )


@inner
def add_hash(store, g, value):
    """Store a hash above zero if it is below theta. Returns False, without storing it, if there is no
    room."""
    if value >= store.sketches[g].theta:
        return True
    if store.sketches[g].count == store.sketches[g].room:
        if not make_place(store, g):
            return False
        # Tidying may have lowered theta, so compare again.
        if value >= store.sketches[g].theta:
            return True
    sketch = store.sketches[g]
    store.words[np.uint64(sketch.where + np.int64(sketch.count))] = value
    store.sketches[g].count = sketch.count + np.uint32(1)
    store.sketches[g].seen = 1
    return True


@inner
def lower_theta(store, g, theta):
    """Lower a sketch's theta if it is higher; hashes from theta on are removed by the next tidying."""
    if theta < store.sketches[g].theta:
        store.sketches[g].theta = theta
        store.sketches[g].tidy = 0


def hashes_of(store: Store, g: int) -> np.ndarray:
    """Return a view of a tidy sketch's hashes in ascending order."""
    where, count = int(store.sketches["where"][g]), int(store.sketches["count"][g])
    return store.words[where : where + count]
