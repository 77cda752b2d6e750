"""Quantiles by REQ: the rank error shrinks towards one end, so p99.99 is as precise as p50."""

from __future__ import annotations

import math
import zlib
from typing import Any, ClassVar, Self

import numpy as np

from ..core.answers import quantile_answer
from ..core.parameters import deviations
from ..core.protocol import Sketch, SketchError
from ..core.values.numbers import as_numbers
from ..core.values.points import as_share, as_shares, double_point
from .estimate import TailEstimates, errors_at, quantiles
from .store import Store

_LARGEST = float(np.finfo(np.float32).max)


class REQ(Sketch):
    """Quantiles and ranks whose error shrinks towards rank 1: for the slowest, largest, most expensive
    values.

    Error promised: the rank r of a value is off by at most the share e of 1 − r (of r without `high_ranks`),
    where e is 0.131 / k at one standard deviation, and by at most 0.084 / k anywhere; `rank_bounds` returns
    both at 1, 2 or 3 standard deviations, 68.3, 95.4 or 99.7 % confidence. At k = 12 and two standard
    deviations that is 2.2 % of the distance to rank 1: a reported p99.9 lies between p99.898 and p99.902. The
    last 3 k values are exact, and so is everything while n < 6 k. Merging in any order preserves the promise;
    of different k the smaller counts. The factors are DataSketches', measured rather than proved. NaN and
    nulls are skipped.

    Values are stored as 4-byte floats, as in all of DataSketches' REQ sketches of numbers: from 1.2e−38 on
    within a share of 2^−24 of the value, 6e−8, and within 7e-46 below. The lowest and the highest value are
    exact except for that, and ranks refer to the rounded values. Values beyond 3.4e38 count as infinite:
    their rank is right, but as a quantile they are infinite, None in an answer.

    The bytes are DataSketches' `req_floats_sketch` or `ReqSketch`. `seed` fixes the random choices: the same
    seed, values and merges give the same bytes, however the values are batched.

    Raises `SketchError` for a k that is odd or outside 4 … 1024, and for more than 2^62 − 1 values,
    `TypeError` for values that aren't numbers.

    Source: Cormode, Karnin, Liberty, Thaler, Veselý, "Relative Error Streaming Quantiles", PODS 2021.

    >>> import streamgauge as sg
    >>> sketch = sg.REQ(seed=1).update(np.arange(1_000_000))
    >>> abs(sketch.quantile(0.9999) - 999_900) <= 3
    True
    >>> lower, upper = sketch.rank_bounds(990_000)
    >>> lower <= 0.990001 <= upper, round(upper - lower, 5), sketch.n
    (True, 0.00043, 1000000)
    >>> sg.REQ.from_bytes(sketch.to_bytes()) == sketch
    True
    """

    family: ClassVar[str] = "REQ"

    def __init__(self, k: int = 12, high_ranks: bool = True, seed: int | None = None) -> None:
        self._store = Store(1, k, high_ranks, seed)
        self._view: tuple[np.ndarray, ...] | None = None

    @property
    def k(self) -> int:
        """The size parameter: items of a section; the smallest of all merged sketches."""
        return int(self._store.state.k[0])

    @property
    def high_ranks(self) -> bool:
        """Whether high ranks are the accurate ones, not low ranks."""
        return self._store.high_ranks

    @property
    def n(self) -> int:
        """The number of values seen, without NaN and nulls."""
        return int(self._store.state.n[0])

    @property
    def low(self) -> float:
        """The lowest value, as a 4-byte float. Raises `SketchError` while empty."""
        return float(self._sorted()[2][0])

    @property
    def high(self) -> float:
        """The highest value, as a 4-byte float. Raises `SketchError` while empty."""
        return float(self._sorted()[2][1])

    @property
    def retained(self) -> int:
        """The number of items stored."""
        return int(self._store.state.retained[0])

    @property
    def exact(self) -> bool:
        """Whether every value is still stored."""
        return int(self._store.state.depth[0]) == 1

    def _saw_nothing(self) -> bool:
        return not self.n

    def update(self, values: Any) -> Self:
        """Add numbers, as 4-byte floats; NaN and nulls are skipped. Raises `TypeError` for other types."""
        self._store.update_one(0, as_numbers(values, np.float32, self.family).numbers)
        self._view = None
        return self

    def merge(self, other: Self) -> Self:
        """Merge `other`, of any k. Raises `SketchError` if it is accurate at the other end."""
        if not isinstance(other, REQ):
            raise SketchError(f"REQ: can't take in {other!r}")
        self._store.merge_images(np.zeros(1, np.int64), *other._store.images())
        self._view = None
        return self

    def to_bytes(self) -> bytes:
        """The DataSketches image."""
        return self._store.images()[0].tobytes()

    @classmethod
    def from_bytes(cls, data: bytes, seed: int | None = None) -> Self:
        """Read a sketch from a DataSketches REQ image of floats. Raises `SketchError` for anything else.

        Without a `seed` the bytes' checksum is the seed, so later results are repeatable.
        """
        image = np.frombuffer(data, np.uint8)
        k, flags = (int(image[4]) | int(image[5]) << 8, int(image[3])) if len(image) >= 8 else (12, 0)
        # The image's validation reports whatever is wrong.
        k = k if 4 <= k <= 1024 and k % 2 == 0 else 12
        sketch = cls(k, bool(flags & 8), seed=zlib.crc32(data) if seed is None else seed)
        sketch._store.merge_images(np.zeros(1, np.int64), image, np.array([0, len(image)], np.int64))
        return sketch

    def quantile(self, q: float) -> float:
        """The value that a share `q` of all values doesn't exceed. Raises `SketchError` while empty."""
        return self.quantiles(as_share(self.family, q))[0]

    def quantiles(self, qs: Any) -> list[float]:
        """The values at one share or several, as a list."""
        return self._at(qs).value[0].tolist()

    def quantile_bounds(self, q: float) -> tuple[float, float]:
        """The values between which the true quantile lies at two standard deviations, 95.4 % confidence."""
        estimates = self._at(as_share(self.family, q))
        return float(estimates.lower[0, 0]), float(estimates.upper[0, 0])

    def quantiles_within(self, qs: Any) -> tuple[list[float], list[float], list[float]]:
        """The values at several shares, and their lower and upper bounds, computed together."""
        value, lower, upper = (column[0].tolist() for column in self._at(qs))
        return value, lower, upper

    def rank(self, x: float) -> float:
        """The share of values that are at most `x`. Raises `SketchError` while empty, and for NaN."""
        items, up_to, (low, high) = self._sorted()
        exact = double_point(self.family, x)
        # Finite values are below values that count as infinite.
        point = np.float32(exact if math.isinf(exact) else min(max(exact, -_LARGEST), _LARGEST))
        if point < low or point >= high:
            return float(point >= high)
        # At least one value is at most this, and one is above it, although neither may be among the items.
        rank = float(up_to[np.searchsorted(items, point, side="right")] / self.n)
        return min(max(rank, 1 / self.n), 1 - 1 / self.n)

    def rank_bounds(self, x: float, std_devs: int = 2) -> tuple[float, float]:
        """The shares between which the true rank of `x` lies, at 1, 2 or 3 standard deviations."""
        std_devs = deviations(self.family, std_devs)
        rank = self.rank(x)
        if rank in (0.0, 1.0):
            return rank, rank
        error = float(errors_at(self._store, 0, 1, np.array([[rank]]), std_devs)[0, 0])
        return max(0.0, rank - error), min(1.0, rank + error)

    def answer(self) -> dict[str, Any]:
        """n and the usual quantiles with bounds at two standard deviations; no quantiles while empty."""
        return quantile_answer(self)

    def copy(self) -> Self:
        """An independent equal sketch that makes the same random choices."""
        twin = type(self)(self.k, self.high_ranks, seed=0)
        twin._store = self._store.one(0)
        return twin

    def __repr__(self) -> str:
        end = "high" if self.high_ranks else "low"
        if not self.n:
            return f"REQ(k={self.k}, {end} ranks, empty)"
        low, middle, high = self.quantiles([0, 0.5, 1])
        return f"REQ(k={self.k}, {end} ranks, n={self.n}, min={low:.6g}, median={middle:.6g}, max={high:.6g})"

    def _sorted(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the sorted items, cumulative numbers of values, and the lowest and highest value."""
        self._check_not_empty()
        if self._view is None:
            items, weights, _, edges = self._store.unpacked(0, 1)
            self._view = items, np.concatenate([[0], np.cumsum(weights)]), edges[0]
        return self._view  # type: ignore[return-value]

    def _at(self, qs: Any) -> TailEstimates:
        shares = as_shares(self.family, qs)
        self._check_not_empty()
        return quantiles(self._store, shares)

    def _check_not_empty(self) -> None:
        if not self.n:
            raise SketchError("REQ: an empty sketch has no quantiles and no ranks; update it first")
