"""Trends, of which no phrase is reported beside its own parts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...operators.rules.alert import Alert
from ...operators.rules.kinds.burst import Burst
from ...operators.rules.row import Row
from ...operators.rules.rule import RuleState
from .words import SPACELESS

_SPACELESS = re.compile(f"[{SPACELESS}]")


@dataclass(frozen=True)
class Trend(Burst):
    """Keys that have far more than usual, of phrases without spaces the longest alone.

    Where a script has no spaces, a phrase is in a stream with all its parts (`formats.words`), and they burst
    together. Of those that burst in one window and that as many have, only the longest is an event: a part
    whose value is no more than the upper bound of a longer one's. All else is as `Burst` says.

    >>> trend = Trend("trend", value="authors", above=5, least=10, warm=1)
    >>> minute, state = 60_000_000, trend.begin()
    >>> having = [{"台風": 120, "接近": 60, "台風接近": 60} if at == 5 else {} for at in range(6)]
    >>> alerts = []
    >>> for at, counts in enumerate(having):
    ...     begin, end = at * minute, (at + 1) * minute
    ...     keys = [{"kind": "words", "term": term} for term in counts]
    ...     rows = [Row(key, begin, end, {"authors": counts[key["term"]]}) for key in keys]
    ...     alerts += trend.window(state, rows, begin, end, minute)
    >>> [alert.key[1] for alert in alerts]
    ['台風', '台風接近']
    """

    def begin(self) -> RuleState:
        """See `Rule`."""
        return {**super().begin(), "parts": []}

    def window(
        self, state: RuleState, rows: Sequence[Row], start_us: int, end_us: int, step_us: int
    ) -> Iterator[Alert]:
        """See `Rule`."""
        alerts = list(super().window(state, rows, start_us, end_us, step_us))
        fired = {alert.key for alert in alerts if alert.state == "fired"}
        parts = self._parts(rows, fired)
        state["parts"] += [list(key) for key in parts]
        yield from self._whole(state, [alert for alert in alerts if alert.key not in parts])

    def advance(self, state: RuleState, time_us: int, step_us: int) -> Iterator[Alert]:
        """See `Rule`."""
        yield from self._whole(state, super().advance(state, time_us, step_us))

    def _whole(self, state: RuleState, alerts: Iterable[Alert]) -> Iterator[Alert]:
        """Alerts without those that say that a part is over whose beginning was not reported."""
        for alert in alerts:
            if alert.state == "cleared" and list(alert.key) in state["parts"]:
                state["parts"].remove(list(alert.key))
            else:
                yield alert

    def _parts(self, rows: Sequence[Row], fired: set[tuple[Any, ...]]) -> set[tuple[Any, ...]]:
        """The keys that are part of a longer phrase which has as many."""
        phrases = []
        for row in self.concerned(rows) if fired else ():
            key, term = tuple(row.key.values()), row.key.get("term") or ""
            if row.key.get("kind") == "words" and key in fired and _SPACELESS.search(term):
                figure = next(figure for _, figure in self.figures(row))
                if figure is not None:
                    phrases.append((term, key, figure))
        phrases.sort(key=lambda phrase: -len(phrase[0]))
        return {
            key
            for at, (term, key, figure) in enumerate(phrases)
            if any(
                term != longer and term in longer and figure.value <= other.upper
                for longer, _, other in phrases[:at]
            )
        }
