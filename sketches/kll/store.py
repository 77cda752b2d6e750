"""The arrays of many KLL sketches, enlarged as kernels need."""

from __future__ import annotations

import secrets
from typing import Any, Literal, NamedTuple

import numpy as np

from ..core.groups.arena import new_extent, packed
from ..core.groups.group_numbers import frozen
from ..core.groups.group_order import by_group
from ..core.limits import refuse_beyond
from ..core.parameters import one_of, seeded, whole
from ..core.protocol import SketchError
from ..core.resume import DONE, resume
from . import compaction as kernels
from . import images as kll_bytes
from . import merge as kll_merge
from . import update as kll_update
from . import weighted as kll_weighted
from .block_thinning import THINNED
from .levels import MAX_DEPTH, MAX_K, MIN_K, capacities

Kind = Literal["double", "float", "long"]
DTYPES: dict[str, Any] = {"double": np.float64, "float": np.float32, "long": np.int64}

_SLICE = 1 << 20
"""Rows sorted by group at a time."""
_MERGED = 1024
"""Images after which `merge_exact` is tried again."""
_JAVA_SCRAMBLE = 0x5DEECE66D
_MASK_48 = (1 << 48) - 1


_TOO_MANY = f"KLL: a sketch counts at most {kernels.MAX_N} values (2^62)"


class Checked(NamedTuple):
    """A valid image: its header and contents."""

    n: int
    k: int
    depth: int
    min_k: int
    read: kll_bytes.Read


