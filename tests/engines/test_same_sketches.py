"""One definition, two engines, one answer: the same input gives the same sketches on Spark and off Kafka."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.apps.replay.batch import Source
from streamgauge.apps.replay.generated import Generated
from streamgauge.apps.replay.load import Load
from streamgauge.apps.replay.recorded import Recording
from streamgauge.apps.replay.sender import send
from streamgauge.apps.trending.answers import windows
from streamgauge.apps.trending.exact import read_exact
from streamgauge.apps.trending.stream import trending
from streamgauge.apps.trending.summary import Summary
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.sketching.accounting import Account
from streamgauge.operators.table.merge import merge
from streamgauge.sketches.frequent_items import FrequentItems
from streamgauge.spark_udafs.run import account_of, on_spark, write

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


def off_kafka(stream: Stream) -> tuple[pa.Table, Account]:
    summary = run(stream, RunOptions(until="latest"))
    return summary.table, summary.account


def by_spark(stream: Stream, spark: Any, folder: Path) -> tuple[pa.Table, Account]:
    found: list[pa.Table] = []
    table = on_spark(stream, spark, dead_letters=None, max_per_trigger=70_000)
    query = write(table, folder / "checkpoint", lambda part, _: found.append(part), available_now=True)
    query.awaitTermination()
    return merge(found), account_of(query)


def registers(image: bytes) -> np.ndarray:
    """The 4,096 registers of a DataSketches HLL image, whichever of its forms it has."""
    data = np.frombuffer(image, np.uint8)
    lg_k, mode, kind = data[3], data[7] & 3, data[7] >> 2 & 3
    assert lg_k == 12
    if mode == 2:
        assert kind == 2  # HLL_8
        return data[40 : 40 + 4096]
    coupons = data[8 if mode == 0 else 12 :].view(np.uint32)
    found = np.zeros(4096, np.uint8)
    np.maximum.at(found, coupons & 4095, (coupons >> 26).astype(np.uint8))
    return found


@pytest.fixture(scope="module", params=["jetstream", "generated"])
def results(
    request: pytest.FixtureRequest, kafka: Any, spark: Any, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    source: Source
    if request.param == "jetstream":
        recordings = request.getfixturevalue("recordings")
        source = Recording.open(recordings / "social" / "jetstream_expected_v1.jsonl", speed=0)
    else:
        source = Generated(Load(rate=8_000.0, seed=42), posts=200_000)
    topic = f"same-{request.param}"
    kafka.create_topic(topic, 4)
    read = send(source, topic, kafka.bootstrap_servers, pace=False)
    stream = trending(kafka.bootstrap_servers, topic, delay="1m" if request.param == "jetstream" else "10s")
    return {
        "name": request.param,
        "read": read,
        "local": off_kafka(stream),
        "spark": by_spark(stream, spark, tmp_path_factory.mktemp("spark")),
        "exact": read_exact(stream, kafka.bootstrap_servers),
    }


def test_all_messages_end_in_the_same_places(results: dict[str, Any]) -> None:
    account = results["exact"].account
    assert results["local"][1] == results["spark"][1] == account
    assert account.read == results["read"] and account.balanced
    if results["name"] == "jetstream":
        assert account == Account(read=152, counted=17, filtered=135)
    else:
        assert account.late > 100 and account.dead_lettered > 100


def test_the_same_windows_close_with_the_same_counts(results: dict[str, Any]) -> None:
    local, spark = (results[engine][0].sort_by("window_start") for engine in ("local", "spark"))
    for column in ("window_start", "window_end", "posts"):
        assert local.column(column).to_pylist() == spark.column(column).to_pylist()
    assert local.num_rows >= (2 if results["name"] == "jetstream" else 3)


def test_the_registers_are_equal(results: dict[str, Any]) -> None:
    local, spark = (results[engine][0].sort_by("window_start") for engine in ("local", "spark"))
    for mine, theirs in zip(local.column("authors").to_pylist(), spark.column("authors").to_pylist()):
        assert np.array_equal(registers(mine), registers(theirs))
        assert registers(mine).any()


def test_frequent_items_agree_within_their_bounds(results: dict[str, Any]) -> None:
    local, spark = (results[engine][0].sort_by("window_start") for engine in ("local", "spark"))
    starts = local.column("window_start").to_pylist()
    for start, mine, theirs in zip(starts, local.column("tags"), spark.column("tags")):
        exact = results["exact"].windows[start].tags
        for column in (mine, theirs):
            sketch = FrequentItems.from_bytes(column.as_py(), "string")
            for tag, count in exact.most_common(200):
                lower, upper = sketch.bounds(tag)
                assert lower <= count <= upper


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_every_answer_lies_inside_its_bounds(results: dict[str, Any], engine: str) -> None:
    table, account = results[engine]
    summary = Summary.of(engine, account, 1.0, windows(table), results["exact"])
    assert summary.all_inside_bounds and summary.accounts_agree
