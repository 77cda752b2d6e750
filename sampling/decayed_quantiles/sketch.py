"""The distribution of values, weighted by age: decayed with the weights of `DecayedReservoir`."""

from __future__ import annotations

import math
import struct
from datetime import timedelta
from typing import Any, ClassVar, Self

import numpy as np

from ...sketches.core.answers import quantile_answer
from ...sketches.core.columns.times import as_times
from ...sketches.core.one_by_one import Staged
from ...sketches.core.parameters import real, seconds
from ...sketches.core.protocol import SketchError
from ...sketches.core.values.numbers import as_numbers
from ...sketches.core.values.points import as_share, as_shares, double_point
from ..core.decay import HalfLife, moved

_HEAD = struct.Struct("<4sBxxxddqqI4x")
_MAGIC, _VERSION = b"SGDQ", 1
_FINEST, _COARSEST = 1e-4, 0.5
_LEAST = 2.2250738585072014e-308
_ROUNDING, _EDGE_ERROR = 1e-9, 1e-12
_MOST = (1 << 62) - 1
"""The most values that a sketch counts."""


class DecayedQuantiles(Staged):
    """Quantiles of a stream in which each value is weighted by 2^(−age / half_life).

    It has the weights of `DecayedReservoir` and `DecayedCount` (forward decay, see `decay`) in the buckets of
    `DDSketch`. Promise, always: each quantile is off by at most `relative_accuracy` from a value at which the
    decayed weight of the smaller values reaches that share, up to rounding (10^−9 of the weight);
    `quantile_bounds` returns the edges of its bucket. Merging adds no error; any batching and order give the
    same up to rounding. Magnitudes below 2.2e-308 count as zero; NaN and nulls are skipped. Memory is 16
    bytes for each bucket in use: 115 per factor of ten at 1 %. A row that is 1,074 half-lives later than all
    others outweighs them entirely.

    `half_life` is a timedelta or seconds, times are timestamps or int64 microseconds since 1970. Raises
    `SketchError` for parameters out of range, sketches with other parameters, and bytes that are not decayed
    quantiles.

    Source: Cormode, Shkapenyuk, Srivastava, Xu, "Forward Decay", ICDE 2009, section IV-C; Masson, Rim, Lee,
    "DDSketch", VLDB 2019.

    >>> import streamgauge as sg
    >>> minutes = np.arange(200)
    >>> sketch = sg.DecayedQuantiles(half_life=60.0).update(minutes, time=minutes * 60_000_000)
    >>> 196 <= sketch.quantile(0.5) <= 200
    True
    """

    family: ClassVar[str] = "DecayedQuantiles"

    def __init__(self, half_life: timedelta | float = 3600.0, relative_accuracy: float = 0.01) -> None:
        self._decay = HalfLife(seconds(self.family, "half_life", half_life))
        self._accuracy = real(self.family, "relative_accuracy", relative_accuracy, _FINEST, _COARSEST)
        self._log_gamma = math.log1p(2 * self._accuracy / (1 - self._accuracy))
        # Keys ascend with values: positive buckets from `_shift` up, negative ones from −`_shift` down.
        self._shift = math.ceil(745 / self._log_gamma) + 2
        self._epoch, self._n = np.iinfo(np.int64).min, 0
        self._keys, self._weights = np.empty(0, np.int64), np.empty(0)

    @property
    def half_life(self) -> float:
        """The half-life in seconds."""
        return self._decay.seconds

    @property
    def relative_accuracy(self) -> float:
        """The error promised, as a share of the value."""
        return self._accuracy

    @property
    def n(self) -> int:
        """The number of values seen, without NaN and nulls."""
        return self._n

    def update(self, values: Any, time: Any = None) -> Self:
        """Add numbers with their event times, one per row or one for all; NaN and nulls are skipped."""
        self._add_staged(self._staged(values, time))
        return self

    def _staged(self, values: Any, time: Any = None) -> tuple[np.ndarray, np.ndarray]:
        column = as_numbers(values, np.float64, self.family)
        numbers, times = column.numbers, column.per_value(as_times(time, column.length, self.family))
        kept = ~np.isnan(numbers)
        self._refuse_beyond(int(kept.sum()))
        return numbers[kept], times[kept]

    def _add_staged(self, rows: tuple[np.ndarray, np.ndarray]) -> None:
        numbers, times = rows
        if len(numbers):
            weights, epochs = self._decay.weighed(times)
            latest = int(epochs.max())
            weights = moved(weights, epochs, np.full(len(weights), latest))
            self._add(self._keys_of(numbers), weights, latest, len(numbers))

    def _keys_of(self, numbers: np.ndarray) -> np.ndarray:
        size = np.abs(numbers)
        with np.errstate(divide="ignore"):
            keys = np.ceil(np.log(size) / self._log_gamma)
        keys = np.where(size < _LEAST, -self._shift, np.minimum(keys, self._shift - 1))
        return (np.sign(numbers) * (keys + self._shift)).astype(np.int64)

    def _add(self, keys: np.ndarray, weights: np.ndarray, epoch: int, n: int) -> None:
        """Add weights, relative to an epoch, to their buckets."""
        newest = max(self._epoch, epoch) if self._n else epoch
        mine, theirs = (
            moved(part, np.full(len(part), old), np.full(len(part), newest))
            for part, old in ((self._weights, self._epoch), (weights, epoch))
        )
        keys, weights = np.concatenate([self._keys, keys]), np.concatenate([mine, theirs])
        order = np.argsort(keys, kind="stable")
        keys, weights = keys[order], weights[order]
        firsts = np.flatnonzero(np.diff(keys, prepend=keys[:1] - 1))
        sums = np.add.reduceat(weights, firsts) if len(firsts) else weights
        self._keys, self._weights = keys[firsts][sums > 0], sums[sums > 0]
        self._epoch, self._n = newest, self._n + n

    def merge(self, other: Self) -> Self:
        """Add the other's values. Raises `SketchError` for a different half-life or accuracy."""
        self._refuse_merge(other)
        if other._n:
            self._add(other._keys, other._weights, other._epoch, other._n)
        return self

    def _refuse_merge(self, other: Any, coming: int = 0) -> None:
        if not isinstance(other, DecayedQuantiles):
            raise SketchError(f"{self.family}: can't take in {other!r}")
        mine, theirs = ((one.half_life, one.relative_accuracy) for one in (self, other))
        if mine != theirs:
            raise SketchError(f"{self.family}: half-life and accuracy {theirs} can't be merged into {mine}")
        self._refuse_beyond(coming + other._n)

    def _refuse_beyond(self, coming: int) -> None:
        if self._n + coming > _MOST:
            raise SketchError(f"{self.family}: a sketch counts at most {_MOST} values, and has {self._n}")

    def quantile(self, q: float) -> float:
        """The value at which the decayed weight reaches the share q. Raises `SketchError` while empty."""
        return self.quantiles(as_share(self.family, q))[0]

    def quantiles(self, qs: Any) -> list[float]:
        """The values at one share or several, as a list."""
        return [self._value(key) for key in self._at(qs)]

    def quantile_bounds(self, q: float) -> tuple[float, float]:
        """The edges of the bucket that always contains the true quantile, up to rounding of weights."""
        (key,) = self._at(as_share(self.family, q))
        lower, upper = self._edges(key)
        if not key:
            return lower, upper
        # The errors of logarithms and powers are smaller, so these edges also contain a value at an edge.
        least, most = lower - abs(lower) * _EDGE_ERROR, upper + abs(upper) * _EDGE_ERROR
        return least if math.isfinite(lower) else lower, most if math.isfinite(upper) else upper

    def rank_bounds(self, x: float) -> tuple[float, float]:
        """The shares of weight between which the rank of `x` always lies: without and with its bucket."""
        self._at([])
        (key,) = self._keys_of(np.array([double_point(self.family, x)]))
        sums, total = np.cumsum(self._weights), self._weights.sum()
        below, upto = (np.searchsorted(self._keys, key, side) for side in ("left", "right"))
        return tuple(float(sums[at - 1] / total) if at else 0.0 for at in (below, upto))  # type: ignore[return-value]

    def _at(self, qs: Any) -> list[int]:
        shares = as_shares(self.family, qs)
        if not self._n:
            raise SketchError(f"{self.family}: an empty sketch has no quantiles; update it first")
        sums = np.cumsum(self._weights)
        ranks = np.searchsorted(sums, shares * sums[-1] * (1 - _ROUNDING * 1e-3))
        return self._keys[np.minimum(ranks, len(sums) - 1)].tolist()

    def _value(self, key: int) -> float:
        lower, upper = self._edges(key)
        if key == 0:
            return 0.0
        if not (
            math.isfinite(lower) and math.isfinite(upper)
        ):  # the edge nearer to zero: finite values, if any
            return lower if key > 0 else upper
        return lower * (2 / (1 + lower / upper))

    def _edges(self, key: int) -> tuple[float, float]:
        if key == 0:
            return -_LEAST, _LEAST
        power = abs(key) - self._shift
        if power >= self._shift - 1:
            edges = math.inf, math.inf
        else:
            edges = _exp((power - 1) * self._log_gamma), _exp(power * self._log_gamma)
        return edges if key > 0 else (-edges[1], -edges[0])

    def answer(self) -> dict[str, Any]:
        """n and the usual quantiles with their bounds; no quantiles while empty."""
        return quantile_answer(self)

    def to_bytes(self) -> bytes:
        """Half-life, accuracy, epoch, n, number of buckets (48 bytes); keys and weights, 8 bytes each."""
        head = _HEAD.pack(
            _MAGIC, _VERSION, self.half_life, self._accuracy, self._epoch, self._n, len(self._keys)
        )
        return head + self._keys.astype("<i8").tobytes() + self._weights.astype("<f8").tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a sketch from its bytes. Raises `SketchError` for anything else."""
        data = bytes(data)
        if len(data) < _HEAD.size or data[:5] != _MAGIC + bytes([_VERSION]):
            raise SketchError(f"{cls.family}: these {len(data)} bytes are not decayed quantiles")
        _, _, half_life, accuracy, epoch, n, used = _HEAD.unpack_from(data)
        sketch = cls(half_life, accuracy)
        if len(data) != _HEAD.size + 16 * used or any(data[5:8]) or any(data[44:48]):
            raise SketchError(f"{cls.family}: {len(data)} bytes can't hold {used} buckets")
        keys = np.frombuffer(data, "<i8", used, _HEAD.size).astype(np.int64)
        weights = np.frombuffer(data, "<f8", used, _HEAD.size + 8 * used).astype(np.float64)
        if not 0 <= n <= _MOST or (n > 0) != (used > 0) or (n == 0 and epoch != sketch._epoch):
            raise SketchError(f"{cls.family}: {used} buckets can't hold {n} values")
        # The latest value is in the epoch and has a weight from 1 to 2; no weight is larger.
        total = weights.sum() if np.isfinite(weights).all() else math.nan
        if used and not ((weights > 0).all() and 1 - _ROUNDING <= total <= 2.0 * n * (1 + _ROUNDING)):
            raise SketchError(f"{cls.family}: weights that {n} values can't have")
        if (keys[1:] <= keys[:-1]).any() or (used and max(-int(keys[0]), int(keys[-1])) >= 2 * sketch._shift):
            raise SketchError(f"{cls.family}: buckets out of order, or of no double")
        if n and not abs(epoch) <= (1 << 63) // sketch._decay.span + 1:
            raise SketchError(f"{cls.family}: an epoch beyond all times")
        sketch._epoch, sketch._n, sketch._keys, sketch._weights = epoch, n, keys, weights
        return sketch

    def __repr__(self) -> str:
        if not self._n:
            return f"DecayedQuantiles(half_life={self.half_life:g}, empty)"
        low, middle, high = self.quantiles([0, 0.5, 1])
        shown = f"{low:.6g} … {middle:.6g} … {high:.6g}"
        return f"DecayedQuantiles(half_life={self.half_life:g}, n={self._n}, {shown}, ±{self._accuracy:.2%})"


def _exp(x: float) -> float:
    return math.exp(x) if x < 709.78 else math.inf
