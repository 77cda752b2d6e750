"""No value ends a stream: every family takes whatever its column's type can hold, and merges it."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import polars as pl
import pytest

from streamgauge.operators.definition.aggregate import aggregate
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.families import FAMILIES, MOMENT
from streamgauge.operators.sketching.sketcher import Sketcher
from streamgauge.operators.table.query import query
from streamgauge.operators.table.sketch_table import merge
from streamgauge.operators.watermarks.partition_watermark import PartitionTime

from ..cases import each

TOP = 2**63 - 1


COLUMNS: dict[str, tuple[Any, list[Any]]] = {
    "int64": (pl.Int64, [TOP, TOP, -TOP - 1, -TOP - 1, 0, None]),
    "uint64": (pl.UInt64, [2**64 - 1, 2**64 - 1, 2**63, 0, 1, None]),
    "double": (
        pl.Float64,
        [1.7e308, 1.7e308, float("inf"), float("-inf"), float("nan"), 5e-324, -0.0, None],
    ),
    "float": (pl.Float32, [3e38, 3e38, float("nan"), float("inf"), None]),
    "string": (pl.String, ["", "a" * 2_000_000, "\x00", "é", None]),
    "binary": (pl.Binary, [b"", b"\xff" * 100_000, None]),
    "bool": (pl.Boolean, [True, False, None]),
    "date": (pl.Date, [date(1, 1, 1), date(9999, 12, 31), None]),
    "time": (pl.Datetime("us"), [datetime(1, 1, 1), datetime(9999, 12, 31), None]),
    "list": (pl.List(pl.Int64), [[TOP, TOP], [], None, [None]]),
    "null": (pl.Int64, [None, None]),
}


@pytest.mark.slow
@each("name", FAMILIES)
def test_no_value_ends_a_stream(name: str) -> None:
    tried = 0
    for kind, values in COLUMNS.values():
        frame = pl.DataFrame(
            {
                "at": [datetime(2026, 1, 1)] * len(values),
                "x": pl.Series(values, dtype=kind),
                "weight": [float("nan"), *[1.0] * (len(values) - 1)],
                "key": ["k"] * len(values),
            }
        )
        inputs = {one: "weight" if one in ("weight", "value") else "key" for one in FAMILIES[name].inputs}
        inputs = {one: column for one, column in inputs.items() if one not in MOMENT}
        source = Stream.from_schema(frame.schema, time="at").tumbling("1m")
        try:
            stream = source.agg(answer=aggregate(name, "x", **inputs))
        except TypeError:
            continue  # refused when it is queried, as it should be
        tables = []
        for salt in range(3):
            sketcher = Sketcher(stream, salt=salt)
            assert sketcher.add(frame, PartitionTime()).counted == len(values)
            tables.append(sketcher.drain())
        assert query(merge([merge(tables[:2]), tables[2]])).height == 1
        tried += 1
    assert tried


def test_sums_are_the_same_however_far_beyond_int64() -> None:
    frame = pl.DataFrame({"at": [datetime(2026, 1, 1)] * 2, "x": [TOP, TOP]})
    stream = Stream.from_schema(frame.schema, time="at").tumbling("1m").agg(total=aggregate("sum", "x"))
    sketcher = Sketcher(stream)
    sketcher.add(frame, PartitionTime())
    table = sketcher.drain()
    assert query(table)["total"].to_list() == [2 * TOP]
    assert query(merge([table, table, table]))["total"].to_list() == [6 * TOP]
