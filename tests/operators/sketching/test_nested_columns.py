"""Columns that a stream's own steps make, over whose gaps other values lie: each row keeps its own."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import streamgauge as sg
from streamgauge.operators.definition.aggregates import distinct
from streamgauge.operators.sketching.panes import Panes
from streamgauge.operators.table.schema import table_schema
from streamgauge.operators.windows.tumbling import Tumbling

USERS = ["ann", "bob", "cat"]
POST = pl.Struct({"tags": pl.List(pl.String), "stars": pl.List(pl.Int64)})
ROWS: list[dict[str, Any]] = [
    {
        "user": USERS[i % 3],
        "tags": None if i % 11 == 3 else [f"{USERS[i % 3]}{j}" for j in range(i % 4)],
        "stars": [i, i + 1][: i % 4],
        "weight": 1 + i % 5,
        "shown": i % 5 != 2,
        "at": f"2026-01-01T00:00:{i % 60:02}",
    }
    for i in range(60)
]
POSTS = sg.Stream.from_schema(
    {
        "user": pl.String,
        "tags": pl.List(pl.String),
        "stars": pl.List(pl.Int64),
        "weight": pl.Int64,
        "shown": pl.Boolean,
        "at": pl.String,
    },
    time="at",
)
SHOWN = {
    "when then": POSTS.with_columns(tags=pl.when("shown").then("tags"), stars=pl.when("shown").then("stars")),
    "null structs": POSTS.with_columns(post=pl.when("shown").then(pl.struct("tags", "stars"))).with_columns(
        tags=pl.col("post").struct.field("tags"), stars=pl.col("post").struct.field("stars")
    ),
}
AGGREGATES = {
    "tags": sg.top_k("tags"),
    "users": sg.distinct_set("tags"),
    "kept": sg.sample("tags"),
    "n": sg.count("tags"),
    "seen": sg.membership("tags"),
    "ranks": sg.kll_quantiles("stars"),
    "sizes": sg.quantiles("stars"),
    "total": sg.sum("stars"),
    "largest": sg.max("stars"),
    "heavy": sg.weighted_sample("tags", weight="weight"),
    "decayed": sg.decayed_count("tags"),
    "recent": sg.sliding_distinct("tags"),
}


def naive() -> dict[str, dict[str, list[Any]]]:
    """Each user's tags and stars, in plain Python."""
    of_user: dict[str, dict[str, list[Any]]] = defaultdict(lambda: {"tags": [], "stars": []})
    for row in ROWS:
        for name, values in of_user[row["user"]].items():
            values.extend((row[name] or []) if row["shown"] else [])
    return of_user


@pytest.mark.parametrize("name", SHOWN)
def test_each_user_has_their_own_values(name: str) -> None:
    tester = sg.StreamTester(SHOWN[name].group_by("user").tumbling("1m").agg(**AGGREGATES))
    tester.feed(ROWS[:7])
    tester.feed(ROWS[7:])
    tester.finish()
    right = naive()
    answers = {row["user"]: row for row in tester.windows().to_dicts()}
    assert answers.keys() == right.keys()
    for user, row in answers.items():
        tags, stars = Counter(right[user]["tags"]), sorted(right[user]["stars"])
        assert {one["item"]: one["estimate"] for one in row["tags"]} == tags, user
        assert row["users"]["estimate"] == len(tags), user
        assert round(row["recent"]["estimate"]) == len(tags), user
        assert (row["n"], row["total"], row["largest"]) == (tags.total(), sum(stars), stars[-1]), user
        assert row["kept"]["n"] == tags.total() and Counter(row["kept"]["values"]) == tags, user
        assert row["heavy"]["n"] == tags.total() and Counter(row["heavy"]["values"]) == tags, user
        assert row["ranks"]["n"] == row["sizes"]["n"] == len(stars), user
        assert row["decayed"]["n"] == tags.total() and round(row["seen"]["count"]) == len(tags), user


def test_an_error_names_the_column() -> None:
    panes = Panes(table_schema({}, {"users": distinct("user").typed(pa.int64())}, None), Tumbling.every("1m"))
    with pytest.raises(TypeError, match=r"^column 'user': HLL: holds whole numbers"):
        panes.add(pl.DataFrame({"user": ["ann"]}), np.array([1]))
