"""Many HLL sketches in a few arrays: coupons in a shared arena while small, then registers.

A sketch starts as a list of up to 7 coupons, becomes an open-addressing set of 32, 64 … 2^(lg_k − 3) places,
and past three quarters of the largest, an array of 2^lg_k registers with the HIP estimator's sums (below
lg_k 8 the eighth coupon leads straight to registers). Tables are laid out and probed exactly as the reference
does, since its images hold them as they are.

Kernels that find too little room stop before they change anything and say so; Python enlarges the arrays
(`with_room`), and the same call goes on (`resume`).

Source: datasketches-java 6.2.0 `hll.CouponList`, `hll.CouponHashSet`, `hll.HllArray`, `hll.Hll8Array`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.arena import new_extent, packed
from ..core.group_numbers import grown
from ..core.jit import inner

EMPTY = np.uint8(0)
LIST = np.uint8(3)
FIRST_SET = np.uint8(5)
DENSE = np.uint8(255)

SKETCH = np.dtype(
    [("where", np.int64), ("coupons", np.uint32), ("form", np.uint8), ("lg_k", np.uint8)], align=True
)
"""What there is of each sketch, in 16 bytes, so that looking a group up costs one cache line.

`form` is EMPTY, DENSE or the lg of the coupon table's places (LIST: a list), `coupons` how many are in it,
`where` the first word of the table in `Store.words`, or the first register in `Store.registers`.
"""

OUT_OF_ORDER = np.uint32(1)
"""The HIP sum means nothing any more; the composite estimator answers."""
LEAST_KNOWN = np.uint32(2)
"""The image has the least register, not only the count of zeros (as the reference does after a union)."""
STALE = np.uint32(4)
"""Registers were merged and the sums are not rebuilt yet."""
FROM_ZERO = np.uint32(8)
"""The HIP sum began with registers, not with coupons, as C++ makes a sketch on request."""

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
"""What is known of a sketch's registers: the HIP sum, the sums of 2^−register over those below 32 and above
(the reference's kxq0 and kxq1), how many there are; the least register and how many hold it; flags."""

ROWS = np.dtype([("lg_stride", np.int64), ("used", np.int64)])
"""The lg of the registers that each row of `sums` has room for, and how many rows are used."""


class Store(NamedTuple):
    """The arrays; a kernel's one argument.

    `words` is an arena of coupon tables, of `extent`. Row r of `sums` goes with `registers` from
    ``r << rows[0].lg_stride`` on. Row 0 belongs to no sketch and stays zero: those that have only coupons are
    looked up there, like any other and without a branch.
    """

    sketches: np.ndarray
    words: np.ndarray
    extent: np.ndarray
    rows: np.ndarray
    registers: np.ndarray
    sums: np.ndarray


def new_store(n: int, lg_k: int) -> Store:
    """`n` empty sketches."""
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
    """The same store with `n` sketches, the new ones empty."""
    sketches = grown(store.sketches, n)
    sketches["lg_k"][len(store.sketches) :] = lg_k
    return store._replace(sketches=sketches)


def with_room(store: Store, words: int = 0, rows: int = 0) -> Store:
    """The same store with room for any one step: coupon tables of every size, one row of registers.

    Where more is known to come, `words` and `rows` say how many of each, so that few steps need more room.
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
        registers = np.zeros(room * k, np.uint8)  # pages not yet used cost no memory
        registers[: used * k] = store.registers
        store = store._replace(registers=registers, sums=grown(store.sums, room))
    return store


def _step(k: int) -> int:
    """Words that any one step may take: a list and sets of every size."""
    return max(64, k // 4)


@inner
def has_room(store):
    """Whether any one step would find room, as `with_room` leaves it."""
    needed = store.extent[0].used + max(64, (np.int64(1) << store.rows[0].lg_stride) // 4)
    return needed <= len(store.words) and store.rows[0].used < len(store.sums)


@inner
def row_of(store, g):
    """The row of `sums` of a sketch that has registers."""
    return store.sketches[g].where >> store.rows[0].lg_stride


@inner
def span_of(store, g):
    """Where the registers of a sketch that has some begin and end."""
    first = store.sketches[g].where
    return first, first + (np.int64(1) << store.sketches[g].lg_k)
