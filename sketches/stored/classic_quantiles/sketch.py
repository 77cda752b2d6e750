"""Quantiles as Druid stored them for years: classic quantiles, through the `datasketches` package."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import datasketches
import numpy as np

from ...core.answers import quantile_answer
from ...core.parameters import whole
from ...core.protocol import SketchError
from ...core.values.numbers import as_numbers
from ...core.values.points import as_share
from ..package_quantiles import PackageQuantiles, read_checked
from .images import MOST, compacted


class ClassicQuantiles(PackageQuantiles):
    """Quantiles of doubles by levels of k values (DataSketches' first quantiles sketch, Druid's
    `doublesSketch`).

    It reads, queries, extends and merges stored sketches; `KLL` is smaller at the same error. Promise: the
    rank of every answer is off by at most `normalized_rank_error` (1.41 % at k = 128) at 99 % confidence; see
    `rank_bounds`. Merging adds no error; of different k the smaller counts. It reads compact and updatable
    images, also Java's, whose empty levels the package would misread, and writes compact ones. `k` is a power
    of 2 from 2 to 32768. Fewer than 2^47 values are counted. Raises `SketchError` for broken bytes and
    parameters out of range.

    Source: Agarwal, Cormode, Huang, Phillips, Wei, Yi, "Mergeable Summaries", PODS 2012.

    >>> import streamgauge as sg
    >>> sketch = sg.stored.ClassicQuantiles().update(np.arange(100_000.0))
    >>> lower, upper = sketch.rank_bounds(50_000.0)
    >>> lower <= 0.5 <= upper, sketch.n
    (True, 100000)
    """

    family: ClassVar[str] = "ClassicQuantiles"
    _most: ClassVar[int] = MOST - 1

    def __init__(self, k: int = 128) -> None:
        if (k := whole("ClassicQuantiles", "k", k, 2, 32_768)) & (k - 1):
            raise SketchError(f"ClassicQuantiles: k must be a power of 2 from 2 to 32768, got {k}")
        self._peer = datasketches.quantiles_doubles_sketch(k)

    @property
    def n(self) -> int:
        """The number of values seen, without NaN and nulls."""
        return int(self._peer.n)

    def update(self, values: Any) -> Self:
        """Add numbers; NaN and nulls are skipped."""
        self._add_staged(self._staged(values))
        return self

    def _staged(self, values: Any) -> np.ndarray:
        numbers = as_numbers(values, np.float64, self.family).numbers
        # A single zero, because the package leaves equal values in any order.
        return self._within(numbers[~np.isnan(numbers)] + 0.0)

    def merge(self, other: Self) -> Self:
        """Merge `other` into this sketch."""
        self._refuse_merge(other)
        self._peer.merge(other.copy()._peer if other is self else other._peer)
        return self

    def _refuse_merge(self, other: Any, coming: int = 0) -> None:
        if not isinstance(other, ClassicQuantiles):
            raise SketchError(f"ClassicQuantiles: can't take in {other!r}")
        self._refuse_beyond(coming + other.n)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a sketch from a DataSketches image of doubles. Raises `SketchError` for anything else."""
        sketch, image = cls(), bytes(data)
        compact, fault = compacted(image)
        read = datasketches.quantiles_doubles_sketch.deserialize
        sketch._peer = read_checked(cls.family, compact or image, fault, read)
        return sketch

    @property
    def exact(self) -> bool:
        """Whether every value is stored."""
        return not self._peer.is_estimation_mode()

    def normalized_rank_error(self) -> float:
        """The largest rank error at 99 % confidence; 0 while every value is stored."""
        return 0.0 if self.exact else float(self._peer.normalized_rank_error(False))

    def rank_bounds(self, x: float) -> tuple[float, float]:
        """The shares between which the true rank of `x` lies, at 99 % confidence."""
        rank, error = self.rank(x), self.normalized_rank_error()
        return max(rank - error, 0.0), min(rank + error, 1.0)

    def quantile_bounds(self, q: float) -> tuple[float, float]:
        """The values between which the true quantile lies at 99 % confidence."""
        share, error = as_share(self.family, q), self.normalized_rank_error()
        lower, upper = self.quantiles(np.clip([share - error, share + error], 0, 1))
        return lower, upper

    def answer(self) -> dict[str, Any]:
        """n and the usual quantiles with bounds at 99 % confidence."""
        return quantile_answer(self)
