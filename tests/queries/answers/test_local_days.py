"""Questions about windows of a zone: lengths are its clock's, and so are the windows to merge into."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import streamgauge as sg
from streamgauge.operators.windows.durations import calendar_length
from streamgauge.operators.windows.local_clock import before
from streamgauge.queries.answers.answers import answer
from streamgauge.queries.question.question import BadQuestion, question
from streamgauge.queries.views.file_table import FileTable
from streamgauge.queries.views.merge_cache import MergeCache

from ...cases import each

ZONE = "Europe/Helsinki"


@cache
def hours(zone: str | None, folder: Any) -> tuple[Any, FileTable]:
    """An event every half hour from 2026-03-20 to 2026-04-12, in windows of an hour."""
    at = pl.datetime_range(
        pl.datetime(2026, 3, 20), pl.datetime(2026, 4, 12), "30m", time_zone="UTC", eager=True
    )
    stream = sg.Stream.from_schema({"at": pl.Datetime("us", "UTC")}, time="at").tumbling("1h", zone=zone)
    table = stream.agg(n=sg.count()).over(pl.DataFrame({"at": at}))
    path = folder / f"{zone}.parquet".replace("/", "-")
    table.write(path)
    return table, FileTable("hours", path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Any:
    return tmp_path_factory.mktemp("hours")


@pytest.mark.slow
@each(
    ("zone", "given", "wanted"),
    [
        (None, {"every": "1d"}, {"every": "1d"}),
        (None, {"every": "1d", "zone": ZONE}, {"every": "1d", "zone": ZONE}),
        (None, {"every": "1d", "offset": "-1h"}, {"every": "1d", "offset": "-1h"}),
        (None, {"every": "1mo"}, {"every": "1mo"}),
        (ZONE, {"every": "1d"}, {"every": "1d", "zone": ZONE}),
        (ZONE, {"every": "1w"}, {"every": "1w", "zone": ZONE}),
        (ZONE, {"every": "1mo", "offset": "6h"}, {"every": "1mo", "offset": "6h", "zone": ZONE}),
        (ZONE, {"every": "1d", "zone": "UTC"}, {"every": "1d", "zone": "UTC"}),
    ],
)
def test_windows_are_merged_by_the_clock_of_their_zone(
    folder: Any, zone: str | None, given: dict[str, str], wanted: dict[str, str]
) -> None:
    table, view = hours(zone, folder)
    requested = question("rows", {name: [value] for name, value in given.items()})
    rows = answer(view.view(), requested, MergeCache()).rows.select("window_start", "window_end", "n")
    assert rows.equals(table.rollup(**wanted).answers())
    # `rollup` takes the table's zone as well.
    assert rows.equals(table.rollup(**given).answers())


@each(
    ("last", "first"),
    [
        ("1d", "2026-04-11T01:00"),  # the newest window ends at 01:00, which is 04:00 in Helsinki
        ("24h", "2026-04-11T01:00"),
        ("2w", "2026-03-29T01:00"),
        ("15d", "2026-03-28T02:00"),
        ("1mo", "2026-03-20T00:00"),
    ],
)
def test_the_last_days_are_those_of_the_zone(folder: Any, last: str, first: str) -> None:
    _, view = hours(ZONE, folder)
    result = answer(view.view(), question("rows", {"last": [last]}), MergeCache()).rows
    assert result["window_start"].min() == datetime.fromisoformat(first).replace(tzinfo=UTC)


@each(
    ("given", "reason"),
    [
        (
            {"zone": ZONE},
            "offset and zone place the windows of every=, which is missing; set it, as in every=1d",
        ),
        ({"every": "span", "offset": "1h"}, "offset and zone place the windows of every="),
        ({"every": "1d", "zone": "Helsinki"}, "every: zone must be the name of a time zone"),
        ({"every": "1d", "offset": "1mo"}, "every: only windows of months have an offset in months"),
        ({"every": "1d", "offset": "soon"}, "'soon' is not a duration"),
        ({"every": "1mo1d"}, "every: a window must be of months"),
        ({"every": "1d", "zone": "Asia/Kathmandu"}, None),
    ],
)
def test_what_gives_no_windows_is_refused(folder: Any, given: dict[str, str], reason: str | None) -> None:
    _, view = hours(ZONE, folder)
    with pytest.raises(BadQuestion, match=reason or "don't fit into windows of 1d in Asia/Kathmandu"):
        answer(view.view(), question("rows", {name: [value] for name, value in given.items()}), MergeCache())


@each(
    ("end", "length", "zone", "start"),
    [
        ("2026-03-29T21:00", "1d", ZONE, "2026-03-28T22:00"),
        ("2026-10-25T22:00", "1d", ZONE, "2026-10-24T21:00"),
        ("2026-10-25T22:00", "1d", None, "2026-10-24T22:00"),
        ("2026-03-31T00:00", "1mo", None, "2026-02-28T00:00"),
        ("2024-03-31T12:30", "1mo", None, "2024-02-29T12:30"),
        ("2026-05-31T23:59", "1q", None, "2026-02-28T23:59"),
        ("2026-01-01T00:00", "1y", None, "2025-01-01T00:00"),
        ("2026-03-31T21:00", "1mo", ZONE, "2026-02-28T22:00"),
        ("2011-12-30T10:00", "1d", "Pacific/Apia", "2011-12-30T10:00"),
    ],
)
def test_a_length_before_a_time(end: str, length: str, zone: str | None, start: str) -> None:
    def us(text: str) -> int:
        return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1_000_000

    assert before(us(end), calendar_length(length), zone) == us(start)


def test_a_rollup_of_no_rows_knows_its_zone(folder: Any) -> None:
    table, _ = hours(ZONE, folder)
    empty = sg.SketchTable(pa.table(table).slice(0, 0))
    assert empty.rollup("1d").schema.metadata == table.rollup("1d", zone=ZONE).schema.metadata
