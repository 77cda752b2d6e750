"""Set expressions over tables of sketches, against Python's own sets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from streamgauge.operators.definition.aggregates import count, distinct_set
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.sketching.sketcher import Sketcher
from streamgauge.operators.table.sets import compare
from streamgauge.operators.watermarks.partition_watermark import PartitionTime
from streamgauge.sketches.core.protocol import SketchError

ROWS = Stream.from_schema(
    {"at": pl.Datetime("us"), "lang": pl.String, "seen": pl.Int64, "bought": pl.Int64}, time="at"
)
STREAM = (
    ROWS.group_by("lang")
    .tumbling("1m", delay="1h")
    .agg(
        visitors=distinct_set("seen", lg_k=10),
        buyers=distinct_set("bought", lg_k=9),
        rows=count(),
    )
)
START = datetime(2026, 1, 1)


def frame(seed: int, day: int = 0, rows: int = 4000, most: int = 400) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    seen = rng.integers(0, most, rows)
    return pl.DataFrame(
        {
            "at": [START + timedelta(days=day, seconds=int(s)) for s in rng.integers(0, 180, rows)],
            "lang": rng.choice(["en", "de", None], rows).tolist(),
            "seen": seen,
            "bought": [int(v) if v % 3 == 0 else None for v in seen],
        }
    )


def sketched(rows: pl.DataFrame) -> pa.Table:
    sketcher = Sketcher(STREAM)
    sketcher.add(rows, PartitionTime())
    return sketcher.drain()


def expected(one: set[Any], other: set[Any]) -> tuple[float, ...]:
    return len(one | other), len(one & other), len(one - other), len(one & other) / max(len(one | other), 1)


def estimates(row: dict[str, Any]) -> tuple[float, ...]:
    return tuple(row[name]["estimate"] for name in ("union", "intersection", "difference", "jaccard"))


def test_two_columns_of_each_group() -> None:
    rows = frame(1)
    result = compare(sketched(rows), "visitors", "buyers")
    assert result.columns[:3] == ["window_start", "window_end", "lang"] and result.height == 9
    for row in result.iter_rows(named=True):
        mine = rows.filter(
            pl.col("at").dt.truncate("1m") == row["window_start"].replace(tzinfo=None),
            pl.col("lang").eq_missing(pl.lit(row["lang"])),
        )
        sets = set(mine["seen"]), set(mine["bought"]) - {None}
        assert estimates(row) == pytest.approx(expected(*sets))
        assert row["union"]["lower"] == row["union"]["upper"] == len(sets[0] | sets[1])


def test_one_column_of_two_tables_by_key_and_over_all() -> None:
    today, yesterday = frame(1), frame(2, day=-1).filter(pl.col("lang").ne_missing("de"))
    tables = sketched(today), sketched(yesterday)
    by_lang = compare(tables[0], "visitors", "visitors", tables[1], by=["lang"])
    assert sorted(by_lang["lang"].to_list(), key=str) == [None, "de", "en"]
    for row in by_lang.iter_rows(named=True):
        own = [
            set(rows.filter(pl.col("lang").eq_missing(pl.lit(row["lang"])))["seen"])
            for rows in (today, yesterday)
        ]
        assert estimates(row) == pytest.approx(expected(*own))
    (over_all,) = compare(tables[0], "visitors", "visitors", tables[1], by=[]).iter_rows(named=True)
    assert estimates(over_all) == pytest.approx(expected(set(today["seen"]), set(yesterday["seen"])))
    empty = tables[1].slice(0, 0)
    (alone,) = compare(tables[0], "visitors", "buyers", empty, by=[]).iter_rows(named=True)
    assert estimates(alone) == (len(set(today["seen"])), 0, len(set(today["seen"])), 0)


def test_bounds_hold_beyond_the_exact() -> None:
    inside = []
    for seed in range(30):
        rows = [frame(2 * seed + day, day, 6000, 20_000) for day in (0, 1)]
        (result,) = compare(*_named(sketched(rows[0])), sketched(rows[1]), by=[]).iter_rows(named=True)
        true = expected(set(rows[0]["seen"]), set(rows[1]["seen"]))
        for name, value in zip(("union", "intersection", "difference", "jaccard"), true):
            inside.append(result[name]["lower"] <= value <= result[name]["upper"])
            assert result[name]["lower"] <= result[name]["estimate"] <= result[name]["upper"]
    assert np.mean(inside) > 0.954 - 3.5 * np.sqrt(0.046 / 30)


def _named(table: pa.Table) -> tuple[pa.Table, str, str]:
    return table, "visitors", "visitors"


def test_wrong_columns_are_named() -> None:
    table = sketched(frame(1, rows=100))
    with pytest.raises(SketchError, match="'rows' is a count; name a distinct_set"):
        compare(table, "visitors", "rows")
    with pytest.raises(SketchError, match="'nobody' is not an aggregate"):
        compare(table, "nobody", "buyers")
    for by in (["nothing"], ["window_start"]):
        with pytest.raises(ValueError, match="by= takes"):
            compare(table, "visitors", "buyers", by=by)


def test_windows_are_in_utc() -> None:
    result = compare(sketched(frame(1, rows=50)), "visitors", "buyers", by=["window_start", "window_end"])
    assert result["window_start"][0] == START.replace(tzinfo=UTC)
