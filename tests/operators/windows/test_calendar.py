"""Windows on a calendar, against plain Python by `zoneinfo`."""

from __future__ import annotations

import itertools
import random
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from streamgauge.operators.windows.calendar import CalendarWindows, calendar_windows
from streamgauge.operators.windows.kinds import table_windows, window_of
from streamgauge.operators.windows.window import EARLIEST

from ...oracles.local_days import OnCalendar, first_shown

ZONES = (
    "Europe/Helsinki",
    "America/New_York",
    "America/Sao_Paulo",
    "America/St_Johns",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Asia/Kathmandu",
    "America/Juneau",
    "Pacific/Kwajalein",
    "Africa/Casablanca",
    "UTC",
)
KINDS = (
    ("tumbling", "1d", None, None),
    ("tumbling", "8h", None, None),
    ("tumbling", "1h", None, None),
    ("tumbling", "2d", None, "-3h"),
    ("tumbling", "1w", None, None),
    ("tumbling", "2w", None, "1d"),
    ("tumbling", "1mo", None, None),
    ("tumbling", "1q", None, "1mo"),
    ("tumbling", "1y", None, "3mo"),
    ("tumbling", "1mo", None, "-5h"),
    ("hopping", "2d", "1d", None),
    ("hopping", "3d", "2d", "5h"),
    ("hopping", "1d", "6h", None),
    ("hopping", "4w", "1w", None),
    ("hopping", "3mo", "1mo", None),
    ("hopping", "3mo", "2mo", "1mo"),
    ("cumulate", "1d", "6h", None),
    ("cumulate", "1w", "1d", None),
    ("cumulate", "1mo", "1d", None),
    ("cumulate", "1y", "1mo", "-1mo"),
    ("cumulate", "1mo", "12h", "2d"),
)
CHANGES = {
    "America/Juneau": ["1867-10-18T23:00"],
    "Pacific/Apia": ["2011-12-30T10:00"],
    "Pacific/Kwajalein": ["1969-09-30T13:00", "1993-08-21T12:00"],
    "America/Sao_Paulo": ["2017-10-15T03:00", "2018-02-18T02:00"],
    "Australia/Lord_Howe": ["2026-04-04T15:00", "2026-10-03T15:30"],
    "America/St_Johns": ["2010-11-07T02:31", "2010-03-14T03:31"],
}
"""Where clocks did something odd; times near these are drawn as well."""


