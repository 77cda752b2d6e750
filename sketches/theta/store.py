"""Many Theta sketches in a few arrays: each the smallest hashes it has seen, then those that came since.

A sketch keeps every distinct 63-bit hash below its `theta`. While theta is 2^63 − 1 that is all of them; once
more than 2^lg_k are kept, theta becomes the (2^lg_k + 1)-th smallest and what is not below it goes. After
`tidy`, which every answer and every image begins with, a sketch depends on nothing but the set of values it
has seen: the order of the stream and of merges leaves no trace.

A hash that is below theta is written behind those there are, and that is all. What has come twice, and what
is no longer among the smallest, is found out when the region is full, for all of them together: sorted by
linear probing, in one table that stays in the cache whichever sketch's turn it is. (With a hash table a
sketch, each row of a thousand groups waited for a line of 64 megabytes of tables.)

Kernels that find too little room stop before they change anything and say so; Python enlarges the arrays
(`with_room`), and the same call goes on (`resume`).

Source: Dasgupta, Lang, Rhodes, Thaler, A Framework for Estimating Stream Expression Cardinalities (2016);
datasketches-java 6.2.0 `theta.HeapQuickSelectSketch`; Gonnet and Munro, The Analysis of Linear Probing Sort
by the Use of a New Mathematical Transform (1984).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.arena import allocate, new_extent, packed
from ..core.group_numbers import grown
from ..core.jit import inner, lean

MAX_THETA = (1 << 63) - 1
SMALLEST = 8
"""Words of a sketch's first region; a full one has 2^(lg_k + 1)."""
QUICKER = 32
"""Regions of so many words grow fourfold, smaller ones twofold."""

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
"""What there is of each sketch: where its region begins in `Store.words` and how many words it has; theta;
how many hashes lie in the region, and how many of these, from the first on, are known to be distinct, in
order, and below theta; whether it has seen anything."""


class Store(NamedTuple):
    """The arrays; a kernel's one argument.

    `words` is an arena of `extent`, `lg_k` holds the lg of how many hashes a sketch keeps, `table` has three
    places for each word of the largest region.
    """

    sketches: np.ndarray
    words: np.ndarray
    extent: np.ndarray
    lg_k: np.ndarray
    table: np.ndarray


def new_store(n: int, lg_k: int) -> Store:
    """`n` empty sketches."""
    sketches = np.zeros(n, SKETCH)
    sketches["theta"] = MAX_THETA
    words = np.empty(SMALLEST, np.int64)
    return Store(sketches, words, new_extent(), np.array([lg_k], np.int64), np.empty(0, np.int64))


def with_sketches(store: Store, n: int) -> Store:
    """The same store with `n` sketches, the new ones empty."""
    sketches = grown(store.sketches, n)
    sketches["theta"][len(store.sketches) :] = MAX_THETA
    return store._replace(sketches=sketches)


def with_room(store: Store) -> Store:
    """The same store with room for the region that was wanted, and a table to tidy it in."""
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

    Hashes spread evenly below theta, so each has its place in a table of twice as many: it goes there, or
    behind smaller ones in its way, and pushes greater ones on. How many are left.
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
        # Homes ascend with values, and no value passes a smaller one: the table is in order at all times.
        # Homes lie in the first 2n of 3n places, so that n values are never pushed past the end.
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
    for value in table:  # no branch on the value, as none would be foreseen
        store.words[at + kept] = value
        kept += value > 0
        if kept == n:
            break
    return kept


@inner
def tidy(store, g):
    """Keep the 2^lg_k smallest hashes, each once and in order; theta becomes the next one's value."""
    sketch = store.sketches[g]
    if sketch.tidy == sketch.count and sketch.count <= np.int64(1) << store.lg_k[0]:
        return
    n = _sorted(store, sketch.where, np.int64(sketch.count), sketch.theta)
    k = np.int64(1) << store.lg_k[0]
    if n > k:
        # The (k + 1)-th smallest hash is left out: k / theta is unbiased then (Dasgupta and others 2016).
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
    """Give a sketch its first region or a larger one. False, and nothing done, if there is no room."""
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
    """Make room in a region that is full. False, with no visible change, if there is no room.

    Regions are enlarged where more than half of them is distinct, so that each tidying pays for itself.
    """
    tidy(store, g)
    sketch = store.sketches[g]
    most = np.int64(2) << store.lg_k[0]
    return 2 * np.int64(sketch.count) <= np.int64(sketch.room) > 0 or (
        sketch.room >= most or _enlarge(store, g)
    )


@inner
def add_hash(store, g, value):
    """Keep a hash above zero if it is below theta. False, and it isn't kept, if there is no room."""
    if value >= store.sketches[g].theta:
        return True
    if store.sketches[g].count == store.sketches[g].room:
        if not make_place(store, g):
            return False
        # Tidying may have lowered theta.
        if value >= store.sketches[g].theta:
            return True
    sketch = store.sketches[g]
    store.words[np.uint64(sketch.where + np.int64(sketch.count))] = value
    store.sketches[g].count = sketch.count + np.uint32(1)
    store.sketches[g].seen = 1
    return True


@inner
def lower_theta(store, g, theta):
    """Lower a sketch's theta, if it is higher; what is not below goes with the next tidying."""
    if theta < store.sketches[g].theta:
        store.sketches[g].theta = theta
        store.sketches[g].tidy = 0


def hashes_of(store: Store, g: int) -> np.ndarray:
    """A tidy sketch's hashes in ascending order, in place."""
    where, count = int(store.sketches["where"][g]), int(store.sketches["count"][g])
    return store.words[where : where + count]
