"""``streamgauge-kafka``: Kafka read, decoded and sketched inside Spark's Python workers.

    spark.dataSource.register(KafkaSketchSource)
    spark.readStream.format("streamgauge-kafka").option("kafka.bootstrap.servers", "localhost:9092")
        .option("subscribe", "posts").load()

Without more it gives messages in the columns of Spark's own Kafka source, whose options it takes. Given a
stream's definition (`kafka_options.encode_stream`) it gives that stream's rows, or partial sketches of them,
which `merge_plan` merges; `run.on_spark` does both. No row crosses into the JVM then.

Spark's checkpoint holds the offsets. A range of offsets read again gives the same rows and the same sketches.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from ..operators.kafka.topics import admin, ensure_topic
from .kafka_cluster import Cluster
from .kafka_offsets import Known, Offsets, TopicPartition, last_window_end, share, watermark
from .kafka_options import KafkaOptions
from .kafka_tasks import columns_of, group_of, plan_tasks, read_task

NAME = "streamgauge-kafka"
_NOTHING_NEW_SECONDS = 0.05


class KafkaSketchSource(DataSource):
    """Kafka topics as messages, rows or partial sketches; the module says how to use it."""

    @classmethod
    def name(cls) -> str:
        """What `format` takes."""
        return NAME

    def schema(self) -> StructType:
        """The columns of what the options ask for."""
        return from_arrow_schema(columns_of(KafkaOptions.parse(self.options)))

    # Spark calls both by the parameter's name.
    def reader(self, schema: StructType) -> DataSourceReader:
        """For ``spark.read``."""
        return KafkaBatchReader(KafkaOptions.parse(self.options).bounded())

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """For ``spark.readStream``."""
        return KafkaStreamReader(KafkaOptions.parse(self.options).unbounded())


class KafkaBatchReader(DataSourceReader):
    """A bounded range of offsets, read once."""

    def __init__(self, options: KafkaOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """One task a partition; more if ``minPartitions`` asks for them and no sketches are asked for."""
        options = self._options
        cluster = Cluster(options)
        places = cluster.partitions()
        begin = cluster.resolve(places, options.starting or "earliest", options.starting_ms)
        ends = cluster.resolve(places, options.ending, options.ending_ms)
        cluster.close()
        known = {place: Known(begin[place]) for place in places}
        return plan_tasks(options, Offsets("", ends, begin, known))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """In a worker: the batches of one task."""
        return read_task(self._options, partition)  # type: ignore[arg-type]


class KafkaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Micro-batches of offsets; planned in one process, read in the workers.

    What the workers find out of a partition (its event time, its account) they commit to Kafka beside the
    offset that they read up to, and it enters Spark's log with the next batch. Where it got lost, a worker
    reads the batch before once more to find it again.
    """

    def __init__(self, options: KafkaOptions) -> None:
        self._options = options
        self._cluster: Cluster | None = None
        self._target: dict[TopicPartition, int] | None = None
        self._moved: dict[TopicPartition, tuple[int, float]] = {}

    def __getstate__(self) -> dict[str, Any]:
        # The workers get a copy, and no connection.
        return {**self.__dict__, "_cluster": None}

    @property
    def _kafka(self) -> Cluster:
        if self._cluster is None:
            self._cluster = Cluster(self._options)
        return self._cluster

    def initialOffset(self) -> dict[str, Any]:
        """Where a new query begins."""
        options, kafka = self._options, self._kafka
        if options.dead_letter_topic is not None:
            ensure_topic(admin(options.config), options.dead_letter_topic, 1)
        begin = kafka.resolve(kafka.partitions(), options.starting or "latest", options.starting_ms)
        return Offsets(uuid.uuid4().hex[:12], begin).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """``maxOffsetsPerTrigger``, if given."""
        most = self._options.max_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:
        """From now on read up to what there is now, and no further."""
        self._target = self._kafka.ends(self._kafka.partitions())

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Up to where there are messages, for the query's progress."""
        return Offsets("", self._kafka.ends(self._kafka.partitions())).to_json()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Where the next micro-batch ends; `start` itself where there is nothing to do."""
        here = Offsets.from_json(start)
        begin, there = self._waiting(here)
        ends = share(begin, there, limit.max_rows) if isinstance(limit, ReadMaxRows) else there
        drained = all(ends[place] == begin[place] for place in ends)
        if self._options.emit != "sketches":
            return self._nothing(start) if drained else Offsets(here.query, ends, begin).to_json()
        known = self._known(here, begin)
        mark = max(here.watermark_us, self._watermark(known, there, drained))
        if drained and not self._worth_telling(here, known, mark):
            return self._nothing(start)
        return Offsets(here.query, ends, begin, known, mark).to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The tasks of a micro-batch; one that only announces where there is nothing to read."""
        there = Offsets.from_json(end)
        return plan_tasks(self._options, there)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """In a worker: the batches of one task."""
        return read_task(self._options, partition)  # type: ignore[arg-type]

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing to do: Spark's checkpoint is what counts."""

    def stop(self) -> None:
        """Leave the cluster."""
        if self._cluster is not None:
            self._cluster.close()

    def _waiting(self, here: Offsets) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        """Where each partition goes on, and up to where there is something to read."""
        kafka = self._kafka
        places = kafka.partitions()
        ends = kafka.ends(places)
        gone = [place for place in here.ends if place not in ends]
        begin = {place: here.ends[place] for place in places if place in here.ends}
        appeared = [place for place in places if place not in begin]
        begin.update(kafka.beginnings(appeared))
        lost = [f"{t}-{p} is gone" for t, p in gone]
        lost += [
            f"{t}-{p} ends at {ends[t, p]}, before {at}" for (t, p), at in begin.items() if ends[t, p] < at
        ]
        if lost and self._options.fail_on_data_loss:
            raise RuntimeError(
                f"messages are lost: {'; '.join(lost)}. The topic was deleted or made anew; start with a new "
                "checkpoint, or set failOnDataLoss to false to go on with what there is"
            )
        for place in gone:
            begin[place] = ends[place] = here.ends[place]
        # A topic made anew is read from its beginning.
        begin.update(kafka.beginnings([place for place, at in begin.items() if ends[place] < at]))
        if self._target is not None:
            ends = {place: min(end, self._target.get(place, 0)) for place, end in ends.items()}
        return begin, {place: max(end, begin[place]) for place, end in ends.items()}

    def _known(self, here: Offsets, begin: dict[TopicPartition, int]) -> dict[TopicPartition, Known]:
        """What is known of each partition, best at the offset where it goes on."""
        reported = self._kafka.known(group_of(self._options, here.query), begin) if here.known else {}
        found = {}
        for place, at in begin.items():
            known = reported.get(place)
            if known is None or known.at != at:
                known = here.known.get(place, Known(at)).floored(here.watermark_us)
            found[place] = known if known.at <= at else replace(known, at=at)
        return found

    def _watermark(
        self, known: dict[TopicPartition, Known], ends: dict[TopicPartition, int], drained: bool
    ) -> int:
        stream = self._options.stream
        assert stream is not None and stream.window is not None
        last = last_window_end(known, stream.window)
        if self._target is not None and drained and self._options.close_at_end:
            return last
        now = time.monotonic()
        idle = {}
        for place, end in ends.items():
            if self._moved.get(place, (-1, 0.0))[0] != end:
                self._moved[place] = end, now
            quiet = now - self._moved[place][1]
            if known[place].at >= end and quiet * 1000 >= self._options.idle_timeout_ms:
                idle[place] = int(quiet * 1e6)
        return min(watermark(known, stream.delay_us, idle), last)

    def _worth_telling(self, here: Offsets, known: dict[TopicPartition, Known], mark: int) -> bool:
        """Whether a micro-batch without messages is worth it: it closes windows, or settles accounts."""
        stream = self._options.stream
        assert stream is not None and stream.window is not None
        closes = stream.window.pane_start(mark) > stream.window.pane_start(here.watermark_us)
        if closes or not here.known:
            return closes
        if self._target is None and not self._quiet():
            return False
        return known != here.known

    def _quiet(self) -> bool:
        """Whether nothing has come for as long as makes a partition idle."""
        latest = max((at for _, at in self._moved.values()), default=0.0)
        return (time.monotonic() - latest) * 1000 >= self._options.idle_timeout_ms

    def _nothing(self, start: dict[str, Any]) -> dict[str, Any]:
        """Say that there is nothing to do; Spark asks again at once, so not at once."""
        if self._target is None:
            time.sleep(_NOTHING_NEW_SECONDS)
        return start
