"""Quantiles by KLL: the value at a rank, and the rank of a value, with a fixed rank error."""

from __future__ import annotations

import math
import zlib
from typing import Any, ClassVar, Self, cast

import numpy as np

from ..core.answers import quantile_answer
from ..core.columns.weights import optional_weights
from ..core.parameters import flag
from ..core.protocol import Sketch, SketchError, required_kind
from ..core.values.numbers import as_numbers
from ..core.values.points import as_share, as_shares, ascending_points, double_point, exact_point
from .levels import normalized_rank_error
from .store import DTYPES, Kind, Store


class KLL(Sketch):
    """Quantiles and ranks of a stream of numbers, in about 3 k items.

    Error promised: a rank is off by at most ``normalized_rank_error(k)`` of n (1.33 % for k = 200, 0.06 % for
    k = 4,800) in 99 of 100 sketches, at every point simultaneously; the lowest and highest value are exact,
    and so is everything while n ≤ k. NaN and nulls are skipped; n is at most 2^62. `kind` is the item type of
    the bytes: "double", "float" or "long" (int64); different kinds can't be merged. `seed` fixes the random
    choices: the same seed, values and merges give the same bytes. Small sketches have the bytes of
    datasketches-java with the same seed; deeper ones add values in blocks, within the same error.

    Raises `SketchError` for k outside 8 … 65,535 and if n would exceed its limit, with nothing changed,
    `TypeError` for values that are not numbers.

    Source: Karnin, Lang, Liberty, "Optimal Quantile Approximation in Streams", FOCS 2016; DataSketches.

    >>> import streamgauge as sg
    >>> sketch = sg.KLL(k=200, seed=1).update(np.arange(100_000.0))
    >>> abs(sketch.quantile(0.5) - 50_000) < 1_330, sketch.quantiles([0, 1])
    (True, [0.0, 99999.0])
    >>> lower, upper = sketch.rank_bounds(25_000)
    >>> lower <= 0.25 <= upper, sketch.n
    (True, 100000)
    >>> sg.KLL.from_bytes(sketch.to_bytes(), kind="double") == sketch
    True
    """

    family: ClassVar[str] = "KLL"

    def __init__(self, k: int = 200, kind: Kind = "double", seed: int | None = None) -> None:
        self._store = Store(1, k, kind, seed)
        self._view: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def k(self) -> int:
        """The size parameter: items of the top level."""
        return self._store.k

    @property
    def kind(self) -> Kind:
        """The item type: "double", "float" or "long"."""
        return self._store.kind

    @property
    def n(self) -> int:
        """The number of values seen, without NaN and nulls."""
        return int(self._store.state.n[0])

    @property
    def min_k(self) -> int:
        """The smallest k of all merged sketches that were past their exact phase; it determines the error."""
        return int(self._store.state.min_k[0])

    @property
    def low(self) -> float | int:
        """The lowest value, exact. Raises `SketchError` while empty."""
        self._check_not_empty()
        return self._store.state.low[0].item()

    @property
    def high(self) -> float | int:
        """The highest value, exact. Raises `SketchError` while empty."""
        self._check_not_empty()
        return self._store.state.high[0].item()

    @property
    def retained(self) -> int:
        """The number of items stored."""
        return len(self._store.weighted(0)[0])

    @property
    def exact(self) -> bool:
        """Whether every value is still stored."""
        state = self._store.state
        return bool(state.depth[0] + state.grain[0] == 1)

    def normalized_rank_error(self, pmf: bool = False) -> float:
        """The rank error as a share of n at 99 % confidence, 0 while exact; `pmf`: of an interval."""
        pmf = flag(self.family, "pmf", pmf)
        return 0.0 if self.exact else normalized_rank_error(self.min_k, pmf)

    def _saw_nothing(self) -> bool:
        return not self.n

    def update(self, values: Any, weight: Any = None) -> Self:
        """Add numbers, each as often as its `weight` says, if given; NaN and nulls in either are skipped.

        A weight, one per row or one for all, is a whole number from 0. Raises `TypeError` for other types,
        `ValueError` for weights that are negative or fractions, `SketchError` if n would exceed 2^62.
        """
        column = as_numbers(values, self._store.dtype, self.family)
        if weight is None:
            self._store.update_one(0, column.numbers)
        else:
            weights, most = optional_weights(self.family, weight, column, whole=True)
            self._store.update_one_weighted(0, column.numbers, weights, most)
        self._view = None
        return self

    def merge(self, other: Self) -> Self:
        """Merge `other`, of any k, into this sketch.

        Raises `SketchError` for another kind, or too many values.
        """
        if not isinstance(other, KLL) or other.kind != self.kind:
            raise SketchError(f"KLL: a sketch of {self.kind}s can't take in {other!r}")
        self._store.merge_image(0, np.frombuffer(other.to_bytes(), np.uint8))
        self._view = None
        return self

    def to_bytes(self) -> bytes:
        """The compact DataSketches image."""
        return self._store.images()[0].tobytes()

    @classmethod
    def from_bytes(cls, data: bytes, kind: Kind | None = None, seed: int | None = None) -> Self:
        """Read a sketch from a DataSketches image. Raises `SketchError` for anything else.

        `kind` must be given, because an image doesn't record it: images of Spark's ``kll_sketch_agg_bigint``
        are "long". Without a `seed` the bytes' checksum is the seed, so later results are repeatable.
        """
        kind = cast(Kind, required_kind(cls.family, kind, DTYPES))
        image = np.frombuffer(data, np.uint8)
        k = int(image[4]) | int(image[5]) << 8 if len(image) >= 8 else 8
        sketch = cls(max(k, 8), kind, seed=zlib.crc32(data) if seed is None else seed)
        sketch._store.read_image(0, image)
        return sketch

    def quantile(self, q: float) -> float | int:
        """The value that a share `q` of all values doesn't exceed. Raises `SketchError` while empty."""
        return self.quantiles(as_share(self.family, q))[0]

    def quantiles(self, qs: Any) -> list[float | int]:
        """The values at one share or several, as a list."""
        return self._at(as_shares(self.family, qs)).tolist()

    def quantile_bounds(self, q: float) -> tuple[float | int, float | int]:
        """The values between which the true quantile lies at 99 % confidence."""
        q, error = as_share(self.family, q), self.normalized_rank_error()
        lower, upper = self._at(np.array([max(0.0, q - error), min(1.0, q + error)])).tolist()
        return lower, upper

    def quantiles_within(self, qs: Any) -> tuple[list[float | int], ...]:
        """The values at several shares, and their lower and upper bounds, computed together."""
        shares, error = as_shares(self.family, qs), self.normalized_rank_error()
        requested = shares, np.maximum(shares - error, 0.0), np.minimum(shares + error, 1.0)
        return tuple(column.tolist() for column in np.split(self._at(np.concatenate(requested)), 3))

    def rank(self, x: float) -> float:
        """The share of values that are at most `x`. Raises `SketchError` while empty, and for NaN."""
        return float(self._ranks([x])[0])

    def rank_bounds(self, x: float) -> tuple[float, float]:
        """The shares between which the true rank of `x` lies at 99 % confidence."""
        rank, error = self.rank(x), self.normalized_rank_error()
        if not self.low <= exact_point(self.family, x) < self.high:
            return rank, rank
        return max(1 / self.n, rank - error), min(1 - 1 / self.n, rank + error)

    def cdf(self, points: Any) -> np.ndarray:
        """The share of values up to each of the ascending `points`, and finally 1.0."""
        return np.append(self._ranks(ascending_points(self.family, points)), 1.0)

    def pmf(self, points: Any) -> np.ndarray:
        """The share in each interval that the ascending `points` bound, (−∞, p0], (p0, p1] … (pm, ∞)."""
        return np.diff(self.cdf(points), prepend=0.0)

    def answer(self) -> dict[str, Any]:
        """n and the usual quantiles with their bounds; no quantiles while empty."""
        return quantile_answer(self)

    def copy(self) -> Self:
        """An independent equal sketch that makes the same random choices."""
        twin = type(self)(self.k, self.kind, seed=0)
        twin._store = self._store.one(0)
        return twin

    def _untold(self) -> tuple[Any, ...]:
        return (self.kind,)

    def __repr__(self) -> str:
        if not self.n:
            return f"KLL(k={self.k}, kind={self.kind!r}, empty)"
        low, middle, high = self.low, self.quantile(0.5), self.high
        error = self.normalized_rank_error()
        return (
            f"KLL(k={self.k}, kind={self.kind!r}, n={self.n}, min={low:.6g}, median={middle:.6g}, "
            f"max={high:.6g}, ranks ±{error:.2%} at 99 %)"
        )

    def _sorted(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the items in ascending order and how many values are at most each, with exact ends."""
        self._check_not_empty()
        if self._view is None:
            items, weights = self._store.weighted(0)
            self._view = items, np.cumsum(weights)
        return self._view

    def _at(self, qs: np.ndarray) -> np.ndarray:
        items, up_to = self._sorted()
        # Beyond 2^53, not every n is a double, but the last rank must still be n.
        wanted = np.minimum(np.maximum(np.ceil(qs * self.n), 1).astype(np.int64), self.n)
        wanted = np.where(qs >= 1.0, self.n, wanted)
        estimates = items[np.minimum(np.searchsorted(up_to, wanted), len(items) - 1)]
        return np.where(wanted == 1, self.low, np.where(wanted == self.n, self.high, estimates)).astype(
            items.dtype
        )

    def _ranks(self, points: list[Any]) -> np.ndarray:
        items, up_to = self._sorted()
        # Python compares integers and doubles exactly; beyond 2^53, a cast would change the number.
        exact = [exact_point(self.family, x) for x in points]
        low, high = self.low, self.high
        within = [min(max(x, low), high) for x in exact]
        if self.kind == "long":
            xs = np.array([math.floor(x) for x in within], np.int64)
        else:
            xs = np.array([double_point(self.family, x) for x in within], np.float64)
        counts = np.concatenate([[0], up_to])[np.searchsorted(items, xs, side="right")]
        # The lowest and the highest value may not be among the items: at least one value is at most the
        # former, and at least one is above any point below the latter.
        ranks = np.clip(counts, 1, max(self.n - 1, 1)) / self.n
        below = np.array([x < low for x in exact], bool)
        above = np.array([x >= high for x in exact], bool)
        return np.where(below, 0.0, np.where(above, 1.0, ranks))

    def _check_not_empty(self) -> None:
        if not self.n:
            raise SketchError("KLL: an empty sketch has no quantiles and no ranks; update it first")