def us(time: datetime) -> int:
    return (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def drawn(zone: str, count: int, seed: int) -> list[datetime]:
    generator = random.Random(f"{zone} {seed}")
    odd = CHANGES.get(zone, ["2026-03-29T01:00", "2026-10-25T01:00"])
    times = [
        datetime(1800, 1, 1, tzinfo=UTC) + generator.random() * timedelta(days=365 * 400)
        for _ in range(count)
    ]
    for text in odd:
        at = datetime.fromisoformat(text).replace(tzinfo=UTC)
        times += [at + (generator.random() - 0.5) * timedelta(days=6) for _ in range(count)]
        times += [at, at - timedelta(microseconds=1), at + timedelta(hours=1)]
    return times


@pytest.mark.parametrize("zone", ZONES)
def test_windows_are_those_of_plain_python(zone: str) -> None:
    times = drawn(zone, 2, 7)
    for given in KINDS:
        _check(given, zone, times)


def _check(given: tuple, zone: str, times: list[datetime]) -> None:
    window = calendar_windows(*given, zone)
    assert window is not None
    oracle = OnCalendar(*given, zone)
    numbers = np.array([us(time) for time in times])
    panes, firsts, lasts = window.pane_starts(numbers), window.first_ends(numbers), window.last_ends(numbers)
    for time, number, pane, first, last in zip(times, numbers.tolist(), panes.tolist(), firsts, lasts):
        expected = [(us(start), us(end)) for start, end in oracle.windows_of(time)]
        assert [(window.start_of(end), end) for end in window.ends_of(number)] == expected, (given, time)
        assert (first, last) == (expected[0][1], expected[-1][1])
        assert pane <= number and window.pane_start(pane) == pane == window.pane_start(number)
        assert list(window.ends_of(pane)) == [end for _, end in expected]
        for reached in (first - 1, first, last, last + 1):
            ended = max((end for _, end in expected if end <= reached), default=EARLIEST)
            assert window.ended_by(number, reached) == ended
        assert last - number <= window.longest_us
        starts, ends = np.array(expected).T
        assert window.of_table().contain(starts, ends)
        assert not window.of_table().contain(starts, ends + 1)
    assert window_of(window.definition()) == window
    assert table_windows(window.of_table().definition()) == window.of_table()


def test_a_day_lasts_as_long_as_clocks_say() -> None:
    def lengths(zone: str, first: str, days: int) -> list[float]:
        window = calendar_windows("tumbling", "1d", zone=zone)
        assert window is not None
        at = us(first_shown(datetime.fromisoformat(first), zone))
        ends = [at]
        for _ in range(days):
            ends.append(window.first_end(ends[-1]))
        return [(end - start) / 3.6e9 for start, end in itertools.pairwise(ends)]

    assert lengths("Europe/Helsinki", "2026-03-28", 3) == [24, 23, 24]
    assert lengths("Europe/Helsinki", "2026-10-24", 3) == [24, 25, 24]
    assert lengths("Australia/Lord_Howe", "2026-04-05", 1) == [24.5]
    assert lengths("Australia/Lord_Howe", "2026-10-04", 1) == [23.5]
    assert lengths("Pacific/Apia", "2011-12-29", 2) == [24, 24]  # there was no 30th
    assert lengths("America/Sao_Paulo", "2017-10-14", 2) == [24, 23]  # the 15th began at 01:00
    assert lengths("America/Juneau", "1867-10-17", 3)[2] == pytest.approx(48, abs=1)


@pytest.mark.parametrize(
    ("given", "offset"),
    [
        (("tumbling", "1d", None, "-2h"), "22h"),
        (("tumbling", "1d", None, "49h"), "1h"),
        (("hopping", "1d", "1h", "-10m"), "50m"),
        (("cumulate", "1d", "1h", "-1h"), "23h"),
        (("tumbling", "1q", None, "-4mo"), "2mo"),
        (("tumbling", "1q", None, "1mo-2d"), "1mo-2d"),
        (("tumbling", "1d", None, timedelta(hours=-1)), "23h"),
    ],
    ids=str,
)
def test_offsets_are_less_than_the_length_that_windows_begin_after(given: tuple, offset: str) -> None:
    window = calendar_windows(*given)
    assert window is not None and window.definition()["offset"] == offset
    assert window_of(window.definition()) == window


@pytest.mark.parametrize(
    "given", [("tumbling", "1d", None, "24h"), ("hopping", "1d", "1h", "-3h"), ("cumulate", "1w", "1d", None)]
)
def test_windows_without_a_calendar_are_the_fixed_ones(given: tuple) -> None:
    assert calendar_windows(*given) is None


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (("tumbling", "1d", None, None, "Helsinki"), 'zone must be the name of a time zone, such as "Europe'),
        (("tumbling", "1d", None, None, "localtime"), "zone must be the name"),
        (("tumbling", "1d", None, None, 2), "zone must be the name"),
        (("tumbling", "1mo2d"), "must be of months, such as 1mo"),
        (("tumbling", "0mo"), "must be longer than '0mo'"),
        (("tumbling", "1d", None, "1mo"), "only windows of months have an offset in months"),
        (("tumbling", "1mo", None, "40d"), "shorter than 28d beside whole months"),
        (("hopping", "1mo", "1d"), "have no fixed number of steps; choose both in months"),
        (("hopping", "1mo", "2mo"), "leave rows out"),
        (("cumulate", "1mo", "1w"), "aren't a multiple of the step 1w"),
        (("cumulate", "1w", "1mo"), "aren't a multiple of the step"),
        (("cumulate", "1y", "5mo"), "aren't a multiple of the step 5mo"),
        (("cumulate", "1mo", "1s"), "2,629,746 panes of 1s"),
    ],
    ids=str,
)
def test_what_gives_no_windows_is_refused(given: tuple, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        calendar_windows(*given)


@pytest.mark.parametrize("zone", [None, "Asia/Kolkata", "America/New_York"])
def test_the_ends_of_time(zone: str | None) -> None:
    window = calendar_windows("tumbling", "1mo", None, None, zone)
    assert isinstance(window, CalendarWindows)
    low, high = us(datetime(1, 2, 1, tzinfo=UTC)), us(datetime(9999, 12, 31, 23, 59, tzinfo=UTC))
    for time in (low, high, us(datetime(1, 1, 1, tzinfo=UTC))):
        start, end = window.pane_start(time), window.first_end(time)
        assert start <= time < end <= start + 32 * 86_400_000_000
    both = np.array([low, high, 0])
    assert window.pane_starts(both).tolist() == [window.pane_start(time) for time in both.tolist()]
