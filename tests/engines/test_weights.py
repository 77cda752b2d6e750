"""Weights that a column names count alike on both engines: a weight of w is as good as w rows."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from confluent_kafka import Producer

from streamgauge import json as json_value
from streamgauge import kll_quantiles, quantiles, query
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.table.sketch_table import SketchTable
from streamgauge.spark_udafs.streaming.run import on_spark, write

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

ROWS: list[dict[str, Any]] = [
    {
        "at": 1_767_225_600_000 + 1_000 * row,
        "path": "/" if row % 3 else "/help",
        "ms": 10 * (row % 7) + 1,
        "requests": None if row % 11 == 4 else row % 4,
    }
    for row in range(90)
]
"""Times of answers, summed up by those who sent them: some without a number, some with none at all."""
SHARES = (0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999)


def counted() -> dict[tuple[str, int], list[int]]:
    """By path and minute every time as often as it counts, ascending."""
    times: dict[tuple[str, int], list[int]] = defaultdict(list)
    for row in ROWS:
        times[row["path"], row["at"] // 60_000 * 60_000] += [row["ms"]] * (row["requests"] or 0)
    return {key: sorted(some) for key, some in times.items()}


def stream_of(topic: str, servers: str) -> Stream:
    schema = {"at": pl.Int64, "path": pl.String, "ms": pl.Int64, "requests": pl.Int64}
    time = pl.from_epoch("at", time_unit="ms")
    rows = Stream.from_kafka(topic, value=json_value(schema), time=time, bootstrap_servers=servers)
    return (
        rows.group_by("path")
        .tumbling("1m", delay="5s")
        .agg(spread=quantiles("ms", weight="requests"), ranks=kll_quantiles("ms", weight="requests"))
    )


def by_spark(stream: Stream, spark: Any, folder: Path) -> pa.Table:
    parts: list[pa.Table] = []
    table = on_spark(stream, spark, dead_letters=None, close_at_end=True)

    def collect(part: SketchTable, _: Any) -> None:
        parts.append(part.to_arrow())

    running = write(table, folder / "state", collect, available_now=True)
    assert running.awaitTermination(600)
    return pa.concat_tables(parts)


@pytest.mark.slow
def test_quantiles_of_a_weighted_stream(kafka: Any, spark: Any, tmp_path: Path) -> None:
    topic = "weighted"
    kafka.create_topic(topic, 2)
    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True, "log_level": 0}
    )
    for at, row in enumerate(ROWS):
        producer.produce(topic, json.dumps(row).encode(), partition=at % 2)
    assert producer.flush(120) == 0
    stream = stream_of(topic, kafka.bootstrap_servers)
    for table in (run(stream, RunOptions(until="latest")).table, by_spark(stream, spark, tmp_path)):
        answers = query(table)
        starts = answers["window_start"].dt.epoch("ms").to_list()
        by_window = dict(zip(zip(answers["path"].to_list(), starts), answers.iter_rows(named=True)))
        assert by_window.keys() == counted().keys() and len(by_window) == 4
        for key, times in counted().items():
            spread, ranks = by_window[key]["spread"], by_window[key]["ranks"]
            assert spread["n"] == ranks["n"] == len(times)
            for q, exact, near in zip(SHARES, ranks["quantiles"], spread["quantiles"], strict=True):
                assert exact["q"] == near["q"] == q
                assert exact["value"] == times[max(math.ceil(q * len(times)), 1) - 1]
                assert near["value"] == pytest.approx(times[math.floor(q * (len(times) - 1))], rel=0.01)
