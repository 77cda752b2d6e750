"""One key's event: when it begins and ends, and reporting each only once.

A switch is six integers (`PARTS`), event times in int64 microseconds. `after_row`, `after_silence` and
`due_at` define how it changes; they are plain functions of integers, which kernels over columns of switches
compile (`evaluation.event_columns`) and rules that follow single keys call (`turn`, `elapse`, `due`).

A reading is valid from its time on: an event lasts until another reading ends it, and a hold that ends in
between ends at its own time (`elapse`). A window describes the time between its edges: a hold needs windows
without a gap longer than the hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from .limit import Side

Switch = dict[str, Any]
"""A switch as plain values, to be stored as JSON between any two rows: its known `PARTS`, none at rest."""

PARTS = ("past", "on", "back", "quiet", "seen", "unknown")
"""`past`: since when the figure has been past the limit. `on`: when the event fired. `back`: since when
the figure has been back from the limit. `quiet`: until when no new event fires. `seen`: the latest row.
`unknown`: whether it was reported that the event has become unknown."""

NEVER, FOREVER = -(2**63), 2**63 - 1
"""The value of an unknown part, and a time that never comes."""

PAST, BETWEEN, BACK = 1, 0, -1
"""Sides of a limit, as numbers."""

FIRED, CLEARED, UNKNOWN = 1, 2, 3

Turn = Literal["fired", "cleared", "unknown"]

STATES: dict[int, Turn] = {FIRED: "fired", CLEARED: "cleared", UNKNOWN: "unknown"}

Next = tuple[int, int, int, int, int, int, int]
"""What to report, 0 for nothing, and the switch after it."""

_SIDES: dict[Side, int] = {"past": PAST, "between": BETWEEN, "back": BACK}


@dataclass(frozen=True, slots=True)
class Holds:
    """How long a figure must be past the limit to fire and back to clear, and the time between events.

    Without a reading for `stale_us`, an event becomes unknown; 0 disables this.
    """

    hold_us: int = 0
    release_us: int = 0
    cooldown_us: int = 0
    stale_us: int = 0


def after_row(
    side: int,
    start_us: int,
    at_us: int,
    hold_us: int,
    release_us: int,
    cooldown_us: int,
    past: int,
    on: int,
    back: int,
    quiet: int,
    seen: int,
    unknown: int,
) -> Next:
    """What to report for a row whose figure is on `side` from `start_us` to `at_us`, 0 for nothing; and the
    switch after it.
    """
    before = start_us if seen == NEVER else seen
    if on != NEVER:
        if side != BACK:
            if side == PAST and unknown:
                return FIRED, past, on, NEVER, quiet, at_us, 0
            return 0, past, on, NEVER, quiet, at_us, unknown
        if back == NEVER:
            back = start_us
        if at_us - back < release_us:
            return 0, past, on, back, quiet, at_us, unknown
        if quiet <= at_us:
            return CLEARED, NEVER, NEVER, NEVER, NEVER, NEVER, 0
        return CLEARED, past, NEVER, NEVER, quiet, at_us, 0
    if side != PAST:
        # Between the two limits no event begins, and a hold is interrupted.
        if quiet <= at_us:
            return 0, NEVER, NEVER, NEVER, NEVER, NEVER, 0
        return 0, NEVER, on, back, quiet, at_us, unknown
    if past == NEVER or (start_us < at_us and start_us - before > hold_us):
        past = start_us
    if at_us - past < hold_us or at_us < quiet:
        return 0, past, on, back, quiet, at_us, unknown
    return FIRED, NEVER, at_us, back, at_us + cooldown_us, at_us, unknown


def due_at(
    hold_us: int,
    release_us: int,
    stale_us: int,
    past: int,
    on: int,
    back: int,
    quiet: int,
    seen: int,
    unknown: int,
) -> int:
    """The time of the next report if no further reading arrives; `FOREVER` if there is none."""
    if on == NEVER:
        if past == NEVER:
            return FOREVER
        return max(past + hold_us, quiet)
    if back != NEVER:
        return back + release_us
    if unknown or not stale_us:
        return FOREVER
    return max(seen + stale_us, on)


def after_silence(
    due_us: int,
    cooldown_us: int,
    past: int,
    on: int,
    back: int,
    quiet: int,
    seen: int,
    unknown: int,
) -> Next:
    """The report that is due at a time without a reading, and the switch after it."""
    if on == NEVER:
        return FIRED, NEVER, due_us, back, due_us + cooldown_us, seen, unknown
    if back == NEVER:
        return UNKNOWN, past, on, back, quiet, seen, 1
    if quiet <= due_us:
        return CLEARED, NEVER, NEVER, NEVER, NEVER, NEVER, 0
    return CLEARED, past, NEVER, NEVER, quiet, seen, 0


def _parts(switch: Switch) -> tuple[int, int, int, int, int, int]:
    """A switch as arguments for `after_row` and the others."""
    get = switch.get
    return (
        get("past", NEVER),
        get("on", NEVER),
        get("back", NEVER),
        get("quiet", NEVER),
        get("seen", NEVER),
        get("unknown", 0),
    )


def turn(switch: Switch, side: Side, start_us: int, at_us: int, holds: Holds) -> Turn | None:
    """Update a switch with the side of the figure from `start_us` to `at_us`; returns what to report.

    >>> switch, holds = {}, Holds(hold_us=2)
    >>> [turn(switch, "past", at, at, holds) for at in (1, 2, 3)], turn(switch, "back", 4, 4, holds)
    ([None, None, 'fired'], 'cleared')
    """
    if not switch and side != "past":
        return None
    what, past, on, back, quiet, seen, unknown = after_row(
        _SIDES[side],
        start_us,
        at_us,
        holds.hold_us,
        holds.release_us,
        holds.cooldown_us,
        *_parts(switch),
    )
    _update(switch, past, on, back, quiet, seen, unknown)
    return STATES[what] if what else None


def elapse(switch: Switch, until_us: int, holds: Holds) -> tuple[Turn, int] | None:
    """Return the next report before a time if no further reading arrives, and its time; updates the switch.

    >>> switch, holds = {}, Holds(hold_us=5, stale_us=60)
    >>> turn(switch, "past", 10, 10, holds), elapse(switch, 15, holds), elapse(switch, 99, holds)
    (None, None, ('fired', 15))
    >>> elapse(switch, 99, holds), elapse(switch, 99, holds)
    (('unknown', 70), None)
    """
    at_us = due(switch, holds)
    if at_us is None or at_us >= until_us:
        return None
    what, *after = after_silence(at_us, holds.cooldown_us, *_parts(switch))
    _update(switch, *after)
    return STATES[what], at_us


def due(switch: Switch, holds: Holds) -> int | None:
    """The time of the next report if no further reading arrives; None if there is none."""
    if not switch:
        return None
    at_us = due_at(holds.hold_us, holds.release_us, holds.stale_us, *_parts(switch))
    return None if at_us == FOREVER else at_us


def row_lag(at_us: int, start_us: int, end_us: int) -> int:
    """How far a reading lags behind the time that had passed: 0 unless its window begins after it.

    A late reading counts in the first window that is still open (`Stream.tumbling`), and readings of this
    time have arrived by that window's end at the latest.

    >>> row_lag(95, 90, 100), row_lag(60, 90, 100)
    (0, 40)
    """
    return end_us - at_us if at_us < start_us else 0


def lag_after(lag: int, row_lag: int) -> int:
    """A key's lag after its next reading: it grows at once, and moves halfway to each smaller lag.

    >>> [lag_after(0, 40), lag_after(40, 30), lag_after(40, 0)]
    [40, 35, 20]
    """
    return row_lag if row_lag >= lag else (lag + row_lag) // 2


def _update(switch: Switch, past: int, on: int, back: int, quiet: int, seen: int, unknown: int) -> None:
    switch.clear()
    if past != NEVER:
        switch["past"] = past
    if on != NEVER:
        switch["on"] = on
    if back != NEVER:
        switch["back"] = back
    if quiet != NEVER:
        switch["quiet"] = quiet
    if seen != NEVER:
        switch["seen"] = seen
    if unknown:
        switch["unknown"] = True
