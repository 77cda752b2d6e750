"""What may change under a group's state: only what no row, window or sketch of it was made by."""

from __future__ import annotations

from typing import Any

import polars as pl

from streamgauge.operators.definition.aggregates import count, distinct, top_k
from streamgauge.operators.definition.lasting_state import goes_on
from streamgauge.operators.definition.stream import Stream

SCHEMA: dict[str, Any] = {"at": pl.Datetime("us"), "user": pl.String, "n": pl.Int64, "tag": pl.String}


def rows(**columns: Any) -> Stream:
    schema = {name: kind for name, kind in {**SCHEMA, **columns}.items() if kind is not None}
    return Stream.from_schema(schema, time="at")


def grouped(stream: Stream, delay: str = "5s", k: int = 3, lg_k: int = 12, every: str = "1m") -> Stream:
    aggregates = {"posts": count(), "users": distinct("user", lg_k=lg_k), "tags": top_k("tag", k=k)}
    return stream.group_by("user").tumbling(every, delay=delay).agg(**aggregates)


def filtered(stream: Stream) -> Stream:
    return stream.filter(pl.col("tag") != "x").with_columns(more=pl.col("user") + "-")


GOES_ON: dict[str, tuple[Stream, Stream]] = {
    "another question": (grouped(rows()), grouped(rows(), k=9)),
    "another delay": (grouped(rows()), grouped(rows(), delay="1h")),
    "a column added": (grouped(filtered(rows())), grouped(filtered(rows(lang=pl.String)))),
    "an unused column removed": (grouped(filtered(rows())), grouped(filtered(rows(n=None)))),
    "an unused column of another type": (grouped(rows()), grouped(rows(n=pl.Float64))),
}
REFUSED: dict[str, tuple[Stream, Stream]] = {
    "another window": (grouped(rows()), grouped(rows(), every="2m")),
    "another sketch": (grouped(rows()), grouped(rows(), lg_k=11)),
    "a step added": (grouped(rows()), grouped(filtered(rows()))),
    "a type that a key has": (grouped(rows()), grouped(rows(user=pl.Int64))),
    "a type that a sketch has": (grouped(rows()), grouped(rows(tag=pl.Int64))),
    "a type that an expression reads": (
        grouped(rows().filter(pl.col("n") > 5)),
        grouped(rows(n=pl.Float64).filter(pl.col("n") > 5)),
    ),
    "an expression that may mean any column": (
        grouped(rows().filter(pl.any_horizontal(pl.all().is_not_null()))),
        grouped(rows(lang=pl.String).filter(pl.any_horizontal(pl.all().is_not_null()))),
    ),
    "a selector": (
        grouped(rows().filter(pl.sum_horizontal(pl.selectors.numeric()) > 5)),
        grouped(rows(m=pl.Int64).filter(pl.sum_horizontal(pl.selectors.numeric()) > 5)),
    ),
    "a column that a step makes": (grouped(filtered(rows())), grouped(filtered(rows(more=pl.String)))),
    "ids of whole streams": (
        grouped(rows().deduplicate("user", within="1h")),
        grouped(rows(lang=pl.String).deduplicate("user", within="1h")),
    ),
}


def test_only_what_touches_no_state_goes_on() -> None:
    wrong = []
    for cases, expected in ((GOES_ON, True), (REFUSED, False)):
        for name, (one, two) in cases.items():
            for before, after in ((one, two), (two, one)):
                if goes_on(before.definition(), after.definition()) is not expected:
                    wrong.append(name)
    assert not wrong
