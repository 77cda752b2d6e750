"""Quantiles by clusters: t-digests that others stored, through the `datasketches` package."""

from __future__ import annotations

import struct
from typing import Any, ClassVar, Self

import datasketches
import numpy as np

from ..core.aggregated import Aggregated
from ..core.column_kinds import numeric
from ..core.group_numbers import as_groups
from ..core.numbers import as_numbers
from ..core.one_by_one import OneByOne
from ..core.parameters import whole
from ..core.protocol import SketchError
from .package_quantiles import USUAL_QUANTILES, PackageQuantiles, read_checked

_FAMILY = 20
_SINGLE = 2


class TDigest(PackageQuantiles):
    """Quantiles of doubles by clusters that are smallest at both ends (DataSketches t-digest).

    No error is promised: a t-digest has none in the worst case, so its answers carry no bounds; use `KLL` or
    `DDSketch` for new data.

    Quantiles are interpolated here, between the clusters' means, since the package's own (5.2.0) weighs the
    two neighbours the wrong way round, so that they fall and rise in between.

    Source: Dunning, Ertl, "Computing Extremely Accurate Quantiles Using t-Digests", 2019.

    >>> abs(TDigest().update(np.arange(1001.0)).quantile(0.5) - 500) < 20
    True
    """

    family: ClassVar[str] = "TDigest"
    _inclusive = ()

    def __init__(self, k: int = 200) -> None:
        self._peer = datasketches.tdigest_double(whole("TDigest", "k", k, 10, 65_535))

    @property
    def n(self) -> int:
        """Values seen, NaN and nulls not counted."""
        return int(self._peer.get_total_weight())

    def update(self, values: Any) -> Self:
        """Add numbers; NaN and nulls are skipped. Raises `SketchError` for infinities, which have no mean."""
        numbers = as_numbers(values, np.float64, self.family).numbers
        if np.isinf(numbers).any():
            raise SketchError("TDigest: an infinity has no place in a cluster's mean; filter it out")
        self._peer.update(np.array(numbers[~np.isnan(numbers)]))
        return self

    def merge(self, other: Self) -> Self:
        """Fold `other` in. Raises `SketchError` for another family, and for more than 2^53 values."""
        if not isinstance(other, TDigest):
            raise SketchError(f"TDigest: can't take in {other!r}")
        if self.n + other.n >= 1 << 53:
            raise SketchError("TDigest: more values than its weights count exactly")
        self._peer.merge(other.copy()._peer if other is self else other._peer)
        return self

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The sketch of a DataSketches t-digest image of doubles. Raises `SketchError` for anything else."""
        data, sketch = bytes(data), cls()
        read = datasketches.tdigest_double.deserialize
        sketch._peer = read_checked("TDigest", data, _tdigest_fault(data), read)
        return sketch

    def _at(self, q: float) -> float:
        data = self.to_bytes()
        if data[5] & _SINGLE:
            return float(np.frombuffer(data, "<f8", 1, 8)[0])
        pairs, buffered = _clusters(data)
        means = np.concatenate([pairs["mean"], buffered])
        weights = np.concatenate([pairs["weight"].astype(np.float64), np.ones(len(buffered))])
        order = np.argsort(means, kind="stable")
        means, up_to = means[order], np.cumsum(weights[order])
        # A cluster's mean stands in the middle of its ranks; the ends lie before the first, after the last.
        middles = up_to - weights[order] / 2
        low, high = self._peer.get_min_value(), self._peer.get_max_value()
        ranks = np.concatenate([[0.0], middles, [up_to[-1]]])
        return float(np.interp(q * up_to[-1], ranks, np.concatenate([[low], means, [high]])))

    def answer(self) -> dict[str, Any]:
        """n and the usual quantiles, without bounds, for none are promised."""
        rows = [
            {"q": q, "value": self.quantile(q), "lower": None, "upper": None}
            for q in (USUAL_QUANTILES if self.n else ())
        ]
        return {"n": self.n, "quantiles": rows}


class TDigestGroups(OneByOne):
    """One `TDigest` a group: see there for why no error is promised.

    >>> groups = TDigestGroups(2)
    >>> groups.update(np.array([0, 1, 0]), [1.0, 2.0, 3.0])
    >>> groups[0].n
    2
    """

    aggregate: ClassVar = Aggregated({"k": 200}, of_column=numeric)

    _single = TDigest

    def update(self, groups: np.ndarray, values: Any, **inputs: Any) -> None:
        """Add each group's numbers. Infinities are left out: one in a stream must not end it."""
        numbers = as_numbers(values, np.float64, TDigest.family)
        owners = numbers.per_value(as_groups(groups, numbers.length, self._n))
        finite = ~np.isinf(numbers.numbers)
        super().update(owners[finite], numbers.numbers[finite], **inputs)


def _clusters(data: bytes) -> tuple[np.ndarray, np.ndarray]:
    """The means with their weights, and the buffered values, of an image of more than one value."""
    centroids, buffered = struct.unpack_from("<II", data, 8)
    pairs = np.frombuffer(data, np.dtype([("mean", "<f8"), ("weight", "<u8")]), centroids, 32)
    return pairs, np.frombuffer(data, "<f8", buffered, 32 + 16 * centroids)


def _tdigest_fault(data: bytes) -> str:
    """What is wrong with a t-digest image of doubles, if anything.

    8 bytes: preamble longs, serial version, family, k (uint16), flags, unused. Then the only value, or the
    numbers of centroids and of buffered values (uint32), the lowest and highest value, means with weights
    (uint64), and the buffered values. The package writes room for centroids it has just merged: zeros after
    the end are no fault.
    """
    if len(data) < 8:
        return "fewer bytes than its header needs"
    longs, version, family, k, flags, unused = struct.unpack_from("<BBBHBH", data)
    if version != 1 or family != _FAMILY or k < 10 or flags > 7 or unused:
        return "another version, family or k"
    if flags & 1 or flags & 2:
        size = 8 if flags & 1 else 16
        if longs != 1 or flags & 3 == 3 or len(data) != size:
            return "a length that isn't an empty or a single sketch's"
        return "" if np.isfinite(np.frombuffer(data, "<f8", -1, 8)).all() else "its value isn't finite"
    if longs != 2 or len(data) < 32:
        return "it ends within its header"
    centroids, buffered, low, high = struct.unpack_from("<IIdd", data, 8)
    end = 32 + 16 * centroids + 8 * buffered
    if len(data) < end or any(data[end:]) or centroids + buffered == 0:
        return "a length that isn't its centroids'"
    most = 2 * k + (30 if k < 30 else 10)
    if centroids > most or buffered > 4 * most:
        return "more centroids or buffered values than its k allows"
    pairs, single = _clusters(data)
    values = np.concatenate([pairs["mean"], single])
    if not (np.isfinite([low, high]).all() and ((values >= low) & (values <= high)).all()):
        return "a value is NaN, or beyond the lowest and highest"
    if (pairs["mean"][1:] < pairs["mean"][:-1]).any() or (pairs["weight"] < 1).any():
        return "its centroids are out of order or have no weight"
    return "" if pairs["weight"].sum(dtype=float) < 2.0**53 else "its weights are beyond any count"
