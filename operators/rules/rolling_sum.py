"""A rule about what adds up over more than a window."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..windows.durations import Duration, duration_text
from .row import Row
from .rule import LimitRule, Measured
from .value_with_bounds import Figure


@dataclass(frozen=True)
class RollingSum(LimitRule):
    """What a value adds up to over the last `over`, windows' ends to the present one's, is past a limit.

    That is a hopping window over tumbling ones: an attack that the edge of a window cuts in two is whole in
    it, and it costs no more than the windows that it adds up. With ``absent=0`` time takes from it as well,
    window by window; without, only the key's next row does. Bounds of estimates add up.

    What else it can be given stands with `LimitRule`. Raises `ValueError` or `TypeError` for a wrong field.

    >>> import streamgauge as sg
    >>> rule = sg.rules.RollingSum("guessing", value="refused", at_least=5, over="3m", absent=0)
    >>> minute = 60_000_000
    >>> state, alerts = rule.begin(), []
    >>> for at, n in enumerate([2, 0, 3, 0, 0]):
    ...     begin, end = at * minute, (at + 1) * minute
    ...     rows = [Row({"address": "a"}, begin, end, {"refused": n})] if n else []
    ...     alerts += rule.window(state, rows, begin, end, minute)
    >>> [(one.state, one.at_us // minute, one.why) for one in alerts]  # doctest: +NORMALIZE_WHITESPACE
    [('fired', 3, 'refused adds up to 5 in 3m: at least 5'),
     ('cleared', 4, 'refused adds up to 3 in 3m: back from at least 5')]
    """

    over: Duration = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self._duration("over"):
            raise ValueError(f"{self._where}: over is {self.over!r}; write a length of time, such as '10m'")

    def measure(self, memory: dict[str, Any], row: Row, figure: Figure) -> Measured:
        """See `LimitRule`."""
        since = row.at_us - self._duration("over")
        kept = [one for one in memory.get("rows", []) if one[0] >= since]
        if figure != Figure.exactly(0.0):
            kept.append([row.start_us, *figure])
        memory.clear()
        if kept:
            memory["rows"] = kept
        total = Figure(*(sum(one[part] for one in kept) for part in (1, 2, 3)))
        return Measured(total, f"{self.value} adds up to {total} in {duration_text(self._duration('over'))}")
