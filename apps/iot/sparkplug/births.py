"""The metrics that nodes and devices declare in their births, and the birth that applies to a message.

It is the last birth that, by the node's own clock, is not later than the message. So it depends only on the
message and the births before it, and not on when they were read, on their partitions, or on a restart.
"""

from __future__ import annotations

import logging
from bisect import bisect_right, insort
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from ....operators.formats.per_message import Misread
from .payload import SESSION, Speaker

log = logging.getLogger("streamgauge.sparkplug")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SLACK_MS = 60_000
"""The most by which timestamps in two topics or partitions may differ from the order of arrival."""


@dataclass(frozen=True, slots=True)
class Birth:
    """A birth: its time by the node's clock and by Kafka's (ms), the session that began, and its metrics.

    `metrics` has names and datatypes by alias, and by name.
    """

    stamp: int
    arrived: int
    session: int | None
    metrics: Mapping[int | str, tuple[str, int]]

    def __str__(self) -> str:
        return f"the birth of {_stamp_text(self.stamp)}"


class Births:
    """The births of nodes and devices.

    >>> births, press = Births(), Speaker("DBIRTH", "plant", "line", "press")
    >>> births.add(press, Birth(1_000, 1_000, None, {7: ("heat", 10)}))
    >>> births.of(press, 2_000, 2_000).metrics[7]
    ('heat', 10)
    """

    def __init__(self) -> None:
        self._of: dict[str, list[tuple[int, int, int, Birth]]] = {}
        self._answered: dict[str, int] = {}

    def add(self, speaker: Speaker, birth: Birth) -> None:
        """Add a birth; adding it again has no effect."""
        known = self._of.setdefault(speaker.unit, [])
        if any(birth == one[-1] for one in known if one[0] == birth.stamp):
            return
        at = bisect_right(known, birth.stamp, key=lambda one: one[0])
        # Nodes are usually reborn with the same metrics, so equal metrics are stored once.
        for near in known[max(0, at - 1) : at + 1]:
            if near[-1].metrics == birth.metrics:
                birth = Birth(birth.stamp, birth.arrived, birth.session, near[-1].metrics)
        answered = birth.stamp <= self._answered.get(speaker.unit, -1)
        if at and answered and birth.metrics != known[at - 1][-1].metrics:
            log.warning(
                "%s of %s came after messages that it was to explain, which were read by the birth before; "
                "births must reach Kafka before the data that follow them",
                *(birth, speaker.unit),
            )
        insort(known, (birth.stamp, birth.arrived, len(known), birth))

    def of(self, speaker: Speaker, stamp: int, arrived: int) -> Birth:
        """Return the birth that applies to a message with these times.

        Raises `Misread`, with what to do, if it isn't known, or if the node's clock has been set back since.
        """
        birth = self._before(speaker.unit, stamp, arrived, speaker)
        if birth is None:
            raise Misread(
                f"no earlier birth of {speaker.unit}, which would define its metrics, is known; "
                f"{speaker.rebirth}"
            )
        if speaker.device is not None:
            node = self._before(speaker.node, stamp, arrived, speaker)
            if node is not None and node.stamp > birth.stamp:
                raise Misread(
                    f"{speaker.unit} was not born again after its node, whose aliases start over with "
                    f"{node}; {speaker.rebirth}"
                )
        self._answered[speaker.unit] = max(stamp, self._answered.get(speaker.unit, -1))
        return birth

    def session(self, node: str, arrived: int) -> int | None:
        """Return the session of a node when a message arrived, if known."""
        before = [one for *_, one in self._of.get(node, ()) if one.arrived <= arrived]
        return max(before, key=lambda one: one.arrived).session if before else None

    def _before(self, unit: str, stamp: int, arrived: int, speaker: Speaker) -> Birth | None:
        known = self._of.get(unit, [])
        at = bisect_right(known, stamp, key=lambda one: one[0])
        if at < len(known) and known[at][1] + _SLACK_MS < arrived:
            raise Misread(
                f"its time, {_stamp_text(stamp)}, is before {known[at][-1]} of {unit}, which it came after: "
                f"the node's clock has gone back, so that its aliases are not sure; {speaker.rebirth}"
            )
        return known[at - 1][-1] if at else None


def birth_of(payload: Any, arrived: int) -> Birth:
    """Parse a birth's payload. An alias used for two metrics is ignored."""
    metrics: dict[int | str, tuple[str, int]] = {}
    twice = set()
    for metric in payload.metrics:
        metrics[metric.name] = definition = metric.name, metric.datatype
        if metric.HasField("alias") and metrics.setdefault(metric.alias, definition)[0] != metric.name:
            twice.add(metric.alias)
    for alias in twice:
        del metrics[alias]
    return Birth(stamp_of(payload, arrived), arrived, session_of(payload), metrics)


def session_of(payload: Any) -> int | None:
    """Return the number of the session that a birth begins or a death ends."""
    sessions = (metric for metric in payload.metrics if metric.name == SESSION)
    return next((metric.long_value or metric.int_value for metric in sessions), None)


def stamp_of(payload: Any, arrived: int) -> int:
    """Return the time of a payload (ms); its arrival if it has none."""
    return payload.timestamp if payload.HasField("timestamp") else arrived


def _stamp_text(stamp: int) -> str:
    return (_EPOCH + timedelta(milliseconds=min(stamp, 1 << 47))).isoformat(timespec="milliseconds")
