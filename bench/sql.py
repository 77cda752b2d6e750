"""SQL: what it costs to plan a query, and whether its stream is any slower than the same written by hand.

Then a day of minutes: 1,440 windows of 1,000 keys, stored as sketches, rolled up to one row for each key; the
other sides are ClickHouse's ``uniqCombined64Merge`` and ``uniqMerge`` (chDB) over its own states of the same
rows, in a table of its own and in Parquet, and Spark's ``hll_union_agg`` over the very same Parquet, if they
are installed. All read from the page cache, and are warm. `query_server` measures `POST /sql`.

Everything is in the processor's time but where a line says otherwise. With BENCH_FLINK, the path of a Python
that has ``apache-flink``, windowed distinct counts by tag run there as well, of the same messages in a file.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
ROUNDS = 7
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
    # Each twice, in an order and in its reverse: what runs first in a round is not at a disadvantage.
    calls = counted(query, query.answers), counted(by_hand(), sg.query)
    first, second, other_second, other_first = medians(*calls, *reversed(calls), runs=9)
    ours, plain = (first + other_first) / 2, (second + other_second) / 2
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
        with _chdb(rows, folder) as peers:
            yield from _beside(lambda: sg.sql(text), peers)
        yield from _spark(folder, lambda: sg.sql(text))


Peer = tuple[str, Callable[[], object]]
"""What it is and what it reads, and a call that does it."""


def _beside(ours: Callable[[], object], peers: list[Peer]) -> Iterator[dict[str, Any]]:
    """A line a peer: medians of calls in turns, of the processor's time of all threads and by the clock."""
    claim = "1,440 minutes of 1,000 keys to a day, from Parquet"
    times = _both([ours, *(call for _, call in peers)])
    cpu, wall = times[0]
    if not peers:
        yield line(claim, f"{cpu:.2f} s, {wall:.2f} s", "chDB is not installed", "", "≥ 1 × of chDB")
    for (name, _), (their_cpu, their_wall) in zip(peers, times[1:]):
        yield line(
            f"{claim} (processor, clock)",
            f"{cpu:.2f} s, {wall:.2f} s",
            f"{name} {their_cpu:.2f} s, {their_wall:.2f} s",
            f"{their_cpu / cpu:.2f} ×, {their_wall / wall:.2f} ×",
            "≥ 1 ×",
        )


def _both(calls: list[Callable[[], object]]) -> list[tuple[float, float]]:
    """The median seconds of each, of the processor and by the clock, the first round not counted."""
    times: list[list[tuple[float, float]]] = [[] for _ in calls]
    for _ in range(ROUNDS + 1):
        for call, own in zip(calls, times):
            cpu, wall = time.process_time(), time.perf_counter()
            call()
            own.append((time.process_time() - cpu, time.perf_counter() - wall))
    return [
        (statistics.median(cpu for cpu, _ in own[1:]), statistics.median(wall for _, wall in own[1:]))
        for own in times
    ]


@contextmanager
def _chdb(rows: pl.DataFrame, folder: str) -> Iterator[list[Peer]]:
    """ClickHouse's states of the same rows, in its own table and in Parquet; none if it isn't installed."""
    try:
        from chdb.session import Session
    except ImportError:
        yield []
        return
    rows.write_parquet(f"{folder}/rows.parquet")
    peers: list[Peer] = []
    with Session(f"{folder}/chdb") as session:
        session.query("CREATE DATABASE d")
        for number, function in enumerate(("uniqCombined64{}(12)", "uniq{}")):
            state, merge, plain = (function.format(end) for end in ("State", "Merge", ""))
            kind = f"AggregateFunction({plain}, Int64)"
            session.query(
                f"CREATE TABLE d.t{number} (at DateTime64(6), key Int64, users {kind})"
                " ENGINE = MergeTree ORDER BY (at, key)"
            )
            session.query(
                f"INSERT INTO d.t{number} SELECT at, key, {state}(assumeNotNull(usr)) FROM"
                f" file('{folder}/rows.parquet') GROUP BY at, key"
            )
            # Parquet has no type for states: their bytes are texts there.
            states = f"file('{folder}/states{number}.parquet', 'Parquet')"
            session.query(
                f"INSERT INTO FUNCTION {states} SELECT at, key, CAST(users AS String) AS users"
                f" FROM d.t{number} ORDER BY at, key"
                " SETTINGS output_format_parquet_compression_method = 'zstd'"
            )
            name = f"chDB {merge.partition('(')[0]}"
            for source, users in ((f"d.t{number}", "users"), (states, f"CAST(users AS {kind})")):
                text = f"SELECT key, {merge}({users}) FROM {source} GROUP BY key"
                reads = "its own table" if source.startswith("d.") else "its states in Parquet"
                peers.append((f"{name}, {reads}", lambda text=text: session.query(text, "Null")))
        yield peers


def _spark(folder: str, ours: Callable[[], object]) -> Iterator[dict[str, Any]]:
    claim = "the same beside Spark SQL over the same Parquet (clock)"
    try:
        spark: Any = sg.spark.session()
    except (ImportError, RuntimeError) as error:
        yield line(claim, "", str(error)[:40], "", "≥ 10 ×")
        return
    spark.read.parquet(f"{folder}/minutes.parquet").createOrReplaceTempView("minutes")
    merged = "SELECT key, hll_sketch_estimate(hll_union_agg(users)) AS users FROM minutes GROUP BY key"
    # What it takes beside the sketches: planning, reading them, grouping, a shuffle.
    sizes = "SELECT key, sum(octet_length(users)) AS users FROM minutes GROUP BY key"
    for _ in range(3):  # until its own compiler has done most
        spark.sql(merged).collect()
    times = _both([ours, lambda: spark.sql(merged).collect(), lambda: spark.sql(sizes).collect()])
    (_, wall), (_, other), (_, rest) = times
    spark.stop()
    yield line(
        claim,
        f"{wall:.2f} s",
        f"Spark SQL {other:.2f} s, {rest:.2f} of them without merging",
        other / wall,
        "≥ 10 ×",
    )


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
