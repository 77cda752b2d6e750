"""Quantiles as Druid stored them for years: classic quantiles, through the `datasketches` package."""

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
from ..core.parameters import whole
from ..core.protocol import SketchError
from .package_quantiles import USUAL_QUANTILES, PackageQuantiles, read_checked

_FAMILY = 8
_EMPTY, _COMPACT, _ORDERED = 4, 8, 16
_HEADER = struct.Struct("<BBBBHH")
_MOST = 1 << 47


class ClassicQuantiles(PackageQuantiles):
    """Quantiles of doubles by levels of k values (DataSketches' first quantiles sketch, Druid's
    `doublesSketch`).

    For reading, asking, adding to and merging what others stored; `KLL` is smaller at the same error.
    Promise: the rank of every answer is off by at most `normalized_rank_error` (1.73 % at k = 128) at 99 %
    confidence; `rank_bounds` tells. Merging adds nothing to it, of different k the smaller counts. Compact
    and updatable images are read, those of Java too, whose empty levels the package would misread; compact
    ones are written. `k` is a power of 2 from 2 to 32768. Raises `SketchError` for broken bytes and
    parameters out of range.

    Source: Agarwal, Cormode, Huang, Phillips, Wei, Yi, "Mergeable Summaries", PODS 2012.

    >>> sketch = ClassicQuantiles().update(np.arange(100_000.0))
    >>> lower, upper = sketch.rank_bounds(50_000.0)
    >>> lower <= 0.5 <= upper, sketch.n
    (True, 100000)
    """

    family: ClassVar[str] = "ClassicQuantiles"

    def __init__(self, k: int = 128) -> None:
        if whole("ClassicQuantiles", "k", k, 2, 32_768) & (k - 1):
            raise SketchError(f"ClassicQuantiles: k must be a power of 2 from 2 to 32768, got {k}")
        self._peer = datasketches.quantiles_doubles_sketch(k)

    @property
    def n(self) -> int:
        """Values seen, NaN and nulls not counted."""
        return int(self._peer.n)

    def update(self, values: Any) -> Self:
        """Add numbers; NaN and nulls are skipped."""
        numbers = as_numbers(values, np.float64, self.family).numbers
        # One zero, as the package leaves equal values in any order.
        self._peer.update(numbers[~np.isnan(numbers)] + 0.0)
        return self

    def merge(self, other: Self) -> Self:
        """Fold `other` in."""
        if not isinstance(other, ClassicQuantiles):
            raise SketchError(f"ClassicQuantiles: can't take in {other!r}")
        if other.n + self.n >= _MOST:
            raise SketchError("ClassicQuantiles: more values than any sketch counts")
        self._peer.merge(other.copy()._peer if other is self else other._peer)
        return self

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The sketch of a DataSketches image of doubles. Raises `SketchError` for anything else."""
        sketch, image = cls(), bytes(data)
        compact, fault = _compacted(image)
        read = datasketches.quantiles_doubles_sketch.deserialize
        sketch._peer = read_checked(cls.family, compact or image, fault, read)
        return sketch

    @property
    def exact(self) -> bool:
        """Whether every value is kept."""
        return not self._peer.is_estimation_mode()

    def normalized_rank_error(self) -> float:
        """How far a rank may be off at 99 % confidence; 0 while every value is kept."""
        return 0.0 if self.exact else float(self._peer.normalized_rank_error(False))

    def rank_bounds(self, x: float) -> tuple[float, float]:
        """The shares between which the true rank of `x` lies, at 99 % confidence."""
        rank, error = self.rank(x), self.normalized_rank_error()
        return max(rank - error, 0.0), min(rank + error, 1.0)

    def answer(self) -> dict[str, Any]:
        """n and the usual quantiles with bounds at 99 % confidence."""
        error, rows = self.normalized_rank_error(), []
        for q in USUAL_QUANTILES if self.n else ():
            lower, value, upper = self.quantiles(np.clip([q - error, q, q + error], 0, 1))
            rows.append({"q": q, "value": value, "lower": lower, "upper": upper})
        return finite({"n": self.n, "quantiles": rows})


class ClassicQuantilesGroups(OneByOne):
    """One `ClassicQuantiles` a group: see there for the error promised.

    >>> groups = ClassicQuantilesGroups(2)
    >>> groups.update(np.array([0, 1, 0]), [1.0, 2.0, 3.0])
    >>> groups[0].n
    2
    """

    aggregate: ClassVar = Aggregated({"k": 128}, of_column=numeric)

    _single = ClassicQuantiles


def _compacted(data: bytes) -> tuple[bytes, str]:
    """The compact ordered image of an image of doubles; or what is wrong with it.

    8 bytes: preamble longs, serial version (3), family, flags (2 read-only, 4 empty, 8 compact, 16 ordered),
    k (uint16), 0. Unless empty: n (uint64), the lowest and highest value, the n mod 2k of the base buffer,
    then for each bit of n / 2k a level of k values in order. Compact images leave out the levels of zero
    bits, and room in the base buffer. Source: datasketches-java 6.2.0 `quantiles.DoublesUtil`,
    `DirectUpdateDoublesSketch`.
    """
    if len(data) < 8:
        return b"", "fewer bytes than its header needs"
    longs, version, family, flags, k, unused = _HEADER.unpack_from(data)
    if version != 3 or family != _FAMILY or flags & ~30 or unused:
        return b"", "another version, family or flags"
    if not 2 <= k <= 32_768 or k & (k - 1):
        return b"", f"k must be a power of 2 from 2 to 32768, got {k}"
    if flags & _EMPTY:
        if longs != 1 or len(data) != 8:
            return b"", "an empty sketch followed by more"
        return _HEADER.pack(1, 3, _FAMILY, _EMPTY | _COMPACT | _ORDERED, k, 0), ""
    n = int.from_bytes(data[8:16], "little")
    if longs != 2 or not 0 < n < _MOST or len(data) < 32 or len(data) % 8:
        return b"", "it ends within its header, or counts too much"
    with np.errstate(invalid="ignore"):  # a signalling NaN, refused below
        numbers = np.frombuffer(data, "<f8", -1, 16) + 0.0
    low, high, held = numbers[0], numbers[1], numbers[2:]
    based, levels = n % (2 * k), n // (2 * k)
    if flags & _COMPACT:
        room, used = based, k * levels.bit_count()
    else:
        room, used = (2 * k if levels else min(len(held), 2 * k)), k * levels.bit_length()
    if len(held) != room + used or room < based:
        return b"", "a length that isn't its values'"
    parts = [np.sort(held[:based])]
    at = room
    while levels:
        if levels & 1:
            parts.append(held[at : at + k])
            if (parts[-1][1:] < parts[-1][:-1]).any():
                return b"", "a level is out of order"
        at += k if levels & 1 or not flags & _COMPACT else 0
        levels >>= 1
    values = np.concatenate(parts)
    if np.isnan([low, high]).any() or not ((values >= low) & (values <= high)).all():
        return b"", "a value is NaN, or beyond the lowest and highest"
    head = _HEADER.pack(2, 3, _FAMILY, _COMPACT | _ORDERED, k, 0) + data[8:16]
    return head + numbers[:2].tobytes() + values.tobytes(), ""
