"""The arrays of many t-digests, enlarged as kernels need."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ..core.groups.arena import new_extent, packed
from ..core.groups.blocks import blocks
from ..core.groups.group_numbers import frozen
from ..core.groups.group_order import by_group
from ..core.limits import refuse_beyond
from ..core.parameters import whole
from ..core.protocol import SketchError
from ..core.resume import resume
from . import images
from . import update as kernels
from .reference import BEGINNING, as_image

_SLICE = 1 << 20
"""Rows sorted by group at a time."""
_LEAST = 1024
_AT_ONCE = 1 << 24
"""Bytes of images written at a time, unless a single digest has more."""
_TOO_MANY = "TDigest: more values than its weights count exactly, 2^53 − 1"


class Store:
    """`n` t-digests of one k; enlarges arrays and pool when kernels request it."""

    def __init__(self, n: int, k: int) -> None:
        self.k = whole("TDigest", "k", k, images.MIN_K, 65_535)
        self._state = self._empty(0)
        self.n = 0
        self.resize(n)

    def _empty(self, n: int) -> kernels.State:
        return kernels.State(
            items=np.empty(0),
            extent=new_extent(),
            scratch=np.empty(0),
            start=np.zeros(n, np.int64),
            room=np.zeros(n, np.int32),
            clusters=np.zeros(n, np.int32),
            waiting=np.zeros(n, np.int32),
            weight=np.zeros(n),
            low=np.full(n, np.inf),
            high=np.full(n, -np.inf),
            backwards=np.zeros(n, np.bool_),
        )

    @property
    def state(self) -> kernels.State:
        """The arrays of the `n` digests, without spare rows."""
        spare = self._state
        if len(spare.start) == self.n:
            return spare
        rows = {name: getattr(spare, name)[: self.n] for name in spare._fields[kernels.SHARED :]}
        return kernels.State(spare.items, spare.extent, spare.scratch, **rows)

    @property
    def counts(self) -> np.ndarray:
        """Each digest's number of values (int64)."""
        return (self.state.weight + self.state.waiting).astype(np.int64)

    def resize(self, n: int) -> None:
        """Grow to `n` digests."""
        old = self._state
        if n > len(old.start):
            new = self._empty(max(n, len(old.start) * 3 // 2) - len(old.start))
            rows = {
                name: np.concatenate([getattr(old, name), getattr(new, name)])
                for name in old._fields[kernels.SHARED :]
            }
            self._state = old._replace(**rows)
        self.n = max(self.n, n)

    def _enlarge(self, why: int) -> None:
        """Make room of the kind that a kernel requested."""
        old = self._state
        if why == kernels.MORE_SCRATCH:
            self._make_scratch(2 * int(old.extent["wanted"][0]))
            old.extent["wanted"] = 0
            return
        (items,) = packed((old.items,), old.extent, old.start, old.room, _LEAST)
        self._state = old._replace(items=items)

    def _make_scratch(self, places: int) -> None:
        if len(self._state.scratch) < places:
            self._state = self._state._replace(scratch=np.empty(places))

    def update_one(self, g: int, numbers: np.ndarray) -> None:
        """Add numbers (float64) to digest `g`."""
        self._refuse_beyond(np.full(len(numbers), g), numbers)
        self._add(np.array([g]), np.array([len(numbers)]), numbers)

    def update(self, groups: np.ndarray, numbers: np.ndarray) -> None:
        """Add ``numbers[i]`` (float64) to digest ``groups[i]`` (int64, within range)."""
        self._refuse_beyond(groups, numbers)
        for at in range(0, len(numbers), _SLICE):
            some, values = groups[at : at + _SLICE], numbers[at : at + _SLICE]
            if len(values) * 4 < self.n:
                self._add(some, np.arange(1, len(values) + 1), values)
            else:
                ends, ordered = by_group(some, values, self.n)
                self._add(np.arange(self.n), ends, ordered)

    def _refuse_beyond(self, groups: np.ndarray, numbers: np.ndarray) -> None:
        counts = self.counts
        if int(counts.max(initial=0)) > kernels.MAX_N - len(numbers):
            refuse_beyond(kernels.MAX_N, "TDigest", counts, groups[np.isfinite(numbers)])

    def _add(self, groups: np.ndarray, ends: np.ndarray, values: np.ndarray) -> None:
        """Add runs of values; the run of digest ``groups[r]`` ends at ``ends[r]``."""
        rows = frozen(groups), frozen(ends), frozen(values), np.empty(2)
        resume(lambda at: kernels.update(self.state, self.k, *rows, at), self._enlarge)

    def merge_images(self, groups: np.ndarray, data: np.ndarray, offsets: np.ndarray) -> None:
        """Merge the image whose bytes (uint8) begin at ``offsets[i]`` into digest ``groups[i]``, for all i.

        Raises `SketchError` naming the fault of the first invalid image; then none is merged.
        """
        data, offsets = _of_datasketches(data, offsets)
        read = np.zeros(int(np.diff(offsets).max(initial=0)) // 8 + 1)
        given = frozen(data), frozen(offsets), read, np.zeros(2), np.zeros(5, np.int64)
        at, fault, seen = images.check(*given, 0)
        if at < len(groups):
            size = int(offsets[at + 1] - offsets[at])
            raise SketchError(f"TDigest: these {size} bytes are not a sketch: {images.FAULTS[fault]}")
        if seen + float(self.counts.max(initial=0)) > 0.99 * kernels.MAX_N:
            self._check_counts(groups, given)
        rows = frozen(groups)
        resume(lambda at: images.merge(self.state, self.k, *given, rows, at), self._enlarge)

    def _check_counts(self, groups: np.ndarray, given: tuple[np.ndarray, ...]) -> None:
        """Refuse images that would count too many values."""
        n = {int(g): int(self.counts[g]) for g in groups}
        data, offsets, read, edges, numbers = given
        for i, g in enumerate(groups.tolist()):
            images.check(data, frozen(offsets[i : i + 2]), read, edges, numbers, 0)
            n[g] += int(numbers[3])
            if n[g] > kernels.MAX_N:
                raise SketchError(_TOO_MANY)

    def _with_scratch(self) -> kernels.State:
        """Return the arrays, with scratch to join the clusters of any digest."""
        state = self.state
        most = int((state.clusters + state.waiting).max(initial=0))
        self._make_scratch(kernels.scratch_places(most))
        return self.state

    def images(self) -> tuple[np.ndarray, np.ndarray]:
        """Return all digests' bytes, concatenated, and their offsets (int64, n + 1)."""
        state, pieces, offsets = self._with_scratch(), [np.empty(0, np.uint8)], np.zeros(self.n + 1, np.int64)
        most = images.HEADER + images.CLUSTER * (state.clusters + state.waiting).astype(np.int64)
        for first, end in blocks(most, _AT_ONCE):
            out = np.empty(int(most[first:end].sum()), np.uint8)
            ends = offsets[first + 1 : end + 1]
            images.write(state, self.k, first, out, ends)
            pieces.append(out[: ends[-1]].copy())
            ends += offsets[first]
        return np.concatenate(pieces), offsets

    def clusters(self, g: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the means of digest `g` in order, and their weights."""
        state = self._with_scratch()
        room = np.empty((2, int(state.clusters[g]) + int(state.waiting[g])))
        count = kernels.unpack(state, self.k, g, room)
        return room[0, :count], room[1, :count]

    def quantiles(self, shares: np.ndarray) -> np.ndarray:
        """Return the values at shares (columns) of each digest (rows); 0 for empty digests."""
        out = np.empty((self.n, len(shares)))
        kernels.quantiles(self._with_scratch(), self.k, frozen(shares), out)
        return out

    def one(self, g: int) -> Store:
        """Return a copy of digest `g` as a store of one."""
        state = self.state
        start, room = int(state.start[g]), int(state.room[g])
        twin = Store(1, self.k)
        rows = {name: getattr(state, name)[g : g + 1].copy() for name in state._fields[kernels.SHARED :]}
        rows["start"][0] = 0
        extent = new_extent()
        extent["used"] = room
        twin._state = kernels.State(state.items[start : start + room].copy(), extent, np.empty(0), **rows)
        return twin


def _of_datasketches(data: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Convert images of Dunning's library to DataSketches images; keep all others."""
    starts = offsets[:-1][np.diff(offsets) > 0]
    if data[starts].all():  # DataSketches images never begin with a zero
        return data, offsets
    pieces = [data[begin:end].tobytes() for begin, end in pairwise(offsets.tolist())]
    made = [as_image(one) if one.startswith(BEGINNING) else one for one in pieces]
    ends = np.cumsum([0, *map(len, made)])
    return np.frombuffer(b"".join(made), np.uint8), ends
