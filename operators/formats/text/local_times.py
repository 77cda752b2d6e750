"""Local times as timestamps, including the two nights on which clocks are put forward and back."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from ....sketches.core.lazy import pl

_AHEAD_US = 300_000_000
"""How far a clock may be ahead of the message's own timestamp."""
_HOUR_US = 3_600_000_000


def in_zone(
    naive: pl.Series, zone: str, sent_us: pl.Series | None = None, hosts: pl.Series | None = None
) -> pl.Series:
    """Times of a zone's clocks, without a zone of their own, as times in UTC.

    An hour occurs twice when summer time ends. It is the second one if that isn't later than the time at
    which the message was sent (`sent_us`, microseconds since 1970, null if unknown), and the first one
    otherwise. The hour that is skipped when summer time begins is read as by a clock that was not put
    forward. `zone` may name other zones for some of the `hosts` (`zones_of`).

    >>> from datetime import datetime
    >>> autumn, spring = datetime(2026, 10, 25, 2, 30), datetime(2026, 3, 29, 2, 30)
    >>> sent = [None, datetime(2026, 10, 25, 0, 31), datetime(2026, 10, 25, 1, 31), None]
    >>> sent_us = pl.Series(sent).dt.epoch("us")
    >>> times = in_zone(pl.Series([autumn] * 3 + [spring]), "Europe/Berlin", sent_us)
    >>> times.dt.to_string("%m-%d %H:%M").to_list()
    ['10-25 00:30', '10-25 00:30', '10-25 01:30', '03-29 01:30']
    """
    usual, by_host = zones_of(zone)
    times = _in_one_zone(naive, usual, sent_us)
    for expression, own in by_host:
        if hosts is None:
            break
        is_one = hosts.str.contains(expression).fill_null(False)
        if is_one.any():
            times = times.zip_with(~is_one, _in_one_zone(naive, own, sent_us))
    return times


@lru_cache(maxsize=64)
def zones_of(text: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The default zone, and patterns of hosts with their own zones; the last that matches a host counts.

    Raises `ValueError` for anything but a zone, such as ``Europe/Berlin``, or a list of one and of
    ``HOST=ZONE``, in which ``*`` stands for any characters of a host's name.

    >>> zones_of("Europe/Berlin, ny-*=America/New_York")
    ('Europe/Berlin', (('^ny\\\\-.*$', 'America/New_York'),))
    """
    usual, by_host = "UTC", []
    for part in text.split(",") if isinstance(text, str) else [text]:
        host, is_host, zone = part.rpartition("=") if isinstance(part, str) else ("", "", part)
        zone = zone.strip() if isinstance(zone, str) else zone
        try:
            pl.Series([], dtype=pl.Datetime("us")).dt.replace_time_zone(zone)
        except (pl.exceptions.PolarsError, TypeError):
            raise ValueError(f'{zone!r} is not a time zone; write one such as "Europe/Berlin"') from None
        if is_host:
            by_host.append((f"^{re.escape(host.strip()).replace(chr(92) + '*', '.*')}$", zone))
        else:
            usual = zone
    return usual, tuple(by_host)


def _in_one_zone(naive: pl.Series, zone: str, sent_us: pl.Series | None) -> pl.Series:
    sent = None if sent_us is None else pl.lit(sent_us)
    return pl.select(expression_in_zone(pl.lit(naive), zone, sent)).to_series()


def expression_in_zone(naive: pl.Expr, zone: str, sent_us: pl.Expr | None = None) -> pl.Expr:
    """Like `in_zone`, for columns in one zone."""
    first, second = (_zoned(naive, zone, which) for which in ("earliest", "latest"))
    if sent_us is not None:
        is_first = (second.dt.epoch("us") > sent_us + _AHEAD_US).fill_null(True)
        first = pl.when(is_first).then(first).otherwise(second)
    shift = pl.duration(microseconds=_HOUR_US)
    return pl.coalesce(first, _zoned(naive - shift, zone, "earliest") + shift)


def _zoned(naive: Any, zone: str, which: Any) -> Any:
    return naive.dt.replace_time_zone(zone, ambiguous=which, non_existent="null").dt.convert_time_zone("UTC")


def both_hours(times: pl.Series, zone: str, hosts: pl.Series | None = None) -> tuple[pl.Series, pl.Series]:
    """The first and the second time at which a zone's clocks show the same as at these times in UTC.

    Both are the time itself except in the two hours in which clocks show the same. `zone` may name other
    zones for some of the `hosts`, as in `in_zone`.

    >>> from datetime import UTC, datetime
    >>> first, second = both_hours(pl.Series([datetime(2026, 10, 25, 1, 5, tzinfo=UTC)]), "Europe/Berlin")
    >>> str(first[0]), str(second[0])
    ('2026-10-25 00:05:00+00:00', '2026-10-25 01:05:00+00:00')
    """
    usual, by_host = zones_of(zone)
    first, second = _both_in(times, usual)
    for expression, own in by_host:
        if hosts is None:
            break
        is_one = hosts.str.contains(expression).fill_null(False)
        if is_one.any():
            one, other = _both_in(times, own)
            first, second = first.zip_with(~is_one, one), second.zip_with(~is_one, other)
    return first, second


def _both_in(times: pl.Series, zone: str) -> tuple[pl.Series, pl.Series]:
    naive = times.dt.convert_time_zone(zone).dt.replace_time_zone(None)
    return _zoned(naive, zone, "earliest"), _zoned(naive, zone, "latest")
