"""A stream beside a table: the same as a dictionary gives, row by row."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import polars as pl
import pytest

from streamgauge.operators.definition.aggregates import count, sum
from streamgauge.operators.definition.definition_diff import differences
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.definition.tables import LookupTable
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.testing import StreamTester

from ...cases import each

AT = datetime(2026, 1, 1, tzinfo=UTC)
POSTS = {"author": pl.String, "n": pl.Int64, "at": pl.Datetime("us", "UTC")}
VALUE = {"country": pl.String, "n": pl.Int64}
USERS = LookupTable.from_kafka("users", value=json(VALUE))
CITIES = LookupTable.from_kafka("cities", value=json({"city": pl.String}), key=pl.Int32)


def posts() -> Stream:
    return Stream.from_schema(POSTS, time="at")


def row(author: str | None, n: int) -> dict[str, Any]:
    return {"author": author, "n": n, "at": AT}


@pytest.mark.slow
@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("seed", range(4))
def test_each_row_meets_the_table_as_it_is_then(how: Any, seed: int) -> None:
    random = np.random.default_rng(seed)
    stream = posts().filter(pl.col("n") != 5).join(USERS, on="author", how=how)
    stream = stream.filter(pl.col("country").is_null() | (pl.col("country") != "c3"))
    aggregates = (
        stream.group_by("country").tumbling("1m").agg(rows=count(), ours=sum("n"), theirs=sum("n_right"))
    )
    tester = StreamTester(aggregates, partitions=2)
    table, wanted, account = dict[str, tuple[str | None, int]](), dict[Any, list[int]](), Account()
    for _ in range(60):
        updates: dict[str, dict[str, Any] | None] = {}
        for user in random.integers(0, 30, int(random.integers(0, 6))).tolist():
            country = None if random.random() < 0.1 else f"c{random.integers(0, 6)}"
            gone = random.random() < 0.3
            updates[f"u{user}"] = None if gone else {"country": country, "n": int(random.integers(0, 9))}
        tester.feed_lookup("users", updates)
        for user, result in updates.items():
            if result is None:
                table.pop(user, None)
            else:
                table[user] = (result["country"], result["n"])
        rows = [
            row(None if random.random() < 0.1 else f"u{random.integers(0, 40)}", int(random.integers(0, 20)))
            for _ in range(int(random.integers(0, 40)))
        ]
        tester.feed(rows, partition=int(random.integers(0, 2)))
        for one in rows:
            partner = table.get(one["author"]) if one["author"] is not None else None
            if one["n"] == 5 or (partner is None and how == "inner") or (partner and partner[0] == "c3"):
                account += Account(read=1, filtered=1)
                continue
            account += Account(read=1, counted=1)
            country, theirs = partner or (None, None)
            sums = wanted.setdefault(country, [0, 0, 0])
            for at, value in enumerate((1, one["n"], theirs or 0)):
                sums[at] += value
    assert tester.account == account
    result = tester.finish().windows().select("country", "rows", "ours", "theirs")
    assert {country: [a, b, c or 0] for country, a, b, c in result.rows()} == wanted
    assert account.filtered > 100 and account.counted > 200


def test_several_tables_and_steps_after_them() -> None:
    stream = posts().join(USERS, on="author").join(CITIES, on="n", how="left", suffix="_of_city")
    stream = stream.deduplicate("author", within="1m").join(USERS, on="city", how="left", suffix="_by_city")
    tester = StreamTester(stream.group_by("country_by_city").tumbling("1m").agg(rows=count()))
    tester.feed_lookup("users", {"ann": {"country": "FI", "n": 1}, "Oslo": {"country": "NO", "n": 2}})
    tester.feed_lookup("cities", {1: {"city": "Oslo"}})
    account = tester.feed([row("ann", 1), row("ann", 1), row("bob", 1), row("Oslo", 2)])
    assert account == Account(4, counted=2, filtered=2)
    assert dict(tester.finish().windows().select("country_by_city", "rows").rows()) == {"NO": 1, None: 1}


@each(
    ("make", "reported"),
    [
        (lambda: posts().join("users", on="author"), "'users' is not a table"),
        (lambda: posts().join(posts(), on="author"), "set the largest distance between the rows of a pair"),
        (lambda: posts().join(USERS, on="nobody"), "no column 'nobody'"),
        (lambda: posts().join(USERS, on=5), "on must name the column with the key"),
        (lambda: posts().join(USERS, on=["author", "n"]), "has 1 columns, and on= names 2"),
        (lambda: posts().join(USERS, on="author", how="outer"), '"inner" or "left"'),
        (
            lambda: posts().join(USERS, on="n"),
            r"Int64, the keys of 'users' are String.*pl\.Int64",
        ),
        (lambda: posts().join(USERS, on="author").join(USERS, on="author"), "'country' .*|'n_right' .*"),
        (lambda: posts().join(USERS, on="author", suffix=""), "column of both sides"),
        (lambda: posts().group_by("author").join(USERS, on="author"), "before group_by and agg"),
        (lambda: LookupTable.from_kafka("users", value=dict), "must be a decoder"),
        (lambda: LookupTable.from_kafka("", value=json(VALUE)), "topic must be the name of a topic"),
        (lambda: LookupTable.from_kafka("users", value=json(VALUE), key=pl.Float64), "whole numbers"),
        (
            lambda: LookupTable.from_kafka("users", value=json(VALUE), config={"sasl.usernmae": 1}),
            "did you mean",
        ),
        (
            lambda: StreamTester(posts().tumbling("1m").agg(n=count())).feed_lookup("users", {}),
            "not a table of",
        ),
    ],
)
def test_what_can_not_be_joined_is_refused_where_it_is_written(
    make: Callable[[], Any], reported: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=reported):
        make()


def test_whole_numbers_of_any_width_are_one_key() -> None:
    stream = posts().with_columns(small=pl.col("n").cast(pl.Int8)).join(CITIES, on="small")
    tester = StreamTester(stream.group_by("city").tumbling("1m").agg(rows=count()))
    tester.feed_lookup("cities", {-3: {"city": "Oslo"}})
    assert tester.feed([row("ann", -3), row("ann", 3)]).counted == 1


def test_another_table_is_a_change_of_the_definition() -> None:
    def stream(table: LookupTable = USERS, **options: Any) -> dict[str, Any]:
        return posts().join(table, on="author", **options).tumbling("1m").agg(rows=count()).definition()

    assert differences(stream(), pickle.loads(pickle.dumps(stream()))) == []
    other = LookupTable.from_kafka("people", value=json(VALUE))
    for changed in (stream(other), stream(how="left"), stream(suffix="_of_user")):
        reported = differences(stream(), changed)
        assert len(reported) == 1 and reported[0].startswith(
            'step 1 changed from join(table("users", key=string, value='
        )


def test_a_stream_with_tables_goes_to_other_processes() -> None:
    stream = pickle.loads(pickle.dumps(posts().join(USERS, on="author").tumbling("1m").agg(rows=count())))
    tester = StreamTester(stream)
    tester.feed_lookup("users", {"ann": {"country": "FI", "n": 1}})
    assert tester.feed([row("ann", 1)]).counted == 1


def test_a_column_says_whether_the_table_has_the_row() -> None:
    """Also of a row of nothing but nulls, which looks like none."""
    joined = posts().join(USERS, on="author", how="left", matched="known")
    tester = StreamTester(joined.group_by("known").tumbling("1m").agg(rows=count()))
    tester.feed_lookup("users", {"ann": {"country": "FI", "n": 1}, "bob": {"country": None, "n": None}})
    tester.feed([row(name, 0) for name in ("ann", "bob", "bob", "eve", None)])
    assert dict(tester.finish().windows().select("known", "rows").rows()) == {True: 3, False: 2}
    plain = posts().join(USERS, on="author", how="left")
    assert "matched" not in str(plain.steps[0].definition())
    assert joined.steps[0].definition() != plain.steps[0].definition()
    for wrong, error in (("n", ValueError), ("country", ValueError), (3, TypeError)):
        with pytest.raises(error, match="join: matched must"):
            posts().join(USERS, on="author", how="left", matched=wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="join: matched= is for a table"):
        posts().join(posts(), on="author", within="1m", matched="known")
