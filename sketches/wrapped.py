"""Quantile sketches that others stored, through the `datasketches` package: REQ and t-digest.

They are read, asked, added to, merged and written behind the protocol of all sketches. The package trusts
its bytes (a broken REQ image makes it read out of bounds), so images are checked here before it sees them.
Its coins are seeded by the clock, so that two runs may differ within the promised error.
"""

from __future__ import annotations

import struct
from typing import Any, ClassVar, Self

import datasketches
import numpy as np

from .numbers import as_numbers
from .protocol import Sketch, SketchError

USUAL_QUANTILES = (0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999)
"""The quantiles that `answer` gives."""

_REQ_FAMILY, _TDIGEST_FAMILY = 17, 20
_EMPTY, _HIGH_RANKS, _RAW = 4, 8, 16
_COMPACTOR = struct.Struct("<QfBBHI")


class _Quantiles(Sketch):
    """What the two share; `_peer` is the package's sketch."""

    _peer: Any

    @property
    def n(self) -> int:
        """Values seen, NaN and nulls not counted."""
        raise NotImplementedError

    def quantile(self, q: float) -> float:
        """The value that a share `q` of all values is at most. Raises `SketchError` while empty."""
        return self.quantiles([q])[0]

    def quantiles(self, qs: Any) -> list[float]:
        """The values at several shares."""
        shares = np.asarray(qs, np.float64)
        self._check_not_empty()
        if not ((shares >= 0) & (shares <= 1)).all():
            raise SketchError(f"{self.family}: a quantile is asked by a share from 0 to 1, got {qs}")
        return [float(self._peer.get_quantile(q)) for q in shares.tolist()]

    def rank(self, x: float) -> float:
        """The share of values that are at most `x`."""
        self._check_not_empty()
        return float(self._peer.get_rank(x))

    def to_bytes(self) -> bytes:
        """The DataSketches image."""
        return bytes(self._peer.serialize())

    def _check_not_empty(self) -> None:
        if self._peer.is_empty():
            raise SketchError(f"{self.family}: an empty sketch has no quantiles and no ranks")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.to_bytes() == bytes(other)  # type: ignore[call-overload]

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if not self.n:
            return f"{self.family}(k={self._peer.k}, empty)"
        low, middle, high = self.quantiles([0, 0.5, 1])
        return f"{self.family}(k={self._peer.k}, n={self.n}, {low:.6g} … {middle:.6g} … {high:.6g})"


