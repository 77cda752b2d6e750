"""How a rule is evaluated over many windows: row by row, as any rule can be."""

from __future__ import annotations

import json
import logging
from typing import Any, NamedTuple, Protocol, Self

from ...windows.window import EARLIEST
from ..alert import Alert
from ..kinds.absence import Absence
from ..rule import LimitRule, Rule, RuleState
from ..window_rows import WindowBatch
from .event_columns import FOREVER

log = logging.getLogger("streamgauge.rules")


class WindowAlert(NamedTuple):
    """An alert, with the number of its window in a batch; `passed` if it came of time behind that."""

    window: int
    passed: bool
    alert: Alert


class Evaluator(Protocol):
    """A rule and what it remembers."""

    @property
    def started(self) -> bool:
        """Whether time that passes can mean anything to it."""

    @property
    def due_us(self) -> int:
        """Until when at least nothing comes of the readings it has seen if no other follows."""

    def evaluate(self, batch: WindowBatch, step_us: int, passing: bool) -> list[WindowAlert]:
        """Take windows in. With `passing`, all windows up to the end of each have been seen with it.

        Alerts of a window are in the order of its rows' times and keys; those of passing time come last.
        """

    def advance(self, time_us: int, step_us: int) -> list[Alert]:
        """Learn that all windows that end at or before `time_us` were seen."""

    @property
    def by_key(self) -> bool:
        """Whether what it remembers of a key, by the rule's `per`, depends on that key's rows alone and can
        be taken out.
        """

    def copy(self) -> Self:
        """Another that remembers the same."""

    def extract(self, key: str) -> Self:
        """Another that remembers only what this one does of a key."""

    def insert(self, key: str, source: Self) -> None:
        """Remember of a key what another does."""

    def forget_lags(self) -> None:
        """Let time pass for all keys as for those whose readings are never late."""

    def state(self) -> Any:
        """What it remembers, as JSON."""

    def restore(self, state: Any) -> None:
        """Take up a state."""


class RowByRow:
    """A rule that sees every row."""

    def __init__(self, rule: Rule, state: RuleState | None = None) -> None:
        self._rule = rule
        self._state = rule.begin() if state is None else state

    @property
    def started(self) -> bool:
        """See `Evaluator`."""
        return bool(self._state["keys"]) or len(self._state) > 1

    @property
    def due_us(self) -> int:
        """See `Evaluator`."""
        due: int = self._state.get("next", FOREVER)
        return due

    def evaluate(self, batch: WindowBatch, step_us: int, passing: bool) -> list[WindowAlert]:
        """See `Evaluator`."""
        alerts = []
        for number, ((end, start), rows) in enumerate(zip(batch.windows, batch.rows)):
            said = self._rule.window(self._state, rows, start, end, step_us)
            alerts += [WindowAlert(number, False, alert) for alert in said]
            if passing:
                alerts += [WindowAlert(number, True, alert) for alert in self.advance(end, step_us)]
        return alerts

    def advance(self, time_us: int, step_us: int) -> list[Alert]:
        """See `Evaluator`."""
        return list(self._rule.advance(self._state, time_us, step_us))

    @property
    def by_key(self) -> bool:
        """See `Evaluator`."""
        rule = self._rule
        if isinstance(rule, LimitRule):
            return not rule.each and rule.together in (None, rule.per)
        return isinstance(rule, Absence) and not rule.forget_us

    def extract(self, key: str) -> RowByRow:
        """See `Evaluator`."""
        other = RowByRow(self._rule)
        other.insert(key, self)
        return other

    def insert(self, key: str, source: RowByRow) -> None:
        """See `Evaluator`."""
        for part in ("keys", "due"):
            if key in source._state.get(part, ()):
                self._state.setdefault(part, {})[key] = json.loads(json.dumps(source._state[part][key]))
            elif part in self._state:
                self._state[part].pop(key, None)
        if "next" in source._state:
            self._state["next"] = min(source._state["next"], self._state.get("next", FOREVER))

    def forget_lags(self) -> None:
        """See `Evaluator`."""
        for kept in self._state["keys"].values():
            kept.pop("lag", None)
        if "next" in self._state:
            self._state["next"] = EARLIEST

    def copy(self) -> RowByRow:
        """See `Evaluator`."""
        return RowByRow(self._rule, json.loads(json.dumps(self._state)))

    def state(self) -> RuleState:
        """See `Evaluator`."""
        return self._state

    def restore(self, state: RuleState) -> None:
        """See `Evaluator`."""
        if "columns" in state:  # as an earlier version evaluated it
            log.warning("the rule %r is evaluated row by row from now on, and starts over", self._rule.name)
        else:
            self._state = state
