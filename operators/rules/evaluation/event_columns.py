"""Events of many keys at once: `event_state` over rows, with each key's switch at a place in arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ....sketches.core.compilation.jit import inner, kernel
from ..event_state import (
    FOREVER,
    NEVER,
    PARTS,
    Holds,
    after_row,
    after_silence,
    due_at,
    lag_after,
)
from .key_columns import KeyColumns

SWITCH: dict[str, Any] = {**dict.fromkeys(PARTS[:-1], np.int64(NEVER)), PARTS[-1]: np.int8(0)}
"""The columns of a switch at rest."""

LAG: dict[str, Any] = {"lag": np.int64(0)}
"""How far a key's readings lag behind time that has already passed (`lag_after`)."""


class Turns(NamedTuple):
    """What to report, in the order in which it happened.

    Each event has the number of its window, of its row (-1 if the passing of time caused it), its key's
    place, the kind of event, its time, and the time of the key's last reading. `parts` describe that reading.
    """

    events: np.ndarray
    parts: np.ndarray


_after_row, _after_silence, _due_at = inner(after_row), inner(after_silence), inner(due_at)
lag_after_inner = inner(lag_after)
"""`event_state.lag_after` for kernels."""


@inner
def _due(key, hold, release, stale, past, on, back, quiet, seen, unknown):
    """When a key's last reading causes a report if no other reading follows."""
    parts = past[key], on[key], back[key], quiet[key], seen[key], int(unknown[key])
    return _due_at(hold, release, stale, *parts)


@inner
def _elapse(key, due, cooldown, past, on, back, quiet, seen, unknown):
    """The report for a key at its due time."""
    parts = past[key], on[key], back[key], quiet[key], seen[key], int(unknown[key])
    what, past[key], on[key], back[key], quiet[key], seen[key], unknown[key] = _after_silence(
        due, cooldown, *parts
    )
    return what


@inner
def _turn(key, side, start, end, hold, release, cooldown, past, on, back, quiet, seen, unknown):
    """Update a key's switch with a row."""
    parts = past[key], on[key], back[key], quiet[key], seen[key], int(unknown[key])
    what, past[key], on[key], back[key], quiet[key], seen[key], unknown[key] = _after_row(
        side, start, end, hold, release, cooldown, *parts
    )
    return what


@kernel
def _follow(
    places,
    sides,
    starts,
    ends,
    bounds,
    passed,
    readings,
    hold,
    release,
    cooldown,
    stale,
    size,
    past,
    on,
    back,
    quiet,
    seen,
    unknown,
    measured,
    parts,
    clock,
    lags,
    lag,
    events,
    described,
):
    """Follow switches through windows, and through the time that passes with them; returns the event count.

    `passed` has the time up to which each window lets time pass, or the earliest time. `clock[0]` is at most
    the time at which the next report is due: until then time passes without checking any key. For a key that
    lags, time passes later by its lag.
    """
    n, width = 0, parts.shape[1]
    for window in range(len(passed)):
        for row in range(bounds[window], bounds[window + 1]):
            key = places[row]
            if readings:
                while True:
                    due = _due(key, hold, release, stale, past, on, back, quiet, seen, unknown)
                    if due >= ends[row]:
                        break
                    events[n, 0], events[n, 1], events[n, 2] = window, row, key
                    events[n, 4], events[n, 5] = due, seen[key]
                    events[n, 3] = _elapse(key, due, cooldown, past, on, back, quiet, seen, unknown)
                    events[n, 6] = 1
                    for part in range(width):
                        described[n, part] = parts[key, part]
                    n += 1
            what = _turn(
                key,
                sides[row],
                starts[row],
                ends[row],
                hold,
                release,
                cooldown,
                past,
                on,
                back,
                quiet,
                seen,
                unknown,
            )
            if what:
                events[n, 0], events[n, 1], events[n, 2], events[n, 3] = window, row, key, what
                events[n, 4], events[n, 5], events[n, 6] = ends[row], ends[row], 0
                n += 1
            if readings:
                for part in range(width):
                    parts[key, part] = measured[row, part]
                due = _due(key, hold, release, stale, past, on, back, quiet, seen, unknown)
                lag[key] = 0 if seen[key] == NEVER else lag_after_inner(lag[key], lags[row])
                if due < FOREVER:
                    clock[0] = min(clock[0], due + lag[key])
        if not readings or passed[window] <= clock[0]:
            continue
        time, following = passed[window], FOREVER
        for key in range(size):
            while True:
                due = _due(key, hold, release, stale, past, on, back, quiet, seen, unknown)
                if due >= time - lag[key]:
                    break
                events[n, 0], events[n, 1], events[n, 2] = window, -1, key
                events[n, 4], events[n, 5] = due, seen[key]
                events[n, 3] = _elapse(key, due, cooldown, past, on, back, quiet, seen, unknown)
                events[n, 6] = 1
                for part in range(width):
                    described[n, part] = parts[key, part]
                n += 1
            if seen[key] == NEVER:
                lag[key] = 0
            if due < FOREVER:
                following = min(following, due + lag[key])
        clock[0] = following
    return n


