"""How many rows there were, the older the less they count: decayed by the weights of `DecayedReservoir`."""

from __future__ import annotations

import struct
from datetime import datetime, timedelta
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from ...sketches.core.aggregated import Aggregated
from ...sketches.core.group_numbers import as_groups, grown
from ...sketches.core.image_columns import as_images
from ...sketches.core.parameters import seconds
from ...sketches.core.protocol import Groups, Sketch, SketchError
from ..core.items import Rows, as_rows
from .decay import HalfLife, as_moment, as_times, moved

_IMAGE = struct.Struct("<4sBxxxdqdqq")
_MAGIC, _VERSION = b"SGDC", 1
_NOBODY = np.iinfo(np.int64).min
_STATE = np.dtype([("weight", "f8"), ("epoch", "i8"), ("n", "i8"), ("latest", "i8")])


class DecayedCountGroups(Groups):
    """A decayed count for each of many groups, 32 bytes each; `DecayedCount` states the promise.

    >>> groups = DecayedCountGroups(2, half_life=60.0)
    >>> groups.update([0, 1, 1], ["a", "b", "c"], time=[0, 0, 60_000_000])
    >>> groups.counts(now=60_000_000).tolist()
    [0.5, 1.5]
    """

    aggregate: ClassVar = Aggregated({"half_life": 3600.0}, inputs=("time",))

    def __init__(self, n: int = 0, half_life: timedelta | float = 3600.0) -> None:
        self._decay = HalfLife(seconds("DecayedCount", "half_life", half_life))
        self._n = 0
        self._state = np.empty(0, _STATE)
        self.resize(n)

    def __len__(self) -> int:
        return self._n

    def resize(self, n: int) -> None:
        """Grow to `n` groups; the new ones are empty. Never shrinks."""
        if n > len(self._state):
            nothing = np.array((0.0, _NOBODY, 0, _NOBODY), _STATE)
            self._state = grown(self._state, max(n, len(self._state) * 3 // 2), nothing)
        self._n = max(n, self._n)

    def update(self, groups: np.ndarray, values: Any, **inputs: Any) -> None:
        """Count values, by their event times, in their groups; nulls are skipped."""
        if set(inputs) != {"time"}:
            raise TypeError("DecayedCount: expected update(…, time=…), one event time a row")
        self._count(groups, as_rows(values), inputs["time"])

    def _count(self, groups: Any, rows: Rows, time: Any) -> None:
        times = as_times(time, rows, "DecayedCount")
        numbers = rows.per_item(as_groups(groups, rows.length, self._n), "group number")
        self._add(numbers, *self._decay.weighed(times), np.ones(len(times), np.int64), times)

    def _add(
        self, groups: np.ndarray, weights: np.ndarray, epochs: np.ndarray, n: np.ndarray, times: Any
    ) -> None:
        """Add weights, each as of its epoch, to their groups."""
        state = self._state
        before = state["epoch"].copy()
        np.maximum.at(state["epoch"], groups, epochs)
        np.maximum.at(state["latest"], groups, times)
        later = np.flatnonzero(before != state["epoch"])
        state["weight"][later] = moved(state["weight"][later], before[later], state["epoch"][later])
        np.add.at(state["weight"], groups, moved(weights, epochs, state["epoch"][groups]))
        np.add.at(state["n"], groups, n)

    def merge(self, groups: np.ndarray, column: pa.Array) -> None:
        """Add serialised counts, nulls skipped. Raises `SketchError` for bytes that are none."""
        numbers, images = as_images(groups, column, self._n, "DecayedCount")
        found = [self._read(image) for image in (images.to_arrow().to_pylist() if len(images) else ())]
        seen = np.array([state["n"] > 0 for state in found], bool)
        if seen.any():
            parts = np.array([state.item() for state in found], _STATE)[seen]
            if self._state["n"].astype(float).sum() + parts["n"].astype(float).sum() >= 2.0**62:
                raise SketchError("DecayedCount: more rows than 64 bits count")
            self._add(numbers[seen], parts["weight"], parts["epoch"], parts["n"], parts["latest"])

    def _read(self, image: bytes) -> Any:
        half_life, state = read_image(image)
        if half_life != self._decay.seconds:
            raise SketchError(
                f"DecayedCount: half-lives of {self._decay.seconds} and {half_life} s can't be added up"
            )
        return state

    def to_arrow(self) -> pa.Array:
        """The counts' images, 48 bytes each, as binary in group order."""
        rows = self._state[: self._n].tolist()
        half_life = self._decay.seconds
        return pa.array(
            [_IMAGE.pack(_MAGIC, _VERSION, half_life, epoch, weight, n, at) for weight, epoch, n, at in rows],
            pa.binary(),
        )

    def counts(self, now: datetime | int | None = None) -> np.ndarray:
        """The decayed count of each group as of `now`, or of the group's own latest row (float64)."""
        state = self._state[: self._n]
        moments = state["latest"] if now is None else np.full(self._n, as_moment(now, "DecayedCount"))
        return self._decay.as_of(state["weight"], state["epoch"], np.where(state["n"] > 0, moments, 0))

    def __getitem__(self, group: int) -> DecayedCount:
        if not -self._n <= group < self._n:
            raise IndexError(f"group {group} of {self._n}")
        return DecayedCount.from_bytes(self.to_arrow()[group % self._n].as_py())


class DecayedCount(Sketch):
    """How many rows there were, each counting 2^(−age / half_life): what is going on now, without a window's
    edge.

    The same weights as `DecayedReservoir` and `DecayedQuantiles` (forward decay, see `decay`): kept without a
    clock, rows may come late and in any order. `half_life` is a timedelta or seconds, times are timestamps or
    int64 microseconds since 1970, `now` is one of those. Promise: exact up to rounding, a share of n·2^−52 at
    most, which `bounds` gives, always; any cut, order and merging give the same up to that. At an even rate
    of r rows a second the count comes to r·half_life / ln 2. Raises `SketchError` for half-lives out of
    range, counts of another half-life, and bytes that are no decayed count.

    Source: Cormode, Shkapenyuk, Srivastava, Xu, "Forward Decay", ICDE 2009, section IV-A.

    >>> count = DecayedCount(half_life=60.0).update(["a", "b", "c"], time=[0, 60_000_000, 120_000_000])
    >>> count.estimate(), count.estimate(now=180_000_000)
    (1.75, 0.875)
    """

    family: ClassVar[str] = "DecayedCount"

    def __init__(self, half_life: timedelta | float = 3600.0) -> None:
        self._groups = DecayedCountGroups(1, half_life)

    @property
    def half_life(self) -> float:
        """The half-life in seconds."""
        return self._groups._decay.seconds

    @property
    def n(self) -> int:
        """Rows seen, nulls not counted."""
        return int(self._groups._state["n"][0])

    def update(self, values: Any, time: Any = None) -> Self:
        """Count values by their event times, one a row, or one for all; nulls are skipped."""
        rows = as_rows(values)
        self._groups._count(np.zeros(rows.length, np.int64), rows, time)
        return self

    def merge(self, other: Self) -> Self:
        """Add another's rows. Raises `SketchError` if its half-life is another."""
        if not isinstance(other, DecayedCount):
            raise SketchError(f"DecayedCount: can't take in {other!r}")
        self._groups.merge(np.zeros(1, np.int64), other._groups.to_arrow())
        return self

    def to_bytes(self) -> bytes:
        """The half-life, the weight with its epoch, the rows and the latest of their times, in 48 bytes."""
        return self._groups.to_arrow()[0].as_py()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The count of those bytes. Raises `SketchError` for anything else."""
        count = cls(read_image(bytes(data))[0])
        count._groups.merge(np.zeros(1, np.int64), pa.array([bytes(data)], pa.binary()))
        return count

    def estimate(self, now: datetime | int | None = None) -> float:
        """The decayed count as of `now`, by default of the latest row."""
        return float(self._groups.counts(now)[0])

    def bounds(self, now: datetime | int | None = None) -> tuple[float, float]:
        """(lower, upper) of the decayed count: what rounding may have made of it, always."""
        count, share = self.estimate(now), (self.n + 8) * 2.0**-52
        return max(count * (1 - share), 0.0), count * (1 + share)

    def answer(self) -> dict[str, float]:
        """The decayed count as of the latest row, with its bounds, and the rows seen."""
        lower, upper = self.bounds()
        return {"n": self.n, "estimate": self.estimate(), "lower": lower, "upper": upper}

    def __repr__(self) -> str:
        return f"DecayedCount(half_life={self.half_life:g}): {self.estimate():,.6g} of {self.n:,} rows"


def read_image(data: bytes) -> tuple[float, Any]:
    """Half-life and state of an image. Raises `SketchError` for anything else."""
    if len(data) != _IMAGE.size:
        raise SketchError(f"DecayedCount: expected {_IMAGE.size} bytes, got {len(data)}")
    magic, version, half_life, epoch, weight, n, latest = _IMAGE.unpack(data)
    if magic != _MAGIC or version != _VERSION or data[5:8] != b"\0\0\0":
        raise SketchError("DecayedCount: these bytes are no decayed count, or of a later version")
    decay = HalfLife(seconds("DecayedCount", "half_life", half_life))
    if n == 0 and (weight, epoch, latest) == (0.0, _NOBODY, _NOBODY):
        return half_life, np.array((weight, epoch, n, latest), _STATE)
    # The latest row is in the epoch, weighs from 1 to 2, and no row weighs more.
    if not 0 < n < 1 << 62 or latest // decay.span != epoch or not 1 - 1e-9 <= weight <= 2.0 * n:
        raise SketchError("DecayedCount: a weight that so many rows can't have")
    return half_life, np.array((weight, epoch, n, latest), _STATE)
