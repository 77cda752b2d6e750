"""The arrays of many KLL sketches, kept large enough for the kernels that fill them."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from ..core.group_numbers import frozen
from ..core.group_order import by_group
from ..core.parameters import one_of, seeded, whole
from ..core.protocol import SketchError
from . import compaction as kernels
from . import images as kll_bytes
from . import merge as kll_merge
from . import update as kll_update
from .blocks import THINNED
from .levels import MAX_DEPTH, MAX_K, MIN_K, capacities

Kind = Literal["double", "float", "long"]
DTYPES: dict[str, Any] = {"double": np.float64, "float": np.float32, "long": np.int64}

_SLICE = 1 << 20
"""Rows ordered by group at a time."""
_JAVA_SCRAMBLE = 0x5DEECE66D
_MASK_48 = (1 << 48) - 1


class Store:
    """`n` KLL sketches of one k and one kind of item; grows arrays and pool as the kernels ask for it."""

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
            used=np.zeros(1, np.int64),
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
        return kernels.State(spare.items, spare.used, spare.scratch, **rows)

    def resize(self, n: int) -> None:
        """Grow to `n` sketches."""
        if n > len(self._state.n):
            old = self._state
            new = self._empty(max(n, 2 * len(old.n)) if len(old.n) else n, old.levels.shape[1])
            for name in old._fields[kernels.SHARED :]:
                getattr(new, name)[: len(old.n)] = getattr(old, name)
            self._state = new._replace(items=old.items, used=old.used, scratch=old.scratch)
        self.n = max(self.n, n)

    def run(self, kernel: Callable[..., tuple[int, int]], *arguments: Any, least: int = 0) -> None:
        """Call a kernel until it is done, making the room it asks for; `least`: items it brings along."""
        done = 0
        self._make_scratch(least)
        while True:
            end, done = kernel(self.state, *self.tables, *arguments, done)
            if end == kernels.DONE:
                return
            self._make_room(end, least)

    def _make_room(self, end: int, least: int) -> None:
        if end == kernels.TOO_MANY:
            raise SketchError(f"KLL: merging would count more than {kernels.MAX_N} values")
        old = self._state
        if end == kernels.MORE_LEVELS:
            levels = np.zeros((len(old.n), old.levels.shape[1] + 4), np.int32)
            levels[:, : old.levels.shape[1]] = old.levels
            self._state = old._replace(levels=levels)
            self._make_scratch(least)
            return
        live = int(old.room.sum(dtype=np.int64))
        largest = int(self.tables.total[old.levels.shape[1]]) + THINNED + 64
        items = np.empty(2 * live + least + 2 * largest, self.dtype)
        kernels.repack(old, items)
        self._state = old._replace(items=items)

    def _make_scratch(self, least: int) -> None:
        """The largest room is that of as many levels as there are columns, and a few items of the sampler."""
        needed = 2 * (int(self.tables.total[self._state.levels.shape[1]]) + 64 + least) + 1024
        if len(self._state.scratch) < needed:
            self._state = self._state._replace(scratch=np.empty(needed, self.dtype))

    def merge_image(self, g: int, data: np.ndarray) -> None:
        """Check one image (uint8) and fold it into sketch `g`. Raises `SketchError` naming the fault."""
        n, min_k, levels, items, edges = self._checked(data)
        if n:
            deep = min(len(levels) + 2, len(self.tables.total) - 1)
            least = int(self.tables.total[deep]) + len(items)
            self.run(kll_merge.merge_one, g, items, levels, n, *edges, min_k, least=least)

    def merge_images(self, groups: np.ndarray, images: np.ndarray, offsets: np.ndarray) -> None:
        """Fold images in: the one whose bytes (uint8) begin at ``offsets[i]`` into sketch ``groups[i]``."""
        data, offsets = frozen(images), frozen(np.ascontiguousarray(offsets, np.int64))
        most = int(self.tables.total[MAX_DEPTH])
        image = np.empty(most, self.dtype), np.empty(MAX_DEPTH + 1, np.int64), np.empty(2, self.dtype)
        self._make_scratch(2 * most)
        at, done = 0, 0
        while at < len(groups):
            more = (self.k, groups, data, offsets, *image, at, done)
            end, at, done = kll_merge.merge_images(self.state, *self.tables, *more)
            if end == kll_merge.OTHER:
                self.merge_image(int(groups[at]), images[offsets[at] : offsets[at + 1]])
                at += 1
            elif end != kernels.DONE:
                self._make_room(end, 2 * most)

    def _checked(self, data: np.ndarray) -> tuple[int, int, np.ndarray, np.ndarray, np.ndarray]:
        """n, min k, levels, items, and lowest and highest item of an image, or `SketchError`."""
        fault, k, n, min_k, depth, updatable = kll_bytes.read_header(data, self.dtype.itemsize)
        levels = np.zeros(depth + 1, np.int64)
        edges = np.empty(2, self.dtype)
        items = edges[:0]
        if not fault and n:
            capacity = int(capacities(int(k)).total[depth])
            items = np.empty(min(capacity, len(data) // self.dtype.itemsize + 1), self.dtype)
            fault = kll_bytes.read_body(data, n, depth, updatable, capacity, levels, items, edges)
        if fault:
            what = kll_bytes.FAULTS[fault]
            raise SketchError(f"KLL: these {len(data)} bytes are no sketch of {self.kind}s: {what}")
        return n, min_k, levels, items, edges

    def update(self, groups: np.ndarray, numbers: np.ndarray) -> None:
        """Add ``numbers[i]`` to sketch ``groups[i]`` (int64, within range)."""
        for at in range(0, len(numbers), _SLICE):
            some, values = groups[at : at + _SLICE], numbers[at : at + _SLICE]
            if len(values) * 4 < self.n:
                self.run(kll_update.update_rows, some, values)
            else:
                self.run(kll_update.update_sorted, *by_group(some, values, self.n))

    def make_ready(self) -> None:
        """Scratch for kernels that only read."""
        self._make_scratch(0)

    def weighted(self, g: int) -> tuple[np.ndarray, np.ndarray]:
        """The items of sketch `g` and how many values each stands for (int64), in no order."""
        self._make_scratch(0)
        state = self.state
        depth, grain, n = int(state.depth[g]), int(state.grain[g]), int(state.n[g])
        region, levels = np.empty(state.room[g], self.dtype), np.empty(depth + 1, np.int32)
        kernels.fitted(state, self.tables.total, g, region, levels, np.empty(1, np.uint64))
        kept = np.array([j for j in range(grain) if n >> j & 1], np.int64)
        weights = np.repeat(np.int64(1) << np.arange(grain, grain + depth), np.diff(levels))
        return np.concatenate([region[kept], region[levels[0] :]]), np.concatenate([1 << kept, weights])

    def one(self, g: int) -> Store:
        """A copy of sketch `g`, coins and all, as a store of one."""
        state = self.state
        start, room = int(state.start[g]), int(state.room[g])
        twin = Store(1, self.k, self.kind, seed=0)
        rows = {name: getattr(state, name)[g : g + 1].copy() for name in state._fields[kernels.SHARED :]}
        rows["start"][0] = 0
        items = state.items[start : start + room].copy()
        twin._state = kernels.State(items, np.array([room]), np.empty(0, self.dtype), **rows)
        return twin

    def images(self) -> tuple[np.ndarray, np.ndarray]:
        """Every sketch's bytes one after another, and where each starts and ends (int64, n + 1)."""
        self._make_scratch(0)
        state = self.state
        offsets = kll_bytes.image_offsets(state, self.tables.total, self.dtype.itemsize)
        out = np.empty(int(offsets[-1]), np.uint8)
        kll_bytes.write_images(state, self.tables.total, self.k, offsets, out, np.empty(2, self.dtype))
        return out, offsets

    def read_image(self, g: int, data: np.ndarray) -> None:
        """Make the empty sketch `g` exactly what an image of this store's k says. Raises `SketchError`."""
        n, min_k, levels, items, edges = self._checked(data)
        if not n:
            return
        depth, retained = len(levels) - 1, int(levels[-1])
        room = retained if depth == 1 else int(self.tables.total[depth])
        width = max(depth + 1, self._state.levels.shape[1])
        new = self._empty(1, width) if self.n == 1 else self._state
        pool = np.empty(room, self.dtype)
        pool[room - retained :] = items[:retained]
        new.used[0], new.room[g], new.depth[g], new.n[g] = room, room, depth, n
        new.low[g], new.high[g] = edges
        new.min_k[g] = min_k
        new.levels[g, : depth + 1] = levels + (room - retained)
        self._state = new._replace(items=pool)


def _coins(seed: int, n: int) -> np.ndarray:
    """A `java.util.Random` a group: group 0 as `setSeed(seed)` leaves it, the others scrambled from it."""
    numbers = np.arange(n, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    numbers ^= numbers >> np.uint64(29)
    return ((numbers + np.uint64(seed & _MASK_48)) ^ np.uint64(_JAVA_SCRAMBLE)) & np.uint64(_MASK_48)
