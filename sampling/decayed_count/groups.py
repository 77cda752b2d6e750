"""Decayed counts of many groups at once, by group number."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ...sketches.core.aggregated import Aggregated
from ...sketches.core.groups.group_numbers import as_groups, grown
from ...sketches.core.limits import refuse_beyond
from ...sketches.core.parameters import seconds
from ...sketches.core.protocol import Groups, SketchError
from ...sketches.core.values.image_columns import as_images
from ..core.decay import HalfLife, as_moment, as_times, moved
from ..core.items import Rows, as_rows
from .images import IMAGE, MAGIC, MOST_ROWS, NOBODY, STATE, VERSION, read_image


class DecayedCountGroups(Groups):
    """A decayed count for each of many groups, of 32 bytes each; `DecayedCount` states the promise.

    >>> groups = DecayedCountGroups(2, half_life=60.0)
    >>> groups.update([0, 1, 1], ["a", "b", "c"], time=[0, 0, 60_000_000])
    >>> groups.counts(now=60_000_000).tolist()
    [0.5, 1.5]
    """

    aggregate: ClassVar = Aggregated({"half_life": 3600.0}, inputs=("time",))

    def __init__(self, n: int = 0, half_life: timedelta | float = 3600.0) -> None:
        self._decay = HalfLife(seconds("DecayedCount", "half_life", half_life))
        self._n = 0
        self._state = np.empty(0, STATE)
        self.resize(n)

    def __len__(self) -> int:
        return self._n

    def resize(self, n: int) -> None:
        """Grow to `n` groups; the new ones are empty. Never shrinks."""
        if n > len(self._state):
            nothing = np.array((0.0, NOBODY, 0, NOBODY), STATE)
            self._state = grown(self._state, max(n, len(self._state) * 3 // 2), nothing)
        self._n = max(n, self._n)

    def update(self, groups: np.ndarray, values: Any, time: Any = None) -> None:
        """Count values, by their event times, in their groups; nulls are skipped."""
        self._count(groups, as_rows(values), time)

    def _count(self, groups: Any, rows: Rows, time: Any) -> None:
        times = as_times(time, rows, "DecayedCount")
        numbers = rows.per_item(as_groups(groups, rows.length, self._n), "group number")
        refuse_beyond(MOST_ROWS, "DecayedCount", self._state["n"], numbers)
        self._add(numbers, *self._decay.weighed(times), np.ones(len(times), np.int64), times)

    def _add(
        self, groups: np.ndarray, weights: np.ndarray, epochs: np.ndarray, n: np.ndarray, times: Any
    ) -> None:
        """Add weights, each relative to its epoch, to their groups."""
        state = self._state
        before = state["epoch"].copy()
        np.maximum.at(state["epoch"], groups, epochs)
        np.maximum.at(state["latest"], groups, times)
        later = np.flatnonzero(before != state["epoch"])
        state["weight"][later] = moved(state["weight"][later], before[later], state["epoch"][later])
        np.add.at(state["weight"], groups, moved(weights, epochs, state["epoch"][groups]))
        np.add.at(state["n"], groups, n)

    def merge(self, groups: np.ndarray, column: pa.Array) -> None:
        """Add serialised counts; nulls are skipped. Raises `SketchError` for other bytes."""
        numbers, images = as_images(groups, column, self._n, "DecayedCount")
        states = [self._read(image) for image in (images.to_arrow().to_pylist() if len(images) else ())]
        seen = np.array([state["n"] > 0 for state in states], bool)
        if seen.any():
            parts = np.array([state.item() for state in states], STATE)[seen]
            refuse_beyond(MOST_ROWS, "DecayedCount", self._state["n"], numbers[seen], parts["n"])
            self._add(numbers[seen], parts["weight"], parts["epoch"], parts["n"], parts["latest"])

    def _read(self, image: bytes) -> Any:
        half_life, state = read_image(image)
        if half_life != self._decay.seconds:
            raise SketchError(
                f"DecayedCount: half-lives of {self._decay.seconds} and {half_life} s can't be added up"
            )
        return state

    def to_arrow(self) -> pa.Array:
        """Return the counts' images, 48 bytes each, as binary in group order."""
        rows = self._state[: self._n].tolist()
        half_life = self._decay.seconds
        return pa.array(
            [IMAGE.pack(MAGIC, VERSION, half_life, epoch, weight, n, at) for weight, epoch, n, at in rows],
            pa.binary(),
        )

    def counts(self, now: datetime | int | None = None) -> np.ndarray:
        """Return the decayed count of each group as of `now`, or of the group's own latest row (float64).

        Raises `ValueError` for a `now` before a group's latest row, because earlier counts are not stored.
        """
        state = self._state[: self._n]
        moments = state["latest"] if now is None else np.full(self._n, as_moment(now, "DecayedCount"))
        if (moments < state["latest"]).any():
            raise ValueError(
                f"DecayedCount: now must not be before the latest row, of {state['latest'].max()} µs, "
                f"got {moments.max()} µs"
            )
        return self._decay.as_of(state["weight"], state["epoch"], np.where(state["n"] > 0, moments, 0))

    def __getitem__(self, group: int) -> Any:
        if not -self._n <= group < self._n:
            raise IndexError(f"group {group} of {self._n}")
        return self._single.from_bytes(self.to_arrow()[group % self._n].as_py())
