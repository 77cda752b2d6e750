"""Windows on a calendar over frames: those of plain Python, however the frames are cut."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

import streamgauge as sg

from ...oracles.local_days import OnCalendar

ROWS = sg.Stream.from_schema({"at": pl.Datetime("us"), "side": pl.Int64}, time="at").group_by("side")
CASES = (
    (OnCalendar("tumbling", "1d", None, "6h", "Europe/Helsinki"), "2026-03-27", 5),
    (OnCalendar("tumbling", "1w", None, None, "America/New_York"), "1883-11-01", 40),
    (OnCalendar("tumbling", "1mo", None, None, "Pacific/Apia"), "2011-10-05", 150),
    (OnCalendar("hopping", "2d", "1d", None, "Pacific/Apia"), "2011-12-26", 8),
    (OnCalendar("hopping", "1d", "6h", "-1h", "Australia/Lord_Howe"), "2026-04-03", 4),
    (OnCalendar("cumulate", "1d", "6h", None, "America/Sao_Paulo"), "2017-10-13", 5),
)


@pytest.mark.parametrize(("windows", "first", "days"), CASES, ids=[str(at) for at in range(len(CASES))])
def test_windows_over_frames_are_those_of_plain_python(windows: OnCalendar, first: str, days: int) -> None:
    generator = random.Random(first)
    begin = datetime.fromisoformat(first)
    times = [begin + generator.random() * timedelta(days=days) for _ in range(120)]
    rows = [(time.replace(microsecond=0), generator.randrange(2)) for time in times]
    counted: Counter[tuple[datetime, datetime, int]] = Counter()
    for time, side in rows:
        counted.update((*window, side) for window in windows.windows_of(time.replace(tzinfo=UTC)))
    cuts = [0, *sorted(generator.sample(range(1, 120), 3)), 120]
    frame = pl.DataFrame(rows, schema={"at": pl.Datetime("us"), "side": pl.Int64}, orient="row")
    frames = [frame[low:high] for low, high in itertools.pairwise(cuts)]
    given = {"every": windows.every} if windows.every else {}
    windowed = getattr(ROWS, windows.kind)(windows.size, offset=windows.offset, zone=windows.zone, **given)
    table = windowed.agg(n=sg.count()).over(frames, threads=2)
    assert {(start, end, side): n for start, end, side, n in table.answers().iter_rows()} == counted
