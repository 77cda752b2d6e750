"""Quantiles that are accurate in the tail: REQ sketches that others stored, by the `datasketches` package."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import datasketches
import numpy as np

from ..core.answers import as_shares, quantile_answer
from ..core.numbers import as_numbers
from ..core.parameters import flag, whole
from ..core.protocol import SketchError
from ..stored.package_quantiles import PackageQuantiles, read_checked
from .images import image_fault


class REQ(PackageQuantiles):
    """Quantiles of floats whose rank error shrinks towards one end (DataSketches REQ).

    Error promised: near rank 1 (`high_ranks`, else near rank 0) the error of a rank r is a share of 1 − r,
    as `rank_bounds` gives with 68.3, 95.4 or 99.7 % confidence at 1, 2 or 3 standard deviations. Items are
    4-byte floats. Merging in any order and any shape of tree adds nothing to the error, since the smaller
    sketch is always merged into the larger; of different k the smaller counts.

    Raises `SketchError` for parameters out of range, broken bytes, and a sketch that is accurate at the other
    end.

    Source: Cormode, Karnin, Liberty, Thaler, Veselý, "Relative Error Streaming Quantiles", PODS 2021.

    >>> import streamgauge as sg
    >>> sketch = sg.stored.REQ().update(np.arange(100_000.0))
    >>> lower, upper = sketch.rank_bounds(99_900.0)
    >>> lower <= 0.99901 <= upper, sketch.n
    (True, 100000)
    """

    family: ClassVar[str] = "REQ"

    def __init__(self, k: int = 12, high_ranks: bool = True) -> None:
        if whole("REQ", "k", k, 4, 1024) % 2:
            raise SketchError(f"REQ: k must be even, got {k}")
        self._peer = datasketches.req_floats_sketch(k, flag("REQ", "high_ranks", high_ranks))

    @property
    def n(self) -> int:
        """Values seen, NaN and nulls not counted."""
        return int(self._peer.n)

    def update(self, values: Any) -> Self:
        """Add numbers, as 4-byte floats; NaN and nulls are skipped."""
        self._add_staged(self._staged(values))
        return self

    def _staged(self, values: Any) -> np.ndarray:
        return as_numbers(values, np.float32, self.family).numbers + np.float32(0.0)

    def merge(self, other: Self) -> Self:
        """Fold `other` in. Raises `SketchError` if it is accurate at the other end."""
        self._refuse_merge(other)
        if not other.n:
            return self
        # The package keeps the k of the one merged into, and with it bounds that what a smaller k counted
        # does not keep; of a large sketch merged into a small one, time and again, its bounds hold nowhere.
        into, other_copy = sorted((self, other.copy()), key=lambda one: (one._peer.k, -one.n))
        into._peer.merge(other_copy._peer)
        self._peer = into._peer
        return self

    def _refuse_merge(self, other: Any, coming: int = 0) -> None:
        if not isinstance(other, REQ) or other._peer.is_hra() != self._peer.is_hra():
            raise SketchError(f"REQ: {other!r} isn't accurate at the same end")
        if self.n + coming + other.n >= 1 << 62:
            raise SketchError("REQ: more values than any sketch counts")

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The sketch of a DataSketches REQ image of floats. Raises `SketchError` for anything else."""
        data, sketch = bytes(data), cls()
        read = datasketches.req_floats_sketch.deserialize
        sketch._peer = read_checked("REQ", data, image_fault(data), read)
        return sketch

    def rank_bounds(self, x: float, std_devs: int = 2) -> tuple[float, float]:
        """The shares between which the true rank of `x` lies, at 1, 2 or 3 standard deviations."""
        rank = self.rank(x)
        return (
            self._peer.get_rank_lower_bound(rank, std_devs),
            self._peer.get_rank_upper_bound(rank, std_devs),
        )

    def quantile_bounds(self, q: float) -> tuple[float, float]:
        """The values between which the true quantile lies, at two standard deviations."""
        share = float(as_shares(self.family, q))
        edges = [self._peer.get_rank_lower_bound(share, 2), self._peer.get_rank_upper_bound(share, 2)]
        lower, upper = self.quantiles(np.clip(edges, 0, 1))
        return lower, upper

    def answer(self) -> dict[str, Any]:
        """n and the usual quantiles with bounds at two standard deviations."""
        return quantile_answer(self)
