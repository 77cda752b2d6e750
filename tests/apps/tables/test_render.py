"""Answers of every type as text and as JSON."""

from __future__ import annotations

import json
import math
from datetime import date, datetime, timedelta
from pathlib import Path

import polars as pl

from streamgauge.operators.definition.aggregates import kll_quantiles, max, sample
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.sketching.sketcher import Sketcher
from streamgauge.operators.table.schema import write_parquet
from streamgauge.operators.watermarks.partition_watermark import PartitionTime

from ..command import Ran


def test_answers_of_every_type_are_shown(ran: Ran, tmp_path: Path) -> None:
    day, moment = date(2026, 6, 1), datetime(2026, 6, 1, 12, 30)
    columns = {"day": day, "key": b"\x01\xff", "span": timedelta(seconds=90), "x": math.inf, "at": moment}
    rows = pl.DataFrame([columns], schema_overrides={"at": pl.Datetime("us"), "span": pl.Duration("us")})
    stream = Stream.from_schema(rows.schema, time="at").group_by("key").tumbling("30m")
    aggregates = {name: max(name) for name in columns} | {"days": kll_quantiles("day"), "some": sample("key")}
    sketcher = Sketcher(stream.agg(**{f"{name}_": one for name, one in aggregates.items()}))
    sketcher.add(rows, PartitionTime())
    write_parquet(sketcher.drain(), tmp_path / "types.parquet")
    text = ran("query", tmp_path)
    for shown in ("2026-06-01", "01ff", "0:01:30", "inf", "2026-06-01 12:30"):
        assert shown in text
    row = json.loads(ran("query", tmp_path, "--json"))
    assert (row["day_"], row["key"], row["x_"], row["at_"]) == (
        "2026-06-01",
        "01ff",
        "Infinity",
        "2026-06-01T12:30:00",
    )
    assert row["some_"]["values"] == ["01ff"]
