"""Absence over all rows of a batch at once, with the same alerts as row by row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ....sketches.core.compilation.jit import inner, kernel
from ..alert import Alert
from ..event_state import FOREVER
from ..kinds.absence import Absence, silence_before, silence_until
from ..window_rows import WindowBatch, order_text
from .evaluator import WindowAlert
from .event_columns import LAG, lag_after_inner
from .key_columns import KeyColumns

_ROW, _PASSED = 0, 1
_FIRED, _CLEARED = 1, 2


class AbsenceColumns:
    """See `Evaluator`. It remembers when a key was last seen, whether an event is on, its turn and its lag.

    `turn` numbers keys as they become known; 0 for a place without a key, or with a forgotten one.
    """

    def __init__(self, rule: Absence) -> None:
        self._rule = rule
        self._memory = _none()
        self._clock = np.array([1, FOREVER, 0], np.int64)
        """The next key's turn, a time up to which no key can have been silent for too long, and the number of
        forgotten keys that still occupy their places."""

    @property
    def started(self) -> bool:
        """See `Evaluator`."""
        return len(self._memory) > 0

    @property
    def due_us(self) -> int:
        """See `Evaluator`: silence is detected by other keys' windows, not by the clock."""
        return FOREVER

    def evaluate(self, batch: WindowBatch, step_us: int, passing: bool) -> list[WindowAlert]:
        """See `Evaluator`."""
        concerned = batch.concerned(self._rule.where)
        rows = np.arange(len(batch)) if concerned is None else np.flatnonzero(concerned)
        places = self._memory.add(batch.keys()[rows])
        starts, ends = batch.starts[rows], batch.ends[rows]
        begins = ends - step_us if step_us else starts
        bounds = np.searchsorted(rows, batch.bounds)
        passed = np.array([end for end, _ in batch.windows], np.int64)
        events = self._evaluate(places, begins, ends, bounds, passed, passing, batch.lags[rows])
        said = []
        for window, kind, number, place, event, time_us in events:
            if event == _FIRED:
                alert = self._rule.fired(self._memory.key(place), time_us)
            else:
                span = int(starts[number]), int(ends[number])
                alert = self._rule.cleared(self._memory.key(place), *span, int(begins[number]) - time_us)
            key = order_text(self._memory.key(place)) if kind == _ROW else ""
            order = (int(ends[number]), key, event) if kind == _ROW else (number, key, event)
            said.append((window, kind, order, alert))
        self._forget()
        said.sort(key=lambda one: one[:3])
        return [WindowAlert(window, kind == _PASSED, alert) for window, kind, _, alert in said]

    def advance(self, time_us: int, step_us: int) -> list[Alert]:
        """See `Evaluator`."""
        if time_us <= self._clock[1]:
            return []
        none = np.empty(0, np.int64)
        bounds, passed = np.zeros(2, np.int64), np.array([time_us], np.int64)
        events = self._evaluate(none, none, none, bounds, passed, True, none)
        events.sort(key=lambda one: one[2])
        alerts = [self._rule.fired(self._memory.key(place), seen) for _, _, _, place, _, seen in events]
        self._forget()
        return alerts

    @property
    def by_key(self) -> bool:
        """See `Evaluator`. When a key is forgotten depends on when others' windows close."""
        return not self._rule.forget_us

    def extract(self, key: str) -> AbsenceColumns:
        """See `Evaluator`."""
        other = AbsenceColumns(self._rule)
        other.insert(key, self)
        return other

    def insert(self, key: str, source: AbsenceColumns) -> None:
        """See `Evaluator`."""
        own = int(self._memory.find([key])[0])
        turn = int(self._memory["turn"][own]) if own >= 0 else int(self._clock[0])
        self._memory.take(key, source._memory)
        if (own := int(self._memory.find([key])[0])) >= 0:
            self._memory["turn"][own] = turn
        self._clock[0] = max(int(self._clock[0]), turn + 1)
        self._clock[1] = np.iinfo(np.int64).min

    def copy(self) -> AbsenceColumns:
        """See `Evaluator`."""
        other = AbsenceColumns(self._rule)
        other._memory, other._clock = self._memory.copy(), self._clock.copy()
        return other

    def forget_lags(self) -> None:
        """See `Evaluator`."""
        self._memory["lag"][:] = 0
        self._clock[1] = np.iinfo(np.int64).min

    def take_back(self, key: str, at_us: int) -> None:
        """See `Evaluator`: silence follows from no reading."""

    def state(self) -> dict[str, Any]:
        """See `Evaluator`."""
        return self._memory.state(by="turn")

    def restore(self, state: Mapping[str, Any]) -> None:
        """See `Evaluator`."""
        self._memory = _none()
        self._memory.restore(state)
        turns = self._memory["turn"]
        self._clock[:] = turns.max() + 1, np.iinfo(np.int64).min, 0

    def _evaluate(
        self,
        places: np.ndarray,
        begins: np.ndarray,
        ends: np.ndarray,
        bounds: np.ndarray,
        passed: np.ndarray,
        passing: bool,
        lags: np.ndarray,
    ) -> list[tuple[int, ...]]:
        """What to report: window, kind, row or turn, place, event, and when the key was seen before."""
        memory, limits = self._memory, (self._rule.longer_us, self._rule.forget_us)
        # A row can end one silence and begin another; a key can be in one when the batch begins.
        events = np.empty((2 * len(places) + memory.size, 6), np.int64)
        columns = memory["seen"], memory["on"], memory["turn"], memory["lag"]
        rows = places, begins, ends, lags, bounds, passed
        n = _silences(*rows, passing, *limits, memory.size, *columns, self._clock, events)
        return [tuple(event) for event in events[:n].tolist()]

    def _forget(self) -> None:
        if self._clock[2]:
            self._clock[2] = 0
            turns = self._memory["turn"][: self._memory.size]
            gone = [place for place in np.flatnonzero(turns == 0).tolist() if self._memory.has(place)]
            if gone:
                self._memory.drop(np.array(gone))


