"""Times whose windows would begin before the year 1 or end after 9999 are refused: nobody could show them."""

from __future__ import annotations

from typing import Any

import polars as pl

import streamgauge as sg

from ...cases import each

# .NET's DateTime.MinValue and MaxValue, in seconds.
LOWEST, HIGHEST = -62_135_596_800, 253_402_300_799
SOURCE = sg.Stream.from_schema({"at": pl.Int64}, time=pl.from_epoch("at"))


@each(
    ("window", "given", "more"),
    [
        ("tumbling", "1d", {}),
        ("tumbling", "1w", {}),
        ("tumbling", "1d", {"offset": "-1h"}),
        ("tumbling", "1d", {"zone": "Asia/Tokyo"}),
        ("tumbling", "1mo", {"zone": "America/New_York"}),
        ("hopping", "1h", {"every": "10m"}),
        ("cumulate", "1d", {"every": "1h"}),
        ("session", "1h", {}),
        ("count_window", 1, {}),
    ],
)
def test_every_window_can_be_shown(window: str, given: Any, more: dict[str, str]) -> None:
    stream = getattr(SOURCE.group_by("at"), window)(given, **more).agg(n=sg.count())
    days = 400 * 86_400
    for time in (LOWEST, HIGHEST, LOWEST + days, HIGHEST - days):
        tester = sg.StreamTester(stream)
        tester.feed([{"at": time}])
        tester.finish()
        account, rows = tester.account, tester.tables().answers().rows()
        assert account.counted + account.dead_lettered == 1
        assert bool(rows) == bool(account.counted), "a row that is counted has a window that Python can show"
        assert time != LOWEST + days or account.counted
