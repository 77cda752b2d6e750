"""Weights that halve with age, computed from event times.

Forward decay assigns a row the weight 2^(t / half-life) on arrival and never changes it: ageing is a division
of all weights by the same 2^(now / half-life). So results based on weights can be stored and merged without a
clock, and rows may come late and in any order.

Source: Cormode, Shkapenyuk, Srivastava and Xu, *Forward decay: a practical time decay model for streaming
systems*, ICDE 2009; its exponential form, which is the same as backward exponential decay.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from ...sketches.core.columns import times
from .items import Rows


def as_times(time: Any, rows: Rows, family: str) -> np.ndarray:
    """Return one event time per item, from row times; accepts and raises what `times.as_times` does."""
    return rows.per_item(times.as_times(time, rows.length, family), "time")


@dataclass(frozen=True, slots=True)
class HalfLife:
    """Exponential decay with a half-life in seconds.

    >>> decay = HalfLife(60.0)
    >>> now = 1_000_000_000_000
    >>> decay.weights(np.array([now, now - 60_000_000, now - 120_000_000]), now).tolist()
    [1.0, 0.5, 0.25]
    """

    seconds: float

    def log_weights(self, times: np.ndarray) -> np.ndarray:
        """Return ln of the weights of rows at these times (int64 microseconds), relative to 1970."""
        return times * (math.log(2.0) / (self.seconds * 1e6))

    def weights(self, times: np.ndarray, now: int) -> np.ndarray:
        """Return the weights at the time `now`: 1 for a row of now, a half for a row one half-life old.

        `DecayedReservoir`, `DecayedCount` and `DecayedQuantiles` use these weights; use them for any decayed
        sum.
        """
        return np.exp2((times - now) / (self.seconds * 1e6))

    def weighed(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights of rows at these times relative to 1970, as a mantissa from 1 to 2 and a power
        of 2,
        in whole half-lives.

        So weights of any time can be stored as doubles, and moved between powers without rounding.

        >>> HalfLife(60.0).weighed(np.array([0, 30_000_000, 600_000_000]))[1].tolist()
        [0, 0, 10]
        """
        epochs, rest = np.divmod(times, self.span)
        return np.exp2(rest / self.span), epochs

    @property
    def span(self) -> int:
        """The half-life in whole microseconds."""
        return max(round(self.seconds * 1e6), 1)

    def as_of(self, weights: np.ndarray, epochs: np.ndarray, now: np.ndarray) -> np.ndarray:
        """Convert weights with these powers of 2 to weights at the times `now` (int64 microseconds)."""
        part, epoch = self.weighed(now)
        return moved(weights, epochs, epoch) / part


def moved(weights: np.ndarray, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Convert weights from the powers of 2 `old` to the powers `new`; weights too small for a double are
    0."""
    # The difference may exceed the 32 bits that ldexp accepts.
    return np.ldexp(weights, np.clip(old - new, -4000, 4000).astype(np.int32))


def as_moment(now: datetime | int, family: str) -> int:
    """Convert one time to microseconds since 1970. Raises `TypeError` and `ValueError` like `as_times`."""
    return times.as_time(now, family)
