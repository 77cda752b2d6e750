"""A rule about hosts that are silent although they usually log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...operators.rules.alert import Alert
from ...operators.rules.row import Row
from ...operators.rules.rule import Rule, RuleState, key_text
from ...operators.rules.value_with_bounds import Figure
from ...operators.windows.durations import Duration, duration_text

_FADES = 0.98
"""The decay of the longest gap per window: after about 100 windows, a new rhythm applies."""


@dataclass(frozen=True)
class Silence(Rule):
    """A key has had no rows for `longer`, and for `times` its longest recent pause.

    A host that logs every minute is silent after `longer`; one that only logs at night isn't silent by day. A
    key is judged after rows in `warm` windows, and forgotten `forget` after its last row. It fires when the
    key has been silent for that long, and clears with its next row.

    >>> rule, minute = Silence("silence", longer="10m", warm=3), 60_000_000
    >>> state, alerts = rule.begin(), []
    >>> for at in (0, 1, 2, 3, 5, 6, 30):
    ...     rows = [Row({"host": "web"}, at * minute, (at + 1) * minute, {})]
    ...     alerts += [*rule.window(state, rows, at * minute, (at + 1) * minute, minute)]
    >>> [(one.state, one.at_us // minute, one.why) for one in alerts]  # doctest: +NORMALIZE_WHITESPACE
    [('fired', 17, 'no record for 10m, after pauses of about 59s lately'),
     ('cleared', 31, 'records again after 23m')]
    """

    longer: Duration = field(default="", kw_only=True)
    times: float = field(default=4.0, kw_only=True)
    warm: int = field(default=12, kw_only=True)
    forget: Duration = field(default="1w", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self._duration("longer"):
            raise ValueError(f"{self._where}: longer must be a duration such as '1h', got {self.longer!r}")
        if isinstance(self.times, bool) or not isinstance(self.times, int | float) or not self.times >= 1:
            raise ValueError(f"{self._where}: times must be a number ≥ 1, got {self.times!r}")
        if type(self.warm) is not int or self.warm < 1:
            raise ValueError(f"{self._where}: warm must be an integer ≥ 1, got {self.warm!r}")
        if self._duration("forget") <= self._duration("longer"):
            raise ValueError(f"{self._where}: forget must be longer than longer, got {self.forget!r}")

    def window(
        self, state: RuleState, rows: Sequence[Row], start_us: int, end_us: int, step_us: int
    ) -> Iterator[Alert]:
        """See `Rule`."""
        yield from self.advance(state, start_us, step_us)
        for row in self.concerned(rows):
            key = key_text(list(row.key.values()))
            kept = state["keys"].setdefault(key, {"last": row.start_us, "windows": 0, "pause": 0})
            if kept.pop("on", None) is not None:
                pause = row.start_us - kept["last"]
                why = f"records again after {duration_text(pause)}"
                yield self._alert("cleared", key, row.start_us, row.at_us, _seconds(pause), self._limit, why)
            kept["pause"] = max(row.start_us - kept["last"], int(kept["pause"] * _FADES))
            kept["last"], kept["windows"] = row.at_us, kept["windows"] + 1
            state["due"] = min(state.get("due", kept["last"]), self._due(kept))

    def advance(self, state: RuleState, time_us: int, step_us: int) -> Iterator[Alert]:
        """See `Rule`."""
        if time_us < state.get("due", time_us + 1):
            return
        for key, kept in sorted(state["keys"].items()):
            due = self._due(kept)
            if due <= time_us and "on" not in kept and kept["windows"] >= self.warm:
                kept["on"] = due
                seconds = -(-kept["pause"] // 1_000_000) * 1_000_000
                longest = duration_text(seconds) if seconds else "none"
                pause = due - kept["last"]
                why = f"no record for {duration_text(pause)}, after pauses of about {longest} lately"
                yield self._alert("fired", key, kept["last"], due, _seconds(pause), self._limit, why)
            if kept["last"] + self._duration("forget") <= time_us:
                del state["keys"][key]
        state["due"] = min(map(self._due, state["keys"].values()), default=time_us + self._duration("longer"))

    @property
    def _limit(self) -> float:
        return self._duration("longer") / 1e6

    def _due(self, kept: dict[str, Any]) -> int:
        """Return when to evaluate a key if it has no rows until then."""
        if "on" in kept or kept["windows"] < self.warm:
            return int(kept["last"]) + self._duration("forget")
        return int(kept["last"]) + max(self._duration("longer"), int(self.times * kept["pause"]))

    def paths(self) -> Iterable[str]:
        """See `Rule`."""
        return ()


def _seconds(length_us: int) -> Figure:
    return Figure.exactly(length_us / 1e6)
