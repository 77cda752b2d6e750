"""The step that touches rows: any cut gives the same table, and every row is accounted for once."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from streamgauge.operators.definition.aggregates import (
    count,
    distinct,
    first,
    last,
    max,
    mean,
    min,
    quantiles,
    sum,
)
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.sketching.sketcher import Sketcher
from streamgauge.operators.watermarks.partition_watermark import PartitionTime

from ...cases import each

NOW = 1_767_225_600.0  # 2026-01-01
SECOND = 1_000_000


def rows(seed: int, n: int = 3_000) -> tuple[pl.DataFrame, np.ndarray]:
    """Ten minutes of posts up to NOW, out of order, some very late, of 1970, of 2100, or without time."""
    random = np.random.default_rng(seed)
    at = (
        int(NOW * SECOND)
        + np.sort(random.integers(-600 * SECOND, 0, n))
        - random.exponential(4e6, n).astype(int)
    )
    at[random.random(n) < 0.01] -= 300 * SECOND
    at[random.random(n) < 0.003] = 0
    at[random.random(n) < 0.003] = 4_102_444_800 * SECOND
    tags = [random.choice(list("abcdef"), random.integers(0, 4)).tolist() for _ in range(n)]
    frame = pl.DataFrame(
        {
            "at": pl.Series(at)
            .cast(pl.Datetime("us"))
            .scatter(np.flatnonzero(random.random(n) < 0.004), None),
            "user": random.integers(0, 200, n),
            "lang": pl.Series(random.choice(["en", "de", ""], n)).scatter([5, 50], None),
            "tags": pl.Series(tags, dtype=pl.List(pl.String)),
            "x": random.normal(size=n),
            "raw": random.choice(["1", "2", "oops"], n, p=[0.5, 0.499, 0.001]),
        }
    )
    return frame, np.full(n, int(NOW * 1000))


SOURCE = Stream.from_schema(
    {
        "at": pl.Datetime("us"),
        "user": pl.Int64,
        "lang": pl.String,
        "tags": pl.List(pl.String),
        "x": pl.Float64,
        "raw": pl.String,
    },
    time="at",
)
REQUESTED = {
    "posts": count(),
    "users": distinct("user"),
    "spread": quantiles("x"),
    "low": min("x"),
    "high": max("x"),
    "opening": first("user"),
    "closing": last("user"),
    "uses": sum("user"),
    "mean": mean("x"),
    "uses_of_tags": count("tags"),
}
STREAMS = {
    "plain": SOURCE.tumbling("1m").agg(**REQUESTED),
    "keyed": SOURCE.group_by("lang").tumbling("30s", delay="3s").agg(**REQUESTED),
    "filtered": SOURCE.filter(pl.col("x") > 0.3).tumbling("1m").agg(**REQUESTED),
    "computed": SOURCE.with_columns(pl.col("raw").cast(pl.Int64))
    .group_by("raw", "lang")
    .tumbling("2m")
    .agg(**REQUESTED),
    "selected": SOURCE.select("user", "x", "tags", v=pl.col("raw").str.len_chars())
    .group_by("v")
    .tumbling("1m")
    .agg(**REQUESTED),
    "exploded": SOURCE.explode("tags")
    .filter(pl.col("tags").is_in(["a", "b"]))
    .group_by("tags")
    .tumbling("1m")
    .agg(**REQUESTED),
}


def sketched(stream: Stream, frame: pl.DataFrame, stamps: np.ndarray, cuts: list[int]):
    sketcher, time, refused = Sketcher(stream, clock=lambda: NOW), PartitionTime(), {}
    account = Account()
    edges = [0, *cuts, frame.height]
    for low, high in itertools.pairwise(edges):

        def refuse(numbers: np.ndarray, reason: str, low: int = low) -> None:
            refused.update({int(number) + low: reason for number in numbers})

        account += sketcher.add(frame[low:high], time, stamps[low:high], refuse)
    return sketcher.drain(), account, refused, time


@pytest.mark.slow
@each("name", STREAMS)
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_any_cut_into_batches_gives_the_same_table(name: str, seed: int) -> None:
    frame, stamps = rows(seed)
    whole, account, refused, time = sketched(STREAMS[name], frame, stamps, [])
    assert account.balanced and account.read == frame.height
    assert account.late > 0 and account.dead_lettered == len(refused) > 0 and account.counted > 0
    random = np.random.default_rng(seed)
    for pieces in (1, 5, 200):
        cuts = sorted(random.integers(0, frame.height, pieces).tolist())
        table, part_account, part_refused, part_time = sketched(STREAMS[name], frame, stamps, cuts)
        assert part_account == account
        assert part_refused == refused
        assert part_time == time
        assert table.schema.equals(whole.schema, check_metadata=True)
        assert table.equals(whole)


@pytest.mark.parametrize("name", ["plain", "keyed", "exploded"])
def test_the_table_says_what_polars_says(name: str) -> None:
    """Counts, sums and extremes against a naive pass, row by row for what is late."""
    frame, stamps = rows(7)
    stream = STREAMS[name]
    table, account, _, _ = sketched(stream, frame, stamps, [100, 2_000])
    size, delay, seen, kept, late = stream.window.size_us, stream.delay_us, -(2**62), [], 0
    for number, (at, tags) in enumerate(zip(frame["at"].to_physical(), frame["tags"])):
        if at is None or at > NOW * SECOND + 3_600 * SECOND:
            continue
        if name == "exploded" and not any(tag in ("a", "b") for tag in tags):
            continue
        is_late = at - at % size + size <= seen - delay
        seen = at if at > seen else seen
        late += is_late
        if not is_late:
            kept.append(number)
    assert (account.counted, account.late) == (len(kept), late)
    rest = frame[kept].with_columns(start=pl.col("at").dt.truncate(f"{size // SECOND}s"))
    if name == "exploded":
        rest = rest.explode("tags").filter(pl.col("tags").is_in(["a", "b"]))
    tags = pl.col("tags").is_not_null().sum() if name == "exploded" else pl.col("tags").list.len().sum()
    naive = (
        rest.group_by("start", *stream.keys)
        .agg(posts=pl.len(), low=pl.col("x").min(), uses=pl.col("user").sum(), uses_of_tags=tags)
        .sort("start", *stream.keys, nulls_last=True)
    )
    result = pl.DataFrame(pl.from_arrow(table))
    for column in (*stream.keys, "posts", "low", "uses", "uses_of_tags"):
        assert result[column].to_list() == naive[column].to_list()


def test_the_year_2100_moves_nothing_and_1970_is_late() -> None:
    stream = SOURCE.select("user").tumbling("1m").agg(posts=count())
    frame = rows(3)[0][:4]
    times = ["2025-12-31T23:58:00", "2100-01-01T00:00:00", "1970-01-01T00:00:00", "2025-12-31T23:58:30"]
    frame = frame.with_columns(at=pl.Series(times).str.to_datetime(time_unit="us"))
    stamps = np.full(4, int(NOW * 1000))
    table, account, refused, time = sketched(stream, frame, stamps, [])
    assert account == Account(read=4, counted=2, late=1, dead_lettered=1)
    assert list(refused) == [1] and "ahead" in refused[1]
    assert time.seen_us == int(datetime(2025, 12, 31, 23, 58, 30, tzinfo=UTC).timestamp()) * SECOND
    assert table.column("posts").to_pylist() == [2]


def test_a_first_row_of_2100_is_judged_by_the_wall_clock_where_messages_have_no_time() -> None:
    stream = SOURCE.tumbling("1m").agg(posts=count())
    frame = rows(3)[0][:1]
    frame = frame.with_columns(at=pl.Series(["2100-01-01T00:00:00"]).str.to_datetime(time_unit="us"))
    assert Sketcher(stream, clock=lambda: NOW).add(frame, PartitionTime()).dead_lettered == 1
    trusting = SOURCE.tumbling("1m", max_ahead=None).agg(posts=count())
    assert Sketcher(trusting, clock=lambda: NOW).add(frame, PartitionTime()).counted == 1


def test_times_that_no_calendar_knows_are_dead_letters() -> None:
    stream = Stream.from_schema({"at": pl.Int64}, time=pl.from_epoch("at", time_unit="us"))
    stream = stream.tumbling("1m", max_ahead=None).agg(posts=count())
    frame = pl.DataFrame({"at": [-(2**63), 2**63 - 1, 253_402_300_800_000_000, 0]})
    sketcher = Sketcher(stream)
    assert sketcher.add(frame, PartitionTime()) == Account(read=4, counted=1, dead_lettered=3)
    assert len(sketcher.drain()) == 1


@pytest.mark.parametrize("cuts", [[], [2], [1, 2, 3, 4, 5]])
def test_filtered_rows_need_no_event_time_and_move_none(cuts: list[int]) -> None:
    source = Stream.from_schema({"kind": pl.String, "at": pl.String}, time="at")
    posts = source.filter(pl.col("kind") == "post").tumbling("1m").agg(posts=count())
    noon = "2025-12-31T12:00:00Z"
    rows = [
        ("post", noon),
        ("like", "2025-12-31T13:00:00Z"),
        ("like", None),
        ("like", "soon"),
        ("like", "2100-01-01T00:00:00Z"),
        ("post", "2025-12-31T12:00:30Z"),
        ("post", "soon"),
    ]
    frame = pl.DataFrame(rows, schema=source.source.schema, orient="row")
    table, account, refused, time = sketched(posts, frame, np.full(7, int(NOW * 1000)), cuts)
    assert account == Account(read=7, counted=2, filtered=4, dead_lettered=1)
    assert refused == {6: "no event time: \"at\" is 'soon', not a time in ISO 8601"}
    assert time.seen_us == int(datetime(2025, 12, 31, 12, 0, 30, tzinfo=UTC).timestamp()) * SECOND
    assert table.column("posts").to_pylist() == [2]


def test_an_exploded_row_is_one_row_to_the_clock() -> None:
    source = Stream.from_schema({"tags": pl.List(pl.String), "at": pl.Datetime("us")}, time="at")
    tags = source.explode("tags").tumbling("1m").agg(posts=count())
    noon = datetime(2025, 12, 30, 12)
    times = [noon + timedelta(seconds=second) for second in range(60)]
    times.insert(40, noon + timedelta(days=1))
    frame = pl.DataFrame({"tags": [["x"] * 50] * 61, "at": times}, schema=source.source.schema)
    _, account, _, time = sketched(tags, frame, np.full(61, int(NOW * 1000)), [])
    assert account == Account(read=61, counted=61)
    assert time.seen_us == int(times[-1].replace(tzinfo=UTC).timestamp()) * SECOND


def test_a_time_that_can_not_be_computed_makes_no_dead_letter_of_a_filtered_row() -> None:
    source = Stream.from_schema(
        {"kind": pl.String, "at": pl.String}, time=pl.from_epoch(pl.col("at").cast(pl.Int64), time_unit="s")
    )
    posts = source.filter(pl.col("kind") == "post").tumbling("1m").agg(posts=count())
    rows = [("post", "1000000"), ("like", "never"), ("post", "soon"), ("post", "1000001")]
    frame = pl.DataFrame(rows, schema=source.source.schema, orient="row")
    _, account, refused, _ = sketched(posts, frame, np.full(4, int(NOW * 1000)), [])
    assert account == Account(read=4, counted=2, filtered=1, dead_lettered=1)
    assert list(refused) == [2] and "conversion" in refused[2]


def test_rows_that_an_expression_fails_on_are_refused_with_its_reason() -> None:
    frame, stamps = rows(1)
    _, account, refused, _ = sketched(STREAMS["computed"], frame, stamps, [])
    bad = [number for number, reason in refused.items() if "conversion" in reason]
    assert bad and set(frame[bad]["raw"]) == {"oops"}
    assert account.balanced


def test_take_starts_empty_again() -> None:
    frame, stamps = rows(1)
    sketcher, time = Sketcher(STREAMS["keyed"], clock=lambda: NOW), PartitionTime()
    sketcher.add(frame, time, stamps)
    assert sketcher.drain().num_rows > 0
    assert len(sketcher) == 0 and sketcher.drain().num_rows == 0
    assert sketcher.add(frame[:0], time) == Account()


def test_a_frame_without_the_columns_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="no column lang"):
        Sketcher(STREAMS["plain"]).add(rows(1)[0].drop("lang"), PartitionTime())


def test_message_timestamps_are_the_time_where_no_other_is_named() -> None:
    stream = Stream(SOURCE.source).tumbling("1m").agg(posts=count())
    frame = rows(1)[0][:3]
    stamps = np.array([1_000, 59_000, 61_000])
    table, account, _, _ = sketched(stream, frame, stamps, [])
    assert account.counted == 3 and table.column("posts").to_pylist() == [2, 1]
    with pytest.raises(ValueError, match="timestamp"):
        Sketcher(stream).add(frame, PartitionTime())
