"""Samples of a sliding time span: each row's time and priority, for as long as a query may need the row.

The sample of any span that ends now is the k rows with the greatest priorities. So a row can be dropped when
it is older than the longest span, or when k rows that are not older have greater priorities: then it can't be
among the k of any span. The remaining rows are the k-skyline of (time, priority), about
k·ln(rows in the window / k) rows. It depends only on the set of rows, not on their order, so two skylines are
merged by computing the skyline of both.

Source: Babcock, Datar and Motwani, *Sampling from a moving window over streaming data*, SODA 2002: its
priority sample, extended to k items.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...sketches.core.compilation.jit import lean
from ...sketches.core.groups.group_numbers import frozen
from ...sketches.core.hashing.random import base_state, step, uniform
from ..core import heaps as heap_kernels
from ..core.heaps import HEAP, offer
from ..core.images import SAMPLE, Parts, samples_of
from ..core.items import Items
from ..core.pool import new_heaps
from ..core.priority import absorb

_PENDING = 4096
"""Rows that may wait for the next tidying, in addition to as many as are stored."""

_NO_TIMES = np.empty(0, np.int64)


@lean
def draw(heaps, groups, times, out):
    """Draw a priority for each row, from its group's state and its time."""
    for row in range(len(times)):
        heap = heaps[groups[row]]
        heap.seen += 1
        out[row] = -uniform(absorb(heap.state, np.uint64(times[row])))
        heap.state = step(heap.state)


@lean
def skyline(heaps, groups, times, priorities, order, window, best, slots, kept):
    """Fill `kept` with the rows that a query may still need; `order` has contiguous groups, latest rows
    first.

    `best` is a heap over `slots`, with room for k rows.
    """
    group = np.int64(-1)
    latest = np.int64(0)
    count = np.int64(0)
    for i in range(len(order)):
        row = order[i]
        if groups[row] != group:
            group = groups[row]
            latest = times[row]
            best[0].size = 0
            best[0].k = heaps[group].k
        if np.uint64(latest) - np.uint64(times[row]) >= window:
            continue
        # All rows in the heap are as late or later: k rows of greater priority rule this one out for good.
        if best[0].size >= best[0].k and priorities[row] <= slots.priorities[0]:
            continue
        offer(best[0], slots, priorities[row], 0)
        kept[count] = row
        count += 1
    return count


class Skylines:
    """Skylines by group number, with the interface of `pool.Pool`."""

    def __init__(self, n: int, k: int, seed: int | None, window_us: int) -> None:
        self.k = k
        self.items = Items()
        self._window = np.uint64(window_us)
        self._seeded = seed is not None
        self._base = base_state("a sample", seed)
        self._heaps = new_heaps(self._base, 0, 0, k, self._seeded)
        self._groups, self._times = _NO_TIMES, _NO_TIMES
        self._priorities = np.empty(0, np.float64)
        self._waiting: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._waiting_rows = 0
        self.resize(n)

    def __len__(self) -> int:
        return len(self._heaps)

    @property
    def heaps(self) -> np.ndarray:
        """One `HEAP` record per group; `size` is the number of stored rows."""
        self._tidy()
        return self._heaps

    def resize(self, n: int) -> None:
        """Grow to `n` groups; the new ones are empty, each with its own random state."""
        new = new_heaps(self._base, len(self), n, self.k, self._seeded)
        self._heaps = np.concatenate([self._heaps, new])

    def add(self, groups: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Draw priorities for rows; return the rows whose items must be passed to `keep`."""
        priorities = np.empty(len(times), np.float64)
        draw(self._heaps, groups, times, priorities)
        # In a sorted block of times, the latest rows are the last; no order loses rows.
        if groups[0] == groups[-1] and (groups[1:] == groups[:-1]).all() and (times[1:] >= times[:-1]).all():
            order = np.arange(len(times) - 1, -1, -1)
        else:
            order = _latest_first(groups, times, priorities)
        kept = self._skyline(groups, times, priorities, order)
        self._wait(groups[kept], times[kept], priorities[kept])
        return kept

    def accept(self, items: pa.Array, family: str) -> pa.Array:
        """Convert items for storage. Raises `SketchError`, with nothing changed, if they don't fit."""
        if self.items.widened_by(items.type):
            self._tidy()  # rows outside all spans must not influence the type
        return self.items.accept(self.items.fit(items, family))

    def merge(self, groups: np.ndarray, parts: Parts, family: str) -> None:
        """Merge whole samples into their groups."""
        items = self.accept(parts.items, family) if len(parts.priority) else parts.items
        samples = parts.samples.copy()
        samples["size"] = 0
        self._heaps["size"] = 0
        heap_kernels.merge(self._heaps, heap_kernels.new_slots(0), groups, samples, np.empty(0), 0)
        self._wait(np.repeat(groups, parts.samples["size"]), parts.times, parts.priority)
        self.items.append(items)
        self._tidy()

    def parts(self, groups: np.ndarray) -> Parts:
        """Return the skylines of these groups, greatest priority first."""
        self._tidy()
        chosen = self._heaps[groups]
        samples = samples_of(len(chosen))
        for name in SAMPLE.names or ():
            samples[name] = chosen[name]
        starts = np.concatenate([[0], np.cumsum(self._heaps["size"])])[groups]
        ends = np.cumsum(samples["size"])
        rows = np.arange(ends[-1] if len(ends) else 0)
        rows += np.repeat(starts - ends + samples["size"], samples["size"])
        rows = rows[np.lexsort((-self._priorities[rows], np.repeat(np.arange(len(chosen)), samples["size"])))]
        return Parts(samples, self._priorities[rows], self.items.take(rows), self._times[rows])

    def _wait(self, groups: np.ndarray, times: np.ndarray, priorities: np.ndarray) -> None:
        self._waiting.append((groups, times, priorities))
        self._waiting_rows += len(times)

    def keep(self, items: pa.Array) -> None:
        """Store the items of rows that `add` returned."""
        self.items.append(items)
        if self._waiting_rows > _PENDING + len(self._times):
            self._tidy()

    def _tidy(self) -> None:
        """Compute one skyline of the stored and waiting rows, sorted by group and time, with their items."""
        if not self._waiting:
            return
        columns = zip((self._groups, self._times, self._priorities), *self._waiting)
        groups, times, priorities = (np.concatenate(column) for column in columns)
        self._waiting, self._waiting_rows = [], 0
        kept = self._skyline(groups, times, priorities, _latest_first(groups, times, priorities))
        self._groups, self._times, self._priorities = groups[kept], times[kept], priorities[kept]
        self._heaps["size"] = np.bincount(self._groups, minlength=len(self))
        self.items.keep(kept)

    def _skyline(
        self, groups: np.ndarray, times: np.ndarray, priorities: np.ndarray, order: np.ndarray
    ) -> np.ndarray:
        best, kept = np.zeros(1, HEAP), np.empty(len(order), np.int64)
        slots = heap_kernels.new_slots(min(int(self._heaps["k"].max(initial=1)), max(len(order), 1)))
        rows = frozen(groups), frozen(times), frozen(priorities), frozen(order)
        return kept[: skyline(self._heaps, *rows, self._window, best, slots, kept)]


def _latest_first(groups: np.ndarray, times: np.ndarray, priorities: np.ndarray) -> np.ndarray:
    return np.lexsort((-priorities, ~times, groups))
