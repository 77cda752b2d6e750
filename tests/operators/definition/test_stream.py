"""A stream is a value: each method gives a new one, and what is wrong is refused where it is written."""

from __future__ import annotations

import pickle

import polars as pl
import pyarrow as pa
import pytest

from streamgauge.operators.definition.aggregate import Aggregate, aggregate
from streamgauge.operators.definition.aggregates import count, distinct, mean, quantiles, top_k
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.table.schema import aggregates_of, keys_of, schema_of

from ...cases import each

COLUMNS = {"user": pl.String, "at": pl.Datetime("us"), "tags": pl.List(pl.String), "x": pl.Int32}


def posts() -> Stream:
    return Stream.from_schema(COLUMNS, time="at")


def stream(every: str = "1m") -> Stream:
    result = posts().filter(pl.col("x") > 0).with_columns(y=pl.col("x") * 2.5).group_by("user")
    return result.tumbling(every).agg(
        posts=count(), users=distinct("user"), tags=top_k("tags"), y=quantiles("y")
    )


def test_a_stream_pickles_into_the_same_stream() -> None:
    again = pickle.loads(pickle.dumps(stream()))
    assert again.definition() == stream().definition()
    assert again.fingerprint() == stream().fingerprint()


def test_methods_leave_the_stream_they_are_called_on_alone() -> None:
    stream = posts()
    before = stream.definition()
    stream.filter(pl.col("x") > 0).group_by("user").tumbling("1m").agg(posts=count())
    assert stream.definition() == before


def test_the_column_decides_the_type_that_sketches_are_of() -> None:
    result = stream().aggregates
    assert result["y"].params == {"relative_accuracy": 0.01, "kind": "double"}
    assert result["tags"].params["kind"] == "string"
    assert result["tags"].answer == {"k": 10}


def test_the_table_of_sketches_says_all_that_a_reader_needs() -> None:
    schema = schema_of(stream())
    assert schema.names == ["window_start", "window_end", "user", "posts", "users", "tags", "y"]
    assert schema.field("window_end").type == pa.timestamp("us", "UTC")
    assert schema.field("user").type == pa.string()
    assert schema.field("users").type == pa.binary()
    assert keys_of(schema) == ["user"]
    assert aggregates_of(schema) == stream().aggregates


@each(
    ("wrong", "message"),
    [
        (lambda: posts().filter(pl.col("nope") > 0), "nope"),
        (lambda: posts().group_by("nope"), "no column 'nope'"),
        (lambda: Stream.from_kafka("posts", value=json({"user": pl.String})).agg(n=count()), "needs windows"),
        (lambda: posts().tumbling("0s"), "longer"),
        (lambda: posts().tumbling("1m").agg(), "no aggregate was given"),
        (lambda: posts().tumbling("1m").agg(u=distinct("nope")), "'nope'"),
        (lambda: posts().group_by("user").tumbling("1m").agg(user=count()), "already a column"),
        (lambda: posts().tumbling("1m").agg(window_end=count()), "already a column"),
        (lambda: posts().group_by("user").filter(pl.col("x") > 0), "before group_by"),
        (lambda: posts().tumbling("1m").complete(), "has no aggregates"),
        (lambda: posts().tumbling("1m").tumbling("1h"), 'windows of 1m already.*For "1h"'),
        (lambda: stream().agg(n=count()), "has posts, users, tags, y already"),
        (lambda: posts().group_by("x").group_by("user"), r'\.group_by\("x", "user"\)'),
        (lambda: posts().tumbling("1m").agg(n=count()).group_by("user"), r"before \.agg"),
        (lambda: posts().group_by("user", "user"), "named twice"),
    ],
)
def test_a_wrong_definition_is_refused_where_it_is_written(wrong, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wrong()


@each(
    ("wrong", "message"),
    [
        (lambda: posts().group_by("tags"), "explode"),
        (lambda: posts().explode("x"), "not a list"),
        (lambda: posts().tumbling("1m").agg(q=quantiles("user")), "string"),
        (lambda: posts().tumbling("1m").agg(q=quantiles("at")), "ask for kll_quantiles"),
        (
            lambda: Stream.from_schema({"at": pl.Int64}, time="at"),
            r'time=pl\.from_epoch\("at", time_unit="ms"\)',
        ),
        (
            lambda: Stream.from_schema({"at": pl.Float64}, time=pl.col("at")),
            r'time=pl\.from_epoch\(pl\.col\("at"\), time_unit="s"\)',
        ),
        (lambda: Stream.from_schema({"at": pl.Int64}, time="nope"), "is not a column of at"),
        (lambda: Stream.from_schema({"at": pl.Int64}, time=pl.col("nope") * 2), 'to find column "nope"'),
        (lambda: Stream.from_kafka(5, value=None), "topic must be a name"),
        (lambda: Stream.from_kafka("posts", value={"at": pl.Int64}), r"value=json\("),
        (lambda: posts().filter(True), "not an expression"),
        (lambda: posts().with_columns(5), "not an expression"),
        (lambda: posts().group_by(["user"]), r"\['user'\] is not a name"),
        (lambda: posts().tumbling("1m").agg(count()), r"posts=count\(\)"),
        (lambda: posts().tumbling("1m").agg(n=count), "which is not an aggregate"),
        (lambda: aggregate("distinct", "user", size=3), "no option size"),
        (lambda: distinct(pl.col("user")), "the column must be a string"),
    ],
)
def test_a_wrong_type_is_refused_where_it_is_written(wrong, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        wrong()


def test_an_unknown_aggregate_is_answered_with_those_there_are() -> None:
    with pytest.raises(KeyError, match=r"there are distinct, .*quantiles, .*variance"):
        aggregate("median", "x")


def test_an_empty_list_explodes_to_a_row_with_a_null() -> None:
    rows = pl.DataFrame({"a": [[1, 2], [], None], "b": [["x", "y"], [], None]})
    stream = Stream.from_schema({**rows.schema, "at": pl.Datetime("us")}, time="at").explode("a", "b")
    result = stream.reading.transform(rows.lazy()).collect()
    assert result.rows() == [(1, "x"), (2, "y"), (None, None), (None, None)]


def test_means_need_a_column() -> None:
    with pytest.raises(ValueError, match="needs a column"):
        posts().tumbling("1m").agg(m=Aggregate("mean"))
    assert mean("x").column == "x"


def test_a_text_names_a_column_as_in_polars() -> None:
    frame = pl.LazyFrame({"at": ["2026-01-01"], "user": ["ann"], "x": [1.5]})
    stream = Stream.from_schema({"at": pl.String, "user": pl.String, "x": pl.Float64}, time="at")
    named = stream.with_columns(who="user", what=pl.lit("user"), one=1).reading.transform(frame).collect()
    assert named.select("who", "what", "one").row(0) == ("ann", "user", 1)
    with pytest.raises(ValueError, match="nobody"):
        stream.with_columns(who="nobody")