@kernel
def _turn_every(places, sides, ends, cooldown, quiet, events):
    """Every row past the limit fires, except those within the cooldown of another."""
    for i in range(len(places)):
        key = places[i]
        events[i] = 0
        if quiet[key] != NEVER and ends[i] < quiet[key]:
            continue
        quiet[key] = NEVER
        if sides[i] == 1:
            if cooldown:
                quiet[key] = ends[i] + cooldown
            events[i] = 1


def turn_each(
    memory: KeyColumns,
    places: np.ndarray,
    sides: np.ndarray,
    ends: np.ndarray,
    cooldown_us: int,
) -> np.ndarray:
    """The numbers of the rows that fire, for a rule that reports `every` row past the limit."""
    fired = np.empty(len(places), np.int8)
    _turn_every(places, sides, ends, cooldown_us, memory["quiet"], fired)
    return np.flatnonzero(fired)


def follow(
    memory: KeyColumns,
    places: np.ndarray,
    sides: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    bounds: np.ndarray,
    passed: np.ndarray,
    readings: bool,
    measured: Sequence[np.ndarray],
    holds: Holds,
    clock: np.ndarray,
    lags: np.ndarray | None = None,
) -> Turns:
    """What to report for rows, and for the time that passes with their windows.

    `memory` has the columns of `SWITCH`, and `parts` if readings may have to be described later. A key's rows
    are ordered by time; `bounds` has the beginning and end of each window's rows. `sides` are int8, times
    int64 microseconds. `lags` is how far each reading came behind the time that had passed.

    >>> memory, times = KeyColumns(SWITCH), np.arange(1, 5)  # past the limit three times, then back
    >>> places, sides = memory.add(["a"] * 4), np.array([1, 1, 1, -1], np.int8)
    >>> window, clock = (np.array([0, 4]), np.array([9])), np.array([FOREVER])
    >>> turns = follow(memory, places, sides, times, times, *window, True, (), Holds(hold_us=2), clock)
    >>> turns.events[:, [1, 3, 4]].tolist()
    [[2, 1, 3], [3, 2, 4]]
    """
    parts = memory["parts"] if "parts" in memory else np.empty((memory.size, 0))
    noted = np.empty((len(places), 0))
    if parts.shape[1]:
        noted = np.column_stack([np.asarray(column, np.float64) for column in measured])
    # Before a row an event may begin and become unknown; a key may be in a hold when the batch begins.
    most = 3 * len(places) + 2 * memory.size
    events, described = np.empty((most, 7), np.int64), np.empty((most, parts.shape[1]))
    past, on, back, quiet, seen, unknown = (memory[name] for name in SWITCH)
    lag = memory["lag"] if "lag" in memory else np.zeros(memory.size, np.int64)
    n = _follow(
        places,
        sides,
        starts,
        ends,
        bounds,
        passed,
        readings,
        holds.hold_us,
        holds.release_us,
        holds.cooldown_us,
        holds.stale_us,
        memory.size,
        past,
        on,
        back,
        quiet,
        seen,
        unknown,
        noted,
        parts,
        clock,
        np.zeros(len(places), np.int64) if lags is None else lags,
        lag,
        events,
        described,
    )
    return Turns(events[:n], described[:n])


def at_rest(memory: KeyColumns, places: np.ndarray) -> np.ndarray:
    """A mask of the keys whose switches are at rest."""
    return (memory["seen"][places] == NEVER) & (memory["quiet"][places] == NEVER)
