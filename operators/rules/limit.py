"""A limit, and whether a figure is past it, back from it, or between."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, overload

import numpy as np

from .value_with_bounds import Figure, number

Side = Literal["past", "between", "back"]

_WORDS = {"above": "above", "at_least": "at least", "below": "below", "at_most": "at most"}


@dataclass(frozen=True, slots=True)
class Limit:
    """Where an event begins and where it ends.

    `way` is one of "above" (>), "at_least" (≥), "below" (<) and "at_most" (≤) the limit `at`. The event is
    over when the value is `clear` or beyond on the other side; without `clear`, when it is not past the limit
    any more. With `surely`, a figure counts as past the limit only if its bound on the near side is, and as
    back only if its bound on the far side is.

    >>> limit = Limit("above", 78, clear=76)
    >>> [limit.side(Figure.exactly(value)) for value in (78, 78.5, 76.5, 76)]
    ['between', 'past', 'between', 'back']
    """

    way: str
    at: float
    clear: float | None = None
    surely: bool = False

    @classmethod
    def of(
        cls,
        where: str,
        above: float | None,
        at_least: float | None,
        below: float | None,
        at_most: float | None,
        clear: float | None,
        surely: bool,
    ) -> Limit:
        """The one limit that is set. Raises `ValueError`, naming `where`, for none, two or an invalid one."""
        named = {"above": above, "at_least": at_least, "below": below, "at_most": at_most}
        given = {way: at for way, at in named.items() if at is not None}
        if len(given) != 1:
            problem = "none is" if not given else f"{' and '.join(given)} are"
            raise ValueError(f"{where}: {problem} given; give one of above, at_least, below and at_most")
        ((way, at),) = given.items()
        for name, value in ((way, at), ("clear", clear)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
                raise ValueError(f"{where}: {name} must be a number, got {value!r}")
            if value is not None and not math.isfinite(value):
                raise ValueError(f"{where}: {name} must be a finite number, got {value!r}")
        limit = cls(way, at, clear, surely)
        if clear is not None and limit._past(clear):
            side = "below" if limit.upwards else "above"
            raise ValueError(f"{where}: clear must be {side} the limit {way} {at!r}, got {clear!r}")
        return limit

    @property
    def upwards(self) -> bool:
        """Whether large values are past it."""
        return self.way in ("above", "at_least")

    def side(self, figure: Figure) -> Side:
        """The side of the limit that a figure is on."""
        near, far = figure.value, figure.value
        if self.surely:
            near, far = (figure.lower, figure.upper) if self.upwards else (figure.upper, figure.lower)
        if self._past(near):
            return "past"
        if self.clear is None:
            return "back"
        back = far <= self.clear if self.upwards else far >= self.clear
        return "back" if back else "between"

    def sides(self, value: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """The sides of the figures in these columns: 1 past the limit, 0 between, -1 back (int8)."""
        near, far = value, value
        if self.surely:
            near, far = (lower, upper) if self.upwards else (upper, lower)
        past = self._past(near)
        back = ~past if self.clear is None else far <= self.clear if self.upwards else far >= self.clear
        return np.where(past, 1, np.where(back, -1, 0)).astype(np.int8)

    @overload
    def _past(self, value: float) -> bool: ...
    @overload
    def _past(self, value: np.ndarray) -> np.ndarray: ...
    def _past(self, value: float | np.ndarray) -> bool | np.ndarray:
        if self.way == "above":
            return value > self.at
        if self.way == "at_least":
            return value >= self.at
        return value < self.at if self.way == "below" else value <= self.at

    def __str__(self) -> str:
        return f"{'surely ' * self.surely}{_WORDS[self.way]} {number(self.at)}"
