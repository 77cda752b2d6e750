"""Events of many keys at once: `event_state` over rows, each key's switch a place in arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ....sketches.core.jit import inner, kernel
from ..alert import State
from ..event_state import Holds, lag_after
from .key_columns import KeyColumns

PAST, BETWEEN, BACK = 1, 0, -1
"""Sides of a limit, as numbers."""

FIRED, CLEARED, UNKNOWN = 1, 2, 3

STATES: dict[int, State] = {FIRED: "fired", CLEARED: "cleared", UNKNOWN: "unknown"}

FOREVER = np.iinfo(np.int64).max
_NEVER = np.int64(np.iinfo(np.int64).min)

SWITCH: dict[str, Any] = {
    **dict.fromkeys(("past", "on", "back", "quiet", "seen"), _NEVER),
    "unknown": np.int8(0),
}
"""The columns of a switch at rest (`event_state.Switch`)."""

LAG: dict[str, Any] = {"lag": np.int64(0)}
"""How far a key's readings came behind time that had passed already (`lag_after`)."""


class Turns(NamedTuple):
    """What is to be reported, in the order in which it came.

    Of each, the number of its window, of its row (-1 if time alone came to it), its key's place, what it is,
    when it was so, and the time of the key's last reading. `parts` is what that reading is described by.
    """

    events: np.ndarray
    parts: np.ndarray


@inner
def _due(key, hold, release, stale, past, on, back, quiet, seen, unknown):
    """When something comes of a key's last reading if no other follows (`event_state.due`)."""
    never = np.int64(-9223372036854775808)
    forever = np.int64(9223372036854775807)
    if on[key] == never:
        if past[key] == never:
            return forever
        return max(past[key] + hold, quiet[key])
    if back[key] != never:
        return back[key] + release
    if unknown[key] or not stale:
        return forever
    return max(seen[key] + stale, on[key])


@inner
def _elapse(key, due, cooldown, past, on, back, quiet, seen, unknown):
    """What comes of a key at the time when it is due (`event_state.elapse`)."""
    never = np.int64(-9223372036854775808)
    if on[key] == never:
        past[key] = never
        on[key] = due
        quiet[key] = due + cooldown
        return 1
    if back[key] == never:
        unknown[key] = 1
        return 3
    on[key] = never
    back[key] = never
    unknown[key] = 0
    if quiet[key] <= due:
        quiet[key] = never
        seen[key] = never
    return 2


lag_after_inner = inner(lag_after)
"""`event_state.lag_after` for kernels."""


@inner
def _turn(key, side, start, end, hold, release, cooldown, past, on, back, quiet, seen, unknown):
    """Let a switch see a row (`event_state.turn`)."""
    never = np.int64(-9223372036854775808)
    before = start if seen[key] == never else seen[key]
    seen[key] = end
    if on[key] != never:
        if side != -1:
            back[key] = never
            if side == 1 and unknown[key]:
                unknown[key] = 0
                return 1
            return 0
        if back[key] == never:
            back[key] = start
        if end - back[key] < release:
            return 0
        on[key] = never
        back[key] = never
        unknown[key] = 0
        if quiet[key] <= end:
            past[key] = never
            quiet[key] = never
            seen[key] = never
        return 2
    if side != 1:
        past[key] = never
        if quiet[key] == never or quiet[key] <= end:
            quiet[key] = never
            seen[key] = never
        return 0
    if (start < end and start - before > hold) or past[key] == never:
        past[key] = start
    if end - past[key] < hold or (quiet[key] != never and end < quiet[key]):
        return 0
    past[key] = never
    on[key] = end
    quiet[key] = end + cooldown
    return 1


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
    """Follow switches through windows, and through the time that passes with them; gives how many events.

    `passed` has the time that each window ends the wait for, or the earliest of all. `clock[0]` is at most
    the time at which something is due: until then time passes without a look at any key. For a key that
    lags, time passes as much later.
    """
    n, width = 0, parts.shape[1]
    never = np.int64(-9223372036854775808)
    forever = np.int64(9223372036854775807)
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
                lag[key] = 0 if seen[key] == never else lag_after_inner(lag[key], lags[row])
                if due < forever:
                    clock[0] = min(clock[0], due + lag[key])
        if not readings or passed[window] <= clock[0]:
            continue
        time, following = passed[window], forever
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
            if seen[key] == never:
                lag[key] = 0
            if due < forever:
                following = min(following, due + lag[key])
        clock[0] = following
    return n


@kernel
def _turn_every(places, sides, ends, cooldown, quiet, events):
    """Every row past the limit fires, but for those that come too early after another."""
    never = np.int64(-9223372036854775808)
    for i in range(len(places)):
        key = places[i]
        events[i] = 0
        if quiet[key] != never and ends[i] < quiet[key]:
            continue
        quiet[key] = never
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
    """Which rows fire of a rule that reports `every` one past the limit, as numbers."""
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
    """What is to be reported of rows, and of the time that passes with their windows.

    `memory` has the columns of `SWITCH`, and `parts` if readings may be described after a while. Rows of one
    key are in the order of their times; `bounds` says where each window's rows begin and end. `sides` are
    int8, times int64 microseconds. `lags` is how far each reading came behind the time that had passed.

    >>> memory, times = KeyColumns(SWITCH), np.arange(1, 5)
    >>> places, sides = memory.add(["a"] * 4), np.array([PAST, PAST, PAST, BACK], np.int8)
    >>> window, clock = (np.array([0, 4]), np.array([9])), np.array([FOREVER])
    >>> turns = follow(memory, places, sides, times, times, *window, True, (), Holds(hold_us=2), clock)
    >>> turns.events[:, [1, 3, 4]].tolist()
    [[2, 1, 3], [3, 2, 4]]
    """
    parts = memory["parts"] if "parts" in memory else np.empty((memory.size, 0))
    noted = np.empty((len(places), 0))
    if parts.shape[1]:
        noted = np.column_stack([np.asarray(column, np.float64) for column in measured])
    # Before a row an event may begin and be unknown; a key may be in a hold when the batch begins.
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
    """Which of these keys' switches are at rest."""
    return (memory["seen"][places] == _NEVER) & (memory["quiet"][places] == _NEVER)
