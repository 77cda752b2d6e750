"""``streamgauge top``: the most frequent values of all windows, no row counted twice."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

from streamgauge.operators.definition.aggregates import (
    top_k,
)
from streamgauge.operators.table.schema import table_schema, write_parquet
from streamgauge.operators.table.windows import TableWindows
from streamgauge.sketches.frequent_items import FrequentItemsGroups

from ..command import Ran


def test_top_counts_no_row_twice_where_windows_overlap(ran: Ran, tmp_path: Path) -> None:
    windows = TableWindows.of(2 * 60_000_000, 60_000_000)
    schema = table_schema({}, {"tags": top_k("tag").typed(pa.string())}, windows)
    minutes = [f"2026-06-01T12:0{minute}:00+00:00" for minute in range(6)]
    edges = [pa.array(minutes[a : a + 4]).cast(schema.field(0).type) for a in (0, 2)]
    groups = FrequentItemsGroups(4)
    groups.update([0, 0, 1, 2, 3], ["a", "b", "b", "a", "a"])
    write_parquet(pa.Table.from_arrays([*edges, groups.to_arrow()], schema=schema), tmp_path / "t.parquet")
    assert "choose a span that is a multiple of 2m" in ran("top", tmp_path, code=1)
    items = json.loads(ran("top", tmp_path, "--to", "2026-06-01T12:04", "--json"))
    assert [(item["item"], item["estimate"]) for item in items] == [("a", 2), ("b", 1)]


def test_top_merges_all_windows(ran: Ran, tables: Path) -> None:
    items = json.loads(ran("top", tables, "-k", "3", "--json"))
    assert items[0] == {"item": "all", "estimate": 2400, "lower": 2400, "upper": 2400}
    assert [item["estimate"] for item in items[1:]] == [240, 240]
    assert "2,400" in ran("top", tables / "first.parquet") or "1,200" in ran("top", tables / "first.parquet")