def _none() -> KeyColumns:
    return KeyColumns({"seen": np.int64(0), "on": np.int8(0), "turn": np.int64(0), **LAG})


_silence_before, _silence_until = inner(silence_before), inner(silence_until)


@kernel
def _silences(
    places,
    begins,
    ends,
    lags,
    bounds,
    passed,
    passing,
    longer,
    forget,
    size,
    seen,
    on,
    turn,
    lag,
    clock,
    events,
):
    """Follow keys through windows; returns the number of events.

    `clock[1]` is at most the time at which the next key can have been silent for too long: until then time
    passes without checking any key.
    """
    n = 0
    for window in range(len(passed)):
        for row in range(bounds[window], bounds[window + 1]):
            key = places[row]
            last, begin = seen[key], begins[row]
            if turn[key] == 0:
                turn[key] = clock[0]
                clock[0] += 1
                seen[key] = ends[row]
            else:
                fired, cleared, seen[key] = _silence_before(begin, ends[row], longer, last, on[key])
                if fired:
                    events[n, 0], events[n, 1], events[n, 2] = window, 0, row
                    events[n, 3], events[n, 4], events[n, 5] = key, 1, last
                    n += 1
                if cleared:
                    events[n, 0], events[n, 1], events[n, 2] = window, 0, row
                    events[n, 3], events[n, 4], events[n, 5] = key, 2, last
                    n += 1
            on[key] = 0
            lag[key] = lag_after_inner(lag[key], lags[row])
            clock[1] = min(clock[1], seen[key] + lag[key] + longer)
        if not passing or passed[window] <= clock[1]:
            continue
        time, until = passed[window], np.int64(9223372036854775807)
        for key in range(size):
            if turn[key] == 0:
                continue
            fired, gone = _silence_until(time, longer, forget, seen[key], lag[key], on[key])
            if fired:
                events[n, 0], events[n, 1], events[n, 2] = window, 1, turn[key]
                events[n, 3], events[n, 4], events[n, 5] = key, 1, seen[key]
                n += 1
                on[key] = 1
            if gone:
                turn[key] = 0
                on[key] = 0
                lag[key] = 0
                clock[2] += 1
            elif not on[key]:
                until = min(until, seen[key] + lag[key] + longer)
            elif forget:
                until = min(until, seen[key] + lag[key] + forget)
        clock[1] = until
    return n
