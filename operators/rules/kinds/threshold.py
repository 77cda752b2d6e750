"""Rules about a value by itself, and about its share in another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..row import Row
from ..rule import LimitRule, Measured
from ..value_with_bounds import Figure, answer_at, figure_of, number


@dataclass(frozen=True)
class Threshold(LimitRule):
    """A value is past a limit, until it is back.

    `LimitRule` describes the fields. Raises `ValueError` or `TypeError` for an invalid one.

    >>> import streamgauge as sg
    >>> hot = sg.rules.Threshold("hot", value="temperature", above=78, clear=76)
    >>> state, readings = hot.begin(), [77.0, 78.5, 77.0, 79.0, 76.0, 78.5]
    >>> rows = [Row({}, at, at, {"temperature": value}) for at, value in enumerate(readings)]
    >>> [alert.state for alert in hot.window(state, rows, 0, 10, 0)]
    ['fired', 'cleared', 'fired']
    """


@dataclass(frozen=True)
class Ratio(LimitRule):
    """The share of `value` in `to` is past a limit, such as errors in requests.

    If `to` is less than `least`, the row is ignored, and an active event lasts. The bounds of both are taken
    into account. Raises `ValueError` or `TypeError` for an invalid field.

    >>> import streamgauge as sg
    >>> rule = sg.rules.Ratio("errors", value="errors", to="requests", above=0.05, least=100)
    >>> rows = [Row({}, 0, 1, {"errors": 3, "requests": n}) for n in (50, 100, 59)]
    >>> [alert.why for alert in rule.window(rule.begin(), rows, 0, 1, 0)]
    []
    >>> rows = [Row({}, 0, 1, {"errors": 30, "requests": 120})]
    >>> [alert.why for alert in rule.window(rule.begin(), rows, 0, 1, 0)]
    ['errors/requests is 0.25 (30 of 120): above 0.05']
    """

    to: str = field(default="", kw_only=True)
    least: float = field(default=1, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.to, str) or not self.to:
            raise ValueError(f"{self._where}: to must name an answer of the stream, got {self.to!r}")
        super().__post_init__()
        if isinstance(self.least, bool) or not isinstance(self.least, int | float) or self.least <= 0:
            raise ValueError(f"{self._where}: least must be a number above 0, got {self.least!r}")
        if self.each or self.absent is not None or self.support:
            raise ValueError(f"{self._where}: a ratio has neither each, absent nor support; leave them out")

    def paths(self) -> Iterable[str]:
        """See `Rule`."""
        return self.value, self.to, *self.report

    @property
    def limits_value(self) -> bool:
        """See `LimitRule`."""
        return False

    def figures(self, row: Row) -> Iterator[tuple[tuple[Any, ...], Figure | None]]:
        """See `LimitRule`."""
        part = figure_of(*answer_at(row.answers, self.value))
        whole = figure_of(*answer_at(row.answers, self.to))
        if part is None or whole is None or whole.value < self.least or whole.lower <= 0:
            yield (), None
            return
        share = Figure(part.value / whole.value, part.lower / whole.upper, part.upper / whole.lower)
        yield (), share

    def measure(self, memory: dict[str, Any], row: Row, figure: Figure) -> Measured:
        """See `LimitRule`."""
        part, whole = (figure_of(*answer_at(row.answers, path)) for path in (self.value, self.to))
        assert part is not None and whole is not None
        return self.share(figure, part.value, whole.value)

    def share(self, figure: Figure, part: float, whole: float) -> Measured:
        """A description of a share."""
        description = f"{self.value}/{self.to} is {figure} ({number(part)} of {number(whole)})"
        return Measured(figure, description)
