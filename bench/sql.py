"""SQL: what it costs to plan a query, and whether its stream is any slower than the same written by hand.

Then a day of minutes: 1,440 windows of 1,000 keys, stored as sketches, rolled up to one row for each key; the
other sides are ClickHouse's ``uniqMerge`` (chDB) over its own states of the same rows, and Spark's
``hll_union_agg`` over the very same Parquet, if they are installed. `query_server` measures `POST /sql`.

Everything is in the processor's time but where a line says otherwise. With BENCH_FLINK, the path of a Python
that has ``apache-flink``, windowed distinct counts by tag run there as well, of the same messages in a file.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import streamgauge as sg
from streamgauge.operators.testing import StreamTester

from .measure import line, medians, seconds

MESSAGES, USERS, TAGS = 200_000, 50_000, 1_000
FLINK_TIMES = 5
"""So many times the messages, so that what Flink takes to start weighs less."""
START = datetime(2026, 1, 1, tzinfo=UTC)
MINUTES, KEYS, A_MINUTE = 1_440, 1_000, 2
DECLARED = (
    "CREATE STREAM posts (at BIGINT, usr VARCHAR, tag VARCHAR, price DOUBLE)"
    " WITH (KAFKA_TOPIC='posts', VALUE_FORMAT='JSON', TIMESTAMP='at');"
)
QUERY = (
    "SELECT tag, COUNT(*) AS n, APPROX_COUNT_DISTINCT(usr) AS users FROM posts"
    " WINDOW TUMBLING (SIZE 10 SECONDS) WHERE price > 1 GROUP BY tag EMIT FINAL"
)
JOINED = """
CREATE TABLE users (usr VARCHAR PRIMARY KEY, region VARCHAR) WITH (KAFKA_TOPIC='users');
SELECT region, COUNT(*) AS n, APPROX_COUNT_DISTINCT(p.usr) AS users, PERCENTILE_APPROX(price, 0.99) AS high,
  APPROX_TOP_K(tag, 10) AS tags FROM posts p LEFT JOIN users u ON p.usr = u.usr
  WINDOW HOPPING (SIZE 1 HOUR, ADVANCE BY 5 MINUTES) WHERE price BETWEEN 1 AND 100 AND tag NOT IN ('a', 'b')
  GROUP BY region HAVING LOWER_BOUND(APPROX_COUNT_DISTINCT(p.usr)) > 100 EMIT FINAL
