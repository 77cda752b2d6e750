"""``streamgauge query``: every window and group with its bounds, merged as requested."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import polars as pl
import pyarrow as pa

from streamgauge import Stream
from streamgauge.operators.definition.aggregates import frequency, membership, top_k
from streamgauge.operators.sketching.sketcher import Sketcher
from streamgauge.operators.table.schema import table_schema, write_parquet
from streamgauge.operators.watermarks.partition_watermark import PartitionTime
from streamgauge.operators.windows.hopping import regular_windows
from streamgauge.sketches.frequent_items import FrequentItemsGroups

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


def test_query_counts_no_row_twice_where_windows_overlap(ran: Ran, tmp_path: Path) -> None:
    windows = regular_windows(2 * 60_000_000, 60_000_000)
    schema = table_schema({}, {"tags": top_k("tag").typed(pa.string())}, windows)
    minutes = [f"2026-06-01T12:0{minute}:00+00:00" for minute in range(6)]
    edges = [pa.array(minutes[a : a + 4]).cast(schema.field(0).type) for a in (0, 2)]
    groups = FrequentItemsGroups(4)
    groups.update([0, 0, 1, 2, 3], ["a", "b", "b", "a", "a"])
    write_parquet(pa.Table.from_arrays([*edges, groups.to_arrow()], schema=schema), tmp_path / "t.parquet")
    assert "choose a span that is a multiple of 2m" in ran("query", tmp_path, "top-k", code=1)
    lines = ran("query", tmp_path, "top-k", "--to", "2026-06-01T12:04", "--json").splitlines()
    items = [json.loads(line) for line in lines]
    assert [(item["item"], item["estimate"]) for item in items] == [("a", 2), ("b", 1)]


def test_query_takes_an_item_as_the_column_holds_it(ran: Ran, tmp_path: Path) -> None:
    days = [date(2026, 1, day) for day in (1, 2, 3)]
    columns = {"share": [3.0, 4.5, 7.0], "day": days, "code": ["3", "4", "5"]}
    schema = pl.DataFrame({"at": days, **columns}).with_columns(pl.col("at").cast(pl.Datetime("us")))
    requested = {name: membership(name, capacity=100) for name in columns} | {"often": frequency("day")}
    sketcher = Sketcher(Stream.from_schema(dict(schema.schema), time="at").tumbling("100d").agg(**requested))
    sketcher.add(schema, PartitionTime())
    write_parquet(sketcher.drain(), tmp_path / "t.parquet")

    def query(kind: str, column: str, *items: str, code: int = 0) -> str:
        options = [part for item in items for part in ("--item", item)]
        return ran("query", tmp_path, kind, "--column", column, *options, "--json", code=code)

    for column, items in (
        ("share", ("3", "3.0", "4.5", "7")),
        ("day", ("2026-01-02", "2026-01-02T00:00", "2026-01-02T01:00+01:00")),
        ("code", ("3", "4")),
    ):
        answers = [json.loads(line) for line in query("membership", column, *items).splitlines()]
        assert [row["found"] for row in answers] == [True] * len(items), column
    (line,) = query("frequency", "often", "2026-01-03").splitlines()
    assert json.loads(line)["estimate"] == 1 and json.loads(line)["item"] == "2026-01-03"
    assert "holds points in time, got '3'" in query("frequency", "often", "3", code=1)
    assert "holds floats, got '2026-01-02'" in query("membership", "share", "2026-01-02", code=1)


def test_query_asks_of_groups_by_their_keys(ran: Ran, tables: Path) -> None:
    arguments = ("rows", "--every", "span", "--order=-posts", "--columns", "posts", "--json")
    rows = [json.loads(line) for line in ran("query", tables, *arguments).splitlines()]
    assert [(row["lang"], row["posts"]) for row in rows] == [("en", 1600), ("de", 800)]
    rows = [json.loads(line) for line in ran("query", tables, *arguments, "--key", "lang=de").splitlines()]
    assert [(row["lang"], row["posts"]) for row in rows] == [("de", 800)]
    assert "write it as --key lang=en" in ran("query", tables, "--key", "lang", code=1)
    assert 'did you mean "column"' not in ran("query", tables, "top-k", "--limit", "3", code=1)
    assert "there are rows, distinct" in ran("query", tables, "top", code=1)
