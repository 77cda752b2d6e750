"""A limit, and whether a figure is past it, back from it, or between."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from .figure import Figure, number

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
        """The one limit that was given. Raises `ValueError`, naming `where`, for none, two or a wrong one."""
        named = {"above": above, "at_least": at_least, "below": below, "at_most": at_most}
        given = {way: at for way, at in named.items() if at is not None}
        if len(given) != 1:
            told = "none is" if not given else f"{' and '.join(given)} are"
            raise ValueError(f"{where}: {told} given; give one of above, at_least, below and at_most")
        ((way, at),) = given.items()
        for name, value in ((way, at), ("clear", clear)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
                raise ValueError(f"{where}: {name} is {value!r}; it is a number")
            if value is not None and not math.isfinite(value):
                raise ValueError(f"{where}: {name} is {value!r}; it is a finite number")
        limit = cls(way, at, clear, surely)
        if clear is not None and limit._past(clear):
            side = "below" if limit.upwards else "above"
            raise ValueError(f"{where}: clear is {clear!r}, past the limit {way} {at!r}; it lies {side} it")
        return limit

    @property
    def upwards(self) -> bool:
        """Whether large values are past it."""
        return self.way in ("above", "at_least")

    def side(self, figure: Figure) -> Side:
        """Where a figure is."""
        near, far = figure.value, figure.value
        if self.surely:
            near, far = (figure.lower, figure.upper) if self.upwards else (figure.upper, figure.lower)
        if self._past(near):
            return "past"
        if self.clear is None:
            return "back"
        back = far <= self.clear if self.upwards else far >= self.clear
        return "back" if back else "between"

    def _past(self, value: float) -> bool:
        if self.way == "above":
            return value > self.at
        if self.way == "at_least":
            return value >= self.at
        return value < self.at if self.way == "below" else value <= self.at

    def __str__(self) -> str:
        return f"{'surely ' * self.surely}{_WORDS[self.way]} {number(self.at)}"
