"""Aggregates of the whole registry in one stream, with inputs named after columns, bad ones among them."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from decimal import Decimal

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from streamgauge.operators.definition import aggregates as ask
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.families import FAMILIES, MOMENT
from streamgauge.operators.sketching.sketcher import Sketcher
from streamgauge.operators.table.query import query
from streamgauge.operators.table.schema import from_ipc, to_ipc
from streamgauge.operators.table.sketch_table import merge
from streamgauge.operators.testing import StreamTester
from streamgauge.operators.watermarks.partition_watermark import PartitionTime

COLUMNS = {"at": pl.Datetime("us"), "user": pl.String, "city": pl.String, "amount": pl.Float64, "n": pl.Int64}
ROWS = Stream.from_schema(COLUMNS, time="at")
INPUTS = {"weight": "amount", "value": "amount", "key": "city"}


def aggregate(name: str) -> ask.Aggregate:
    line = FAMILIES[name]
    return ask.aggregate(name, "n", **{given: INPUTS[given] for given in line.inputs if given not in MOMENT})


EVERYTHING = {name: aggregate(name) for name in FAMILIES if name != "count"}
STREAM = ROWS.tumbling("1m", delay="1h").agg(rows=ask.count(), **EVERYTHING)


def frame(seed: int, rows: int = 400) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    amounts = [None, -1.0, float("nan"), float("inf"), 0.0, *rng.lognormal(0, 1, rows - 5).tolist()]
    start = datetime(2026, 1, 1)
    return pl.DataFrame(
        {
            "at": [start + timedelta(seconds=int(s)) for s in rng.integers(0, 60, rows)],
            "user": [f"user {i % 90}" for i in range(rows)],
            "city": rng.choice(["Rome", "Oslo", None], rows).tolist(),
            "amount": amounts,
            "n": rng.integers(0, 50, rows),
        },
        schema=COLUMNS,
    )


def sketched(rows: pl.DataFrame, stream: Stream = STREAM, salt: int = 0) -> pa.Table:
    sketcher = Sketcher(stream, salt=salt)
    account = sketcher.add(rows, PartitionTime())
    assert account.counted == rows.height, "a bad weight costs no row"
    return sketcher.drain()


def test_every_family_of_the_registry_is_sketched_merged_and_asked() -> None:
    tables = [from_ipc(to_ipc(sketched(frame(seed), salt=seed))) for seed in range(3)]
    (row,) = query(merge(tables)).iter_rows(named=True)
    assert row["rows"] == 1200 and set(EVERYTHING) < set(row)
    assert all(row[name] is not None for name in EVERYTHING)
    assert row["weighted_sample"]["n"] == row["var_opt"]["n"] == 1200 - 5 * 3
    total = sum(x for seed in range(3) for x in frame(seed)["amount"].to_list()[5:])
    assert row["tuple"]["totals"][0]["estimate"] == pytest.approx(total - 3)
    assert row["var_opt"]["weight"] == pytest.approx(total)
    assert row["cpc"]["lower"] <= 50 <= row["cpc"]["upper"]
    assert row["decayed_count"]["n"] == 1200 > row["decayed_count"]["estimate"] > 1180
    strata = {stratum["key"]: stratum["n"] for stratum in row["stratified_sample"]["strata"]}
    assert strata == Counter(city for seed in range(3) for city in frame(seed)["city"])


def test_inputs_must_be_columns_of_the_right_type() -> None:
    with pytest.raises(ValueError, match="aggregates 'nothing'"):
        ROWS.tumbling("1m").agg(x=ask.weighted_sample("n", weight="nothing"))
    with pytest.raises(TypeError, match="must name a column of numbers"):
        ROWS.tumbling("1m").agg(x=ask.weighted_sample("n", weight="city"))
    with pytest.raises(TypeError, match="weight= must be the name of a column"):
        ask.aggregate("weighted_sample", "n")
    assert ask.Aggregate.from_json(EVERYTHING["tuple"].to_json()) == EVERYTHING["tuple"]


def test_a_list_shares_its_rows_input() -> None:
    rows = Stream.from_schema(
        {"at": pl.Datetime("us"), "tags": pl.List(pl.String), "w": pl.Float64}, time="at"
    )
    stream = rows.tumbling("1m").agg(tags=ask.weighted_sample("tags", weight="w", k=10))
    tags = [["a", "b"], ["c"], None, ["d", None]]
    result = pl.DataFrame(
        {"at": [datetime(2026, 1, 1)] * 4, "tags": tags, "w": [1.0, -5.0, 2.0, 3.0]},
        schema_overrides={"at": pl.Datetime("us")},
    )
    (sample,) = query(sketched(result, stream))["tags"]
    assert sorted(sample["values"]) == ["a", "b", "d"] and sample["n"] == 3


def test_what_a_family_has_no_number_for_is_refused_before_the_first_row() -> None:
    odd = Stream.from_schema({"at": pl.Datetime("us"), "price": pl.Decimal(12, 2)}, time="at").tumbling("1m")
    for name in ("distinct", "distinct_set", "membership", "sliding_distinct", "top_k", "frequency"):
        with pytest.raises(TypeError, match="cast it"):
            Sketcher(odd.agg(answer=ask.aggregate(name, "price")))


def test_decimals_are_numbers_to_what_adds_up_or_orders() -> None:
    prices = pl.Series("price", ["1.50", "2.25", None]).cast(pl.Decimal(12, 2))
    at = [datetime(2026, 1, 1)] * 3
    source = Stream.from_schema({"at": pl.Datetime("us"), "price": pl.Decimal(12, 2)}, time="at")
    stream = source.tumbling("1m").agg(
        total=ask.sum("price"),
        mean=ask.mean("price"),
        spread=ask.quantiles("price"),
        ranks=ask.kll_quantiles("price"),
        heavy=ask.weighted_sample("price", weight="price"),
        low=ask.min("price"),
        latest=ask.last("price"),
    )
    sketcher = Sketcher(stream)
    sketcher.add(pl.DataFrame({"at": at, "price": prices}), PartitionTime())
    answers = query(sketcher.drain()).to_dicts()[0]
    assert (answers["total"], answers["mean"]) == (3.75, 1.875)
    assert answers["low"] == Decimal("1.50") and answers["latest"] == Decimal("2.25")
    assert answers["ranks"]["n"] == answers["spread"]["n"] == 2


def test_a_date_beyond_all_reach_ends_no_stream() -> None:
    source = Stream.from_schema({"at": pl.Datetime("us"), "day": pl.Date}, time="at")
    days = pl.Series("day", [1, 2, 2**31 - 1], dtype=pl.Int32).cast(pl.Date)
    sketcher = Sketcher(source.tumbling("1m").agg(days=ask.distinct("day"), rows=ask.count("day")))
    sketcher.add(pl.DataFrame({"at": [datetime(2026, 1, 1)] * 3, "day": days}), PartitionTime())
    answers = query(sketcher.drain()).to_dicts()[0]
    assert (round(answers["days"]["estimate"]), answers["rows"]) == (2, 2)


def test_times_out_of_reach_are_left_out_of_lists_as_they_are_of_columns() -> None:
    """Microseconds in int64 reach 292,000 years; a broken producer's times go further."""
    rows = Stream.from_schema({"at": pl.Datetime("us"), "ms": pl.List(pl.Int64)}, time="at").with_columns(
        days=pl.col("ms").cast(pl.List(pl.Datetime("ms"))),
        spans=pl.col("ms").cast(pl.List(pl.Duration("ms"))),
        first=pl.col("ms").list.first().cast(pl.Duration("ms")),
        pairs=pl.col("ms").list.head(2).list.to_array(2).cast(pl.Array(pl.Datetime("ms"), 2)),
    )
    names = ("days", "spans", "first", "pairs")
    stream = rows.tumbling("1m").agg(**{name: ask.distinct(name) for name in names})
    tester = StreamTester(stream)
    start, far = datetime(2026, 1, 1), 1 << 60
    tester.feed([{"at": start, "ms": some} for some in ([1, far], [far, 2], [3, 4], [None, -far])])
    (answer,) = tester.finish().windows().to_dicts()
    counted = {name: round(answer[name]["estimate"]) for name in names}
    assert counted == {"days": 4, "spans": 4, "first": 2, "pairs": 4}


def test_columns_of_types_that_arrow_lacks_are_refused_by_name() -> None:
    """Of objects Polars would give Arrow the addresses, which were sampled and counted."""
    for kind in (pl.Object, pl.Int128, pl.UInt128, pl.List(pl.Int128), pl.Struct({"a": pl.Int128})):
        rows = Stream.from_schema({"at": pl.Datetime("us"), "x": kind}, time="at").tumbling("1m")
        with pytest.raises(TypeError, match=r"column 'x' is .*, for which Arrow has no type; cast it"):
            rows.agg(kept=ask.sample("x"))
