"""The arrays of many DDSketches, their growth, and their bytes."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from google.protobuf.message import DecodeError

from ..core.groups.arena import new_extent, packed, with_rows
from ..core.groups.group_numbers import frozen
from ..core.groups.group_order import by_group
from ..core.parameters import real
from ..core.protocol import SketchError
from ..core.resume import resume
from . import images
from . import update as kernels
from .proto import DDSketchMessage
from .slots import Slots, slots_of, tally, tally_weights, work_out

FINEST, COARSEST = 1e-4, 0.5
_SLICE = 1 << 20
_LEAST = 1024
_NO_SLOTS = np.empty(0, np.int32)
_NO_WEIGHTS = np.empty(0)
_MANY, _MOST = 1 << 16, 1 << 30
"""The number of values from which on all slots are counted at once, and the most that their counts allow."""


class WindowCounts(NamedTuple):
    """The counts of consecutive keys from `first` on, and of zeros."""

    first: int
    counts: np.ndarray
    zeros: float


class Store:
    """`n` DDSketches of one relative accuracy."""

    def __init__(self, n: int, relative_accuracy: float) -> None:
        self.relative_accuracy = real("DDSketch", "relative_accuracy", relative_accuracy, FINEST, COARSEST)
        self.gamma = 1 + 2 * self.relative_accuracy / (1 - self.relative_accuracy)
        self.multiplier = math.log(2) / math.log(self.gamma)
        self.least = sys.float_info.min * self.gamma  # smaller magnitudes count as zero
        self.infinite = math.ceil(1027 * self.multiplier)
        # How far, as a share, a value may be beyond its bucket's computed edge: logarithms and powers have
        # errors of 10^−12 in all; and in other libraries' bytes, γ may be off by a few units in its last
        # place, which the edge γ^key multiplies by its key.
        self.edge_error = 1e-12 + 745 * images.GAMMA_ERROR / math.log(self.gamma)
        none = np.empty(0, np.int64)
        pairs = np.empty((0, 2), np.int64)
        self.n = 0
        self._at_most = 0.0  # an upper limit of all sketches' counts
        self.state = kernels.State(np.empty(0), new_extent(), none, pairs, pairs)
        self._work = kernels.new_work()
        self.resize(n)

    def resize(self, n: int) -> None:
        """Grow to `n` sketches."""
        old = self.state
        self.state = old._replace(
            start=with_rows(old.start, n, lambda first, end: np.full(end - first, -1)),
            low=with_rows(old.low, n, lambda first, end: np.zeros((end - first, 2), np.int64)),
            length=with_rows(old.length, n, lambda first, end: np.zeros((end - first, 2), np.int64)),
        )
        self.n = max(self.n, n)

    @property
    def slots(self) -> Slots:
        """The slots to find a value's bucket, computed for the first value."""
        return slots_of(self.gamma)

    def seen(self) -> tuple[np.ndarray, np.ndarray]:
        """Return each sketch's number of values (float64), and whether all its counts are whole (bool)."""
        seen, whole = np.empty(self.n), np.empty(self.n, np.bool_)
        kernels.count_all(self.state, seen, whole)
        return seen, whole

    def update_one(
        self, g: int, numbers: np.ndarray, weights: np.ndarray = _NO_WEIGHTS, most: float = 1.0
    ) -> None:
        """Count doubles in sketch `g`, with weights (float64 or int64) if there are any.

        No weight exceeds `most`. Raises `SketchError` if the sum is too large; then nothing is counted.
        """
        self._refuse_weights(np.full(1, g), numbers, weights, most)
        slots = self.slots
        if len(numbers) < _MANY or not len(slots.ends):
            self._count(np.array([g]), np.array([len(numbers)]), *_counted(numbers, weights))
            return
        for at in range(0, len(numbers), _MOST):
            bits = numbers[at : at + _MOST].view(np.uint64)
            table = slots.shift, slots.ends, slots.bases
            # Sums of integers are exact and faster.
            counts = np.zeros(2 * slots.spread, weights.dtype if len(weights) else np.int32)
            if len(weights):
                tally_weights(bits, frozen(weights[at : at + _MOST]), *table, counts)
            else:
                tally(bits, *table, counts)
            for sign, own in enumerate(np.split(counts, 2)):
                filled = np.flatnonzero(own[1:-1])
                first, end = (filled[0], filled[-1] + 1) if len(filled) else (0, 0)
                buckets = own[1 + first : 1 + end].astype(np.float64)
                self.add(g, sign, int(first) + slots.first, buckets, float(own[0]))

    def update(
        self,
        groups: np.ndarray,
        numbers: np.ndarray,
        weights: np.ndarray = _NO_WEIGHTS,
        most: float = 1.0,
    ) -> None:
        """Count ``numbers[i]`` in sketch ``groups[i]`` (int64, within range), like `update_one`."""
        self._refuse_weights(groups, numbers, weights, most)
        if len(weights) and np.count_nonzero(weights) < len(weights):
            groups = groups[weights != 0]
            numbers, weights = _counted(numbers, weights)
        for at in range(0, len(numbers), _SLICE):
            some, values, counts = (given[at : at + _SLICE] for given in (groups, numbers, weights))
            if len(values) * 4 < self.n:
                self._count(some, np.arange(1, len(values) + 1), values, counts)
            else:
                ends, ordered = by_group(some, values, self.n)
                counts = by_group(some, counts, self.n)[1] if len(counts) else counts
                self._count(np.arange(self.n), ends, ordered, counts)

    def refuse_beyond(self, coming: float, more: Callable[[], np.ndarray]) -> None:
        """Raise `SketchError` if new values would make a sketch count `images.MOST` values.

        `coming` is an upper limit of the new values of any sketch; `more` returns the exact numbers, and is
        only called if the limit may be exceeded.
        """
        if self._at_most + coming >= images.MOST:
            seen = self.seen()[0]
            self._at_most, coming = float(seen.max(initial=0.0)), float((seen + more()).max(initial=0.0))
            if coming >= images.MOST:
                raise SketchError("DDSketch: a sketch counts fewer than 2^62 values, and these would be more")
            self._at_most = coming
        else:
            self._at_most += coming

    def _refuse_weights(
        self, groups: np.ndarray, numbers: np.ndarray, weights: np.ndarray, most: float
    ) -> None:
        """Refuse values, or their weights if there are any, if a sketch would count too many."""

        def more() -> np.ndarray:
            counted = (weights if len(weights) else 1.0) * ~np.isnan(numbers)
            return np.bincount(np.broadcast_to(groups, len(counted)), counted, self.n)

        self.refuse_beyond(most * len(numbers), more)

    def _count(self, groups: np.ndarray, ends: np.ndarray, values: np.ndarray, weights: np.ndarray) -> None:
        """Count runs of values; the run of ``groups[r]`` ends at ``ends[r]``."""
        slots = self.slots
        given = _NO_SLOTS if len(slots.ends) else work_out(values, slots)
        doubles = frozen(weights.astype(np.float64, copy=False))
        rows = frozen(groups), frozen(ends), frozen(values), doubles, given, self._work
        resume(lambda at: kernels.update(self.state, slots, *rows, at), self._enlarge)

    def _enlarge(self, why: int, coming: int = 0) -> None:
        """Make more room for existing regions, and for expected places."""
        old = self.state
        some = np.flatnonzero(old.start >= 0)
        starts = old.start[some]
        sizes = 2 + old.length[some].sum(axis=1)
        (pool,) = packed((old.pool,), old.extent, starts, sizes, max(_LEAST, coming))
        old.start[some] = starts
        self.state = old._replace(pool=pool)

    def window(self, g: int, sign: int) -> tuple[int, np.ndarray]:
        """Return the first key and the counts of positive (0) or negative (1) values, without empty ends."""
        state = self.state
        start = int(state.start[g])
        if start < 0:
            return 0, np.empty(0)
        begin = start + 2 + (int(state.length[g, 0]) if sign else 0)
        counts = state.pool[begin : begin + int(state.length[g, sign])]
        filled = np.flatnonzero(counts)
        if not len(filled):
            return 0, np.empty(0)
        return int(state.low[g, sign]) + int(filled[0]), counts[filled[0] : filled[-1] + 1]

    def zeros(self, g: int) -> float:
        """Return how many zeros sketch `g` has seen."""
        start = int(self.state.start[g])
        return float(self.state.pool[start]) if start >= 0 else 0.0

    def add(self, g: int, sign: int, first: int, counts: np.ndarray, zeros: float) -> None:
        """Add counts of consecutive keys."""
        resume(lambda at: kernels.add(self.state, g, sign, first, counts, zeros, self._work), self._enlarge)

    def image(self, g: int) -> bytes:
        """Return the protobuf of sketch `g`."""
        message = DDSketchMessage(zeroCount=self.zeros(g))
        message.mapping.gamma = self.gamma
        for sign, part in enumerate((message.positiveValues, message.negativeValues)):
            first, counts = self.window(g, sign)
            part.SetInParent()
            if len(counts):
                part.contiguousBinCounts.extend(counts.tolist())
                part.contiguousBinIndexOffset = first
        return bytes(message.SerializeToString(deterministic=True))

    def images(self) -> tuple[np.ndarray, np.ndarray]:
        """Return all sketches' protobufs, concatenated, and their offsets (int64)."""
        spans, sizes = np.empty((self.n, 2, 3), np.int64), np.empty(self.n, np.int64)
        images.measure(self.state, spans, sizes)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        data = np.empty(offsets[-1], np.uint8)
        gamma = np.array([self.gamma]).view(np.uint64)[0]
        images.write(self.state, gamma, spans, offsets, data)
        return data, offsets

    def merge_images(self, groups: np.ndarray, data: np.ndarray, offsets: np.ndarray) -> None:
        """Add the counts of protobuf i, from ``offsets[i]`` on, to sketch ``groups[i]``.

        Raises `SketchError` naming the fault of the first invalid protobuf; then none is added.
        """
        bits = np.empty(int(np.diff(offsets).max(initial=0)) // 8 + 1, np.uint64)
        seen = np.zeros(len(groups))
        given = self.gamma, self.infinite, data, offsets, bits, self._work, seen
        others: dict[int, list[WindowCounts]] = {}
        while (at := images.check(*given, next(reversed(others), -1) + 1)) < len(groups):
            others[at] = self._checked(data[offsets[at] : offsets[at + 1]].tobytes())
            seen[at] = _total(others[at])

        def more() -> np.ndarray:
            exact = [_total(self._checked(data[a:b].tobytes())) for a, b in pairwise(offsets)]
            return np.bincount(groups, exact, self.n)

        self.refuse_beyond(float(seen.sum()), more)
        enlarge = partial(self._enlarge, coming=len(data) // 8)

        def merge_plain(begin: int, end: int) -> None:
            given = self.gamma, data, offsets, groups, end, bits, self._work
            resume(lambda at: images.merge(self.state, *given, at), enlarge, begin)

        at = 0
        for end in [*others, len(groups)]:
            merge_plain(at, end)
            if end in others:
                self._add_windows(int(groups[end]), others[end])
            at = end + 1

    def merge_image(self, g: int, data: bytes) -> None:
        """Add a protobuf's counts. Raises `SketchError` for other bytes or accuracies, or too many values."""
        windows = self._checked(data)
        coming = _total(windows)
        self.refuse_beyond(coming, lambda: np.bincount([g], [coming], self.n))
        self._add_windows(g, windows)

    def _add_windows(self, g: int, windows: list[WindowCounts]) -> None:
        for sign, (first, counts, zeros) in enumerate(windows):
            self.add(g, sign, first, counts, zeros)

    def _checked(self, data: bytes) -> list[WindowCounts]:
        """Return the counts of a protobuf by sign. Raises `SketchError`."""
        gamma, zeros, parts = read_image(data)
        if not math.isclose(gamma, self.gamma, rel_tol=images.GAMMA_ERROR):
            raise SketchError(
                f"DDSketch: sketches of relative accuracy {self.relative_accuracy:.6g} and "
                f"{(gamma - 1) / (gamma + 1):.6g} have different buckets and can't be merged"
            )
        return [
            WindowCounts(*self._dense(*part), zeros if sign == 0 else 0.0) for sign, part in enumerate(parts)
        ]

    def _dense(self, places: np.ndarray, counts: np.ndarray) -> tuple[int, np.ndarray]:
        if not len(places):
            return 0, counts
        first, last = int(places.min()), int(places.max())
        if first < -self.infinite or last > self.infinite:
            raise SketchError(f"DDSketch: bucket {first if first < -self.infinite else last} is of no double")
        dense = np.zeros(last - first + 1)
        np.add.at(dense, places - first, counts)
        return first, dense


def _total(windows: list[WindowCounts]) -> float:
    return sum(float(window.counts.sum()) + window.zeros for window in windows)


def _counted(numbers: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Remove values of weight 0, for which a sketch should have no buckets."""
    if np.count_nonzero(weights) == len(weights):
        return numbers, weights
    return numbers[weights != 0], weights[weights != 0]


def read_image(data: bytes) -> tuple[float, float, list[tuple[np.ndarray, np.ndarray]]]:
    """Return γ, the count of zeros, and the counts of positive and negative values. Raises `SketchError`."""
    message = DDSketchMessage()
    try:
        message.ParseFromString(bytes(data))
    except DecodeError:
        raise SketchError(f"DDSketch: these {len(data)} bytes are not a DDSketch protobuf") from None
    mapping, zeros = message.mapping, message.zeroCount
    if not 1 < mapping.gamma < 10 or mapping.interpolation != 0 or mapping.indexOffset != 0:
        raise SketchError(
            f"DDSketch: expected logarithmic buckets with gamma above 1 and no offset, got gamma "
            f"{mapping.gamma}, interpolation {mapping.interpolation}, offset {mapping.indexOffset}"
        )
    parts = []
    for part in (message.positiveValues, message.negativeValues):
        run = np.array(part.contiguousBinCounts, np.float64)
        places = [
            np.arange(len(run)) + part.contiguousBinIndexOffset,
            np.array(list(part.binCounts), np.int64),
        ]
        counts = np.concatenate([run, np.array(list(part.binCounts.values()), np.float64)])
        parts.append((np.concatenate(places).astype(np.int64)[counts != 0], counts[counts != 0]))
    numbers = np.concatenate([[zeros], parts[0][1], parts[1][1]])
    if not (np.isfinite(numbers).all() and (numbers >= 0).all()):
        raise SketchError("DDSketch: a count is negative, infinite or NaN")
    if numbers.sum() > images.MOST:  # fewer values may reach this when added in this order
        raise SketchError(f"DDSketch: a sketch counts fewer than 2^62 values, these are {numbers.sum():.6g}")
    return float(mapping.gamma), float(zeros), parts
