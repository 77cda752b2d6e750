"""What nodes and devices said of their metrics when they were born, and which birth a message goes by.

That is the last one which was, by the node's own clock, not later than the message. So it depends on nothing
but the message and the births before it: not on when either was read, on which partitions they are in, or on
what was read before a restart.
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
"""Messages of two topics or partitions may be stamped in another order than they came, by so much at most."""


@dataclass(frozen=True, slots=True)
class Birth:
    """A birth: when by the node's clock and by Kafka's (ms), which session began, and its metrics.

    `metrics` has name and datatype by alias, and by name.
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
        """Take in a birth; once more does no harm."""
        known = self._of.setdefault(speaker.unit, [])
        if any(birth == one[-1] for one in known if one[0] == birth.stamp):
            return
        at = bisect_right(known, birth.stamp, key=lambda one: one[0])
        # Nodes are mostly born again as they were: of equal metrics one copy is kept.
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
        """The birth that a message of these times goes by.

        Raises `Misread`, with what to do, if it isn't known, or if the node's clock has gone back since.
        """
        birth = self._before(speaker.unit, stamp, arrived, speaker)
        if birth is None:
            raise Misread(
                f"no birth of {speaker.unit} is known from before it, which says what its metrics are; "
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
        """The session in which a node was when a message arrived, if that is known."""
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
    """What a birth's payload says. An alias that stands for two metrics stands for none."""
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
    """The number of the session that a birth begins or a death ends."""
    sessions = (metric for metric in payload.metrics if metric.name == SESSION)
    return next((metric.long_value or metric.int_value for metric in sessions), None)


def stamp_of(payload: Any, arrived: int) -> int:
    """The time of a payload (ms); that of its arrival if it has none."""
    return payload.timestamp if payload.HasField("timestamp") else arrived


def _stamp_text(stamp: int) -> str:
    return (_EPOCH + timedelta(milliseconds=min(stamp, 1 << 47))).isoformat(timespec="milliseconds")
