"""A rule about the rate of a counter, which only grows until it is reset or wraps around."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ...windows.durations import Duration, duration_text
from ..alert import Alert
from ..row import Row
from ..rule import LimitRule, Measured, RuleState
from ..value_with_bounds import Figure, number

_WRAPS = (2.0**32, 2.0**64)
_FORGET_US = 172_800_000_000


@dataclass(frozen=True)
class Rate(LimitRule):
    """A counter grows at a rate past the limit, such as the bytes that a network interface has received.

    rate
        The time to which the limit applies: ``"1s"`` by default.

    A value below the previous one means that the counter was reset, and counts from 0. If the previous value
    was in the last quarter of 2^32 or of 2^64 and this one is in the first, the counter has wrapped around. A
    key is forgotten two days after its last row. `LimitRule` has all other fields. Raises `ValueError` or
    `TypeError` for an invalid one.

    >>> import streamgauge as sg
    >>> busy = sg.rules.Rate("busy", value="bytes", above=1_000, every=True)
    >>> counts = [4_294_960_000, 4_294_967_000, 704, 200, 30_200]
    >>> rows = [Row({}, 10**7 * n, 10**7 * n, {"bytes": count}) for n, count in enumerate(counts)]
    >>> [alert.why for alert in busy.window(busy.begin(), rows, 0, 9, 0)]
    ['bytes grows by 3,000 per 1s: above 1,000']
    """

    rate: Duration = field(default="1s", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self._duration("rate"):
            raise ValueError(f"{self._where}: rate must be longer than 0, got {self.rate!r}")
        if self.absent is not None:
            raise ValueError(f"{self._where}: absent doesn't apply to a counter; leave it out")

    @property
    def limits_value(self) -> bool:
        """See `LimitRule`."""
        return False

    def measure(self, memory: dict[str, Any], row: Row, figure: Figure) -> Measured | None:
        """See `LimitRule`."""
        before, memory["last"] = memory.get("last"), [row.at_us, figure.value]
        if before is None or row.at_us <= before[0]:
            return None
        grown = growth(before[1], figure.value)
        rate = Figure.exactly(grown * self._duration("rate") / (row.at_us - before[0]))
        unit = duration_text(self._duration("rate"))
        return Measured(rate, f"{self.value} grows by {self.with_unit(number(rate.value))} per {unit}")

    def forgets(self, memory: dict[str, Any]) -> bool:
        """See `LimitRule`; `advance` drops old keys as time passes."""
        return False

    def advance(self, state: RuleState, time_us: int, step_us: int) -> Iterator[Alert]:
        """See `Rule`."""
        yield from super().advance(state, time_us, step_us)
        self._forget_old(state, time_us, _FORGET_US, lambda memory: memory["last"][0])


def growth(before: float, value: float) -> float:
    """The growth of a counter, across a reset to 0 and a wrap at 2^32 or 2^64.

    >>> growth(5, 8), growth(5, 3), growth(2.0**32 - 6, 4)
    (3, 3, 10.0)
    """
    if value >= before:
        return value - before
    for wrap in _WRAPS:
        if wrap * 3 / 4 <= before < wrap and value < wrap / 4:
            return value + wrap - before
    return value
