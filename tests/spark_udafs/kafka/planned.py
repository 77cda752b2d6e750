"""A query over the source, planned and read as Spark does but without Spark."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable

from streamgauge.operators.definition.stream import Stream
from streamgauge.spark_udafs.kafka.offsets import Offsets
from streamgauge.spark_udafs.kafka.source import KafkaSketchSource, KafkaStreamReader, bound
from streamgauge.spark_udafs.merge.partials import ACCOUNT

ALL = ReadAllAvailable()


class Query:
    """One run of a query: plans batches like Spark, reads them, and keeps what Spark would log."""

    def __init__(
        self,
        kafka: Any,
        log: list[dict[str, Any]] | None = None,
        stream: Stream | None = None,
        **options: str,
    ) -> None:
        given = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "startingOffsets": "earliest", **options}
        source = KafkaSketchSource if stream is None else bound(stream, {})
        reader = source(given).streamReader(None)
        assert isinstance(reader, KafkaStreamReader)
        self.reader = reader
        self.log = [reader.initialOffset()] if log is None else list(log)

    def batch(self, limit: Any = ALL) -> list[pa.RecordBatch] | None:
        """The next micro-batch; None where there is nothing to do."""
        end = self.reader.latestOffset(self.log[-1], limit)
        if end == self.log[-1]:
            return None
        self.log.append(end)
        return self.read(len(self.log) - 1)

    def read(self, number: int) -> list[pa.RecordBatch]:
        """A micro-batch, perhaps not for the first time."""
        collected: list[pa.RecordBatch] = []
        for task in self.reader.partitions(self.log[number - 1], self.log[number]):
            worker = pickle.loads(pickle.dumps(self.reader))
            collected += worker.read(pickle.loads(pickle.dumps(task)))
        return collected

    @property
    def last(self) -> Offsets:
        return Offsets.from_json(self.log[-1])


def account(batches: list[pa.RecordBatch], account: Sequence[str] = ACCOUNT) -> dict[str, int]:
    """What a micro-batch announces of all messages so far, or of itself."""
    table = pa.Table.from_batches(batches)
    return {name: sum(n or 0 for n in table.column(f"__{name}").to_pylist()) for name in account}


def rows(batches: list[pa.RecordBatch]) -> int:
    """The rows that are counted in a micro-batch's windows."""
    return sum(n or 0 for n in pa.Table.from_batches(batches).column("rows").to_pylist())


def values(batches: list[pa.RecordBatch] | None) -> list[bytes]:
    """The messages of a micro-batch."""
    return [value for b in batches or [] for value in b.column("value").to_pylist()]


def letters_of(kafka: Any, topic: str, n: int) -> list[Any]:
    """The first messages of a topic of one partition."""
    reader = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": uuid.uuid4().hex})
    reader.assign([TopicPartition(topic, 0, 0)])
    letters = reader.consume(n, 120)
    reader.close()
    return letters
