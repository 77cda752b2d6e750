"""Events of many keys at once: `event_state.turn` over rows, each key's switch a place in arrays."""

from __future__ import annotations

import numpy as np

from ....sketches.core.jit import kernel
from ..event_state import Holds
from .key_columns import KeyColumns

PAST, BETWEEN, BACK = 1, 0, -1
"""Sides of a limit, as numbers."""

FIRED, CLEARED = 1, 2

_NEVER = np.int64(np.iinfo(np.int64).min)

SWITCH = dict.fromkeys(("past", "on", "back", "quiet", "seen"), _NEVER)
"""The columns of a switch at rest (`event_state.Switch`)."""


@kernel
def _turn(places, sides, starts, ends, hold, release, cooldown, past, on, back, quiet, seen, events):
    """Let switches see rows in their order, as `event_state.turn` does one."""
    never = np.int64(-9223372036854775808)
    for i in range(len(places)):
        key, side, start, end = places[i], sides[i], starts[i], ends[i]
        events[i] = 0
        before = start if seen[key] == never else seen[key]
        seen[key] = end
        if on[key] != never:
            if side != -1:
                back[key] = never
                continue
            if start - before > release or back[key] == never:
                back[key] = start
            if end - back[key] < release:
                continue
            on[key] = never
            back[key] = never
            if quiet[key] <= end:
                past[key] = never
                quiet[key] = never
                seen[key] = never
            events[i] = 2
            continue
        if side != 1:
            past[key] = never
            if quiet[key] == never or quiet[key] <= end:
                quiet[key] = never
                seen[key] = never
            continue
        if start - before > hold or past[key] == never:
            past[key] = start
        if end - past[key] < hold or (quiet[key] != never and end < quiet[key]):
            continue
        past[key] = never
        on[key] = end
        quiet[key] = end + cooldown
        events[i] = 1


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


def turn_rows(
    memory: KeyColumns,
    places: np.ndarray,
    sides: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    holds: Holds,
    every: bool,
) -> np.ndarray:
    """What is to be reported of each row, 0, FIRED or CLEARED; `memory` has the columns of `SWITCH`.

    Rows of one key are in the order of their times. `sides` are int8, times int64 microseconds.

    >>> memory, times = KeyColumns(SWITCH), np.arange(1, 5)
    >>> places, sides = memory.add(["a"] * 4), np.array([PAST, PAST, PAST, BACK], np.int8)
    >>> turn_rows(memory, places, sides, times, times, Holds(hold_us=2), every=False).tolist()
    [0, 0, 1, 2]
    """
    events = np.empty(len(places), np.int8)
    if every:
        _turn_every(places, sides, ends, holds.cooldown_us, memory["quiet"], events)
    else:
        limits = holds.hold_us, holds.release_us, holds.cooldown_us
        past, on, back, quiet, seen = (memory[name] for name in SWITCH)
        _turn(places, sides, starts, ends, *limits, past, on, back, quiet, seen, events)
    return events


def at_rest(memory: KeyColumns, places: np.ndarray) -> np.ndarray:
    """Which of these keys' switches are at rest."""
    return (memory["seen"][places] == _NEVER) & (memory["quiet"][places] == _NEVER)
