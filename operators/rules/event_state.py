"""One key's event: when it begins, when it is over, and that each is said once.

A switch is a dictionary of plain values, so that it can be kept as JSON between any two rows. Times are event
times in int64 microseconds. One that is at rest is empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from .limit import Side

Switch = dict[str, Any]
"""`past`: since when the figure has been past the limit. `on`: when the event fired. `back`: since when
the figure has been back from the limit. `quiet`: until when no new event fires. `seen`: the latest row."""


@dataclass(frozen=True, slots=True)
class Holds:
    """How long a figure must be past the limit to fire and back to clear, and how far apart events are.

    A stretch of time without any row of the key that is longer than a hold begins that hold again: nothing
    showed that it lasted.
    """

    hold_us: int = 0
    release_us: int = 0
    cooldown_us: int = 0


def turn(
    switch: Switch, side: Side, start_us: int, at_us: int, holds: Holds
) -> Literal["fired", "cleared"] | None:
    """Update a switch with where the figure is from `start_us` to `at_us`; returns what is to be reported.

    >>> switch, holds = {}, Holds(hold_us=2)
    >>> [turn(switch, "past", at, at, holds) for at in (1, 2, 3)], turn(switch, "back", 4, 4, holds)
    ([None, None, 'fired'], 'cleared')
    """
    seen = switch.get("seen", start_us)
    switch["seen"] = at_us
    if "on" in switch:
        return _turn_off(switch, side, start_us, at_us, seen, holds)
    if side != "past":
        # Between the two limits nothing begins, and a hold has ended.
        switch.pop("past", None)
        if switch.get("quiet", at_us) <= at_us:
            switch.clear()
        return None
    if start_us - seen > holds.hold_us:
        switch.pop("past", None)
    since = switch.setdefault("past", start_us)
    if at_us - since < holds.hold_us or at_us < switch.get("quiet", at_us):
        return None
    switch.pop("past")
    switch["on"] = at_us
    switch["quiet"] = at_us + holds.cooldown_us
    return "fired"


def _turn_off(
    switch: Switch, side: Side, start_us: int, at_us: int, seen: int, holds: Holds
) -> Literal["cleared"] | None:
    if side != "back":
        switch.pop("back", None)
        return None
    if start_us - seen > holds.release_us:
        switch.pop("back", None)
    since = switch.setdefault("back", start_us)
    if at_us - since < holds.release_us:
        return None
    for part in ("on", "back"):
        switch.pop(part)
    if switch["quiet"] <= at_us:
        switch.clear()
    return "cleared"
