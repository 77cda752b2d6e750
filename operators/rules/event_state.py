"""One key's event: when it begins, when it is over, and that each is said once.

A switch is a dictionary of plain values, so that it can be kept as JSON between any two rows. Times are event
times in int64 microseconds. One that is at rest is empty.

A reading says what is so from then on: what it began lasts until another reading says otherwise, and a hold
that ends in between ends at its own time (`elapse`). A window says what was so between its edges: a hold
needs windows without a gap that is longer than itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from .limit import Side

Switch = dict[str, Any]
"""`past`: since when the figure has been past the limit. `on`: when the event fired. `back`: since when
the figure has been back from the limit. `quiet`: until when no new event fires. `seen`: the latest row.
`unknown`: that it was reported that nothing is known of the event any more."""

Turn = Literal["fired", "cleared", "unknown"]


@dataclass(frozen=True, slots=True)
class Holds:
    """How long a figure must be past the limit to fire and back to clear, and how far apart events are.

    Without a reading for `stale_us`, no longer is anything known of an event; 0 never.
    """

    hold_us: int = 0
    release_us: int = 0
    cooldown_us: int = 0
    stale_us: int = 0


def turn(switch: Switch, side: Side, start_us: int, at_us: int, holds: Holds) -> Turn | None:
    """Update a switch with where the figure is from `start_us` to `at_us`; returns what is to be reported.

    >>> switch, holds = {}, Holds(hold_us=2)
    >>> [turn(switch, "past", at, at, holds) for at in (1, 2, 3)], turn(switch, "back", 4, 4, holds)
    ([None, None, 'fired'], 'cleared')
    """
    seen = switch.get("seen", start_us)
    switch["seen"] = at_us
    if "on" in switch:
        return _turn_on(switch, side, start_us, at_us, holds)
    if side != "past":
        # Between the two limits nothing begins, and a hold has ended.
        switch.pop("past", None)
        if switch.get("quiet", at_us) <= at_us:
            switch.clear()
        return None
    if start_us < at_us and start_us - seen > holds.hold_us:
        switch.pop("past", None)
    since = switch.setdefault("past", start_us)
    if at_us - since < holds.hold_us or at_us < switch.get("quiet", at_us):
        return None
    return _fire(switch, at_us, holds)


def elapse(switch: Switch, until_us: int, holds: Holds) -> tuple[Turn, int] | None:
    """What comes next of a switch of readings before a time if no reading does, and when; updates it.

    >>> switch, holds = {}, Holds(hold_us=5, stale_us=60)
    >>> turn(switch, "past", 10, 10, holds), elapse(switch, 15, holds), elapse(switch, 99, holds)
    (None, None, ('fired', 15))
    >>> elapse(switch, 99, holds), elapse(switch, 99, holds)
    (('unknown', 70), None)
    """
    at_us = due(switch, holds)
    if at_us is None or at_us >= until_us:
        return None
    if "on" not in switch:
        return _fire(switch, at_us, holds), at_us
    if "back" in switch:
        return _clear(switch, at_us), at_us
    switch["unknown"] = True
    return "unknown", at_us


def due(switch: Switch, holds: Holds) -> int | None:
    """When something comes of a switch of readings if no reading does; None if never."""
    if "on" not in switch:
        since = switch.get("past")
        return None if since is None else max(since + holds.hold_us, switch.get("quiet", since))
    if "back" in switch:
        at_us: int = switch["back"] + holds.release_us
        return at_us
    if "unknown" in switch or not holds.stale_us:
        return None
    return max(switch["seen"] + holds.stale_us, switch["on"])


def row_lag(at_us: int, start_us: int, end_us: int) -> int:
    """How far a reading came behind time that had passed: 0 unless its window begins behind it.

    A late reading counts in the first window that is still open (`Stream.tumbling`), and by its end at the
    latest, readings of this time have come.

    >>> row_lag(95, 90, 100), row_lag(60, 90, 100)
    (0, 40)
    """
    return end_us - at_us if at_us < start_us else 0


def lag_after(lag: int, row_lag: int) -> int:
    """A key's lag after its next reading: it grows at once and halves with each reading that lags less.

    >>> [lag_after(0, 40), lag_after(40, 30), lag_after(40, 0)]
    [40, 35, 20]
    """
    return row_lag if row_lag >= lag else (lag + row_lag) // 2


def _turn_on(switch: Switch, side: Side, start_us: int, at_us: int, holds: Holds) -> Turn | None:
    """The next row of an event that is on."""
    if side != "back":
        switch.pop("back", None)
        if side == "past" and switch.pop("unknown", False):
            return "fired"
        return None
    since = switch.setdefault("back", start_us)
    return _clear(switch, at_us) if at_us - since >= holds.release_us else None


def _fire(switch: Switch, at_us: int, holds: Holds) -> Turn:
    switch.pop("past")
    switch["on"] = at_us
    switch["quiet"] = at_us + holds.cooldown_us
    return "fired"


def _clear(switch: Switch, at_us: int) -> Turn:
    for part in ("on", "back", "unknown"):
        switch.pop(part, None)
    if switch["quiet"] <= at_us:
        switch.clear()
    return "cleared"
