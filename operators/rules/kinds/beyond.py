"""A rule that compares a value with the distribution of its key's own past, in a quantile sketch."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from ..row import Row
from ..rule import LimitRule, Measured
from ..value_with_bounds import Figure, number

_HOUR_US = 3_600_000_000
_ACCURACY = 0.01
_LOG_GAMMA = math.log((1 + _ACCURACY) / (1 - _ACCURACY))
_LARGEST = 1e300
"""Larger values, including infinity, are treated as this."""
_MOST = 2048
"""The most buckets in a sketch; beyond that, the lowest are merged, as in the published sketch."""


@dataclass(frozen=True)
class Beyond(LimitRule):
    """A value is beyond a quantile of its key's own past, such as a trade larger than the symbol's p99.9.

    q
        Which quantile, from 0 to 1.
    warm
        The number of past values that are required before it fires.
    hourly
        A past of its own for each hour of the day (UTC).

    The limit is compared with value/quantile: ``above=1`` is anything beyond it, ``above=2`` twice as much.
    The past is stored in the buckets of DDSketch, so the quantile is within 1 % of its value, and the figure
    has the resulting bounds; with ``surely=True`` they must be past the limit. Values at or below 0 count as
    less than all others, and with a quantile among them nothing fires. The value itself is added to the past
    only afterwards. `LimitRule` has all other fields. Raises `ValueError` or `TypeError` for an invalid one.

    Source: Masson, Rim, Lee, "DDSketch", VLDB 2019.

    >>> import streamgauge as sg
    >>> large = sg.rules.Beyond("large", value="size", q=0.5, warm=3, above=2, every=True)
    >>> rows = [Row({}, at, at, {"size": size}) for at, size in enumerate([10, 12, 11, 30, 12])]
    >>> [alert.why.split(", times")[0] for alert in large.window(large.begin(), rows, 0, 9, 0)]
    ['size is 30, the p50 of 3 before was about 10.91 (10.81 to 11.02)']
    """

    q: float = field(default=0.999, kw_only=True)
    warm: int = field(default=1000, kw_only=True)
    hourly: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.q, bool) or not isinstance(self.q, int | float) or not 0 <= self.q <= 1:
            raise ValueError(f"{self._where}: q must be a number from 0 to 1, such as 0.999, got {self.q!r}")
        if type(self.warm) is not int or self.warm < 1:
            raise ValueError(f"{self._where}: warm must be an integer ≥ 1, got {self.warm!r}")
        if not isinstance(self.hourly, bool):
            raise TypeError(f"{self._where}: hourly must be True or False, got {self.hourly!r}")

    @property
    def limits_value(self) -> bool:
        """See `LimitRule`."""
        return False

    def measure(self, memory: dict[str, Any], row: Row, figure: Figure) -> Measured | None:
        """See `LimitRule`."""
        # A window that ends at six belongs to the hour before.
        past = memory.setdefault(str((row.at_us - 1) // _HOUR_US % 24) if self.hourly else "all", {})
        seen = past.get("n", 0)
        bound = quantile(past, self.q) if seen >= self.warm else None
        learn(past, figure.value)
        if bound is None:
            return None
        times = Figure(
            figure.value / bound.value,
            min(figure.lower / bound.lower, figure.lower / bound.upper),
            max(figure.upper / bound.lower, figure.upper / bound.upper),
        )
        hour = " of this hour" * self.hourly
        seen_text = f"{self.with_unit(figure)}, the p{100 * self.q:g}{hour} of {number(seen)} before"
        description = f"{self.value} is {seen_text} was {self.with_unit(bound)}, times {times}"
        return Measured(times, description)


def learn(past: dict[str, Any], value: float) -> None:
    """Add a value to a plain JSON sketch: `n` values, `rest` of them not above 0, the others in buckets."""
    past["n"] = past.get("n", 0) + 1
    if not value > 0:
        past["rest"] = past.get("rest", 0) + 1
        return
    buckets = past.setdefault("buckets", {})
    key = str(math.ceil(math.log(min(value, _LARGEST)) / _LOG_GAMMA))
    buckets[key] = buckets.get(key, 0) + 1
    if len(buckets) > _MOST:
        lowest, next_one = sorted(buckets, key=int)[:2]
        buckets[next_one] += buckets.pop(lowest)


def quantile(past: dict[str, Any], q: float) -> Figure | None:
    """The value of rank ⌊q (n − 1)⌋, within 1 %; None if it is not above 0.

    The bounds also hold for the next rank, and so for a quantile by any of the usual definitions.

    >>> past = {}
    >>> for value in range(1, 1001):
    ...     learn(past, value)
    >>> found = quantile(past, 0.999)
    >>> found.lower <= 999 <= found.upper and abs(found.value / 999 - 1) < 0.01
    True
    """
    buckets = past.get("buckets", {})
    ranks = math.floor(q * (past["n"] - 1) + 1e-9), math.ceil(q * (past["n"] - 1) - 1e-9)
    if ranks[0] < past.get("rest", 0):
        return None
    above, keys = past["n"], dict[int, int]()
    for key in sorted(map(int, buckets), reverse=True):
        above -= buckets[str(key)]
        for rank in ranks:
            if above <= rank:
                keys.setdefault(rank, key)
        if len(keys) == len(set(ranks)):
            break
    low, high = keys[ranks[0]], keys[ranks[1]]
    middle = 2 * math.exp(low * _LOG_GAMMA) / (math.exp(_LOG_GAMMA) + 1)
    return Figure(middle, math.exp((low - 1) * _LOG_GAMMA), math.exp(high * _LOG_GAMMA))
