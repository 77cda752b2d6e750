"""A histogram: counts of values by size, filled by many processes and added up by one."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Buckets:
    """How many values were at most each of the `bounds`, ascending; the last count is of larger ones.

    >>> seconds = Buckets.upto(0.1, 1.0).with_value(0.1).with_value(7.0)
    >>> seconds.counts, seconds.total, (seconds + seconds).cumulative
    ((1, 0, 1), 7.1, ((0.1, 2), (1.0, 2), (inf, 4)))
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float = 0.0

    @classmethod
    def upto(cls, *bounds: float) -> Buckets:
        """An empty histogram."""
        return cls(bounds, (0,) * (len(bounds) + 1))

    def with_value(self, value: float) -> Buckets:
        """The same with one more value."""
        at = bisect_left(self.bounds, value)
        counts = tuple(count + (number == at) for number, count in enumerate(self.counts))
        return replace(self, counts=counts, total=self.total + value)

    def __add__(self, other: Buckets) -> Buckets:
        """The sum of both. Raises `ValueError` if their bounds differ."""
        if self.bounds != other.bounds:
            raise ValueError(f"buckets up to {self.bounds} and up to {other.bounds} can't be added")
        counts = tuple(map(sum, zip(self.counts, other.counts)))
        return replace(self, counts=counts, total=self.total + other.total)

    @property
    def cumulative(self) -> tuple[tuple[float, int], ...]:
        """Each bound with the number of values up to it, infinity last, in Prometheus's form."""
        totals, below = [], 0
        for bound, count in zip((*self.bounds, float("inf")), self.counts):
            below += count
            totals.append((bound, below))
        return tuple(totals)
