"""What a task gives of a range of offsets: run in this process, with a real broker and without Spark."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.kafka.reader import Reader
from streamgauge.operators.watermarks.position import Position
from streamgauge.spark_udafs.kafka.offsets import Known
from streamgauge.spark_udafs.kafka.options import KafkaOptions
from streamgauge.spark_udafs.kafka.tasks import Range, Task, read_task
from streamgauge.spark_udafs.merge.partials import ACCOUNT

from ...operators.kafka.broken_log import CHECKSUM, BrokenLog

pytestmark = pytest.mark.kafka

CLOCK_US = 1_700_000_000_000_000


def given(
    kafka: Any, log: BrokenLog, emit: str, start: int, end: int, **options: str
) -> list[pa.RecordBatch]:
    """What one task gives of offsets `start` … `end` − 1; the sketches' stream skips what is broken."""
    at = kafka.bootstrap_servers
    rows = Stream.from_kafka(log.topic, value=json({"n": pl.Int64}), bootstrap_servers=at, corrupt="skip")
    stream = None if emit == "messages" else rows.tumbling("1h").agg(posts=count())
    requested = {"kafka.bootstrap.servers": at, "subscribe": log.topic, "emit": emit, **options}
    task = Task((Range((log.topic, 0), start, end, Known(Position(start))),), 0, CLOCK_US)
    return list(read_task(KafkaOptions.parse(requested, stream), task))


def account(batches: list[pa.RecordBatch]) -> dict[str, int]:
    """What they announce of all messages so far."""
    table = pa.Table.from_batches(batches)
    return {name: sum(n or 0 for n in table.column(f"__{name}").to_pylist()) for name in ACCOUNT}


def letters(kafka: Any, topic: str) -> list[tuple[int, int]]:
    """The ranges of offsets in a dead-letter topic."""
    config = {"bootstrap.servers": kafka.bootstrap_servers}
    with Reader(config, {(topic, 0): 0}, headers=True) as reader:
        result = [m for batch in reader.read_to(reader.end_offsets()) for m in batch.to_arrow().to_pylist()]
    said = [{header["key"]: int(header["value"]) for header in m["headers"][3::2]} for m in result]
    return [(one["offset"], one["last_offset"]) for one in said]


@pytest.mark.parametrize("emit", ["messages", "rows", "sketches"])
def test_what_is_broken_ends_a_task_or_goes_to_the_dead_letters(kafka: Any, emit: str) -> None:
    log = BrokenLog(kafka).damage(*CHECKSUM)
    dead = f"{log.topic}-{emit}"
    kafka.create_topic(dead)
    with pytest.raises(
        RuntimeError, match=r"the record batch at offset 20 is damaged: .* option corruptBatches"
    ):
        given(kafka, log, emit, 0, 60, corruptBatches="stop")
    # Two micro-batches, and the edge between them within what is broken.
    options = {"deadLetterTopic": dead} | ({"corruptBatches": "skip"} if emit == "messages" else {})
    both = [given(kafka, log, emit, *edges, **options) for edges in ((0, 24), (24, 60))]
    assert letters(kafka, dead) == [(20, 23), (24, 29)]
    if emit == "sketches":
        reported = [account(batches) for batches in both]
        assert [(n["read"], n["counted"], n["dead_lettered"]) for n in reported] == [(24, 20, 4), (36, 30, 6)]
    else:
        assert [sum(batch.num_rows for batch in batches) for batches in both] == [20, 30]
