"""A uniform sample of a stream: every set of k rows equally likely, however it was split and merged."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from . import jumps
from .images import Format
from .items import Rows
from .jumping import Columns, Jumping, JumpingGroups
from .shares import share_error


class ReservoirGroups(JumpingGroups):
    """A uniform sample of k rows for each of many groups; `Reservoir` states the promise.

    >>> groups = ReservoirGroups(2, k=2, seed=1)
    >>> groups.update([0, 1, 1, 1], ["a", "b", "c", "d"])
    >>> groups.n.tolist(), len(groups[0]), len(groups[1])
    ([1, 3], 1, 2)
    """

    _format: Format = Format("Reservoir", 1)
    _single: ClassVar[type[Jumping]]

    def __init__(self, n: int = 0, k: int = 100, seed: int | None = None) -> None:
        super().__init__(n, k, seed)

    def answers(self, **question: Any) -> Any:
        """What `Reservoir.answer` gives, of each group: as a struct of Arrow where items are plain values."""
        parts = self._pool.parts(np.arange(len(self)))
        kind = parts.items.type
        if not (pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_boolean(kind)):
            return super().answers(**question)
        sizes, of = np.unique(parts.samples["size"], return_inverse=True)
        errors = np.where(sizes[of] < self.n, np.array([share_error(m) for m in sizes.tolist()])[of], 0.0)
        ends = np.append(0, np.cumsum(parts.samples["size"]))
        values = pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), parts.items)
        return pa.StructArray.from_arrays(
            [pa.array(self.n), values, pa.array(errors)], ["n", "values", "error"]
        )

    def _prepare(self, rows: Rows, **inputs: Any) -> None:
        if inputs:
            raise TypeError(f"Reservoir.update() takes no {', '.join(inputs)}")

    def _enter(self, groups: np.ndarray | None, columns: Columns, prepared: Any, taken: np.ndarray) -> int:
        pool, first = self._pool, len(self._pool.items)
        if groups is None:
            return int(jumps.update_one(pool.heaps, *pool.slots, *columns, first, taken))
        return int(jumps.update_many(pool.heaps, *pool.slots, groups, *columns, first, taken))


class Reservoir(Jumping):
    """k rows that stand for all: each set of k rows of the stream is equally likely to be the sample.

    For looking at rows, and for estimating whatever can be computed of rows: a share read off the sample is
    within ``error(confidence)`` of the stream's, 0.043 at 95 % for k = 1,000 (Hoeffding 1963; sampling
    without replacement is no worse). Items may be of any Arrow type, records included. Memory is k items and
    16 bytes each.

    Every row has a random priority and the k greatest are kept, so merging takes the k greatest of both: it
    is exact, associative and commutative, and merged parts are distributed as one sample of the whole. Once
    full it jumps over the rows that would not enter (A-ExpJ of Efraimidis and Spirakis 2006, equal weights).

    `seed` makes a run repeatable; the random state is then kept in the bytes. Without one every sample draws
    its own. Give the parts of one stream different seeds, or none. Raises `SketchError` for a k out of range,
    items that don't fit those before, and bytes that are no reservoir.

    >>> sample = Reservoir(3, seed=7).update(range(1000))
    >>> sample.n, len(sample.values())
    (1000, 3)
    >>> sample == Reservoir.from_bytes(sample.to_bytes())
    True
    >>> both = sample | Reservoir(3, seed=8).update(range(1000, 3000))
    >>> both.n, len(both)
    (3000, 3)
    """

    family = "Reservoir"

    def __init__(self, k: int = 100, seed: int | None = None) -> None:
        self._groups = ReservoirGroups(1, k, seed)

    @classmethod
    def _empty(cls, k: int, parameter: float) -> Self:
        return cls(k)

    def update(self, values: Any) -> Self:
        """Add a scalar, a list, a NumPy or Arrow column, or records; nulls are skipped."""
        return self._update(values)

    def error(self, confidence: float = 0.95) -> float:
        """How far a share read off the sample is from the stream's, at most, at that confidence.

        Hoeffding's bound sqrt(ln(2 / (1 − confidence)) / 2m) for m items; 0 while the sample is the stream.
        """
        error = share_error(len(self), confidence)
        return error if len(self) < self.n else 0.0


ReservoirGroups._single = Reservoir
