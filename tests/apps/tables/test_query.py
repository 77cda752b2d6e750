"""``streamgauge query``: every window and group with its bounds, merged as asked."""

from __future__ import annotations

import json
from pathlib import Path

from ..command import Ran


def test_query_shows_every_window_and_group_with_bounds(ran: Ran, tables: Path) -> None:
    text = ran("query", tables)
    assert text.count("2026-06-01 12:00 – 12:30") == 2 and text.count(" en ") == 4
    assert text.count("all 400") == 4 and text.count("all 200") == 4
    assert "400 (397 to 403)" in text and "p50 296 (294 to 304)" in text


def test_query_merges_into_coarser_windows_and_fewer_keys(ran: Ran, tables: Path) -> None:
    rows = [json.loads(line) for line in ran("query", tables, "--every", "2h", "--json").splitlines()]
    assert [row["posts"] for row in rows] == [800, 1600]
    by_hour = [json.loads(line) for line in ran("query", tables, "--every", "1h", "--json").splitlines()]
    assert [(row["lang"], row["posts"]) for row in by_hour] == [("de", 400), ("en", 800)] * 2
    for place, row in enumerate(by_hour):
        hour, foreign = divmod(place, 2)
        users = {n % 700 for n in range(1200 * hour, 1200 * hour + 1200) if (n % 3 > 0) == bool(foreign)}
        assert row["users"]["lower"] <= len(users) <= row["users"]["upper"]
        assert row["tags"][0] == {
            "item": "all",
            **dict.fromkeys(("estimate", "lower", "upper"), row["posts"]),
        }


def test_query_takes_a_span_of_time(ran: Ran, tables: Path) -> None:
    arguments = ("--from", "2026-06-01T12:30", "--to", "2026-06-01T15:00+02:00", "--json")
    rows = [json.loads(line) for line in ran("query", tables, *arguments).splitlines()]
    assert {row["window_start"][:16] for row in rows} == {"2026-06-01T12:30"}
