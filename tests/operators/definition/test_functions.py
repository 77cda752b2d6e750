"""Functions of the user's over batches of rows: what they must give, and what of them a definition knows."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from streamgauge.operators.definition.aggregates import count, sum
from streamgauge.operators.definition.definition_diff import differences
from streamgauge.operators.definition.functions import WrongRows
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.testing import StreamTester

COLUMNS = {"x": pl.Int64, "name": pl.String, "at": pl.Datetime("us")}
START = datetime(2026, 1, 1, tzinfo=UTC)
DOUBLED = {"twice": pl.Int64, "name": pl.String}


def rows() -> Stream:
    return Stream.from_schema(COLUMNS, time="at")


def doubled(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.select("name", "at", twice=pl.col("x") * 2)


def doubled_arrow(batch: pa.RecordBatch) -> pa.RecordBatch:
    assert isinstance(batch, pa.RecordBatch)
    twice = pa.array([None if x is None else 2 * x for x in batch.column("x").to_pylist()], pa.int64())
    return pa.RecordBatch.from_pydict({"twice": twice, "name": batch.column("name")})


def frame(numbers: list[int | None]) -> pl.DataFrame:
    names = [f"n{number}" for number in numbers]
    return pl.DataFrame({"x": numbers, "name": names, "at": [START.replace(tzinfo=None)] * len(numbers)})


@pytest.mark.parametrize(("function", "batches"), [(doubled, "polars"), (doubled_arrow, "arrow")])
def test_rows_go_through_a_function_however_they_are_cut(function: Any, batches: Any) -> None:
    numbers = np.random.default_rng(5).integers(-50, 50, 300).tolist()
    stream = rows().filter(pl.col("x") != 7).map_batches(function, DOUBLED, batches=batches)
    stream = stream.filter(pl.col("twice") > 0).group_by("name")
    wanted = {f"n{x}": 2 * x * numbers.count(x) for x in set(numbers) if x > 0 and x != 7}
    for cuts in ([], [1, 2, 150], list(range(0, 300, 7))):
        tester = StreamTester(stream.tumbling("1m").agg(total=sum("twice")))
        for part in np.split(np.array(numbers), cuts):
            tester.feed(frame(part.tolist()))
        results = tester.finish().windows()
        assert dict(zip(results["name"], results["total"])) == wanted
        counted = len([x for x in numbers if x > 0 and x != 7])
        assert tester.account == Account(300, counted=counted, filtered=300 - counted)


def test_the_rows_on_which_a_function_fails_are_refused_by_themselves() -> None:
    def fragile(result: pl.DataFrame) -> pl.DataFrame:
        if (result["x"] == 3).any():
            raise ValueError("no threes")
        return result

    stream = rows().map_batches(fragile, {"x": pl.Int64, "name": pl.String}).tumbling("1m")
    tester = StreamTester(stream.agg(posts=count()))
    assert tester.feed(frame([1, 3, 2, 3, 5])) == Account(5, counted=3, dead_lettered=2)
    assert [row.offset for row in tester.refused] == [1, 3]
    assert all(row.reason.endswith("ValueError: no threes") for row in tester.refused)


def test_lists_multiply_rows_and_a_row_counts_once() -> None:
    def copies(result: pl.DataFrame) -> pl.DataFrame:
        return result.select(copy=pl.col("x").map_elements(lambda n: list(range(n)), pl.List(pl.Int64)))

    stream = rows().map_batches(copies, {"copy": pl.List(pl.Int64)}).explode("copy")
    tester = StreamTester(stream.tumbling("1m").agg(total=sum("copy"), rows=count()))
    assert tester.feed(frame([3, 1, 4])) == Account(3, counted=3)
    assert tester.finish().windows().select("total", "rows").row(0) == (9, 8)


@pytest.mark.parametrize(
    ("function", "reported"),
    [
        (
            lambda raised: raised.head(1),
            "<lambda> returned 1 rows for 3; it must return one row for each.*filter after",
        ),
        (lambda raised: raised.drop("name"), "returned no column 'name', only x, at"),
        (lambda raised: raised.with_columns(pl.col("x").cast(pl.Float64)), "'x' as Float64, .* says Int64"),
        (lambda raised: raised.to_dict(), "returned a dict, not a pl.DataFrame"),
        (lambda raised: None, "returned a NoneType"),
    ],
)
def test_a_function_that_breaks_its_promise_ends_the_run_and_is_named(
    function: Callable[[Any], Any], reported: str
) -> None:
    stream = rows().map_batches(function, {"x": pl.Int64, "name": pl.String}).tumbling("1m")
    tester = StreamTester(stream.agg(posts=count("x")))
    with pytest.raises(Exception, match=reported) as raised:
        tester.feed(frame([1, 2, 3]))
    assert isinstance(raised.value, WrongRows) or "WrongRows" in str(raised.value)
    assert tester.refused == []


def test_a_promise_broken_only_beside_a_row_that_fails_ends_the_run_too() -> None:
    def odd(result: pl.DataFrame) -> pl.DataFrame:
        if (result["x"] == 3).any():
            raise ValueError("no threes")
        return result.head(1)

    stream = rows().map_batches(odd, {"x": pl.Int64}).tumbling("1m").agg(posts=count())
    with pytest.raises(Exception, match="returned 1 rows for"):
        StreamTester(stream).feed(frame([*range(40)]))


def test_a_column_of_nulls_takes_the_type_that_was_promised() -> None:
    stream = rows().map_batches(lambda f: f.select(x=pl.Series([None] * f.height)), {"x": pl.Int64})
    tester = StreamTester(stream.tumbling("1m").agg(posts=count(), xs=count("x")))
    tester.feed(frame([1, 2]))
    assert tester.finish().windows().select("posts", "xs").row(0) == (2, 0)


@pytest.mark.parametrize(
    ("make", "reported"),
    [
        (lambda: rows().map_batches(5, DOUBLED), "5 is not a function"),
        (lambda: rows().map_batches(dict, DOUBLED), "is not a function"),
        (lambda: rows().map_batches(doubled, {}), "does not name the columns that doubled returns"),
        (lambda: rows().map_batches(doubled, {"x": int}), "is not a column and its Polars type"),
        (lambda: rows().map_batches(doubled, DOUBLED, batches="pandas"), '"polars" or "arrow"'),
        (lambda: rows().map_batches(doubled, {"__time": pl.Int64}), "a name the stream itself uses"),
        (lambda: rows().group_by("x").map_batches(doubled, DOUBLED), "before group_by and agg"),
    ],
)
def test_what_can_not_be_a_step_is_refused_where_it_is_written(make: Any, reported: str) -> None:
    with pytest.raises((TypeError, ValueError), match=reported):
        make()


def test_another_function_is_a_change_and_the_same_is_none() -> None:
    def stream(function: Any, schema: Any = DOUBLED) -> Any:
        return rows().map_batches(function, schema).tumbling("1m").agg(posts=count()).definition()

    assert differences(stream(doubled), stream(doubled)) == []
    reported = differences(stream(lambda f: f.select(x=1)), stream(lambda f: f.select(x=2)))
    assert len(reported) == 1 and reported[0].startswith("step 1 changed from map_batches(<lambda> #")
    assert "twice" in differences(stream(doubled), stream(doubled, {"twice": pl.Int64}))[0]


def test_a_function_within_a_script_goes_to_other_processes() -> None:
    shift = 7

    def local(result: pl.DataFrame) -> pl.DataFrame:
        return result.select(shifted=pl.col("x") + shift)

    stream = rows().map_batches(local, {"shifted": pl.Int64}).tumbling("1m").agg(total=sum("shifted"))
    again = pickle.loads(pickle.dumps(stream))
    assert again.definition() == stream.definition()
    tester = StreamTester(again)
    tester.feed(frame([1, 2]))
    assert tester.finish().windows()["total"].to_list() == [17]
