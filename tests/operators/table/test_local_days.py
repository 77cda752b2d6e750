"""Tables rolled up into days, weeks and months of a zone, and those that don't fit."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

import streamgauge as sg

ROWS = sg.Stream.from_schema({"at": pl.Datetime("us")}, time="at")
HELSINKI = "Europe/Helsinki"
AT = [datetime(2026, 3, 20) + timedelta(minutes=7 * n) for n in range(10_000)]
FRAME = pl.DataFrame({"at": AT}, schema={"at": pl.Datetime("us")})


def table(kind: str, *lengths: str, **more: Any) -> sg.SketchTable:
    return getattr(ROWS, kind)(*lengths, **more).agg(n=sg.count()).over(FRAME)


def counts(of: sg.SketchTable) -> list[tuple[Any, ...]]:
    return of.answers().rows()


@pytest.mark.parametrize(
    ("stored", "every", "place"),
    [
        (("tumbling", "1h", {}), "1d", {"zone": HELSINKI}),
        (("tumbling", "15m", {}), "1d", {"zone": "Asia/Kathmandu", "offset": "-30m"}),
        (("tumbling", "30m", {}), "1d", {"zone": "Australia/Lord_Howe"}),
        (("tumbling", "1d", {"zone": HELSINKI}), "1mo", {"zone": HELSINKI}),
        (("tumbling", "1d", {"zone": HELSINKI}), "1w", {"zone": HELSINKI}),
        (("tumbling", "1d", {}), "1mo", {}),
        (("tumbling", "1h", {}), "1d", {"offset": "5h"}),
        (("hopping", "2h", {"every": "1h"}), "1d", {"zone": "Asia/Tokyo"}),
        (("hopping", "12h", {"every": "6h", "zone": HELSINKI}), "1d", {"zone": HELSINKI}),
        (("hopping", "2d", {"every": "1d", "zone": HELSINKI}), "2d", {"zone": HELSINKI}),
    ],
    ids=str,
)
def test_larger_windows_of_a_zone_are_those_of_the_rows(stored: tuple, every: str, place: dict) -> None:
    kind, length, more = stored
    rolled = table(kind, length, **more).rollup(every, **place)
    assert counts(rolled) == counts(table("tumbling", every, **place))
    assert rolled.schema == table("tumbling", every, **place).schema


def test_cumulating_windows_count_once_their_period_is_over() -> None:
    months = table("cumulate", "1d", every="1h", zone=HELSINKI).rollup("1mo", zone=HELSINKI)
    assert counts(months) == counts(table("tumbling", "1mo", zone=HELSINKI))


@pytest.mark.parametrize(
    ("stored", "every", "place", "reason"),
    [
        (("tumbling", "1h", {}), "1d", {"zone": "Asia/Kolkata"}, "windows of 1h don't fit into windows of 1d "
         "in Asia/Kolkata: the one from 2026-03-20 18:00:00 to 2026-03-20 19:00:00 .UTC. would lie in"),
        (("tumbling", "1d", {"zone": HELSINKI}), "1mo", {"zone": "UTC"}, "in Europe/Helsinki don't fit into"),
        (("tumbling", "1d", {"zone": HELSINKI}), "1mo", {"zone": "Asia/Tokyo"}, "fit into windows of 1mo"),
        (("tumbling", "1d", {"zone": HELSINKI}), "1d", {"zone": "UTC"}, "windows of 1d in UTC: the one"),
        (("tumbling", "1w", {"zone": "UTC"}), "1mo", {"zone": "UTC"}, "windows of 1w in UTC don't fit"),
        (("hopping", "3h", {"every": "1h"}), "1d", {"zone": HELSINKI}, "count twice or not at all"),
        (("hopping", "2d", {"every": "1d", "zone": HELSINKI}), "1d", {"zone": HELSINKI}, "count twice"),
        (("tumbling", "1h", {}), "1d", {"zone": "Helsinki"}, "merge: zone must be the name of a time zone"),
        (("tumbling", "1h", {}), None, {"zone": HELSINKI}, "offset= and zone= place the windows of every="),
        (("tumbling", "1h", {}), "0mo", {}, "is not a length for windows"),
    ],
    ids=lambda one: str(one)[:30],
)  # fmt: skip
def test_windows_that_do_not_fit_are_refused(stored: tuple, every: Any, place: dict, reason: str) -> None:
    kind, length, more = stored
    with pytest.raises(ValueError, match=reason):
        table(kind, length, **more).rollup(every, **place)


def test_a_table_says_which_windows_it_has(tmp_path: Any) -> None:
    days = table("tumbling", "1d", zone=HELSINKI, offset="6h")
    assert "windows of 1d from 6h on in Europe/Helsinki" in repr(days)
    for name in ("days.parquet", "days.arrow"):
        days.write(tmp_path / name)
        assert sg.read_table(tmp_path / name) == days
    assert days.answers()["window_start"][0] == datetime(2026, 3, 19, 4, tzinfo=UTC)
