"""The arrays of many REQ sketches, enlarged as kernels need."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.groups.arena import new_extent, packed
from ..core.groups.group_numbers import frozen
from ..core.groups.group_order import by_group
from ..core.hashing.random import base_state, group_states
from ..core.limits import refuse_beyond
from ..core.parameters import flag, whole
from ..core.protocol import SketchError
from ..core.resume import resume
from . import images
from . import update as kernels
from .sections import FIRST_SECTIONS, MAX_K, MIN_K, raw_sizes, section_sizes

_SLICE = 1 << 20
"""Rows sorted by group at a time."""
_LEAST = 1024
_TOO_MANY = f"REQ: merging would count more than {kernels.MAX_N} values"


class Store:
    """`n` REQ sketches of one k, accurate at one end; enlarges arrays and pool when kernels request it."""

    def __init__(self, n: int, k: int, high_ranks: bool, seed: int | None) -> None:
        if whole("REQ", "k", k, MIN_K, MAX_K) % 2:
            raise SketchError(f"REQ: k must be even, got {k}")
        self.k, self.high_ranks = int(k), flag("REQ", "high_ranks", high_ranks)
        self._base = base_state("REQ", seed)
        self._sizes, self._raw = frozen(section_sizes()), frozen(raw_sizes())
        self._state = self._empty(0, 0, 1)
        self.n = 0
        self.resize(n)

    def _empty(self, first: int, end: int, width: int) -> kernels.State:
        """Return empty rows for the sketches from `first` to `end`."""
        n = end - first
        return kernels.State(
            items=np.empty(0, np.float32),
            extent=new_extent(),
            scratch=np.empty(0, np.float32),
            start=np.zeros(n, np.int64),
            room=np.zeros(n, np.int32),
            retained=np.zeros(n, np.int32),
            nominal=np.full(n, 2 * FIRST_SECTIONS * self.k, np.int32),
            ordered=np.zeros(n, np.int32),
            depth=np.ones(n, np.int8),
            k=np.full(n, self.k, np.int16),
            n=np.zeros(n, np.int64),
            low=np.full(n, np.inf, np.float32),
            high=np.full(n, -np.inf, np.float32),
            state=group_states(self._base, first, end),
            coins=np.zeros(n, np.uint64),
            schedule=np.zeros((n, width), np.int64),
            doubled=np.zeros((n, width), np.int8),
            counts=np.zeros((n, width), np.int32),
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
        old = self._state
        if n > len(old.n):
            end = max(n, len(old.n) * 3 // 2)
            new = self._empty(len(old.n), end, old.counts.shape[1])
            rows = {
                name: np.concatenate([getattr(old, name), getattr(new, name)])
                for name in old._fields[kernels.SHARED :]
            }
            self._state = old._replace(**rows)
        self.n = max(self.n, n)

    def _enlarge(self, why: int) -> None:
        """Make room of the kind that a kernel requested."""
        old = self._state
        if why == kernels.MORE_LEVELS:
            by_level = {name: getattr(old, name) for name in ("schedule", "doubled", "counts")}
            wider = {name: np.pad(rows, ((0, 0), (0, 4))) for name, rows in by_level.items()}
            self._state = old._replace(**wider)
        elif why == kernels.MORE_SCRATCH:
            self._make_scratch(2 * int(old.extent["wanted"][0]))
            old.extent["wanted"] = 0
        else:
            more = int(old.extent["wanted"][0]) + images.SPARE + _LEAST
            (items,) = packed((old.items,), old.extent, old.start, old.room, more)
            self._state = old._replace(items=items)

    def _make_scratch(self, places: int) -> None:
        if len(self._state.scratch) < places:
            self._state = self._state._replace(scratch=np.empty(places, np.float32))

    def update_one(self, g: int, numbers: np.ndarray) -> None:
        """Add numbers (float32) to sketch `g`."""
        self._refuse_beyond(np.full(len(numbers), g), numbers)
        self._add(np.array([g]), np.array([len(numbers)]), numbers)

    def update(self, groups: np.ndarray, numbers: np.ndarray) -> None:
        """Add ``numbers[i]`` (float32) to sketch ``groups[i]`` (int64, within range)."""
        self._refuse_beyond(groups, numbers)
        for at in range(0, len(numbers), _SLICE):
            some, values = groups[at : at + _SLICE], numbers[at : at + _SLICE]
            if len(values) * 4 < self.n:
                self._add(some, np.arange(1, len(values) + 1), values)
            else:
                ends, ordered = by_group(some, values, self.n)
                self._add(np.arange(self.n), ends, ordered)

    def _refuse_beyond(self, groups: np.ndarray, numbers: np.ndarray) -> None:
        if int(self._state.n.max(initial=0)) > kernels.MAX_N - len(numbers):
            refuse_beyond(kernels.MAX_N, "REQ", self.state.n, groups[numbers == numbers])

    def _add(self, groups: np.ndarray, ends: np.ndarray, values: np.ndarray) -> None:
        """Add runs of values; the run of sketch ``groups[r]`` ends at ``ends[r]``."""
        rows = frozen(groups), frozen(ends), frozen(values), self.high_ranks
        resume(lambda at: kernels.update(self.state, self._sizes, *rows, at), self._enlarge)

    def merge_images(self, groups: np.ndarray, data: np.ndarray, offsets: np.ndarray) -> None:
        """Merge the image whose bytes (uint8) begin at ``offsets[i]`` into sketch ``groups[i]``, for all i.

        Raises `SketchError` naming the fault of the first invalid image; then none is merged.
        """
        tables = self._raw, self._sizes
        image = images.new_image(int(np.diff(offsets).max(initial=0)) // 4 + 1)
        given = (frozen(data), frozen(offsets), *tables, image, np.zeros(4, np.int64))
        at, fault, seen = images.check(*given, int(self.high_ranks), 0)
        if at < len(groups):
            raise self._refusal(int(offsets[at + 1] - offsets[at]), fault)
        if seen + float(self.state.n.max(initial=0)) > 0.99 * kernels.MAX_N:
            self._check_counts(groups, given)
        self._make_scratch(2 * len(image.items) + 512)
        rows = frozen(groups), int(self.high_ranks)
        resume(lambda at: images.merge(self.state, *given, *rows, at), self._enlarge)

    def _check_counts(self, groups: np.ndarray, given: tuple[Any, ...]) -> None:
        """Refuse images that would count too many values."""
        n = {int(g): int(self.state.n[g]) for g in groups}
        data, offsets, raw, sizes, image, numbers = given
        for i, g in enumerate(groups.tolist()):
            one = frozen(offsets[i : i + 2])
            images.check(data, one, raw, sizes, image, numbers, int(self.high_ranks), 0)
            n[g] += int(numbers[2])
            if n[g] > kernels.MAX_N:
                raise SketchError(_TOO_MANY)

    def _refusal(self, size: int, fault: int) -> SketchError:
        if fault:
            return SketchError(f"REQ: these {size} bytes are not a sketch: {images.FAULTS[fault]}")
        mine, theirs = ("high", "low") if self.high_ranks else ("low", "high")
        return SketchError(
            f"REQ: a sketch that is accurate at {mine} ranks can't take in one that is accurate at {theirs} "
            f"ranks; sketch both with high_ranks={self.high_ranks}"
        )

    def images(self) -> tuple[np.ndarray, np.ndarray]:
        """Return all sketches' bytes, concatenated, and their offsets (int64, n + 1)."""
        state, *old = self._to_read()
        depth, retained = state.depth.sum(dtype=np.int64), state.retained.sum(dtype=np.int64)
        most = (images.HEADER + images.LEVEL) * self.n + images.LEVEL * depth + 4 * retained
        out, offsets = np.empty(int(most), np.uint8), np.zeros(self.n + 1, np.int64)
        edges = np.empty(3, np.float32)
        images.write(state, self._raw, self._sizes, self.high_ranks, offsets, out, edges, *old)
        return out[: offsets[-1]], offsets

    def _to_read(self) -> tuple[kernels.State, np.ndarray, np.ndarray]:
        """Return the arrays, with scratch for any sketch, and room to save one before it is compacted."""
        most = int(self.state.retained.max(initial=0))
        self._make_scratch(kernels.scratch_places(most))
        return self.state, np.empty(most, np.float32), np.empty((4, images.MOST_LEVELS + 2), np.int64)

    def unpacked(self, first: int, end: int) -> tuple[np.ndarray, ...]:
        """Return, for the sketches from `first` to `end`, their sorted items (float32), the items' weights
        (int64), where each sketch's items end (int64), and its lowest and highest value (n × 2)."""
        state, *old = self._to_read()
        held = int(state.retained[first:end].sum(dtype=np.int64))
        items, weights = np.empty(held, np.float32), np.empty(held, np.int64)
        ends, edges = np.empty(end - first, np.int64), np.empty((end - first, 2), np.float32)
        images.unpack(state, self._sizes, self.high_ranks, first, items, weights, ends, edges, *old)
        used = ends[-1] if len(ends) else 0
        return items[:used], weights[:used], ends, edges

    def one(self, g: int) -> Store:
        """Return a copy of sketch `g`, including its coins, as a store of one."""
        state = self.state
        start, room = int(state.start[g]), int(state.room[g])
        twin = Store(1, int(state.k[g]), self.high_ranks, seed=0)
        rows = {name: getattr(state, name)[g : g + 1].copy() for name in state._fields[kernels.SHARED :]}
        rows["start"][0] = 0
        items = np.empty(room + images.SPARE, np.float32)
        items[:room] = state.items[start : start + room]
        extent = new_extent()
        extent["used"] = room
        twin._state = kernels.State(items, extent, np.empty(0, np.float32), **rows)
        return twin