class Store:
    """`n` KLL sketches of one k and one kind of item; enlarges arrays and pool when kernels request it."""

    def __init__(self, n: int, k: int, kind: Kind, seed: int | None) -> None:
        one_of("KLL", "kind", kind, DTYPES)
        self.k, self.kind, self.dtype = whole("KLL", "k", k, MIN_K, MAX_K), kind, np.dtype(DTYPES[kind])
        self.tables = capacities(self.k)
        given = seeded("KLL", seed)
        self._seed = secrets.randbits(48) if given is None else given
        self._state = self._empty(0, 2)
        self.n = 0
        self.resize(n)

    def _empty(self, n: int, width: int) -> kernels.State:
        return kernels.State(
            items=np.empty(0, self.dtype),
            extent=new_extent(),
            scratch=np.empty(0, self.dtype),
            start=np.zeros(n, np.int64),
            room=np.zeros(n, np.int32),
            levels=np.zeros((n, width), np.int32),
            depth=np.ones(n, np.int8),
            grain=np.zeros(n, np.int8),
            n=np.zeros(n, np.int64),
            low=np.zeros(n, self.dtype),
            high=np.zeros(n, self.dtype),
            min_k=np.full(n, self.k, np.int32),
            coin=_coins(self._seed, n),
        )

    @property
    def state(self) -> kernels.State:
        """The arrays of the `n` sketches, without spare rows."""
        spare = self._state
        if len(spare.n) == self.n:
            return spare
        rows = {name: getattr(spare, name)[: self.n] for name in spare._fields[kernels.SHARED :]}
        return kernels.State(spare.items, spare.extent, spare.scratch, **rows)

    def resize(self, n: int) -> None:
        """Grow to `n` sketches."""
        if n > len(self._state.n):
            old = self._state
            new = self._empty(max(n, 2 * len(old.n)) if len(old.n) else n, old.levels.shape[1])
            for name in old._fields[kernels.SHARED :]:
                getattr(new, name)[: len(old.n)] = getattr(old, name)
            self._state = new._replace(items=old.items, extent=old.extent, scratch=old.scratch)
        self.n = max(self.n, n)

    def _enlarge(self, why: int, least: int = 0, coming: int = 0) -> None:
        """Make room of the kind that a kernel requested; `least` is the number of items that it adds,
        `coming` the
        number of items in regions that will be requested."""
        old = self._state
        if why == kernels.MORE_LEVELS:
            columns = min(old.levels.shape[1] + 4, len(self.tables.total) - 1)
            levels = np.zeros((len(old.n), columns), np.int32)
            levels[:, : old.levels.shape[1]] = old.levels
            self._state = old._replace(levels=levels)
            self._make_scratch(least)
            return
        largest = int(self.tables.total[old.levels.shape[1]]) + THINNED + 64
        (items,) = packed((old.items,), old.extent, old.start, old.room, least + coming + 2 * largest)
        self._state = old._replace(items=items)

    def _make_scratch(self, least: int) -> None:
        """Enlarge the scratch for the largest room: all levels that there are columns for, and the
        sampler."""
        needed = 2 * (int(self.tables.total[self._state.levels.shape[1]]) + 64 + least) + 1024
        if len(self._state.scratch) < needed:
            self._state = self._state._replace(scratch=np.empty(needed, self.dtype))

    def merge_image(self, g: int, data: np.ndarray) -> None:
        """Check one image (uint8) and merge it into sketch `g`. Raises `SketchError` naming the fault."""
        image = self._checked(data)
        if image.n:
            ends = frozen(np.array([0, len(data)], np.int64))
            given = kll_merge.Given(frozen(data), ends, image.k, capacities(image.k).total)
            self._merge(np.array([g]), given, image.depth)

    def merge_images(self, groups: np.ndarray, images: np.ndarray, offsets: np.ndarray) -> None:
        """Merge the image whose bytes (uint8) begin at ``offsets[i]`` into sketch ``groups[i]``, for all i.

        Raises `SketchError` naming the fault of the first invalid image; then none is merged.
        """
        given = kll_merge.Given(frozen(images), frozen(offsets), self.k, self.tables.total)
        self._check_images(groups, given)
        at = 0
        while (at := self._merge(groups, given, MAX_DEPTH, at)) < len(groups):
            self.merge_image(int(groups[at]), images[offsets[at] : offsets[at + 1]])
            at += 1

    def _check_images(self, groups: np.ndarray, given: kll_merge.Given) -> None:
        """Validate every image before any is merged. Raises `SketchError` naming the first fault."""
        read, at, seen = kll_bytes.new_read(self.dtype, int(given.total[MAX_DEPTH])), 0, 0.0
        while True:
            some, values = kll_merge.check_images(given, read, at)
            at, seen = at + some, seen + values
            if at == len(groups):
                break
            seen += self._checked(given.data[given.offsets[at] : given.offsets[at + 1]]).n
            at += 1
        if seen + float(self.state.n.max(initial=0)) > 0.99 * kernels.MAX_N:
            self._check_counts(groups, given)

    def _check_counts(self, groups: np.ndarray, given: kll_merge.Given) -> None:
        """Refuse images that would count too many values, which only crafted images can."""
        n = {int(g): int(self.state.n[g]) for g in groups}
        for i, g in enumerate(groups.tolist()):
            n[g] += self._checked(given.data[given.offsets[i] : given.offsets[i + 1]]).n
            if n[g] > kernels.MAX_N:
                raise SketchError(_TOO_MANY)

    def _merge(self, groups: np.ndarray, given: kll_merge.Given, depth: int, at: int = 0) -> int:
        """Merge images of one k with at most `depth` levels; return the number of the first other image."""
        deep = min(depth + 3, len(self.tables.total) - 1)
        read = kll_bytes.new_read(self.dtype, int(given.total[depth]))
        least = int(self.tables.total[deep]) + len(read.items)
        self._make_scratch(least)
        apart = kll_weighted.new_apart(self.tables, self.dtype, 0)
        rows = frozen(groups), given, read

        def step(where: tuple[int, int]) -> tuple[tuple[int, int], int]:
            why = DONE
            while why == DONE and where[0] < len(groups):
                where, why = kll_merge.merge_exact(self.state, *self.tables, *rows, where)
                if why == kernels.OTHER:
                    until = where[0] + _MERGED
                    where, why = kll_merge.merge_images(self.state, *self.tables, *rows, apart, where, until)
            return where, why

        (at, _), why = resume(step, lambda why: self._enlarge(why, least), (at, 0))
        if why == kernels.TOO_MANY:
            raise SketchError(_TOO_MANY)
        return int(at)

    def _checked(self, data: np.ndarray) -> Checked:
        """Validate and decode an image. Raises `SketchError` naming the fault."""
        width = self.dtype.itemsize
        fault, k, n, min_k, depth, updatable = kll_bytes.read_header(frozen(data), width)
        read = kll_bytes.new_read(self.dtype, 0)
        if not fault and n:
            capacity = int(capacities(int(k)).total[depth])
            read = kll_bytes.new_read(self.dtype, min(capacity, len(data) // width + 1))
            fault = kll_bytes.read_body(frozen(data), n, depth, updatable, capacity, read)
        if fault:
            what = kll_bytes.FAULTS[fault]
            raise SketchError(f"KLL: these {len(data)} bytes are not a sketch of {self.kind}s: {what}")
        return Checked(int(n), int(k), int(depth), int(min_k), read)

    def update(self, groups: np.ndarray, numbers: np.ndarray) -> None:
        """Add ``numbers[i]`` to sketch ``groups[i]`` (int64, within range)."""
        if int(self._state.n.max(initial=0)) > kernels.MAX_N - len(numbers):
            refuse_beyond(kernels.MAX_N, "KLL", self.state.n, groups[numbers == numbers])
        for at in range(0, len(numbers), _SLICE):
            some, values = groups[at : at + _SLICE], numbers[at : at + _SLICE]
            if len(values) * 4 < self.n:
                self._absorb(some, np.arange(1, len(values) + 1), values)
            else:
                ends, ordered = by_group(some, values, self.n)
                self._absorb(np.arange(self.n), ends, ordered)

    def update_one(self, g: int, numbers: np.ndarray) -> None:
        """Add numbers to sketch `g`."""
        if int(self._state.n[g]) > kernels.MAX_N - len(numbers):
            counted = np.full(np.count_nonzero(numbers == numbers), g)
            refuse_beyond(kernels.MAX_N, "KLL", self.state.n, counted)
        self._absorb(np.array([g]), np.array([len(numbers)]), numbers)

    def update_weighted(
        self, groups: np.ndarray, numbers: np.ndarray, weights: np.ndarray, most: float
    ) -> None:
        """Add ``numbers[i]``, ``weights[i]`` times, to sketch ``groups[i]`` (int64, within range).

        No weight exceeds `most`. Raises `SketchError` if a sketch would count too many values; then none is
        added.
        """
        self._check_weights(groups, numbers, weights, most)
        for at in range(0, len(numbers), _SLICE):
            some, values, counts = (given[at : at + _SLICE] for given in (groups, numbers, weights))
            if len(values) * 4 < self.n:
                self._absorb_weighted(some, np.arange(1, len(values) + 1), values, counts)
            else:
                ends, ordered = by_group(some, values, self.n)
                _, counts = by_group(some, counts, self.n)
                self._absorb_weighted(np.arange(self.n), ends, ordered, counts)

    def update_one_weighted(self, g: int, numbers: np.ndarray, weights: np.ndarray, most: float) -> None:
        """Add numbers with weights to sketch `g`; raises what `update_weighted` raises."""
        self._check_weights(np.full(1, g), numbers, weights, most)
        self._absorb_weighted(np.array([g]), np.array([len(numbers)]), numbers, weights)

    def _check_weights(
        self, groups: np.ndarray, numbers: np.ndarray, weights: np.ndarray, most: float
    ) -> None:
        if most * len(weights) + float(self.state.n.max(initial=0)) <= 0.99 * kernels.MAX_N:
            return
        counted = numbers == numbers
        at = np.broadcast_to(groups, len(weights))[counted]
        refuse_beyond(kernels.MAX_N, "KLL", self.state.n, at, weights[counted])

    def _absorb_weighted(
        self, groups: np.ndarray, ends: np.ndarray, values: np.ndarray, weights: np.ndarray
    ) -> None:
        rows = min(len(values), kll_update.SCANNED)
        apart = kll_weighted.new_apart(self.tables, self.dtype, rows)
        workspace = kll_update.new_workspace(self.dtype, 0)
        given = frozen(groups), ends, values, frozen(weights), workspace, apart
        self._make_scratch(0)
        self._update(kll_weighted.update, given, groups, ends)

    def _absorb(self, groups: np.ndarray, ends: np.ndarray, values: np.ndarray) -> None:
        """Add runs of values; the run of sketch ``groups[r]`` ends at ``ends[r]``."""
        workspace = kll_update.new_workspace(self.dtype, len(values))
        rows = frozen(groups), ends, values, workspace
        self._make_scratch(0)
        self._update(kll_update.update, rows, groups, ends)

    def _update(self, kernel: Any, rows: tuple[Any, ...], groups: np.ndarray, ends: np.ndarray) -> None:
        """Call a kernel on runs of rows, with room for what they are expected to need."""
        resume(
            lambda at: kernel(self.state, *self.tables, *rows, at),
            lambda why: self._enlarge(why, coming=self._coming(groups, ends)),
        )

    def _coming(self, groups: np.ndarray, ends: np.ndarray) -> int:
        """Estimate the number of items in regions that runs of values will still request.

        A sketch moves to a larger region for each additional level, about whenever n doubles. Growing the
        pool step by step would copy all regions at each step.
        """
        before, more = self._state.n[groups].astype(np.float64), np.diff(ends, prepend=0)
        full = float(self.tables.total[self._state.levels.shape[1]] + THINNED)
        doublings = 1.0 + np.log2(1.0 + more / np.maximum(before, float(self.k)))
        return int(np.minimum(2.0 * more, full * doublings).sum())

    def unpacked(self, first: int, end: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the sorted items of each sketch from `first` to `end`, their weights, and where each
        sketch's
        items end (int64)."""
        self._make_scratch(0)
        state = self.state
        rooms = int(state.room[first:end].sum(dtype=np.int64)), int(state.room[first:end].max(initial=0))
        items, weights = np.empty(rooms[0], self.dtype), np.empty(rooms[0], np.int64)
        region, levels = np.empty(rooms[1], self.dtype), np.empty(state.levels.shape[1] + 1, np.int32)
        work = region, levels, np.empty(1, np.uint64)
        ends = np.empty(end - first, np.int64)
        kernels.unpack(state, self.tables.total, first, *work, items, weights, ends)
        used = ends[-1] if len(ends) else 0
        return items[:used], weights[:used], ends

    def weighted(self, g: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the items of sketch `g` and their weights (int64)."""
        return self.unpacked(g, g + 1)[:2]

    def one(self, g: int) -> Store:
        """Return a copy of sketch `g`, including its coins, as a store of one."""
        state = self.state
        start, room = int(state.start[g]), int(state.room[g])
        twin = Store(1, self.k, self.kind, seed=0)
        rows = {name: getattr(state, name)[g : g + 1].copy() for name in state._fields[kernels.SHARED :]}
        rows["start"][0] = 0
        items = state.items[start : start + room].copy()
        extent = new_extent()
        extent["used"] = room
        twin._state = kernels.State(items, extent, np.empty(0, self.dtype), **rows)
        return twin

    def images(self) -> tuple[np.ndarray, np.ndarray]:
        """Return all sketches' bytes, concatenated, and their offsets (int64, n + 1)."""
        self._make_scratch(0)
        state = self.state
        offsets = kll_bytes.image_offsets(state, self.tables.total, self.dtype.itemsize)
        out = np.empty(int(offsets[-1]), np.uint8)
        kll_bytes.write_images(state, self.tables.total, self.k, offsets, out, np.empty(2, self.dtype))
        return out, offsets

    def read_image(self, g: int, data: np.ndarray) -> None:
        """Fill the empty sketch `g` from an image of this store's k. Raises `SketchError`."""
        image = self._checked(data)
        if not image.n:
            return
        depth, read = image.depth, image.read
        levels = read.levels[: depth + 1]
        retained = int(levels[-1])
        room = retained if depth == 1 else int(self.tables.total[depth])
        width = max(depth + 1, self._state.levels.shape[1])
        new = self._empty(1, width) if self.n == 1 else self._state
        pool = np.empty(room, self.dtype)
        pool[room - retained :] = read.items[:retained]
        new.extent["used"] = room
        new.room[g], new.depth[g], new.n[g], new.min_k[g] = room, depth, image.n, image.min_k
        new.low[g], new.high[g] = read.edges
        new.levels[g, : depth + 1] = levels + (room - retained)
        self._state = new._replace(items=pool)


def _coins(seed: int, n: int) -> np.ndarray:
    """Return a `java.util.Random` state per group: group 0's is `setSeed(seed)`, the others derive from
    it."""
    numbers = np.arange(n, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    numbers ^= numbers >> np.uint64(29)
    return ((numbers + np.uint64(seed & _MASK_48)) ^ np.uint64(_JAVA_SCRAMBLE)) & np.uint64(_MASK_48)
