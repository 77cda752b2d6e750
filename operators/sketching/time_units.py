"""Detects numbers read as times in the wrong unit: most would be in January 1970, or in the far future.

Nothing is guessed: times are what the stream's definition says. But a user who reads seconds as milliseconds,
or the reverse, gets a warning that names the matching unit, instead of windows that are late or empty.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np

from ...sketches.core.lazy import pl
from ..definition.event_time import in_utc

_US = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}
_WORDS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_US = 631_152_000e6
"""Times from 1990 on are plausible; earlier ones are accepted if no other unit makes them later."""
_AHEAD_US = 2 * 366 * 86_400e6
_PROBE = 1_000_000_000


def unit_read(time: pl.Expr, kind: pl.DataType) -> str | None:
    """The unit in which an expression reads its only column's numbers, with this type; None if in none.

    >>> unit_read(pl.from_epoch("at", time_unit="ms"), pl.Int64())
    'ms'
    """
    name = time.meta.root_names()[0]
    try:
        probe = pl.Series(name, [_PROBE]).cast(kind).to_frame()
        at = in_utc(probe.select(time).to_series()).to_physical()[0]
    except (pl.exceptions.PolarsError, TypeError, AttributeError):
        return None
    return next((unit for unit, us in _US.items() if at == int(us * _PROBE)), None)


def wrong_unit(numbers: np.ndarray, unit: str, now_us: int) -> tuple[str, str] | None:
    """Another unit in which most of these numbers would be plausible times, and an explanation; or None.

    >>> wrong_unit(np.array([1_700_000_000]), "ms", 1_767_225_600_000_000)
    ('s', 'holds 1700000000; read as milliseconds this is 1970-01-20, as seconds it is 2023-11-14')
    >>> wrong_unit(np.array([1_700_000_000_000]), "ms", 1_767_225_600_000_000) is None
    True
    """
    for other, us in _US.items():
        fits = _plausible(numbers * us, now_us) & ~_plausible(numbers * _US[unit], now_us)
        if other != unit and 2 * np.count_nonzero(fits) > len(numbers):
            example = float(numbers[np.argmax(fits)])
            shown = f"{example:.0f}" if example.is_integer() else repr(example)
            return other, (
                f"holds {shown}; read as {_WORDS[unit]} this is {_day(example * _US[unit])}, "
                f"as {_WORDS[other]} it is {_day(example * us)}"
            )
    return None


def _plausible(times_us: np.ndarray, now_us: int) -> np.ndarray:
    return (times_us >= _FIRST_US) & (times_us <= now_us + _AHEAD_US)


def _day(time_us: float) -> str:
    try:
        return f"{_EPOCH + timedelta(microseconds=time_us):%Y-%m-%d}"
    except OverflowError:
        return f"the year {1970 + int(time_us / 31_556_952e6):,}"
