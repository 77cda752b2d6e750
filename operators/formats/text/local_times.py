"""Times of local clocks as points in time, over the two nights on which they are put forward and back."""

from __future__ import annotations

from typing import Any

from ....sketches.core.lazy import pl

_AHEAD_US = 300_000_000
"""How far a clock may be ahead of the message's own timestamp."""
_HOUR_US = 3_600_000_000


def in_zone(naive: pl.Series, zone: str, sent_us: pl.Series | None = None) -> pl.Series:
    """Times of a zone's clocks, without a zone of their own, as times in UTC.

    An hour comes twice when summer time ends. It is the second one if that isn't past the time at which the
    message was sent (`sent_us`, microseconds since 1970, null where it isn't known), and the first one
    otherwise. The hour that is left out when summer time begins is read as by a clock that was not put
    forward.

    >>> from datetime import datetime
    >>> autumn, spring = datetime(2026, 10, 25, 2, 30), datetime(2026, 3, 29, 2, 30)
    >>> sent = [None, datetime(2026, 10, 25, 0, 31), datetime(2026, 10, 25, 1, 31), None]
    >>> sent_us = pl.Series(sent).dt.epoch("us")
    >>> times = in_zone(pl.Series([autumn] * 3 + [spring]), "Europe/Berlin", sent_us)
    >>> times.dt.to_string("%m-%d %H:%M").to_list()
    ['10-25 00:30', '10-25 00:30', '10-25 01:30', '03-29 01:30']
    """
    first, second = (_zoned(naive, zone, which) for which in ("earliest", "latest"))
    if sent_us is not None:
        first = first.zip_with((second.to_physical() > sent_us + _AHEAD_US).fill_null(True), second)
    missing = first.is_null() & naive.is_not_null()
    if missing.any():
        shift = pl.duration(microseconds=_HOUR_US)
        before = _zoned(pl.select(pl.lit(naive) - shift).to_series(), zone, "earliest")
        first = first.zip_with(~missing, pl.select(pl.lit(before) + shift).to_series())
    return first


def _zoned(naive: pl.Series, zone: str, which: Any) -> pl.Series:
    return naive.dt.replace_time_zone(zone, ambiguous=which, non_existent="null").dt.convert_time_zone("UTC")


def both_hours(times: pl.Series, zone: str) -> tuple[pl.Series, pl.Series]:
    """The first and the second time at which a zone's clocks show what they show at times in UTC.

    Both are the time itself but for the two hours in which clocks show the same.

    >>> from datetime import UTC, datetime
    >>> first, second = both_hours(pl.Series([datetime(2026, 10, 25, 1, 5, tzinfo=UTC)]), "Europe/Berlin")
    >>> str(first[0]), str(second[0])
    ('2026-10-25 00:05:00+00:00', '2026-10-25 01:05:00+00:00')
    """
    naive = times.dt.convert_time_zone(zone).dt.replace_time_zone(None)
    return _zoned(naive, zone, "earliest"), _zoned(naive, zone, "latest")
