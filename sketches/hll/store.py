"""Many HLL sketches in a few arrays: coupons in a shared arena while small, then registers.

A sketch starts as a list of up to 7 coupons, becomes an open-addressing set of 32, 64 … 2^(lg_k − 3) places,
and beyond three quarters of the largest set an array of 2^lg_k registers with the HIP estimator's sums (below
lg_k 8, the eighth coupon leads directly to registers). Tables are laid out and probed exactly as in the
reference, because its images contain them unchanged.

A kernel that finds too little room stops before it changes anything and reports this; Python enlarges the
arrays (`with_room`), and the same call continues (`resume`).

Source: datasketches-java 6.2.0 `hll.CouponList`, `hll.CouponHashSet`, `hll.HllArray`, `hll.Hll8Array`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.compilation.jit import inner
from ..core.groups.arena import new_extent, packed
from ..core.groups.group_numbers import grown

EMPTY = np.uint8(0)
LIST = np.uint8(3)
FIRST_SET = np.uint8(5)
DENSE = np.uint8(255)

SKETCH = np.dtype(
    [("where", np.int64), ("coupons", np.uint32), ("form", np.uint8), ("lg_k", np.uint8)], align=True
)
"""The fields of each sketch, in 16 bytes, so that looking up a group costs one cache line.

`form` is EMPTY, DENSE or the lg of the coupon table's places (LIST: a list), `coupons` the number in it,
`where` the first word of the table in `Store.words`, or the first register in `Store.registers`.
"""

OUT_OF_ORDER = np.uint32(1)
"""The HIP sum is no longer valid; the composite estimator is used."""
LEAST_KNOWN = np.uint32(2)
"""The image stores the least register, not only the count of zeros (as the reference does after a union)."""
STALE = np.uint32(4)
"""Registers were merged, and the sums are not rebuilt yet."""
FROM_ZERO = np.uint32(8)
"""The HIP sum began with registers and not with coupons, which is an option in C++."""

SUMS = np.dtype(
    [
        ("hip", np.float64),
        ("low", np.float64),
        ("high", np.float64),
        ("k", np.float64),
        ("left", np.int32),
        ("flags", np.uint32),
        ("least", np.uint8),
    ],
    align=True,
)
"""The state of a sketch's registers: the HIP sum, the sums of 2^−register over those below 32 and above
(the reference's kxq0 and kxq1), their number, the least register and how many hold it, and flags."""

ROWS = np.dtype([("lg_stride", np.int64), ("used", np.int64)])
"""The lg of the number of registers that each row of `sums` has room for, and the number of rows used."""


class Store(NamedTuple):
    """The arrays, passed to kernels as one argument.

    `words` is an arena of coupon tables with `extent`. Row r of `sums` belongs to the `registers` from
    ``r << rows[0].lg_stride`` on. Row 0 belongs to no sketch and stays zero: sketches with only coupons are
    looked up there, so that the look-up needs no branch.
    """

    sketches: np.ndarray
    words: np.ndarray
    extent: np.ndarray
    rows: np.ndarray
    registers: np.ndarray
    sums: np.ndarray


def new_store(n: int, lg_k: int) -> Store:
    """Return a store of `n` empty sketches."""
    sketches = np.zeros(n, SKETCH)
    sketches["lg_k"] = lg_k
    return Store(
        sketches=sketches,
        words=np.zeros(8, np.uint32),
        extent=new_extent(),
        rows=np.array([(lg_k, 1)], ROWS),
        registers=np.zeros(1 << lg_k, np.uint8),
        sums=np.zeros(1, SUMS),
    )


def with_sketches(store: Store, n: int, lg_k: int) -> Store:
    """Return the store grown to `n` sketches; the new ones are empty."""
    sketches = grown(store.sketches, n)
    sketches["lg_k"][len(store.sketches) :] = lg_k
    return store._replace(sketches=sketches)


def with_room(store: Store, words: int = 0, rows: int = 0) -> Store:
    """Return the store with room for any single step: coupon tables of every size, one row of registers.

    If more is expected, `words` and `rows` say how many of each, so that few steps need more room.
    """
    k = 1 << int(store.rows["lg_stride"][0])
    if int(store.extent["used"][0]) + _step(k) > len(store.words):
        sketches = store.sketches
        listed = np.flatnonzero((sketches["form"] != EMPTY) & (sketches["form"] != DENSE))
        where, sizes = sketches["where"][listed], np.int64(1) << sketches["form"][listed].astype(np.int64)
        more = max(_step(k), len(store.words), words)
        (packed_words,) = packed((store.words,), store.extent, where, sizes, more=more)
        sketches["where"][listed] = where
        store = store._replace(words=packed_words)
    used = int(store.rows["used"][0])
    if used == len(store.sums):
        room = used + max(used, rows)
        registers = np.zeros(room * k, np.uint8)  # unused pages cost no memory
        registers[: used * k] = store.registers
        store = store._replace(registers=registers, sums=grown(store.sums, room))
    return store


def _step(k: int) -> int:
    """Return the words that any single step may need: a list and sets of every size."""
    return max(64, k // 4)


@inner
def has_room(store):
    """Whether there is room for any single step, as after `with_room`."""
    needed = store.extent[0].used + max(64, (np.int64(1) << store.rows[0].lg_stride) // 4)
    return needed <= len(store.words) and store.rows[0].used < len(store.sums)


@inner
def row_of(store, g):
    """Return the row of `sums` of a sketch with registers."""
    return store.sketches[g].where >> store.rows[0].lg_stride


@inner
def span_of(store, g):
    """Return the begin and end of a sketch's registers."""
    first = store.sketches[g].where
    return first, first + (np.int64(1) << store.sketches[g].lg_k)
