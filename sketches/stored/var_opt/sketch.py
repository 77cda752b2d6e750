"""Stored weighted samples: VarOpt sketches, through the `datasketches` package."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Self

import datasketches
import numpy as np
import pyarrow as pa

from ...core.answers import finite
from ...core.arguments import shown
from ...core.columns.columns import as_values
from ...core.columns.utf8_repair import readable
from ...core.columns.weights import as_doubles
from ...core.locking import holding_no_lock
from ...core.one_by_one import Staged
from ...core.parameters import one_of, whole
from ...core.protocol import SketchError, required_kind
from ...core.values.numbers import as_numbers
from .images import FORMATS, MOST_K, MOST_ROWS, before_tie, image_fault

_TYPES = {"long": pa.int64(), "double": pa.float64(), "string": pa.string()}
_FAULTS = (ValueError, RuntimeError, IndexError, MemoryError, OverflowError)


class SubsetSum(NamedTuple):
    """The weight of a subset: its estimate, its bounds at 95.4 %, and the weight of all rows."""

    estimate: float
    lower: float
    upper: float
    total: float


class VarOpt(Staged):
    """k rows with weights, for sums over any subset chosen later (DataSketches VarOpt).

    It reads, queries, extends and merges stored samples; for new data `WeightedReservoir` accepts columns of
    any type and merges to the same sample in every order. Promise: sums of subsets are unbiased, the total is
    exact up to rounding, no scheme of k samples has a smaller average variance; `subset_sum` contains the
    true weight at 95.4 %. Rows of weight 0 are never sampled; fewer than 2^48 rows are counted. `kind` is the
    type of the items, ``"string"``, ``"long"`` or ``"double"``, which an image doesn't record. The package's
    random choices are seeded by the clock.

    The package allocates any memory that an image requests and trusts its heap, so images are first checked
    completely here, and images with k above 2^20 are refused. Raises `SketchError` for unsound images,
    parameters out of range, and samples of another kind; `ValueError` for weights that are negative or not
    finite.

    Source: Cohen, Duffield, Kaplan, Lund, Thorup, "Efficient Stream Sampling for Variance-Optimal Estimation
    of Subset Sums", SIAM J. Comput. 2011.

    >>> import streamgauge as sg
    >>> sample = sg.stored.VarOpt(k=10).update(["a", "b", "c"], weight=[5.0, 1.0, 2.0])
    >>> sample.subset_sum(lambda item: item != "c")
    SubsetSum(estimate=6.0, lower=6.0, upper=6.0, total=8.0)
    """

    family: ClassVar[str] = "VarOpt"

    def __init__(self, k: int = 100, kind: str = "string") -> None:
        self.kind = one_of("VarOpt", "kind", kind, _TYPES)
        self._peer = datasketches.var_opt_sketch(whole("VarOpt", "k", k, 1, MOST_K))
        self._stored = False  # whether it comes from bytes, and must be converted before rows are added

    @property
    def k(self) -> int:
        """The largest number of rows stored."""
        return int(self._peer.k)

    @property
    def n(self) -> int:
        """The number of rows seen, without nulls and rows of weight 0."""
        return int(self._peer.n)

    def _saw_nothing(self) -> bool:
        return not self.n

    def __len__(self) -> int:
        """Return the number of stored rows."""
        return int(self._peer.num_samples)

    def update(self, values: Any, weight: Any = 1.0) -> Self:
        """Add values with their weights, one per row or one for all. Returns the sketch itself."""
        self._add_staged(self._staged(values, weight))
        return self

    def _staged(self, values: Any, weight: Any = 1.0) -> tuple[list[Any], list[float]]:
        values = as_values(values) if self.kind == "string" else as_numbers(values, self._dtype, self.family)
        if len(values) and (values.kind == "string") != (self.kind == "string"):
            raise SketchError(f"VarOpt: a sample of {self.kind} items can't take {values.kind} ones")
        weights = values.per_value(as_doubles(weight, values.length, "VarOpt: expected one weight"))
        if not ((weights >= 0) & (weights < 1e290)).all():
            raise ValueError("VarOpt: weights must be from 0 to 1e290, without nulls")
        if self.n + len(values) >= MOST_ROWS:
            raise SketchError("VarOpt: more rows than a sample counts")
        return readable(values.to_arrow()).to_pylist(), weights.tolist()

    def _add_staged(self, rows: tuple[list[Any], list[float]]) -> None:
        if self._stored and self.n > self.k:
            # The package considers full samples from bytes to be in the middle of an update; a union's are
            # not.
            self._unite(self.k, self._peer)
        for item, heavy in zip(*rows):
            if heavy:
                try:
                    self._peer.update(item, heavy)
                except _FAULTS:
                    self._add_after_tie(item, heavy)

    def _add_after_tie(self, item: Any, weight: float) -> None:
        """Add a row that the package refused because of rounding (`before_tie`)."""
        image = before_tie(self.to_bytes())
        self._unite(self.k, datasketches.var_opt_sketch.deserialize(image, FORMATS[self.kind]))
        try:
            self._peer.update(item, weight)
        except _FAULTS as error:
            raise SketchError(f"VarOpt: this sample can't continue: {error}") from None

    @property
    def _dtype(self) -> type:
        return np.int64 if self.kind == "long" else np.float64

    def merge(self, other: Self) -> Self:
        """Merge `other` into this sample; the smaller k wins. Returns the sketch itself."""
        self._refuse_merge(other)
        if other.n:
            self._unite(min(self.k, other.k), self._peer, other._peer)
        return self

    def _refuse_merge(self, other: Any, coming: int = 0) -> None:
        if not isinstance(other, VarOpt) or other.kind != self.kind:
            raise SketchError(f"VarOpt: a sample of {self.kind} items can't take in {other!r}")
        if self.n + coming + other.n >= MOST_ROWS:
            raise SketchError("VarOpt: more rows than a sample counts")

    def _unite(self, k: int, *peers: Any) -> None:
        union = datasketches.var_opt_union(k)
        try:
            for peer in peers:
                union.update(peer)
            self._peer = union.get_result()
        except _FAULTS as error:
            raise SketchError(f"VarOpt: these samples can't be merged: {error}") from None
        self._stored = False

    def to_bytes(self) -> bytes:
        """The DataSketches image."""
        return bytes(self._peer.serialize(FORMATS[self.kind]))

    @classmethod
    def from_bytes(cls, data: bytes, kind: str | None = None) -> Self:
        """Read a sample from a DataSketches image of such items. Raises `SketchError` for anything else."""
        kind = required_kind(cls.family, kind, _TYPES)
        data, sample = bytes(data), cls(kind=kind)
        if fault := image_fault(data, kind):
            raise SketchError(f"VarOpt: these {len(data)} bytes are not a sample of {kind} items: {fault}")
        try:
            sample._peer = datasketches.var_opt_sketch.deserialize(data, FORMATS[kind])
        except _FAULTS as error:
            raise SketchError(f"VarOpt: these {len(data)} bytes are not a sample: {error}") from None
        sample._stored = True
        return sample

    def copy(self) -> Self:
        """An independent equal sample."""
        return self.from_bytes(self.to_bytes(), self.kind)

    def _untold(self) -> tuple[Any, ...]:
        return (self.kind,)

    def samples(self) -> pa.Table:
        """The stored rows: `item` and `weight`, which represents all rows that the item was drawn from."""
        rows = list(self._peer)
        items = pa.array([item for item, _ in rows], _TYPES[self.kind])
        return pa.table({"item": items, "weight": pa.array([weight for _, weight in rows], pa.float64())})

    def values(self) -> pa.Array:
        """The stored items."""
        return self.samples().column("item").combine_chunks()

    @holding_no_lock
    def subset_sum(self, belongs: Callable[[Any], bool]) -> SubsetSum:
        """The weight of all rows whose item `belongs`, with bounds at 95.4 %."""
        if not callable(belongs):
            raise SketchError(f"VarOpt: belongs must be a function of an item, got {shown(belongs)}")
        peer = self.copy()._peer
        estimate = peer.estimate_subset_sum(belongs)
        # While all rows are stored, the package returns the subset's weight as the total.
        total = math.fsum(weight for _, weight in peer)
        return SubsetSum(estimate["estimate"], estimate["lower_bound"], estimate["upper_bound"], total)

    @holding_no_lock
    def bounds(self, belongs: Callable[[Any], bool] = lambda item: True) -> tuple[float, float]:
        """(lower, upper) of the weight of the rows whose item `belongs`, at 95.4 %."""
        estimate = self.subset_sum(belongs)
        return estimate.lower, estimate.upper

    def answer(self) -> dict[str, Any]:
        """n, the weight of all rows, and the stored items with the weight that each represents."""
        total = self.subset_sum(bool).total
        return finite({"n": self.n, "weight": total, "values": self.samples().to_pylist()})

    def __repr__(self) -> str:
        return f"VarOpt(k={self.k}, kind={self.kind!r}): {len(self):,} of {self.n:,} rows"
