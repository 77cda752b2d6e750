"""Rows that come more than once count as written down on both engines, however they are cut into batches."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from streamgauge import StreamTester, count, query
from streamgauge import json as json_value
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.sketching.account import Account
from streamgauge.spark_udafs.streaming.run import account_of, on_spark, write

from .duplicate_cases import CASES, DAY, LAST, SIZE, WITHIN
from .test_windows import send

SCHEMA = {"at": pl.Int64, "case": pl.Int64, "id": pl.String}


def stream_of(kind: str, topic: str, servers: str = "localhost:9092") -> Stream:
    time = pl.from_epoch("at", time_unit="us")
    rows = Stream.from_kafka(topic, value=json_value(SCHEMA), time=time, bootstrap_servers=servers)
    within = {"within": f"{WITHIN}s"}
    # A filter that makes no mistakes here: with one, both engines would make the same.
    kinds: dict[str, dict[str, Any]] = {
        "within": within,
        "filter": {**within, "fpp": 1e-9, "capacity": 1_000},
        "last": {"last": LAST},
    }
    once = rows.deduplicate("case", "id", **kinds[kind]).group_by("case")
    return once.tumbling(f"{SIZE}s", delay="10s", max_ahead=None).agg(n=count())


def partitions_of(kind: str) -> list[list[dict[str, Any]]]:
    """The rows of all cases, each in partitions of its own."""
    return [
        [{"at": round((DAY + s) * 1e6), "case": at, "id": name} for s, name in partition]
        for at, case in enumerate(CASES[kind])
        for partition in case.partitions
    ]


def counted_in(table: pa.Table, kind: str) -> dict[str, dict[int, int]]:
    counted: dict[str, dict[int, int]] = defaultdict(dict)
    answers = query(table)
    starts = (answers["window_start"].dt.epoch("s") - DAY).to_list()
    for at, start, n in zip(answers["case"], starts, answers["n"], strict=True):
        assert start not in counted[CASES[kind][at].name]
        counted[CASES[kind][at].name][start] = n
    return counted


def expected(kind: str) -> tuple[dict[str, Any], Account]:
    counted = {case.name: dict(case.counted) for case in CASES[kind]}
    read = sum(map(len, partitions_of(kind)))
    n = sum(sum(windows.values()) for windows in counted.values())
    return counted, Account(read=read, counted=n, filtered=read - n)


@pytest.mark.parametrize("kind", CASES)
def test_the_consumers_parts_count_as_written_down(kind: str) -> None:
    partitions = partitions_of(kind)
    tester = StreamTester(stream_of(kind, "rows"), partitions=len(partitions))
    for partition, rows in enumerate(partitions):
        tester.feed(rows, partition=partition)
    counted, account = expected(kind)
    assert counted_in(tester.finish().tables(), kind) == counted
    assert tester.account == account
    assert account.filtered > 40


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.parametrize("kind", CASES)
def test_both_engines_count_as_written_down(kind: str, spark: Any, kafka: Any, tmp_path: Path) -> None:
    """Spark reads a few messages at a time, and may have them read by another process than those before."""
    partitions, topic = partitions_of(kind), f"duplicates-{kind}"
    kafka.create_topic(topic, len(partitions))
    send(kafka, topic, partitions)
    stream = stream_of(kind, topic, kafka.bootstrap_servers)
    counted, account = expected(kind)
    summary = run(stream, RunOptions(until="latest"))
    assert counted_in(summary.table.to_arrow(), kind) == counted
    assert summary.account == account
    tables: list[pa.Table] = []
    table = on_spark(stream, spark, dead_letters=None, max_per_trigger=120, close_at_end=True)
    running = write(table, tmp_path, lambda part, _: tables.append(part.to_arrow()), available_now=True)
    assert running.awaitTermination(600)
    assert counted_in(pa.concat_tables(tables), kind) == counted
    assert account_of(running) == account
