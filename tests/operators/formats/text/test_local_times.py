"""Local times over the nights on which clocks are put forward and back, against Python's own zones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import polars as pl

from streamgauge.operators.formats.text.local_times import both_hours, in_zone

NIGHTS = [
    ("Europe/Rome", datetime(2026, 10, 24, 23, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 11, 1, 4, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 4, 4, 13, tzinfo=UTC)),
    ("Europe/Rome", datetime(2026, 3, 28, 23, tzinfo=UTC)),
    ("Asia/Kolkata", datetime(2026, 10, 24, 23, tzinfo=UTC)),
]


def test_a_message_without_delay_shows_whether_it_is_the_first_hour() -> None:
    wrong = []
    for zone, begin in NIGHTS:
        for delay in (timedelta(), timedelta(minutes=20), -timedelta(minutes=2)):
            times = [begin + timedelta(minutes=7 * n) for n in range(40)]
            clocks = pl.Series([at.astimezone(ZoneInfo(zone)).replace(tzinfo=None) for at in times])
            sent = pl.Series([at + delay for at in times]).dt.epoch("us")
            wrong += [(zone, delay, at) for at, back in zip(times, in_zone(clocks, zone, sent)) if at != back]
    assert not wrong


def test_a_clock_that_was_not_put_forward_goes_on_through_the_missing_hour() -> None:
    shown = [datetime(2026, 3, 29, 1, 55) + timedelta(minutes=10 * n) for n in range(8)]
    times = in_zone(pl.Series(shown), "Europe/Rome")
    # From 3:00 on the clock may have been put forward since.
    wanted = "00:55 01:05 01:15 01:25 01:35 01:45 01:55 01:05"
    assert " ".join(f"{at:%H:%M}" for at in times) == wanted


def test_no_time_is_no_time_and_zones_without_summer_time_have_one_hour() -> None:
    times = pl.Series([datetime(2026, 10, 25, 1, 30, tzinfo=UTC), None])
    for zone, apart in (("Europe/Rome", timedelta(hours=1)), ("Asia/Kolkata", timedelta())):
        first, second = both_hours(times, zone)
        assert second[0] - first[0] == apart and first[1] is None and second[1] is None
    assert in_zone(pl.Series([None], dtype=pl.Datetime("us")), "Europe/Rome").to_list() == [None]
