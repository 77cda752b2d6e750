"""HyperLogLog: the number of distinct values in 4 KB to ±1.6 %, in DataSketches' and Spark's bytes."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np

from ..core.distinct_counter import DistinctCounter
from ..core.protocol import SketchError
from ..core.values.image_columns import one_image
from ..core.values.item_kinds import as_items, joint_kind, kind_with
from .coupons import coupon_chunks
from .groups import HLLGroups
from .images import write_compact_coupons, write_hll4
from .sorted_update import ORDERED
from .store import DENSE, EMPTY


class HLL(DistinctCounter):
    """The number of distinct values of a stream, in 2^lg_k bytes (`lg_k` 4 to 21).

    Promise: in stream order the relative standard error is 0.833 / √(2^lg_k) (1.3 % at 12), and once sketches
    have been merged 1.04 / √(2^lg_k) (1.6 %); up to about 0.09 × 2^lg_k distinct values it is 0.005 % at
    most. These are single standard deviations: `bounds` contains the true count with 68.3, 95.4 or 99.7 %
    confidence at 1, 2 or 3 of them. Duplicates and nulls change nothing, nor do empty strings, as in
    DataSketches: to count '', replace it with a string of your own. All values are of one kind: whole
    numbers, floats, strings or times (`core.values.item_kinds`).

    A merged sketch has the smaller lg_k of the two, ignoring that of an empty sketch. Registers are the same
    in every order of merging, and ``a | b`` has the same bytes as ``b | a``. Raises `SketchError` for an lg_k
    out of range, bytes of anything else, and sketches of another family.

    Source: Flajolet and others, HyperLogLog (2007); the HIP estimator of Ting (2014) and Cohen (2015);
    bytes, hash and constants of Apache DataSketches `hll`: HLL_4, HLL_6 and HLL_8 images are read, HLL_8
    and HLL_4 written.

    >>> import streamgauge as sg
    >>> users = sg.HLL().update(["ann", "bob", "ann"]) | sg.HLL().update(["eve", None])
    >>> round(users.estimate()), sg.HLL.from_bytes(bytes(users))
    (3, HLL(lg_k=12): 3 distinct, 3 to 3 at 95.4 %)
    """

    family: ClassVar[str] = "HLL"

    def __init__(self, lg_k: int = 12) -> None:
        self._one: HLLGroups = HLLGroups(1, lg_k)

    @property
    def lg_k(self) -> int:
        """The base-2 logarithm of the number of registers; merging a smaller sketch lowers it."""
        return int(self._one._store.sketches["lg_k"][0])

    def update(self, values: Any) -> Self:
        """Count a scalar or a column; nulls and empty strings are skipped. Returns the sketch itself."""
        items = as_items(values, self.item_kind, self.family)
        for _, coupons in coupon_chunks(items, ORDERED, self._least):
            self._one.update_ordered(np.array([len(coupons)]), coupons)
        self.item_kind = kind_with(self.item_kind, items)
        return self

    def _least(self) -> int:
        """Return the least register value."""
        store = self._one._store
        if store.sketches["form"][0] != DENSE:
            return 0
        return int(store.sums["least"][store.sketches["where"][0] >> store.rows["lg_stride"][0]])

    def merge(self, other: Self) -> Self:
        """Merge `other` into this sketch; the result has the smaller lg_k. Returns the sketch itself.

        Merging an empty sketch changes nothing; an empty sketch never grows beyond its own lg_k.
        """
        if not isinstance(other, HLL):
            raise SketchError(f"HLL: can't merge with {type(other).__name__}")
        item_kind = joint_kind(self.item_kind, other.item_kind, self.family)
        self._one.merge(np.zeros(1, np.int64), other._one.to_arrow())
        self.item_kind = item_kind
        return self

    def to_bytes(self, target: Literal["hll_8", "hll_4"] = "hll_8") -> bytes:
        """The image: ``"hll_8"`` as Spark's `hll_sketch_agg` writes it (updatable), ``"hll_4"`` compact.

        HLL_4 is half as large. Both have the same contents, and every DataSketches library reads them. Raises
        `ValueError` for any other target.
        """
        if target == "hll_8":
            return self._one.image(0)
        if target != "hll_4":
            raise ValueError(f"target must be 'hll_8' or 'hll_4', not {target!r}")
        store = self._one._store
        write = (
            write_hll4(store, 0)
            if store.sketches["form"][0] == DENSE
            else write_compact_coupons(store, 0, np.uint8(0))
        )
        return write.tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read any HLL image of DataSketches or Spark. Raises `SketchError` for anything else."""
        lg_k = data[3] if len(data) > 3 else 0
        sketch = cls(lg_k if 4 <= lg_k <= 21 else 4)
        _, fault = sketch._one._fold(*one_image(data))
        if fault:
            raise HLLGroups.refused("not", len(data), fault)
        return sketch

    def __or__(self, other: Self) -> Self:
        """The union, the same to the byte either way round."""
        if not isinstance(other, type(self)):
            return NotImplemented
        # The HIP estimator depends on the order of values, so the fuller sketch absorbs the other.
        first, second = sorted((self, other), key=HLL._fullness)
        return second.copy().merge(first)

    def _saw_nothing(self) -> bool:
        return bool(self._one._store.sketches["form"][0] == EMPTY)

    def _fullness(self) -> tuple[int, int, int, bytes]:
        """Return a sort key: registers above coupons, many coupons above few."""
        mine = self._one._store.sketches[0]
        return int(mine["form"]), int(mine["coupons"]), int(mine["lg_k"]), self.to_bytes()

    def estimate(self) -> float:
        """The estimated number of distinct values so far."""
        return float(self._one._estimates()[0])

    def bounds(self, std_devs: int = 2) -> tuple[float, float]:
        """(lower, upper) at 1, 2 or 3 standard deviations: 68.3, 95.4 or 99.7 % confidence."""
        lower, upper = self._one.bounds(std_devs)
        return float(lower[0]), float(upper[0])

    def __repr__(self) -> str:
        return f"HLL(lg_k={self.lg_k}): {self._in_words()}"
