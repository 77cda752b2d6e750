"""One definition, two engines, one answer: the same input gives the same sketches on Spark and off Kafka."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.apps.app import Feed
from streamgauge.apps.dev.replay.generated import Generated
from streamgauge.apps.dev.replay.load import Load
from streamgauge.apps.dev.replay.sender import send
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.recordings.batch import Source
from streamgauge.apps.registry import app_of
from streamgauge.apps.running.exact import all_inside, compared
from streamgauge.apps.running.recording import RecordedMessages
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run
from streamgauge.operators.definition.aggregates import count, distinct, sample, top_k
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.table.sketch_table import SketchTable, merge
from streamgauge.sketches.frequent_items import FrequentItems
from streamgauge.spark_udafs.streaming.run import account_of, on_spark, write

from .naive_posts import NaivePosts, jetstream_post, own_post

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


def off_kafka(stream: Stream) -> tuple[pa.Table, Account]:
    summary = run(stream, RunOptions(until="latest"))
    return summary.table, summary.account


def by_spark(stream: Stream, spark: Any, folder: Path) -> tuple[pa.Table, Account]:
    collected: list[pa.Table] = []
    table = on_spark(stream, spark, dead_letters=None, max_per_trigger=70_000, close_at_end=True)

    def collect(part: SketchTable, _: Any) -> None:
        collected.append(part.to_arrow())

    query = write(table, folder / "checkpoint", collect, available_now=True)
    query.awaitTermination()
    return merge(collected), account_of(query)


def registers(image: bytes) -> np.ndarray:
    """The 4,096 registers of a DataSketches HLL image, whichever of its forms it has."""
    data = np.frombuffer(image, np.uint8)
    lg_k, mode, kind = data[3], data[7] & 3, data[7] >> 2 & 3
    assert lg_k == 12
    if mode == 2:
        assert kind == 2  # HLL_8
        return data[40 : 40 + 4096]
    coupons = data[8 if mode == 0 else 12 :].view(np.uint32)
    result = np.zeros(4096, np.uint8)
    np.maximum.at(result, coupons & 4095, (coupons >> 26).astype(np.uint8))
    return result


@pytest.fixture(scope="module", params=[pytest.param("jetstream", marks=pytest.mark.soak), "posts"])
def results(
    request: pytest.FixtureRequest, kafka: Any, spark: Any, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    job = Job.of(app_of("trending"), request.param)
    source: Source
    if request.param == "jetstream":
        path = request.getfixturevalue("recordings") / "social" / "jetstream_expected_v1.jsonl"
        source, post, delay = RecordedMessages(job, [path]), jetstream_post, 60
    else:
        source, post, delay = Generated(Load(rate=2_000.0, seed=42), posts=50_000), own_post, 10
    topic = f"same-{request.param}"
    kafka.create_topic(topic, 4)
    read = send(source, topic, kafka.bootstrap_servers, pace=False)
    rows = job.form.source(Feed(topic, kafka.bootstrap_servers), job.settings)
    stream = rows.tumbling("10s", delay=f"{delay}s").agg(
        posts=count(), authors=distinct("author"), tags=top_k("tags", k=10), sample=sample("text", k=3)
    )
    exact = NaivePosts(post, timedelta(seconds=10), timedelta(seconds=delay))
    return {
        "name": request.param,
        "read": read,
        "local": off_kafka(stream),
        "spark": by_spark(stream, spark, tmp_path_factory.mktemp("spark")),
        "exact": exact.read(kafka.bootstrap_servers, topic, 4),
    }


@pytest.mark.slow
def test_all_messages_end_in_the_same_places(results: dict[str, Any]) -> None:
    account = results["exact"].account
    assert results["local"][1] == results["spark"][1] == account
    assert account.read == results["read"] and account.balanced
    if results["name"] == "jetstream":
        assert account == Account(read=152, counted=17, filtered=135)
    else:
        assert account.late > 20 and account.dead_lettered > 20


def test_the_same_windows_close_with_the_same_counts(results: dict[str, Any]) -> None:
    local, spark = (results[engine][0].sort_by("window_start") for engine in ("local", "spark"))
    for column in ("window_start", "window_end", "posts"):
        assert local.column(column).to_pylist() == spark.column(column).to_pylist()
    exact = results["exact"].posts
    assert local.column("posts").to_pylist() == [exact[start] for start in sorted(exact)]
    assert local.num_rows >= (2 if results["name"] == "jetstream" else 3)


def test_the_registers_are_equal(results: dict[str, Any]) -> None:
    local, spark = (results[engine][0].sort_by("window_start") for engine in ("local", "spark"))
    for mine, theirs in zip(local.column("authors").to_pylist(), spark.column("authors").to_pylist()):
        assert np.array_equal(registers(mine), registers(theirs))
        assert registers(mine).any()


def test_frequent_items_agree_within_their_bounds(results: dict[str, Any]) -> None:
    local, spark = (results[engine][0].sort_by("window_start") for engine in ("local", "spark"))
    windows = zip(local.column("window_start").to_pylist(), local.column("window_end").to_pylist())
    for window, mine, theirs in zip(windows, local.column("tags"), spark.column("tags")):
        exact = results["exact"].tags[window]
        for column in (mine, theirs):
            sketch = FrequentItems.from_bytes(column.as_py(), "string")
            for tag, n in exact.most_common(200):
                lower, upper = sketch.bounds(tag)
                assert lower <= n <= upper


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_every_answer_lies_inside_its_bounds(results: dict[str, Any], engine: str) -> None:
    exact = results["exact"]
    answers = compared(results[engine][0], {"authors": exact.authors, "tags": exact.tags})
    assert all_inside(answers)
    assert all(row["authors"]["exact"] > 0 for row in answers)
    assert any(tag["exact"] > 0 for row in answers for tag in row["tags"])
