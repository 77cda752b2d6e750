"""Samples of a moving time span: of each row its time and priority, as long as a query may yet need it.

Of the rows of any span that ends now, the k of greatest priority are the sample. So a row is done with once
it is older than the longest span, or once k rows that are no older have greater priorities: it can't be among
the k of any span. What is left is the k-skyline of (time, priority), some k·ln(rows in the window / k) rows.
It depends only on which rows there were, not on their order, so skylines merge by taking that of both.

Source: Babcock, Datar and Motwani, *Sampling from a moving window over streaming data*, SODA 2002, its
priority sample, kept for k items at once.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...sketches.core.group_numbers import frozen
from ...sketches.core.jit import lean
from ...sketches.core.random import base_state, step, uniform
from ..core import heaps as heap_kernels
from ..core.heaps import HEAP, offer
from ..core.images import SAMPLE, Parts, samples_of
from ..core.items import Items
from ..core.pool import new_heaps
from ..core.priority import absorb

_PENDING = 4096
"""Rows that may wait for the next tidying up, beside as many as are kept."""

_NO_TIMES = np.empty(0, np.int64)


@lean
def draw(heaps, groups, times, out):
    """A priority for each row, from its group's state and its time."""
    for row in range(len(times)):
        heap = heaps[groups[row]]
        heap.seen += 1
        out[row] = -uniform(absorb(heap.state, np.uint64(times[row])))
        heap.state = step(heap.state)


@lean
def skyline(heaps, groups, times, priorities, order, window, best, slots, kept):
    """Fill `kept` with the rows that a query may yet need; `order` has groups together, latest rows first.

    `best` is one heap over `slots`, as many as the rows of a group that a span may hold.
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
        # All rows in the heap are as late or later: k of greater priority rule this one out for good.
        if best[0].size >= best[0].k and priorities[row] <= slots.priorities[0]:
            continue
        offer(best[0], slots, priorities[row], 0)
        kept[count] = row
        count += 1
    return count


class Skylines:
    """Skylines by group number, with the same outside as `pool.Pool`."""

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
        """One `HEAP` record a group, `size` being the rows kept."""
        self._tidy()
        return self._heaps

    def resize(self, n: int) -> None:
        """Grow to `n` groups, the new ones empty, each with a random state of its own."""
        new = new_heaps(self._base, len(self), n, self.k, self._seeded)
        self._heaps = np.concatenate([self._heaps, new])

    def add(self, groups: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Give rows their priorities; returns the rows whose items are to be passed to `keep`."""
        priorities = np.empty(len(times), np.float64)
        draw(self._heaps, groups, times, priorities)
        # Of a block of times in order the latest rows are the last; any order leaves nothing out.
        if groups[0] == groups[-1] and (groups[1:] == groups[:-1]).all() and (times[1:] >= times[:-1]).all():
            order = np.arange(len(times) - 1, -1, -1)
        else:
            order = _latest_first(groups, times, priorities)
        kept = self._skyline(groups, times, priorities, order)
        self._wait(groups[kept], times[kept], priorities[kept])
        return kept

    def accept(self, items: pa.Array, family: str) -> pa.Array:
        """The items as they are kept. Raises `SketchError`, and changes nothing, if they don't fit."""
        if self.items.widened_by(items.type):
            self._tidy()  # what no span holds any more has no say in it
        return self.items.accept(self.items.fit(items, family))

    def merge(self, groups: np.ndarray, parts: Parts, family: str) -> None:
        """Fold whole samples into their groups."""
        items = self.accept(parts.items, family) if len(parts.priority) else parts.items
        samples = parts.samples.copy()
        samples["size"] = 0
        self._heaps["size"] = 0
        heap_kernels.merge(self._heaps, heap_kernels.new_slots(0), groups, samples, np.empty(0), 0)
        self._wait(np.repeat(groups, parts.samples["size"]), parts.times, parts.priority)
        self.items.append(items)
        self._tidy()

    def parts(self, groups: np.ndarray) -> Parts:
        """The skylines of those groups, each one's greatest priority first."""
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
        """One skyline of the rows kept and those waiting, groups and times in order, items alike."""
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
