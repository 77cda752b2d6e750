"""Each kind of windows that both engines take holds the same rows on both: those that it says it does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from confluent_kafka import Producer

from streamgauge import StreamTester, count, distinct, quantiles, query
from streamgauge import json as json_value
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.sketching.account import Account
from streamgauge.spark_udafs.frames.tables import as_table
from streamgauge.spark_udafs.streaming.run import account_of, on_spark, write

from .test_bad_input import letters
from .window_cases import CASES, COUNT, DAY, windowed

_ZONE = "spark.sql.session.timeZone"
SCHEMA = {"at": pl.Int64, "case": pl.Int64, "key": pl.String}


def source_of(topic: str, servers: str) -> Stream:
    time = pl.from_epoch("at", time_unit="us")
    return Stream.from_kafka(topic, value=json_value(SCHEMA), time=time, bootstrap_servers=servers)


def stream_of(kind: str, topic: str, servers: str = "localhost:9092", buckets: bool = False) -> Stream:
    """Counts and sketches that Catalyst merges; with `buckets` one more that it can't merge."""
    source = source_of(topic, servers)
    more = {"spread": quantiles("at")} if buckets else {}
    return windowed(kind, source.group_by("case", "key")).agg(n=count(), times=distinct("at"), **more)


def partitions_of(kind: str) -> list[list[dict[str, Any]]]:
    """The rows of all cases, each in partitions of its own."""
    return [
        [{"at": case.origin * 1_000_000 + round(s * 1e6), "case": at, "key": key} for s, key in partition]
        for at, case in enumerate(CASES[kind])
        for partition in case.partitions
    ]


def send(kafka: Any, topic: str, partitions: list[list[dict[str, Any]]]) -> None:
    producer = Producer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "enable.idempotence": True,
            "linger.ms": 5,
            "log_level": 0,
            "queue.buffering.max.messages": 0,  # as many as there are
        }
    )
    for partition, rows in enumerate(partitions):
        for row in rows:
            producer.produce(topic, json.dumps(row).encode(), partition=partition)
    assert producer.flush(120) == 0


def written(table: Any, folder: Path) -> tuple[pa.Table, Account]:
    """What a query writes until all that is there now has been read, and its account."""
    tables: list[pa.Table] = []
    running = write(
        table, folder / "state", lambda part, _: tables.append(part.to_arrow()), available_now=True
    )
    assert running.awaitTermination(600)
    return pa.concat_tables(tables), account_of(running)


def counted_in(table: pa.Table, kind: str) -> dict[str, dict[tuple[str | None, float, float], int]]:
    """By case: rows by key and window; each window of a key is there once."""
    counted: dict[str, dict[tuple[str | None, float, float], int]] = defaultdict(dict)
    answers = query(table)
    edges = ((answers[name].dt.epoch("ms") / 1000).to_list() for name in ("window_start", "window_end"))
    for at, key, start, end, n in zip(answers["case"], answers["key"], *edges, answers["n"], strict=True):
        case = CASES[kind][at]
        window = (key, round(start - case.origin, 3), round(end - case.origin, 3))
        assert window not in counted[case.name]
        counted[case.name][window] = n
    for row in answers.iter_rows(named=True):
        # All times of a window and key differ, in number too few for a sketch to be wrong about.
        assert row["times"]["estimate"] == pytest.approx(row["n"], rel=0.001)
        assert row.get("spread", {"n": row["n"]})["n"] == row["n"]
    return counted


def expected(kind: str) -> tuple[dict[str, Any], Account]:
    counted = {case.name: dict(case.counted) for case in CASES[kind]}
    read, late = sum(map(len, partitions_of(kind))), sum(case.late for case in CASES[kind])
    return counted, Account(read=read, counted=read - late, late=late)


def made_tester(kind: str) -> StreamTester:
    """One that has been fed all cases."""
    partitions = partitions_of(kind)
    tester = StreamTester(stream_of(kind, "rows"), partitions=len(partitions))
    for partition, rows in enumerate(partitions):
        tester.feed(rows, partition=partition)
    return tester


@pytest.mark.parametrize("kind", CASES)
def test_cases_hold_what_they_are_for(kind: str) -> None:
    *_, many = CASES[kind]
    assert (many.late >= 3 or kind == "count") and len(many.counted) > 20
    assert len({case.name for case in CASES[kind]}) == len(CASES[kind])


@pytest.mark.parametrize("kind", CASES)
def test_the_consumers_parts_count_as_written_down(kind: str) -> None:
    tester = made_tester(kind)
    counted, account = expected(kind)
    assert counted_in(tester.finish().tables(), kind) == counted
    assert tester.account == account


