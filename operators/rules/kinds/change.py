"""Rules that compare a value with a baseline of the key's own past."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal, get_args

import numpy as np

from ...windows.durations import Duration, duration_text
from ..row import Row
from ..rule import LimitRule, Measured, RuleState
from ..value_with_bounds import Figure, FigureColumns, number
from .baselines import Baseline, Past, baseline_of
from .time_zones import zone_of

Against = Literal["mean", "ewma", "hour", "last", "first", "low", "high"]
By = Literal["difference", "distance", "times", "percent", "z", "deviation", "poisson"]


@dataclass(frozen=True)
class Change(LimitRule):
    """A value has moved away from its baseline, the key's own past.

    against
        The baseline: the ``"mean"`` of the rows before, ``"ewma"`` (their exponentially weighted mean),
        ``"hour"`` (the mean of earlier rows of the same hour of the day), the ``"last"`` row, or the
        ``"first"``, the ``"low"`` or the ``"high"`` of the rows before.
    over
        How much of the past: a number of rows, or a duration such as ``"24h"``. For "ewma" it is the span, a
        number of rows n with weight 2/(n + 1); for "hour" the span in days.
    by
        What the limit is compared with: the ``"difference"`` of value and baseline, its size
        (``"distance"``), ``"times"`` (value/baseline), ``"percent"`` (100 · difference/baseline), ``"z"``
        (difference/standard deviation of the past), its size (``"deviation"``), or ``"poisson"``: by how many
        standard deviations a count exceeds a random count with the baseline's mean, by Anscombe's 2(√(x+⅜) −
        √(μ+⅜)).
    warm
        The number of past rows that are required before it fires.
    zone
        The time zone of the hours of the day, such as ``"America/New_York"``; UTC by default.
    least
        The support: smaller values are never past the limit.

    The row itself is added to the baseline only afterwards, whether or not it was past the limit. `LimitRule`
    has all other fields. Raises `ValueError` or `TypeError` for an invalid one.

    >>> import streamgauge as sg
    >>> jump = sg.rules.Change("jump", value="t", against="last", by="distance", above=5, every=True)
    >>> rows = [Row({}, at, at, {"t": value}) for at, value in enumerate([20, 21, 27, 21.5, 21])]
    >>> [alert.why for alert in jump.window(jump.begin(), rows, 0, 9, 0)]
    ['t is 27, the last was 21, distance 6: above 5', 't is 21.5, the last was 27, distance 5.5: above 5']
    """

    against: Against = field(default="mean", kw_only=True)
    over: int | Duration = field(default=12, kw_only=True)
    by: By = field(default="z", kw_only=True)
    warm: int = field(default=1, kw_only=True)
    zone: str = field(default="UTC", kw_only=True)
    least: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, known in (("against", get_args(Against)), ("by", get_args(By))):
            if (given := getattr(self, name)) not in known:
                raise ValueError(f"{self._where}: {name} must be one of {', '.join(known)}, got {given!r}")
        if isinstance(self.over, bool) or (isinstance(self.over, int) and self.over < 1):
            raise ValueError(
                f"{self._where}: over must be a number of rows such as 12, or a duration such as '24h', "
                f"got {self.over!r}"
            )
        if not isinstance(self.over, int) and not self._duration("over"):
            raise ValueError(f"{self._where}: over must be longer than 0, got {self.over!r}")
        if self.against in ("ewma", "hour") and not isinstance(self.over, int):
            unit = "rows" if self.against == "ewma" else "days"
            raise ValueError(
                f"{self._where}: with against='{self.against}', over must be a number of {unit}, got "
                f"{self.over!r}"
            )
        if self.by in ("z", "deviation") and self.against not in ("mean", "ewma", "hour"):
            raise ValueError(
                f"{self._where}: by={self.by!r} needs a spread, which against={self.against!r} doesn't have; "
                "write by='difference', 'distance', 'times' or 'percent'"
            )
        try:
            zone_of(self.zone)
        except ValueError as error:
            raise ValueError(f"{self._where}: {error}") from None
        if type(self.warm) is not int or self.warm < 1:
            raise ValueError(f"{self._where}: warm must be an integer ≥ 1, got {self.warm!r}")

    @cached_property
    def baseline(self) -> Baseline:
        """The baseline that remembers the past."""
        over_us = 0 if isinstance(self.over, int) else self._duration("over")
        return baseline_of(self.against, self.over if isinstance(self.over, int) else 0, over_us, self.zone)

    @property
    def limits_value(self) -> bool:
        """See `LimitRule`."""
        return self.by in ("difference", "distance")

    def measure(self, memory: dict[str, Any], row: Row, figure: Figure) -> Measured | None:
        """See `LimitRule`."""
        past = self.baseline.past(memory, row.at_us)
        self.baseline.learn(memory, row.at_us, figure.value)
        return None if past is None else self.against_past(figure, past)

    def against_past(self, figure: Figure, past: Past) -> Measured | None:
        """The value to compare with the limit, given this past; None if there is none."""
        if past.rows < self.warm:
            return None
        score = self._score(past.mean, past.spread)
        score_figure = None if score is None else figure.map(score)
        if score_figure is None or any(math.isnan(part) for part in score_figure):
            return None
        if (
            self.by in ("distance", "deviation")
            and (figure.lower - past.mean) * (figure.upper - past.mean) < 0
        ):
            score_figure = Figure(
                score_figure.value, 0.0, score_figure.upper
            )  # the point nearest to the baseline lies between the bounds
        description = (
            f"{self.value} is {self.with_unit(figure)}, {self._baseline_text} was "
            f"{self.with_unit(number(past.mean))}"
            f"{f' ± {number(past.spread)}' if self.by in ('z', 'deviation') else ''}, "
            f"{self.by} {self._of_limit(score_figure)}"
        )
        return Measured(score_figure, description, self.least is None or figure.value >= self.least)

    def scores(self, figures: FigureColumns, mean: np.ndarray, spread: np.ndarray) -> FigureColumns:
        """`against_past` for columns: the figures to compare with the limit; NaN if there is none."""
        with np.errstate(all="ignore"):
            value, one, other = (_SCORES_OF_COLUMNS[self.by](mean, spread, column) for column in figures)
            lower, upper = (
                np.minimum(value, np.minimum(one, other)),
                np.maximum(value, np.maximum(one, other)),
            )
            unknown = mean == 0 if self.by in ("times", "percent") else np.zeros(len(mean), bool)
            if self.by in ("z", "deviation"):
                unknown = ~(spread > 0)
            if self.by in ("distance", "deviation"):
                lower = np.where((figures[1] - mean) * (figures[2] - mean) < 0, 0.0, lower)
        return np.where(unknown, math.nan, value), lower, upper

    def _score(self, mean: float, spread: float) -> Callable[[float], float] | None:
        return partial(_SCORES[self.by], mean, spread) if _scorable(self.by, mean, spread) else None

    @property
    def _baseline_text(self) -> str:
        rows = f"{self.over} rows" if isinstance(self.over, int) else duration_text(self._duration("over"))
        return {
            "last": "the last",
            "ewma": f"the EWMA over {rows}",
            "hour": f"the mean of this hour over {self.over} days",
        }.get(self.against, f"the {self.against} of the {rows} before")

    def new_memory(self, state: RuleState, windows: int) -> dict[str, Any]:
        """See `LimitRule`: with `absent`, windows before a key's first one have that value."""
        if self.absent is None:
            return {}
        return self.baseline.of_constant(self.absent, windows)

    def forgets(self, memory: dict[str, Any]) -> bool:
        """See `LimitRule`."""
        return self.absent is not None and self.baseline.is_constant(memory, self.absent)


def _scorable(by: str, mean: float, spread: float) -> bool:
    if by in ("times", "percent"):
        return mean != 0
    return by not in ("z", "deviation") or spread > 0


_SCORES: dict[str, Callable[[float, float, float], float]] = {
    "difference": lambda mean, spread, value: value - mean,
    "distance": lambda mean, spread, value: abs(value - mean),
    "times": lambda mean, spread, value: value / mean,
    "percent": lambda mean, spread, value: 100 * (value - mean) / mean,
    "z": lambda mean, spread, value: (value - mean) / spread,
    "deviation": lambda mean, spread, value: abs(value - mean) / spread,
    "poisson": lambda mean, spread, value: 2 * (_root(value) - _root(mean)),
}


_SCORES_OF_COLUMNS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    **_SCORES,  # type: ignore[dict-item]
    "poisson": lambda mean, spread, value: 2 * (_roots(value) - _roots(mean)),
}


def _roots(values: np.ndarray) -> np.ndarray:
    roots: np.ndarray = np.sqrt(np.maximum(values, 0.0) + 0.375)
    return roots


def _root(value: float) -> float:
    return math.sqrt(max(value, 0.0) + 0.375)
