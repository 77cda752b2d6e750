"""A rule that compares each key's clock with the clocks of the other keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..alert import Alert
from ..row import Row
from ..rule import LimitRule, Measured, RuleState
from ..value_with_bounds import Figure, number

_MEDIAN = "median of the keys"
_FLEET = 3
"""The number of keys from which one wrong clock doesn't change the median."""
_FORGET_US = 86_400_000_000


@dataclass(frozen=True)
class ClockOffset(LimitRule):
    """A key's clock is constantly behind the other keys' clocks, or ahead of them.

    value
        The number of seconds by which a key's readings are older than their arrival, such as the smallest
        difference in a window between a message's Kafka timestamp and the reading's own time.
    windows
        For how many of the key's windows in a row the offset must be past the limit, and change by no more
        than the limit: a backlog that is being delivered is not a wrong clock.

    The offset is the value minus the median of all keys in the window, or the value itself if there are fewer
    than three keys. Its size is compared with the limit. Time in transit counts as part of the clock's
    offset. A key is forgotten a day after its last window, or as soon as its offset is within the limit. All
    groups must be in one partition of the table topic. `LimitRule` has all other fields. Raises `ValueError`
    or `TypeError` for an invalid one.

    >>> import streamgauge as sg
    >>> clock = sg.rules.ClockOffset("clock", value="behind", above=20, windows=2)
    >>> state, alerts = clock.begin(), []
    >>> for minute in (1, 2):
    ...     behind = {"s1": 0.4, "s2": 0.2, "s9": 45.2}
    ...     rows = [Row({"sensor": s}, minute - 1, minute, {"behind": b}) for s, b in behind.items()]
    ...     alerts += clock.window(state, rows, minute - 1, minute, 1)
    >>> [(alert.key, alert.why) for alert in alerts]
    [(('s9',), 'clock is 44.8 s behind the others: above 20')]
    """

    windows: int = field(default=5, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self.windows) is not int or self.windows < 1:
            raise ValueError(f"{self._where}: windows must be an integer ≥ 1, got {self.windows!r}")
        if self.absent is not None or self.each or self.per:
            raise ValueError(f"{self._where}: absent, each and per don't apply to clocks; leave them out")

    @property
    def together(self) -> Sequence[str] | None:
        """See `Rule`: a key is compared with all others."""
        return ()

    @property
    def limits_value(self) -> bool:
        """See `LimitRule`."""
        return False

    def window(
        self, state: RuleState, rows: Sequence[Row], start_us: int, end_us: int, step_us: int
    ) -> Iterator[Alert]:
        """See `Rule`."""
        rows = list(self.concerned(rows))
        offsets = sorted(
            figure.value for row in rows for _, figure in self.figures(row) if figure is not None
        )
        fleet = offsets[(len(offsets) - 1) // 2] if len(offsets) >= _FLEET else 0.0
        compared = [Row(row.key, row.start_us, row.at_us, {**row.answers, _MEDIAN: fleet}) for row in rows]
        yield from super().window(state, compared, start_us, end_us, step_us)

    def advance(self, state: RuleState, time_us: int, step_us: int) -> Iterator[Alert]:
        """See `Rule`."""
        yield from super().advance(state, time_us, step_us)
        if time_us - state.get("swept", time_us - _FORGET_US) >= _FORGET_US // 24:
            state["swept"] = time_us
            keys = state["keys"]
            for key in [k for k, kept in keys.items() if _last(kept) < time_us - _FORGET_US]:
                del keys[key]

    def measure(self, memory: dict[str, Any], row: Row, figure: Figure) -> Measured | None:
        """See `LimitRule`."""
        offset = figure.value - row.answers[_MEDIAN]
        outside = self.limit.side(Figure.exactly(abs(offset))) != "back"
        past = [*memory.get("offsets", ()), offset][-self.windows :]
        memory.clear()
        if outside:
            memory.update(offsets=past, last=row.at_us)
        constant = len(past) == self.windows and max(past) - min(past) <= self.limit.at
        least = min(map(abs, past)) if constant and (min(past) > 0 or max(past) < 0) else 0.0
        if outside and not constant:
            return None
        size = Figure.exactly(least if outside else abs(offset))
        where = "behind" if offset >= 0 else "ahead of"
        return Measured(size, f"clock is {number(abs(offset))} s {where} the others")


def _last(kept: dict[str, Any]) -> int:
    return int(kept["memory"].get("last", 0))
