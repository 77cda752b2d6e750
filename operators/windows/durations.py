"""Lengths of time as people write them, as whole microseconds."""

from __future__ import annotations

import re
from datetime import timedelta

_UNITS = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
    "w": 604_800_000_000,
}
_PART = re.compile(r"(\d+)(us|ms|s|m|h|d|w)")

Duration = str | timedelta


def microseconds(duration: Duration) -> int:
    """A duration, such as ``"10s"``, ``"1m30s"``, ``"250ms"`` or a `timedelta`, in microseconds.

    Units: us, ms, s, m (minutes), h, d (24 h), w. Raises `ValueError` for anything else and for less than 0.

    >>> microseconds("1m30s")
    90000000
    """
    if isinstance(duration, timedelta):
        whole = duration // timedelta(microseconds=1)
        if whole < 0:
            raise ValueError(f"a duration can't be negative: {duration}")
        return whole
    text = duration.strip().replace(" ", "") if isinstance(duration, str) else ""
    parts = _PART.findall(text)
    if not parts or "".join(n + unit for n, unit in parts) != text:
        raise ValueError(f'{duration!r} is not a duration; write one like "10s", "1m30s" or "250ms"')
    return sum(int(n) * _UNITS[unit] for n, unit in parts)


def duration_text(length_us: int) -> str:
    """Microseconds in the largest units that say them exactly.

    >>> duration_text(90_000_000), duration_text(0)
    ('1m30s', '0s')
    """
    text = ""
    for unit in reversed(_UNITS):
        count, length_us = divmod(length_us, _UNITS[unit])
        text += f"{count}{unit}" if count else ""
    return text or "0s"