class REQ(_Quantiles):
    """Quantiles of floats whose rank error shrinks towards one end (DataSketches REQ).

    Error promised: near rank 1 (`high_ranks`, else near rank 0) the error of a rank r is a share of 1 − r,
    as `rank_bounds` tells at a confidence of one to three standard deviations. Items are 4-byte floats.

    Source: Cormode, Karnin, Liberty, Thaler, Veselý, "Relative Error Streaming Quantiles", PODS 2021.

    >>> sketch = REQ().update(np.arange(100_000.0))
    >>> lower, upper = sketch.rank_bounds(99_900.0)
    >>> lower <= 0.99901 <= upper, sketch.n
    (True, 100000)
    """

    family: ClassVar[str] = "REQ"

    def __init__(self, k: int = 12, high_ranks: bool = True) -> None:
        if not 4 <= k <= 1024 or k % 2:
            raise SketchError(f"REQ: k must be even and from 4 to 1024, got {k}")
        self._peer = datasketches.req_floats_sketch(k, high_ranks)

    @property
    def n(self) -> int:
        """Values seen, NaN and nulls not counted."""
        return int(self._peer.n)

    def update(self, values: Any) -> Self:
        """Add numbers, as 4-byte floats; NaN and nulls are skipped."""
        self._peer.update(np.array(as_numbers(values, np.float32, self.family).numbers))
        return self

    def merge(self, other: Self) -> Self:
        """Fold `other` in. Raises `SketchError` if it is accurate at the other end."""
        if not isinstance(other, REQ) or other._peer.is_hra() != self._peer.is_hra():
            raise SketchError(f"REQ: {other!r} isn't accurate at the same end")
        self._peer.merge(other.copy()._peer if other is self else other._peer)
        return self

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The sketch of a DataSketches REQ image of floats. Raises `SketchError` for anything else."""
        data = bytes(data)
        _check_req(data)
        sketch = cls()
        try:
            sketch._peer = datasketches.req_floats_sketch.deserialize(data)
        except (ValueError, RuntimeError, IndexError, MemoryError) as error:
            raise SketchError(f"REQ: these {len(data)} bytes are no sketch: {error}") from None
        return sketch

    def quantiles(self, qs: Any) -> list[float]:
        """The values at several shares."""
        super().quantiles([])
        shares = np.asarray(qs, np.float64)
        if not ((shares >= 0) & (shares <= 1)).all():
            raise SketchError(f"REQ: a quantile is asked by a share from 0 to 1, got {qs}")
        return [float(self._peer.get_quantile(q, True)) for q in shares.tolist()]

    def rank(self, x: float) -> float:
        """The share of values that are at most `x`."""
        self._check_not_empty()
        return float(self._peer.get_rank(x, True))

    def rank_bounds(self, x: float, std_devs: int = 2) -> tuple[float, float]:
        """The shares between which the true rank of `x` lies, at 1, 2 or 3 standard deviations."""
        rank = self.rank(x)
        return (
            self._peer.get_rank_lower_bound(rank, std_devs),
            self._peer.get_rank_upper_bound(rank, std_devs),
        )

    def answer(self) -> dict[str, Any]:
        """n and the usual quantiles with bounds at two standard deviations."""
        rows = []
        for q in USUAL_QUANTILES if self.n else ():
            edges = [
                self._peer.get_rank_lower_bound(q, 2),
                q,
                self._peer.get_rank_upper_bound(q, 2),
            ]
            lower, value, upper = self.quantiles(np.clip(edges, 0, 1))
            rows.append({"q": q, "value": value, "lower": lower, "upper": upper})
        return {"n": self.n, "quantiles": rows}


class TDigest(_Quantiles):
    """Quantiles of doubles by clusters that are smallest at both ends (DataSketches t-digest).

    No error is promised: a t-digest has none in the worst case, so its answers carry no bounds; use `KLL` or
    `DDSketch` for new data.

    Source: Dunning, Ertl, "Computing Extremely Accurate Quantiles Using t-Digests", 2019.

    >>> abs(TDigest().update(np.arange(1001.0)).quantile(0.5) - 500) < 20
    True
    """

    family: ClassVar[str] = "TDigest"

    def __init__(self, k: int = 200) -> None:
        if not 10 <= k <= 65_535:
            raise SketchError(f"TDigest: k must lie from 10 to 65535, got {k}")
        self._peer = datasketches.tdigest_double(k)

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
        """Fold `other` in."""
        if not isinstance(other, TDigest):
            raise SketchError(f"TDigest: can't take in {other!r}")
        self._peer.merge(other.copy()._peer if other is self else other._peer)
        return self

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The sketch of a DataSketches t-digest image of doubles. Raises `SketchError` for anything else."""
        data, sketch = bytes(data), cls()
        fault = _tdigest_fault(data)
        if fault:
            raise SketchError(f"TDigest: these {len(data)} bytes are no sketch of doubles: {fault}")
        try:
            sketch._peer = datasketches.tdigest_double.deserialize(data)
        except (ValueError, RuntimeError, IndexError, MemoryError) as error:
            raise SketchError(f"TDigest: these {len(data)} bytes are no sketch: {error}") from None
        return sketch

    def answer(self) -> dict[str, Any]:
        """n and the usual quantiles, without bounds, for none are promised."""
        rows = [
            {"q": q, "value": self.quantile(q), "lower": None, "upper": None}
            for q in (USUAL_QUANTILES if self.n else ())
        ]
        return {"n": self.n, "quantiles": rows}


