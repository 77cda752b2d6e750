"""Far more than usual for a while; a single window is often one post that many people repeat."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...operators.rules.kinds.change import Change
from ...operators.rules.row import Row
from ...operators.rules.rule import Measured
from ...operators.rules.value_with_bounds import Figure


@dataclass(frozen=True)
class VolumeSurge(Change):
    """A `Change` whose values are means of the last windows, so a lasting rise counts more than a peak.

    mean_of
        The number of windows per mean; fewer at the beginning.

    `least` is compared with the window itself. `Change` describes everything else. Raises `ValueError` for an
    invalid field.

    >>> surge = VolumeSurge("surge", value="posts", against="ewma", above=5, warm=20, over=100, mean_of=3)
    >>> minute, state, alerts = 60_000_000, surge.begin(), []
    >>> usual = [8, 12, 9, 11, 10] * 10
    >>> for at, posts in enumerate([*usual, 15, 10, 9, 11, 10, 15, 15, 15]):
    ...     row = Row({}, at * minute, (at + 1) * minute, {"posts": posts})
    ...     alerts += surge.window(state, [row], row.start_us, row.at_us, minute)
    >>> [(alert.at_us // minute, alert.why.partition(",")[0]) for alert in alerts if alert.state == "fired"]
    [(57, 'posts is 13.33 (mean of 3 windows)')]
    """

    mean_of: int = field(default=6, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self.mean_of) is not int or self.mean_of < 1:
            raise ValueError(f"{self._where}: mean_of must be an integer ≥ 1, got {self.mean_of!r}")

    def measure(self, memory: dict[str, Any], row: Row, figure: Figure) -> Measured | None:
        """See `LimitRule`."""
        # The baseline has a memory of its own.
        past = memory.setdefault("past", {})
        before = memory.get("last", [])[-self.mean_of + 1 :] if self.mean_of > 1 else []
        memory["last"] = [*before, figure.value]
        mean = figure.map(lambda value: (sum(before) + value) / (len(before) + 1))
        measured = super().measure(past, row, mean)
        if measured is None:
            return None
        enough = self.least is None or figure.value >= self.least
        text = measured.description.replace(
            f"{self.value} is {mean}", f"{self.value} is {mean} (mean of {self.mean_of} windows)", 1
        )
        return measured._replace(description=text, enough=enough)

    def new_memory(self, state: dict[str, Any], windows: int) -> dict[str, Any]:
        """See `LimitRule`."""
        return {"past": super().new_memory(state, windows)}

    def forgets(self, memory: dict[str, Any]) -> bool:
        """See `LimitRule`."""
        return not any(memory.get("last", ())) and super().forgets(memory.get("past", {}))
