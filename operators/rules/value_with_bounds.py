"""The number that a rule evaluates, from a window's answers, with its bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import polars as pl


class Figure(NamedTuple):
    """A number and the bounds of its true value; all three are equal if it is exact.

    >>> import streamgauge as sg
    >>> users = sg.rules.Figure(100.0, 96.0, 105.0)
    >>> print(users.map(lambda value: value / 10), users.exact, sg.rules.Figure.exactly(3.0))
    about 10 (9.6 to 10.5) False 3
    >>> print(sg.rules.Figure(217.0000012, 217.0, 217.0108))
    about 217 (217 to 217.01)
    >>> print(sg.rules.Figure(217.0000012, 217.0, 217.0000013))
    217
    """

    value: float
    lower: float
    upper: float

    @classmethod
    def exactly(cls, value: float) -> Figure:
        """A number without error."""
        return cls(value, value, value)

    @property
    def exact(self) -> bool:
        """Whether it is exact, not an estimate."""
        return self.lower == self.value == self.upper

    def map(self, score: Callable[[float], float]) -> Figure:
        """The result of a monotonic function, rising or falling, with its bounds."""
        value, *ends = (score(part) for part in self)
        return Figure(value, min(value, *ends), max(value, *ends))

    def __str__(self) -> str:
        value, lower, upper = map(number, self)
        # Bounds that agree in all printed digits are omitted.
        return value if lower == value == upper else f"about {value} ({lower} to {upper})"


FigureColumns = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Figures as three columns of doubles: values, lower bounds, upper bounds."""


def number(value: float) -> str:
    """A number, formatted for people.

    >>> number(1234567.0), number(0.0512345), number(78.94), number(217.0000012)
    ('1,234,567', '0.05123', '78.94', '217')
    """
    if math.isfinite(value) and value == int(value):
        return f"{int(value):,}"
    return f"{value:,.2f}".removesuffix(".00") if abs(value) >= 100 else f"{value:.4g}"


def answer_at(answers: Mapping[str, Any], path: str) -> tuple[Any, str]:
    """The answer that a path begins with, and the requested part of it.

    >>> answer_at({"a": 1, "a.b": 2}, "a.b.p99"), answer_at({"a": 1}, "a")
    ((2, 'p99'), (1, ''))
    """
    name, part = path, ""
    while name not in answers and "." in name:
        name, _, rest = name.rpartition(".")
        part = f"{rest}.{part}" if part else rest
    return answers.get(name), part


def figure_of(answer: Any, part: str = "") -> Figure | None:
    """The figure in an aggregate's answer, as `operators.table.query` returns it; None if unknown.

    `part` names which of several: ``"p99"`` of quantiles, ``"n"`` of a sample.

    >>> figure_of(7), figure_of({"estimate": 5.0, "lower": 4.0, "upper": 6.0}).upper
    (Figure(value=7.0, lower=7.0, upper=7.0), 6.0)
    >>> figure_of({"n": 3, "quantiles": [{"q": 0.99, "value": 2.0, "lower": 1.9, "upper": 2.1}]}, "p99").lower
    1.9
    """
    if isinstance(answer, Mapping):
        if part[:1] == "p" and "quantiles" in answer:
            q = float(part[1:]) / 100
            near = [one for one in answer["quantiles"] or () if math.isclose(one["q"], q)]
            return figure_of(near[0]) if near else None
        if part:
            return figure_of(answer.get(part))
        value = answer.get("estimate", answer.get("value"))
        parts = [_finite(each) for each in (value, answer.get("lower", value), answer.get("upper", value))]
        return None if None in parts else Figure(*parts)  # type: ignore[arg-type]
    value = _finite(answer)
    return None if value is None else Figure.exactly(value)


def figure_columns(answers: pl.Series, part: str = "") -> FigureColumns | None:
    """The values of the figures in a column of answers, and their bounds; NaN if unknown.

    Returns None for answers whose figures only `figure_of` reads, one by one.

    >>> answers = pl.Series([{"estimate": 5.0, "lower": 4.0, "upper": 6.0}, None])
    >>> [column.tolist() for column in figure_columns(answers)]
    [[5.0, nan], [4.0, nan], [6.0, nan]]
    """
    kind = answers.dtype
    if isinstance(kind, pl.Struct) and "quantiles" not in (names := [field.name for field in kind.fields]):
        if part:
            return figure_columns(answers.struct.field(part)) if part in names else None
        value = next((name for name in ("estimate", "value") if name in names), None)
        if value is None:
            return None
        fields = [
            answers.struct.field(name if name in names else value) for name in (value, "lower", "upper")
        ]
    elif part:
        return None
    else:
        fields = [answers]
    if not all(_is_number(field.dtype) for field in fields):
        return None
    columns = [field.cast(pl.Float64).to_numpy() for field in fields]  # null becomes NaN
    unknown = ~np.logical_and.reduce([np.isfinite(column) for column in columns])
    figures = [np.where(unknown, math.nan, column) for column in columns]
    value_, lower, upper = figures if len(figures) == 3 else 3 * figures
    return value_, lower, upper


def _is_number(kind: pl.DataType) -> bool:
    return kind in (pl.Float32, pl.Float64) or (kind.is_integer() and kind not in (pl.Int128, pl.UInt128))


def _finite(value: Any) -> float | None:
    """A number that can be compared; None for null and NaN."""
    if not isinstance(value, int | float | Decimal) or math.isnan(value):
        return None
    return float(value)


def words(answer: Any, part: str = "") -> str:
    """An answer as text beside a figure; empty if the answer is empty.

    >>> words({"n": 2, "values": ["a", "b"]}, "values"), words(None)
    ("'a', 'b'", '')
    """
    figure = figure_of(answer, part)
    if figure is not None:
        return str(figure)
    value = answer.get(part) if part and isinstance(answer, Mapping) else answer
    if isinstance(value, list | tuple):
        return ", ".join(repr(one["item"] if isinstance(one, Mapping) else one) for one in value)
    return "" if value is None else repr(value)
