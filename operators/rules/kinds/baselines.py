"""Baselines of a value: the key's own past, as plain JSON of bounded size."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from .time_zones import local_us

Memory = dict[str, Any]

_HOUR_US = 3_600_000_000


class Past(NamedTuple):
    """The number of past rows, their typical value, and the standard deviation."""

    rows: int
    mean: float
    spread: float


class Baseline(Protocol):
    """A way of remembering the past. An empty memory has seen nothing."""

    def past(self, memory: Memory, at_us: int) -> Past | None:
        """The past at a time; None if there is none."""

    def learn(self, memory: Memory, at_us: int, value: float) -> None:
        """Add a row to a memory."""

    def of_constant(self, value: float, windows: int) -> Memory:
        """The memory after a number of windows with the same value."""

    def is_constant(self, memory: Memory, value: float) -> bool:
        """Whether this memory hardly differs from that of a constant, so that a key may be dropped."""


def baseline_of(against: str, rows: int, over_us: int, zone: str = "UTC") -> Baseline:
    """The baseline with this name, over a number of rows or a length of time; hours are those of a zone."""
    if against == "ewma":
        return Ewma(2 / (rows + 1))
    return (
        OfHours(2 / (rows + 1), zone)
        if against == "hour"
        else Rows(against, 1 if against == "last" else rows, over_us)
    )


@dataclass(frozen=True)
class Rows:
    """The rows themselves: the last ones by number, or by microseconds."""

    what: str
    most: int
    over_us: int

    def past(self, memory: Memory, at_us: int) -> Past | None:
        """See `Baseline`."""
        rows = memory.get("rows", [])
        if self.over_us:
            rows = [row for row in rows if row[0] >= at_us - self.over_us]
        # Windows with a constant value before the first row don't need an entry each.
        same = [memory["same"][1]] * memory["same"][0] if "same" in memory else []
        values = [*same, *(value for _, value in rows)]
        if not values:
            return None
        if self.what == "low":
            return Past(len(values), min(values), 0.0)
        if self.what == "high":
            return Past(len(values), max(values), 0.0)
        if self.what in ("first", "last"):
            return Past(len(values), values[0 if self.what == "first" else -1], 0.0)
        spread = statistics.stdev(values) if len(values) > 1 else 0.0
        return Past(len(values), math.fsum(values) / len(values), spread)

    def learn(self, memory: Memory, at_us: int, value: float) -> None:
        """See `Baseline`."""
        rows = memory.setdefault("rows", [])
        rows.append([at_us, value])
        if self.over_us:
            while rows[0][0] < at_us - self.over_us:
                del rows[0]
            return
        if "same" in memory and memory["same"][0] + len(rows) > self.most:
            memory["same"][0] -= 1
            if not memory["same"][0]:
                del memory["same"]
        del rows[: -self.most]

    def of_constant(self, value: float, windows: int) -> Memory:
        """See `Baseline`."""
        if self.over_us or windows < 1:
            return {}
        return {"same": [min(windows, self.most), value]}

    def is_constant(self, memory: Memory, value: float) -> bool:
        """See `Baseline`."""
        return all(known == value for _, known in memory.get("rows", []))


def weighted(
    value: float, weight: float, rows: int, mean: float, variance: float
) -> tuple[int, float, float]:
    """The number of rows, their exponentially weighted mean and variance after one more.

    The variance is West's (1979), with weights that fall. Kernels compile this function.

    >>> weighted(4.0, 0.2, *weighted(2.0, 0.2, 0, 0.0, 0.0))
    (2, 3.0, 1.0)
    """
    if rows == 0:
        return 1, value, 0.0
    # The first rows have equal weights: otherwise the very first would dominate for long.
    own = max(weight, 1 / (rows + 1))
    difference = value - mean
    return rows + 1, mean + own * difference, (1 - own) * (variance + own * difference * difference)


@dataclass(frozen=True)
class Ewma:
    """An exponentially weighted mean and variance."""

    weight: float

    def past(self, memory: Memory, at_us: int) -> Past | None:
        """See `Baseline`."""
        if not memory:
            return None
        return Past(memory["rows"], memory["mean"], math.sqrt(memory["variance"]))

    def learn(self, memory: Memory, at_us: int, value: float) -> None:
        """See `Baseline`."""
        before = (memory["rows"], memory["mean"], memory["variance"]) if memory else (0, 0.0, 0.0)
        rows, mean, variance = weighted(value, self.weight, *before)
        memory.update(rows=rows, mean=mean, variance=variance)

    def of_constant(self, value: float, windows: int) -> Memory:
        """See `Baseline`."""
        return {"rows": windows, "mean": value, "variance": 0.0} if windows > 0 else {}

    def is_constant(self, memory: Memory, value: float) -> bool:
        """See `Baseline`."""
        # A mean that approaches the constant reaches the precision of doubles after some hundred spans.
        return not memory or (math.isclose(memory["mean"], value, abs_tol=1e-6) and memory["variance"] < 1e-6)


@dataclass(frozen=True)
class OfHours:
    """An exponentially weighted mean of each hour of a zone's day, to which every day adds one row."""

    weight: float
    zone: str = "UTC"

    def past(self, memory: Memory, at_us: int) -> Past | None:
        """See `Baseline`."""
        return Ewma(self.weight).past(memory.get(self._hour(at_us), {}), at_us)

    def learn(self, memory: Memory, at_us: int, value: float) -> None:
        """See `Baseline`."""
        Ewma(self.weight).learn(memory.setdefault(self._hour(at_us), {}), at_us, value)

    def of_constant(self, value: float, windows: int) -> Memory:
        """See `Baseline`."""
        return {}

    def is_constant(self, memory: Memory, value: float) -> bool:
        """See `Baseline`."""
        return all(Ewma(self.weight).is_constant(part, value) for part in memory.values())

    def _hour(self, at_us: int) -> str:
        # A window that ends at six belongs to the hour before.
        return str(local_us(at_us - 1, self.zone) // _HOUR_US % 24)
