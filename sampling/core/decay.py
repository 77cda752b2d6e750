"""Weights that halve with age, and the times they are computed from.

Forward decay gives a row the weight 2^(t / half-life) when it comes and never changes it: dividing all by the
same 2^(now / half-life) is what ageing amounts to. So what is computed from weights can be kept and merged
without a clock, and rows may come late and in any order.

Source: Cormode, Shkapenyuk, Srivastava and Xu, *Forward decay: a practical time decay model for streaming
systems*, ICDE 2009; its exponential form, which is the same as backward exponential decay.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from ...sketches.core import times
from .items import Rows


def as_times(time: Any, rows: Rows, family: str) -> np.ndarray:
    """One event time an item, from those of the rows; takes and raises what `times.as_times` does."""
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
        """ln of the weights of rows of those times (int64 microseconds), as of 1970."""
        return times * (math.log(2.0) / (self.seconds * 1e6))

    def weights(self, times: np.ndarray, now: int) -> np.ndarray:
        """The weights as of the time `now`: 1 for a row of now, a half for one a half-life old.

        Those of `DecayedReservoir`, `DecayedCount` and `DecayedQuantiles`, and for any other decayed sum.
        """
        return np.exp2((times - now) / (self.seconds * 1e6))

    def weighed(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights of rows of those times as of 1970: a part from 1 to 2, and the power of 2, in whole
        half-lives.

        So weights of any time are kept as doubles, and moved from one power to another without rounding.

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
        """Weights of those powers of 2 as of the times `now` (int64 microseconds)."""
        part, epoch = self.weighed(now)
        return moved(weights, epochs, epoch) / part


def moved(weights: np.ndarray, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Weights of the powers of 2 `old` as of the powers `new`; what is too light for a double is 0."""
    # Far apart they may be by more than the 32 bits that ldexp takes.
    return np.ldexp(weights, np.clip(old - new, -4000, 4000).astype(np.int32))


def as_moment(now: datetime | int, family: str) -> int:
    """One time as int64 microseconds since 1970. Raises `TypeError` and `ValueError` as `as_times` does."""
    return times.as_time(now, family)
