"""The page on streams on Spark has the table of what each engine takes, as the engines themselves say it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from streamgauge import LookupTable, Stream, count, json
from streamgauge.operators.definition.row_stream import RowStream
from streamgauge.operators.definition.windowed_stream import WindowedStream
from streamgauge.operators.windows.kinds import KINDS
from streamgauge.spark_udafs.kafka.stream_checks import check_readable
from streamgauge.spark_udafs.merge.merge_plan import merged_by_spark

PAGE = Path(__file__).resolve().parents[2] / "docs" / "spark_streams.md"
VALUE = json({"id": pl.Int64, "user": pl.String, "tags": pl.List(pl.String)})
POSTS = Stream.from_kafka("posts", value=VALUE)
LIKES = Stream.from_kafka("likes", value=json({"id": pl.Int64, "by": pl.String}))
USERS = LookupTable.from_kafka("users", value=json({"city": pl.String}), key=pl.String)


def _as_they_are(rows: pl.DataFrame) -> pl.DataFrame:
    return rows


ROWS: dict[str, RowStream] = {
    "`from_kafka` of a topic": POSTS,
    "`from_kafka` of several": Stream.from_kafka(["posts", "replies"], value=VALUE),
    "`from_kafka` of a pattern": Stream.from_kafka("^posts", value=VALUE),
    "`filter`": POSTS.filter(pl.col("id") > 0),
    "`with_columns`": POSTS.with_columns(n=pl.col("id") + 1),
    "`select`": POSTS.select("user"),
    "`explode`": POSTS.explode("tags"),
    "`map_batches`": POSTS.map_batches(_as_they_are, {"user": pl.String}),
    "`branch`": POSTS.branch(pl.col("id") > 0)[1],
    "`merge` of branches": POSTS.merge(POSTS.filter(pl.col("id") > 0)),
    "`merge` of topics": POSTS.select("id").merge(LIKES.select("id")),
    "`deduplicate`": POSTS.deduplicate("id", within="1h"),
    "`fill_forward`": POSTS.fill_forward("user", by="id"),
    "`join` with a table": POSTS.join(USERS, on="user"),
    "`join` with a stream": POSTS.join(LIKES, on="id", within="10m"),
}
WINDOWS: dict[str, Stream] = {
    "`tumbling`": POSTS.tumbling("1m"),
    "`hopping`": POSTS.hopping("1m", every="10s"),
    "`cumulate`": POSTS.cumulate("1d", every="1m"),
    "`sliding`": POSTS.sliding("5m"),
    "`session`": POSTS.session("30m"),
    "`count_window`": POSTS.count_window(100),
}
ENDS: dict[str, Stream] = {
    "`agg`": POSTS.tumbling("1m").agg(n=count()),
    "`rows_to_kafka`": POSTS.rows_to_kafka("rows"),
}


def table() -> str:
    """The table in Markdown."""
    streams = {
        **{name: rows.tumbling("1m").agg(n=count()) for name, rows in ROWS.items()},  # type: ignore[attr-defined]
        **{name: rows.agg(n=count()) for name, rows in WINDOWS.items()},
        **ENDS,
    }
    lines = [f"| {name} | yes | {'yes' if on_spark(stream) else 'no'} |" for name, stream in streams.items()]
    return "\n".join(["| | `.run(...)` | `.on_spark(...)` |", "|---|---|---|", *lines]) + "\n"


def on_spark(stream: Stream) -> bool:
    """Whether Spark takes a stream; where it doesn't, the error says what does."""
    try:
        check_readable(stream)
    except ValueError as error:
        assert ".run(...)" in str(error)
        return False
    return True


def test_the_page_has_the_table_that_the_checks_give() -> None:
    assert table() in PAGE.read_text()


def test_each_kind_of_windows_is_in_the_table() -> None:
    kinds = {stream.window.kind: stream for stream in WINDOWS.values() if stream.window is not None}
    assert kinds.keys() == KINDS.keys()
    for kind, stream in kinds.items():
        assert on_spark(stream.agg(n=count())) == merged_by_spark(KINDS[kind].window_class)


@pytest.mark.parametrize(("floor", "names"), [(RowStream, ROWS), (WindowedStream, WINDOWS)])
def test_each_step_is_in_the_table(floor: type, names: dict[str, Stream]) -> None:
    verbs = [name for name, member in vars(floor).items() if _gives_a_stream(name, member)]
    assert len(verbs) > 5
    assert [verb for verb in verbs if not any(name.startswith(f"`{verb}`") for name in names)] == []


def _gives_a_stream(name: str, member: Callable[..., object]) -> bool:
    if name.startswith("_") or not inspect.isfunction(member):
        return False
    return "Self" in str(inspect.signature(member).return_annotation)