def _check_req(data: bytes) -> None:
    """Raise `SketchError` unless every length, weight and item of a REQ image of floats agrees.

    8 bytes: preamble ints, serial version, family, flags, k (uint16), levels, raw items. Then up to four raw
    items, or, from two levels on, n and the lowest and highest item, and for each level its state, section
    size (float), lg weight, sections, items (uint32) and the items. Source: datasketches-cpp `req_sketch`.
    """
    fault = _req_fault(data)
    if fault:
        raise SketchError(f"REQ: these {len(data)} bytes are no sketch of floats: {fault}")


def _req_fault(data: bytes) -> str:
    if len(data) < 8:
        return "fewer bytes than its header needs"
    ints, version, family, flags, k, depth, raw = struct.unpack_from("<BBBBHBB", data)
    if version != 1 or family != _REQ_FAMILY or not 4 <= k <= 1024 or k % 2:
        return "another version, family or k"
    if ints != (4 if depth > 1 else 2) or flags & 3 or flags >> 6:
        return "an unknown header"
    if flags & _EMPTY:
        return "" if (len(data), depth, raw) == (8, 0, 0) else "an empty sketch followed by more"
    if flags & _RAW:
        if depth != 1 or not 1 <= raw <= 4 or len(data) < 8 + 4 * raw or any(data[8 + 4 * raw :]):
            return "raw items of another number than its length"
        return "an item is NaN" if np.isnan(np.frombuffer(data, "<f4", raw, 8)).any() else ""
    if not 1 <= depth <= 58 or raw:
        return "the number of levels is out of range"
    at, n, low, high = 8, -1, -np.inf, np.inf
    if depth > 1:
        if len(data) < 24:
            return "it ends within its header"
        n, low, high = struct.unpack_from("<Qff", data, 8)
        at = 24
    count = 0
    for level in range(depth):
        if len(data) < at + _COMPACTOR.size:
            return "it ends within a level"
        _, section, weight, sections, unused, items = _COMPACTOR.unpack_from(data, at)
        at += _COMPACTOR.size
        doublings = max(0, sections.bit_length() - 2)
        if weight != level or unused or sections != 3 << doublings or len(data) < at + 4 * items:
            return f"level {level} has another weight, number of sections or length"
        if not abs(section * 2 ** (doublings / 2) / k - 1) < 1e-4 or (
            level == 0 and depth == 1 and not items
        ):
            return f"level {level} has another section size than k makes"
        found = np.frombuffer(data, "<f4", items, at)
        if not ((found >= low) & (found <= high)).all():
            return f"level {level} holds NaN or an item beyond the lowest and highest"
        if (level > 0 or flags & 32) and (np.diff(found) < 0).any():
            return f"level {level} is out of order"
        at += 4 * items
        count += items << level
    if at != len(data) or n not in (-1, count) or count >= 1 << 62:
        return "its levels don't add up to n, or more bytes follow"
    return ""


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
    if version != 1 or family != _TDIGEST_FAMILY or k < 10 or flags > 7 or unused:
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
    pairs = np.frombuffer(data, np.dtype([("mean", "<f8"), ("weight", "<u8")]), centroids, 32)
    values = np.concatenate([pairs["mean"], np.frombuffer(data, "<f8", buffered, end - 8 * buffered)])
    if not (np.isfinite([low, high]).all() and ((values >= low) & (values <= high)).all()):
        return "a value is NaN, or beyond the lowest and highest"
    if (np.diff(pairs["mean"]) < 0).any() or (pairs["weight"] < 1).any():
        return "its centroids are out of order or have no weight"
    return "" if pairs["weight"].sum(dtype=float) < 2.0**53 else "its weights are beyond any count"
