"""`streamgauge query TABLE describe`: what a stored table holds."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

from streamgauge import SketchTable
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.table.schema import table_schema
from streamgauge.operators.windows.table import AllTime

from ..command import Ran


def test_describe_prints_what_a_table_holds(ran: Ran, tables: Path) -> None:
    about = json.loads(ran("query", tables, "describe", "--json"))
    assert (about["rows"], about["windows"], about["keys"]) == (8, 4, ["lang"])
    assert about["first"] == "2026-06-01T12:00:00+00:00"
    assert [requested["aggregate"] for requested in about["aggregates"]] == [
        "count",
        "distinct",
        "top_k",
        "quantiles",
        "sample",
    ]
    text = ran("query", tables / "second.arrow", "describe")
    assert "4 rows in 2 windows, from 2026-06-01 13:00 to 2026-06-01 14:00 UTC" in text
    assert "lg_k 12" in text


def test_a_table_without_windows_is_shown_and_asked_without_any(ran: Ran, tmp_path: Path) -> None:
    schema = table_schema({"lang": pa.string()}, {"posts": count()}, AllTime())
    bare = pa.schema([schema.field("lang"), schema.field("posts")], metadata=schema.metadata)
    file = tmp_path / "posts.parquet"
    SketchTable(pa.table([["de", "en"], [20, 40]], schema=bare)).write(file)
    about = json.loads(ran("query", file, "describe", "--json"))
    assert (about["rows"], about["windows"], about["first"], about["last"]) == (2, 0, None, None)
    assert "2 rows, no windows\n" in ran("query", file, "describe")
    text = ran("query", file)
    assert (
        "window" not in text.replace("no windows", "") and "1678" not in text and "no windows, final" in text
    )
    rows = [json.loads(line) for line in ran("query", file, "--json", "--order=-posts").splitlines()]
    assert rows == [{"lang": "en", "posts": 40}, {"lang": "de", "posts": 20}]
    (row,) = (json.loads(line) for line in ran("query", file, "--json", "--by", "none").splitlines())
    assert row == {"posts": 60}


def test_what_is_no_stored_table_and_what_describe_does_not_take_is_refused(ran: Ran, tables: Path) -> None:
    said = ran("query", tables, "describe", "--by", "lang", "--last", "1h", code=1)
    assert "describe takes no options except --json, got last, by" in said
    assert "describe is for stored tables" in ran("query", "http://127.0.0.1:1/tables/t", "describe", code=1)
