"""How a rule is evaluated over many windows, and evaluation row by row, which works for any rule."""

from __future__ import annotations

import json
import logging
from typing import Any, NamedTuple, Protocol, Self

from ...windows.window import EARLIEST
from ..alert import Alert
from ..event_state import FOREVER
from ..kinds.absence import Absence
from ..rule import LimitRule, Rule, RuleState
from ..window_rows import WindowBatch

log = logging.getLogger("streamgauge.rules")


class WindowAlert(NamedTuple):
    """An alert, with its window's number in a batch; `passed` if it results from time after that window."""

    window: int
    passed: bool
    alert: Alert


class Evaluator(Protocol):
    """A rule and its memory."""

    @property
    def started(self) -> bool:
        """Whether the passing of time can affect it."""

    @property
    def due_us(self) -> int:
        """A time up to which the readings seen so far cause no alert if no other reading follows."""

    def evaluate(self, batch: WindowBatch, step_us: int, passing: bool) -> list[WindowAlert]:
        """Evaluate windows. With `passing`, the end of each window also means that time has passed up to it.

        Alerts of a window are ordered by its rows' times and keys; those caused by the passing of time come
        last.
        """

    def advance(self, time_us: int, step_us: int) -> list[Alert]:
        """Advance time: all windows that end at or before `time_us` were seen."""

    @property
    def by_key(self) -> bool:
        """Whether its memory of a key, by the rule's `per`, depends only on that key's rows and can be
        extracted.
        """

    def copy(self) -> Self:
        """A copy with the same memory."""

    def extract(self, key: str) -> Self:
        """A copy with the memory of one key only."""

    def insert(self, key: str, source: Self) -> None:
        """Replace the memory of a key by that of another evaluator."""

    def forget_lags(self) -> None:
        """Advance time for all keys as for those whose readings are never late."""

    def take_back(self, key: str, at_us: int) -> None:
        """Record that a key's event that fired at this time was withdrawn: it is over, if it was on."""

    def state(self) -> Any:
        """Its memory, as JSON."""

    def restore(self, state: Any) -> None:
        """Restore a state."""


class RowByRow:
    """Evaluates a rule that sees every row."""

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

    def take_back(self, key: str, at_us: int) -> None:
        """See `Evaluator`."""
        kept = self._state["keys"].get(key)
        if kept is None or not isinstance(self._rule, LimitRule):
            return
        if kept["switch"].get("on") == at_us:
            kept["switch"].clear()
        self._rule.take_back(kept["memory"], at_us)

    def copy(self) -> RowByRow:
        """See `Evaluator`."""
        return RowByRow(self._rule, json.loads(json.dumps(self._state)))

    def state(self) -> RuleState:
        """See `Evaluator`."""
        return self._state

    def restore(self, state: RuleState) -> None:
        """See `Evaluator`."""
        if "columns" in state:  # written by a version that evaluated this rule by columns
            log.warning("the rule %r is evaluated row by row from now on, and starts over", self._rule.name)
        else:
            self._state = state
