"""The common part of stored quantile sketches that the `datasketches` package computes.

They implement the protocol of all sketches. The package trusts its bytes (a broken image makes it read out of
bounds), so each family validates images before the package sees them. The package's coins are seeded by the
clock: two runs may differ within the promised error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ..core.one_by_one import Staged
from ..core.protocol import SketchError
from ..core.values.points import as_share, as_shares, double_point


def read_checked(family: str, data: bytes, fault: str, read: Callable[[bytes], Any]) -> Any:
    """Read the package's sketch from bytes, unless a fault was found. Raises `SketchError` for invalid
    bytes."""
    if fault:
        raise SketchError(f"{family}: these {len(data)} bytes are not a sketch: {fault}")
    try:
        return read(data)
    except (ValueError, RuntimeError, IndexError, MemoryError) as error:
        raise SketchError(f"{family}: these {len(data)} bytes are not a sketch: {error}") from None


class PackageQuantiles(Staged):
    """A quantile sketch with the package's sketch as its `_peer`."""

    _peer: Any
    _inclusive: ClassVar[tuple[bool, ...]] = (True,)
    _most: ClassVar[int]
    """The most values that a sketch counts."""

    @property
    def n(self) -> int:
        """The number of values seen, without NaN and nulls."""
        raise NotImplementedError

    def _saw_nothing(self) -> bool:
        return not self.n

    def _within(self, numbers: np.ndarray) -> np.ndarray:
        """Validate the numbers to add. Raises `SketchError` if the sketch can't count as many."""
        self._refuse_beyond(int(np.count_nonzero(~np.isnan(numbers))))
        return numbers

    def _refuse_beyond(self, coming: int) -> None:
        if self.n + coming > self._most:
            raise SketchError(f"{self.family}: a sketch counts at most {self._most} values, and has {self.n}")

    def _add_staged(self, rows: np.ndarray) -> None:
        self._peer.update(rows)

    def quantile(self, q: float) -> float:
        """The value that a share `q` of all values is at most. Raises `SketchError` while empty."""
        return self.quantiles(as_share(self.family, q))[0]

    def quantiles(self, qs: Any) -> list[float]:
        """The values at several shares. Raises `SketchError` while empty, and for shares outside 0 to 1."""
        shares = as_shares(self.family, qs)
        self._check_not_empty()
        # The lowest and the highest value are stored separately from the samples that quantiles use.
        ends = {0.0: self._peer.get_min_value, 1.0: self._peer.get_max_value}
        return [float(ends[q]() if q in ends else self._at(q)) for q in shares.tolist()]

    def _at(self, q: float) -> float:
        return float(self._peer.get_quantile(q, *self._inclusive))

    def rank(self, x: float) -> float:
        """The share of values that are at most `x`. Raises `SketchError` while empty, and for NaN."""
        self._check_not_empty()
        point, high = double_point(self.family, x), self._peer.get_max_value()
        if not self._peer.get_min_value() <= point < high:
            return float(point >= high)
        # At least one value is at most this, and one is above it, although neither may be among the samples.
        rank = float(self._peer.get_rank(point, *self._inclusive))
        return min(max(rank, 1 / self.n), 1 - 1 / self.n)

    def to_bytes(self) -> bytes:
        """Return the DataSketches image, which does not change by queries, although they sort items."""
        if not self._peer.is_empty():
            self._peer.get_rank(0.0)
        return bytes(self._peer.serialize())

    def _check_not_empty(self) -> None:
        if self._peer.is_empty():
            raise SketchError(f"{self.family}: an empty sketch has no quantiles and no ranks")

    def __repr__(self) -> str:
        if not self.n:
            return f"{self.family}(k={self._peer.k}, empty)"
        low, middle, high = self.quantiles([0, 0.5, 1])
        return f"{self.family}(k={self._peer.k}, n={self.n}, {low:.6g} … {middle:.6g} … {high:.6g})"