"""


def main() -> list[dict[str, Any]]:
    """The lines of the table."""
    return [*planning(), *streams(), *rolled_up(), *flink()]


def planning() -> Iterator[dict[str, Any]]:
    """From the text to the stream."""
    for name, query in (("a window's count", QUERY), ("a join, hopping windows, four aggregates", JOINED)):
        (elapsed,) = medians(lambda query=query: sg.sql(DECLARED + query), runs=20)
        yield line(f"planning {name}", f"{elapsed * 1e3:.1f} ms", "", f"{elapsed * 1e3:.1f} ms", "< 20 ms")


def by_hand() -> sg.Stream:
    """`QUERY` in Python."""
    value = sg.json({"at": pl.Int64, "usr": pl.String, "tag": pl.String, "price": pl.Float64})
    posts = sg.Stream.from_kafka("posts", value=value, time=pl.from_epoch("at", time_unit="ms"))
    return (
        posts.filter(pl.col("price") > 1)
        .group_by("tag")
        .tumbling("10s")
        .agg(n=sg.count(), users=sg.distinct("usr"))
    )


def messages() -> list[bytes]:
    random = np.random.default_rng(5)
    users, tags = random.integers(USERS, size=MESSAGES), random.zipf(1.3, MESSAGES) % TAGS
    first = int(START.timestamp() * 1000)
    return [
        b'{"at":%d,"usr":"u%d","tag":"t%d","price":%d}' % (first + i // 2, user, tag, i % 40)
        for i, (user, tag) in enumerate(zip(users.tolist(), tags.tolist()))
    ]


def streams() -> Iterator[dict[str, Any]]:
    """The same messages through both definitions."""
    sent = messages()

    def counted(stream: Any, answers: Callable[[Any], Any]) -> Callable[[], object]:
        def run() -> object:
            tester = StreamTester(stream)
            for low in range(0, len(sent), 20_000):
                tester.feed_messages(sent[low : low + 20_000])
            return answers(tester.finish().tables())

        return run

    query: Any = sg.sql(DECLARED + QUERY)
    ours, plain = medians(counted(query, query.answers), counted(by_hand(), sg.query), runs=9)
    yield line(
        "a query of windows, decoded and counted, beside its Python",
        f"{MESSAGES / ours / 1e6:.2f} M/s",
        f"by hand {MESSAGES / plain / 1e6:.2f} M/s",
        plain / ours,
        "≥ 0.98 ×",
    )


def rolled_up() -> Iterator[dict[str, Any]]:
    """1,440 minutes of 1,000 keys to a day."""
    rng = np.random.default_rng(7)
    count = MINUTES * KEYS * A_MINUTE
    minutes = np.repeat(np.arange(MINUTES), KEYS * A_MINUTE)
    rows = pl.DataFrame(
        {
            "at": pl.Series(minutes * 60_000_000).cast(pl.Datetime("us")),
            "key": np.tile(np.arange(KEYS), MINUTES * A_MINUTE),
            "usr": rng.integers(100_000, size=count),
        }
    )
    stream = (
        sg.Stream.from_schema(dict(rows.schema), time="at")
        .group_by("key")
        .tumbling("1m")
        .agg(users=sg.distinct("usr"))
    )
    with tempfile.TemporaryDirectory() as folder:
        tester = StreamTester(stream, sinks=[])
        tester.feed(rows)
        table = tester.finish().tables()
        table.write(f"{folder}/minutes.parquet")
        text = (
            f"CREATE TABLE minutes WITH (SKETCHES='{folder}/minutes.parquet');"
            "SELECT key, APPROX_COUNT_DISTINCT(usr) AS users FROM minutes GROUP BY key"
        )
        ours = min(seconds(lambda: sg.sql(text)) for _ in range(3))
        wall = min(_wall(lambda: sg.sql(text)) for _ in range(3))
        yield from _chdb(rows, folder, ours, wall)
        yield from _spark(folder, ours, wall)


def _wall(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _chdb(rows: pl.DataFrame, folder: str, ours: float, wall: float) -> Iterator[dict[str, Any]]:
    claim = "1,440 minutes of 1,000 keys to a day, from Parquet"
    try:
        from chdb.session import Session
    except ImportError:
        yield line(claim, f"{wall:.2f} s", "chDB is not installed", "", "≥ 1 × of chDB")
        return
    rows.write_parquet(f"{folder}/rows.parquet")
    with Session(f"{folder}/chdb") as session:
        session.query("CREATE DATABASE d")
        session.query(
            "CREATE TABLE d.minutes (at DateTime64(6), key Int64,"
            " users AggregateFunction(uniqCombined64(12), Int64))"
            " ENGINE = MergeTree ORDER BY (at, key)"
        )
        session.query(
            "INSERT INTO d.minutes SELECT at, key, uniqCombined64State(12)(assumeNotNull(usr)) FROM"
            f" file('{folder}/rows.parquet') GROUP BY at, key"
        )
        merged = "SELECT key, uniqCombined64Merge(12)(users) FROM d.minutes GROUP BY key"
        session.query(merged, "Null")
        cpu = min(seconds(lambda: session.query(merged, "Null")) for _ in range(3))
        other = min(_wall(lambda: session.query(merged, "Null")) for _ in range(3))
    yield line(
        f"{claim} (processor's time)", f"{ours:.2f} s", f"chDB uniqMerge {cpu:.2f} s", cpu / ours, "≥ 1 ×"
    )
    yield line(
        f"{claim} (wall clock)", f"{wall:.2f} s", f"chDB uniqMerge {other:.2f} s", other / wall, "≥ 1 ×"
    )


def _spark(folder: str, ours: float, wall: float) -> Iterator[dict[str, Any]]:
    claim = "the same beside Spark SQL over the same Parquet (wall clock)"
    try:
        spark: Any = sg.spark.session()
    except (ImportError, RuntimeError) as error:
        yield line(claim, f"{wall:.2f} s", str(error)[:40], "", "≥ 10 ×")
        return
    spark.read.parquet(f"{folder}/minutes.parquet").createOrReplaceTempView("minutes")
    text = "SELECT key, hll_sketch_estimate(hll_union_agg(users)) AS users FROM minutes GROUP BY key"
    spark.sql(text).collect()
    other = min(_wall(lambda: spark.sql(text).collect()) for _ in range(3))
    spark.stop()
    yield line(claim, f"{wall:.2f} s", f"Spark SQL {other:.2f} s", other / wall, "≥ 10 ×")


def flink() -> Iterator[dict[str, Any]]:
    """Windowed distinct counts by tag, beside Flink SQL."""
    claim = "windowed distinct counts by tag (processor's time of all threads)"
    query: Any = sg.sql(DECLARED + QUERY)
    sent = messages()

    def run() -> object:
        tester = StreamTester(query)
        for low in range(0, len(sent), 20_000):
            tester.feed_messages(sent[low : low + 20_000])
        return query.answers(tester.finish().tables())

    run()
    ours = MESSAGES / min(seconds(run) for _ in range(3))
    python = os.environ.get("BENCH_FLINK")
    if not python:
        yield line(claim, f"{ours / 1e6:.2f} M/s", "BENCH_FLINK names no Python", "", "≥ 3 ×")
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "posts.json"
        file.write_bytes(b"\n".join(sent * FLINK_TIMES))
        script = Path(__file__).with_name("peers") / "flink_sql.py"
        done = subprocess.run([python, str(script), str(file)], capture_output=True, text=True, check=False)
    if done.returncode:
        yield line(claim, f"{ours / 1e6:.2f} M/s", done.stderr.strip().splitlines()[-1][:60], "", "≥ 3 ×")
        return
    theirs = MESSAGES * FLINK_TIMES / json.loads(done.stdout.splitlines()[-1])["cpu_seconds"]
    yield line(claim, f"{ours / 1e6:.2f} M/s", f"Flink SQL {theirs / 1e6:.2f} M/s", ours / theirs, "≥ 3 ×")
