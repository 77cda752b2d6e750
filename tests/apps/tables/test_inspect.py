"""``streamgauge inspect``: what a stored table holds."""

from __future__ import annotations

import json
from pathlib import Path

from ..command import Ran


def test_inspect_tells_what_a_table_holds(ran: Ran, tables: Path) -> None:
    about = json.loads(ran("inspect", tables, "--json"))
    assert (about["rows"], about["windows"], about["keys"]) == (8, 4, ["lang"])
    assert about["first"] == "2026-06-01T12:00:00+00:00"
    assert [asked["aggregate"] for asked in about["aggregates"]] == [
        "count",
        "distinct",
        "top_k",
        "quantiles",
        "sample",
    ]
    text = ran("inspect", tables / "second.arrow")
    assert "4 rows in 2 windows, from 2026-06-01 13:00 to 2026-06-01 14:00 UTC" in text
    assert "lg_k 12" in text
