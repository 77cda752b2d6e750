"""What every sketch of distinct values answers."""

from __future__ import annotations

from abc import abstractmethod

from .protocol import Sketch


class DistinctCounter(Sketch):
    """A sketch that tells how many different values there were, within bounds."""

    @abstractmethod
    def estimate(self) -> float:
        """The distinct values so far."""

    @abstractmethod
    def bounds(self, std_devs: int = 2) -> tuple[float, float]:
        """(lower, upper) at 1, 2 or 3 standard deviations: 68.3, 95.4 or 99.7 % confidence."""

    def answer(self) -> dict[str, float]:
        """The estimate and its bounds at 95.4 % confidence."""
        lower, upper = self.bounds()
        return {"estimate": self.estimate(), "lower": lower, "upper": upper}

    def _in_words(self) -> str:
        lower, upper = self.bounds()
        return f"{self.estimate():,.0f} distinct, {lower:,.0f} to {upper:,.0f} at 95.4 %"
