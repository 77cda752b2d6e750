"""The number that a rule looks at, taken from a window's answers, with the bounds that it has."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple


class Figure(NamedTuple):
    """A number and the bounds that the truth lies in; all three are the same for what is exact."""

    value: float
    lower: float
    upper: float

    @classmethod
    def exactly(cls, value: float) -> Figure:
        """A number without error."""
        return cls(value, value, value)

    @property
    def exact(self) -> bool:
        """Whether it is no estimate."""
        return self.lower == self.value == self.upper

    def map(self, score: Callable[[float], float]) -> Figure:
        """A function of it, which may fall or rise."""
        value, *ends = (score(part) for part in self)
        return Figure(value, min(value, *ends), max(value, *ends))

    def __str__(self) -> str:
        if self.exact:
            return number(self.value)
        return f"about {number(self.value)} ({number(self.lower)} to {number(self.upper)})"


def number(value: float) -> str:
    """A number as people read it.

    >>> number(1234567.0), number(0.0512345), number(78.94)
    ('1,234,567', '0.05123', '78.94')
    """
    if math.isfinite(value) and value == int(value):
        return f"{int(value):,}"
    return f"{value:,.2f}" if abs(value) >= 100 else f"{value:.4g}"


def figure_of(answer: Any, part: str = "") -> Figure | None:
    """The figure in an aggregate's answer, as `operators.table.query` gives it; None where nothing is known.

    `part` names which of several: ``"p99"`` of quantiles, ``"n"`` of a sample.

    >>> figure_of(7), figure_of({"estimate": 5.0, "lower": 4.0, "upper": 6.0}).upper
    (Figure(value=7.0, lower=7.0, upper=7.0), 6.0)
    >>> figure_of({"n": 3, "quantiles": [{"q": 0.99, "value": 2.0, "lower": 1.9, "upper": 2.1}]}, "p99").lower
    1.9
    """
    if isinstance(answer, Mapping):
        if part[:1] == "p" and "quantiles" in answer:
            asked = float(part[1:]) / 100
            near = [one for one in answer["quantiles"] or () if math.isclose(one["q"], asked)]
            return figure_of(near[0]) if near else None
        if part:
            return figure_of(answer.get(part))
        value = answer.get("estimate", answer.get("value"))
        parts = [_finite(each) for each in (value, answer.get("lower", value), answer.get("upper", value))]
        return None if None in parts else Figure(*parts)  # type: ignore[arg-type]
    value = _finite(answer)
    return None if value is None else Figure.exactly(value)


def _finite(value: Any) -> float | None:
    """A number that can be compared; neither null nor NaN can."""
    if not isinstance(value, int | float | Decimal) or math.isnan(value):
        return None
    return float(value)


def words(answer: Any, part: str = "") -> str:
    """An answer as it is told beside a figure; nothing of one that has nothing.

    >>> words({"n": 2, "values": ["a", "b"]}, "values"), words(None)
    ("'a', 'b'", '')
    """
    figure = figure_of(answer, part)
    if figure is not None:
        return str(figure)
    found = answer.get(part) if part and isinstance(answer, Mapping) else answer
    if isinstance(found, list | tuple):
        return ", ".join(repr(one["item"] if isinstance(one, Mapping) else one) for one in found)
    return "" if found is None else repr(found)
