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
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from ..sketches.columns import as_array
from ..sketches.protocol import SketchError
from .items import Rows


def as_seconds(span: timedelta | float, family: str, name: str) -> float:
    """A length of time in seconds. Raises `SketchError` if it isn't positive and finite."""
    seconds = span.total_seconds() if isinstance(span, timedelta) else span
    if not isinstance(seconds, (int, float)) or not 1e-6 <= seconds < 1e12:
        raise SketchError(f"{family}: {name} must be a timedelta or seconds from 1e-6 to 1e12, got {span!r}")
    return float(seconds)


def as_times(time: Any, rows: Rows, family: str) -> np.ndarray:
    """One event time an item as int64 microseconds since 1970; one time stands for all rows.

    Takes timestamps, dates, or whole microseconds. Raises `ValueError` for a null or another number of times.
    """
    if time is None:
        raise TypeError(f"{family}: needs the rows' event times, update(…, time=…)")
    array = as_array([time] if isinstance(time, (datetime, date)) else time)
    if array.null_count:
        raise ValueError(f"{family}: a row without a time can't be sampled by time; leave it out")
    if pa.types.is_timestamp(array.type) or pa.types.is_date(array.type):
        array = array.cast(pa.timestamp("us", getattr(array.type, "tz", None)), safe=False).view(pa.int64())
    elif not pa.types.is_integer(array.type):
        raise TypeError(f"{family}: time must be timestamps or int64 microseconds, got {array.type}")
    times = array.cast(pa.int64()).to_numpy()
    if len(times) == 1 and rows.length != 1:
        times = np.broadcast_to(times, rows.length)
    return np.ascontiguousarray(rows.per_item(times, "time"))


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

        For weighted counts, sums and quantiles decayed in the same way as a `DecayedReservoir`.
        """
        return np.exp2((times - now) / (self.seconds * 1e6))
