"""Quantiles that are accurate in the tail: REQ sketches that others stored, by the `datasketches` package."""

from __future__ import annotations

import struct
from typing import Any, ClassVar, Self

import datasketches
import numpy as np

from ..core.aggregated import Aggregated
from ..core.answers import finite
from ..core.column_kinds import numeric
from ..core.numbers import as_numbers
from ..core.one_by_one import OneByOne
from ..core.parameters import flag, whole
from ..core.protocol import SketchError
from .package_quantiles import USUAL_QUANTILES, PackageQuantiles, read_checked

_FAMILY = 17
_EMPTY, _RAW = 4, 16
_COMPACTOR = struct.Struct("<QfBBHI")


class REQ(PackageQuantiles):
    """Quantiles of floats whose rank error shrinks towards one end (DataSketches REQ).

    Error promised: near rank 1 (`high_ranks`, else near rank 0) the error of a rank r is a share of 1 − r,
    as `rank_bounds` tells with 68.3, 95.4 or 99.7 % confidence at 1, 2 or 3 standard deviations. Items are
    4-byte floats. Merging in any order and any shape of tree adds nothing to the error, since the smaller
    sketch is always taken into the larger; of different k the smaller counts. Raises `SketchError` for broken
    bytes, parameters out of range, and questions to an empty sketch.

    Source: Cormode, Karnin, Liberty, Thaler, Veselý, "Relative Error Streaming Quantiles", PODS 2021.

    >>> sketch = REQ().update(np.arange(100_000.0))
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
        self._peer.update(as_numbers(values, np.float32, self.family).numbers + np.float32(0.0))
        return self

    def merge(self, other: Self) -> Self:
        """Fold `other` in. Raises `SketchError` if it is accurate at the other end."""
        if not isinstance(other, REQ) or other._peer.is_hra() != self._peer.is_hra():
            raise SketchError(f"REQ: {other!r} isn't accurate at the same end")
        if self.n + other.n >= 1 << 62:
            raise SketchError("REQ: more values than any sketch counts")
        if not other.n:
            return self
        # The package keeps the k of the one merged into, and with it bounds that what a smaller k counted
        # does not keep; of a large sketch merged into a small one, time and again, its bounds hold nowhere.
        into, taken = sorted((self, other.copy()), key=lambda one: (one._peer.k, -one.n))
        into._peer.merge(taken._peer)
        self._peer = into._peer
        return self

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The sketch of a DataSketches REQ image of floats. Raises `SketchError` for anything else."""
        data, sketch = bytes(data), cls()
        read = datasketches.req_floats_sketch.deserialize
        sketch._peer = read_checked("REQ", data, _req_fault(data), read)
        return sketch

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
        return finite({"n": self.n, "quantiles": rows})


class REQGroups(OneByOne):
    """One `REQ` a group: see there for the error promised.

    >>> groups = REQGroups(2)
    >>> groups.update(np.array([0, 1, 0]), [1.0, 2.0, 3.0])
    >>> groups[0].n
    2
    """

    aggregate: ClassVar = Aggregated({"k": 12, "high_ranks": True}, of_column=numeric)

    _single = REQ


def _req_fault(data: bytes) -> str:
    """What is wrong with a REQ image of floats, if anything.

    8 bytes: preamble ints, serial version, family, flags, k (uint16), levels, raw items. Then up to four raw
    items, or, from two levels on, n and the lowest and highest item, and for each level its state, section
    size (float), lg weight, sections, items (uint32) and the items. Source: datasketches-cpp `req_sketch`.
    """
    if len(data) < 8:
        return "fewer bytes than its header needs"
    ints, version, family, flags, k, depth, raw = struct.unpack_from("<BBBBHBB", data)
    if version != 1 or family != _FAMILY or not 4 <= k <= 1024 or k % 2:
        return "another version, family or k"
    if ints != (4 if depth > 1 else 2) or flags & 3 or flags >> 6:
        return "an unknown header"
    if flags & _EMPTY:
        return "" if (len(data), depth, raw) == (8, 0, 0) else "an empty sketch followed by more"
    if flags & _RAW:
        if depth != 1 or not 1 <= raw <= 4 or len(data) < 8 + 4 * raw or any(data[8 + 4 * raw :]):
            return "raw items of another number than its length"
        found = np.frombuffer(data, "<f4", raw, 8)
        if flags & 32 and (found[1:] < found[:-1]).any():
            return "raw items are out of order"
        return "an item is NaN" if np.isnan(found).any() else ""
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
        state, section, weight, sections, unused, items = _COMPACTOR.unpack_from(data, at)
        at += _COMPACTOR.size
        if (state == 0) != (level == depth - 1):
            return f"level {level} was compacted, or not, against what lies above it"
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
        if (level > 0 or flags & 32) and (found[1:] < found[:-1]).any():
            return f"level {level} is out of order"
        at += 4 * items
        count += items << level
    if at != len(data) or n not in (-1, count) or count >= 1 << 62:
        return "its levels don't add up to n, or more bytes follow"
    return ""