@pytest.fixture(scope="module")
def topic_of(kafka: Any) -> Callable[[str], str]:
    """A kind's topic, which all engines read."""

    @cache
    def topic_of(kind: str) -> str:
        partitions = partitions_of(kind)
        kafka.create_topic(f"windows-{kind}", len(partitions))
        send(kafka, f"windows-{kind}", partitions)
        return f"windows-{kind}"

    return topic_of


@pytest.mark.kafka
@pytest.mark.parametrize("kind", CASES)
def test_the_consumer_counts_as_written_down(kind: str, kafka: Any, topic_of: Callable[[str], str]) -> None:
    summary = run(stream_of(kind, topic_of(kind), kafka.bootstrap_servers), RunOptions(until="latest"))
    counted, account = expected(kind)
    assert counted_in(summary.table.to_arrow(), kind) == counted
    assert summary.account == account


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.parametrize(
    ("kind", "streaming", "buckets", "zone"),
    [
        ("hopping", True, False, "America/St_Johns"),
        ("uneven", False, True, "Asia/Kolkata"),
        ("cumulate", True, True, "America/St_Johns"),
        ("session", True, True, "Asia/Kolkata"),
        ("count", True, True, "Asia/Kolkata"),
        ("nights", True, True, "UTC"),
        ("months", False, False, "Asia/Kolkata"),
        # Merged by Catalyst, all kinds are in one query of test_together.py; nights hop in buckets.
        *(
            pytest.param(kind, True, buckets, zone, marks=pytest.mark.soak)
            for kind, buckets, zone in (
                ("tumbling", False, "UTC"),
                ("sliding", False, "Pacific/Kiritimati"),
                ("together", False, "UTC"),
                ("days", False, "America/St_Johns"),
                ("hopping", True, "Asia/Kolkata"),
            )
        ),
    ],
)
def test_spark_counts_as_written_down(
    kind: str,
    streaming: bool,
    buckets: bool,
    zone: str,
    spark: Any,
    kafka: Any,
    topic_of: Callable[[str], str],
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    topic = topic_of(kind)
    request.addfinalizer(lambda: spark.conf.set(_ZONE, "UTC"))
    spark.conf.set(_ZONE, zone)
    stream = stream_of(kind, topic, kafka.bootstrap_servers, buckets)
    late = "" if kind == "session" else None
    table = on_spark(stream, spark, streaming=streaming, dead_letters=None, late=late, close_at_end=True)
    counted, account = expected(kind)
    if not streaming:
        assert counted_in(as_table(table), kind) == counted
        return
    tables, reported = written(table, tmp_path)
    if kind == "count":
        counted = {
            name: full
            for name, of in counted.items()
            if (full := {w: n for w, n in of.items() if n == COUNT})
        }
    assert counted_in(tables, kind) == counted
    assert reported == account
    if late is not None:
        tester = made_tester(kind)
        headers = [
            dict(message.headers()) for message in letters(kafka, f"{topic}.late-messages", account.late)
        ]
        places = {(int(one["partition"]), int(one["offset"])) for one in headers}
        assert places == {(row.partition, row.offset) for row in tester.late}


@pytest.mark.kafka
@pytest.mark.spark
def test_a_query_that_goes_on_counts_late_rows_in_windows_that_are_still_open(
    spark: Any, kafka: Any, tmp_path: Path
) -> None:
    """The first run ends at 40, with a watermark of 35; the windows that end by then are closed for good."""
    topic = "windows-that-go-on"
    kafka.create_topic(topic, 1)
    stream = stream_of("hopping", topic, kafka.bootstrap_servers, buckets=True)
    collected: list[set[tuple[int, int, int]]] = []
    for seconds, at_end in (((1, 12, 40), False), ((13, 2, 61), True)):
        send(kafka, topic, [[{"at": (DAY + s) * 1_000_000, "case": 0, "key": "a"} for s in seconds]])
        table = on_spark(stream, spark, dead_letters=None, close_at_end=at_end)
        tables, account = written(table, tmp_path)
        (by_window,) = counted_in(tables, "hopping").values()
        collected.append({(start, end, n) for (_, start, end), n in by_window.items()})
    assert collected[0] == {(-20, 10, 1), (-10, 20, 2), (0, 30, 2)}
    assert collected[1] == {(10, 40, 2), (20, 50, 1), (30, 60, 1), (40, 70, 2), (50, 80, 1), (60, 90, 1)}
    assert account == Account(read=6, counted=5, late=1)


@pytest.mark.soak
@pytest.mark.parametrize("zone", ["Asia/Kolkata", "America/St_Johns"])
def test_all_kinds_on_a_driver_and_workers_of_another_time_zone(zone: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    done = subprocess.run([*command, "-m", "not soak"], env={**os.environ, "TZ": zone}, timeout=1800)
    assert done.returncode == 0
