"""Answers of a table of sketches beside the exact ones."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import streamgauge as sg
from streamgauge.operators.definition.aggregate import aggregate
from streamgauge.operators.table.query import query
from streamgauge.operators.table.sketch_table import merge

from .posts import frame, table


def test_answers_lie_beside_the_exact_ones() -> None:
    rows = frame(3)
    answer = query(merge(table(rows), by=[], every="1h")).row(0, named=True)
    assert answer["posts"] == 4_000
    assert answer["m"] == pytest.approx(rows["x"].mean())
    assert answer["var"] == pytest.approx(rows["x"].var())
    assert answer["users"]["lower"] <= rows["user"].n_unique() <= answer["users"]["upper"]
    for quantile in answer["spread"]["quantiles"]:
        assert quantile["lower"] <= rows["x"].quantile(quantile["q"]) <= quantile["upper"]
    last_one = rows.filter(pl.col("at") == pl.col("at").max())["user"].max()
    assert answer["end"] == last_one


def test_columns_stored_under_the_old_names_are_read_and_merged_with_new_ones() -> None:
    """What was `req` and `tdigest` is `tail_quantiles` and `tdigest_quantiles`."""
    schema = {"ms": pl.Float64, "at": pl.String}
    stream = sg.Stream.from_schema(schema, time="at").tumbling("1m").agg(
        tail=sg.tail_quantiles("ms"), digest=sg.tdigest_quantiles("ms")
    )  # fmt: skip
    tester = sg.StreamTester(stream)
    tester.feed([{"ms": float(n), "at": "2026-01-01T00:00:01"} for n in range(2_000)])
    new = pa.table(tester.finish().tables())
    old = new
    for place, field in enumerate(new.schema):
        text = (field.metadata or {}).get(b"streamgauge", b"")
        renamed = text.replace(b'"tail_quantiles"', b'"req"').replace(b'"tdigest_quantiles"', b'"tdigest"')
        if renamed != text:
            old = old.set_column(place, field.with_metadata({b"streamgauge": renamed}), new[field.name])
    assert old.schema.field("tail").metadata[b"streamgauge"].count(b'"req"') == 1
    (row,) = query(merge([old, new])).to_dicts()
    assert row["tail"]["n"] == row["digest"]["n"] == 4_000
    p99 = {name: row[name]["quantiles"][5] for name in ("tail", "digest")}
    assert [one["q"] for one in p99.values()] == [0.99] * 2
    assert p99["tail"]["lower"] <= 1_979 <= p99["tail"]["upper"]
    assert abs(p99["digest"]["value"] - 1_979) < 5 and p99["digest"]["lower"] is None


SAMPLES: dict[str, dict[str, Any]] = {
    "sample": {},
    "bernoulli_sample": {"p": 1.0},
    "hash_sample": {"key": "n", "p": 1.0},
    "weighted_sample": {"weight": "n"},
    "stratified_sample": {"key": "key"},
}


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pl.UInt64, [3, 2**64 - 1, 2**63]),
        (pl.Float64, [math.nan, 2.5, 1.0]),
        (pl.Struct({"a": pl.UInt64, "b": pl.String}), [{"a": 3, "b": None}, {"a": 2**63, "b": "x"}]),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", SAMPLES)
def test_the_first_rows_do_not_decide_what_the_others_may_hold(
    name: str, kind: pl.DataType, values: list[Any]
) -> None:
    """The first group's value fits int64 or is null; those of the others neither become null nor fail."""
    n = len(values)
    rows = pl.DataFrame(
        {
            "n": range(n),
            "at": [datetime(2026, 1, 1)] * n,
            "key": pl.Series([1, *[2**63] * (n - 1)], dtype=pl.UInt64),
            "x": pl.Series(values, dtype=kind),
        }
    )
    rows = rows.with_columns(n=pl.col("n") + 1)
    stream = sg.Stream.from_schema(dict(rows.schema), time="at").group_by("n").tumbling("1m")
    tester = sg.StreamTester(stream.agg(rows=aggregate(name, "x", **SAMPLES[name])))
    tester.feed(rows)
    answers = tester.finish().windows().sort("n")["rows"].to_list()
    if name == "stratified_sample":
        assert [answer["strata"][0]["key"] for answer in answers] == rows["key"].to_list()
        answers = [answer["strata"][0] for answer in answers]
    assert [answer["values"] for answer in answers] == [[None if v != v else v] for v in values]


def test_frequent_times_are_answered_as_what_they_are() -> None:
    """Also before 1970, merged, and of groups without any."""
    kinds = {
        "day": pl.Date,
        "clock": pl.Time,
        "moment": pl.Datetime("ns", "Asia/Kolkata"),
        "long": pl.Duration("ms"),
    }
    columns = {"at": pl.Datetime("us"), "key": pl.String, **kinds}
    rows = [
        {
            "day": date(1969, 12, 31 - n // 2),
            "clock": time(10, n // 2, 0, 5),
            "moment": datetime(2026, 1, 1, 5, n // 2, tzinfo=UTC),
            "long": timedelta(seconds=n // 2),
            "key": "some",
        }
        for n in range(3)
    ]
    rows.append({"key": "none"})
    stream = sg.Stream.from_schema(columns, time="at").group_by("key").tumbling("1m")
    tester = sg.StreamTester(stream.agg(**{name: sg.top_k(name) for name in kinds}))
    tester.feed([{"at": datetime(2026, 1, 1), **row} for row in rows])
    stored = tester.finish().tables()
    for part, times in ((stored, 1), (merge([stored, stored]), 2)):
        none, some = query(part).sort("key").to_dicts()
        for name in kinds:
            expected = [(rows[0][name], 2 * times), (rows[2][name], times)]
            assert none[name] == []
            assert [(item["item"], item["estimate"]) for item in some[name]] == expected
