"""Streams that run together: one source that reads their topic once for all of them.

Each stream is planned by its own reader, with its own positions, event time and watermark. The readers share
the cluster's answers, so that all of them read the same ranges. A task gets such a range for all streams,
fetches it once, and decodes it once for the streams that use the same decoder.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ...operators.consumer.error_context import in_stream
from ...operators.consumer.worker.shared_decoding import SharedDecoding
from ...operators.definition.definition_diff import DefinitionChanged
from ...operators.definition.stream import Stream
from ...operators.kafka.source import LogPosition
from ...operators.secrets import Settings
from ...operators.sketching.delta import Delta
from ...operators.watermarks.position import Position
from ...sketches.core.errors import RunError
from ..gc_freeze import freeze_imports
from ..merge.shared_state import TogetherPartials
from ..read_limits import ReadLimit, SupportsTriggerAvailableNow
from .cluster import Cluster, Report
from .offsets import Known, Offsets, TopicPartition
from .options import KafkaOptions
from .planning import BATCH_MESSAGES, Range, Task, group_of
from .source import NAME, KafkaStreamReader
from .stream_checks import check_readable
from .tasks import RangeBuffer
from .workers import Letters, reading, report_known, with_tables

T = TypeVar("T")

_NOTHING_NEW_SECONDS = 0.05
_LARGEST_REPORT = 4_000
"""Bytes stored with an offset, out of the 4,096 that Kafka accepts."""
_LARGE = 10**15
"""A number as long as times and offsets."""


def bound_together(
    streams: Mapping[str, Stream], settings: Mapping[str, Any], filling: bool
) -> type[TogetherSource]:
    """Return a source for these streams, under a name of its own (`kafka.source.bound`).

    With `filling`, each micro-batch announces watermarks, so that open windows are emitted as well. Raises
    `ValueError` for streams that can't be read together.
    """
    for name, stream in streams.items():
        with in_stream(name):
            check_readable(stream)
            _check_one_reading(stream)
    _check_alike(streams)
    label = f"{NAME}-{uuid.uuid4().hex[:8]}"
    members = {
        "label": label,
        "streams": dict(streams),
        "settings": Settings(settings),
        "filling": filling,
    }
    return type(TogetherSource.__name__, (TogetherSource,), members)


def _check_one_reading(stream: Stream) -> None:
    """Raise `ValueError` for a stream that needs its own read, or its own transaction."""
    what = "joins two streams" if stream.reading.joined is not None else "sends its rows on"
    if stream.reading.joined is not None or stream.sending is not None:
        raise ValueError(
            f"on Spark a stream that {what} runs in a query of its own: give its on_spark(...) to write, or "
            "run all of them together by streamgauge.run_together"
        )


def _check_alike(streams: Mapping[str, Stream]) -> None:
    (first, theirs), *others = streams.items()
    for name, own in others:
        if _topics(own) != _topics(theirs):
            raise ValueError(
                f"the streams {first!r} and {name!r} read other topics, {theirs.reading.in_words()} and "
                f"{own.reading.in_words()}, and streams that run together on Spark must read the same "
                "topics: run them in separate queries, or use streamgauge.run_together"
            )
        if _reading(own) != _reading(theirs):
            raise ValueError(
                f"the streams {first!r} and {name!r} are read from different brokers or with different "
                "settings, but streams that run together share one reader: give both the same "
                "bootstrap_servers, config and corrupt, or run them apart"
            )
    most = len(Known(Position(0, replay=0)).to_list())
    largest = _report_text("x" * 12, {name: [_LARGE] * most for name in streams})
    if len(largest) > _LARGEST_REPORT:
        raise ValueError(
            f"streams: {len(streams)} are too many to run together, since a broker stores at most "
            f"{_LARGEST_REPORT:,} bytes of metadata with an offset, and each stream's event time takes "
            "some; run some of them in another query"
        )


def _topics(stream: Stream) -> set[str]:
    return {topic for source in stream.reading.kafka_sources for topic in source.topics}


def _reading(stream: Stream) -> tuple[Any, ...]:
    source = stream.reading.kafka_sources[0]
    return dict(source.settings), source.corrupt


class TogetherSource(DataSource):
    """The topic of several streams, as partial sketches of all streams."""

    label = NAME
    streams: Mapping[str, Stream] = {}
    settings: Mapping[str, Any] = {}
    filling = False

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return cls.label

    def schema(self) -> StructType:
        """The columns of partial rows."""
        return from_arrow_schema(TogetherPartials(self.streams).schema)

    # Spark passes the argument by name.
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """For ``spark.readStream``."""
        given = {"emit": "sketches", **self.options}
        options = {
            name: KafkaOptions.parse(given, stream, self.settings) for name, stream in self.streams.items()
        }
        return TogetherReader(options, self.filling)


@dataclass(frozen=True)
class TogetherTask(InputPartition):
    """The work of one Spark task: each stream's part, by name, over the same range.

    `announced` has the watermarks (microseconds) that this task announces, by stream.
    """

    parts: tuple[tuple[str, Task], ...]
    announced: Mapping[str, int]


class TogetherReport(NamedTuple):
    """What a query's worker knows about a partition, by stream name."""

    query: str
    known: Mapping[str, Known]


class RoundCluster(Cluster):
    """A cluster that gives all streams the same answers within a round of planning."""

    def __init__(self, options: KafkaOptions) -> None:
        super().__init__(options)
        self._answers: dict[Any, Any] = {}

    def begin_round(self) -> None:
        """Forget the answers of the previous round."""
        self._answers.clear()

    def clock(self) -> float:
        """Return the time, which stands still within a round."""
        return self._once("clock", time.monotonic)

    def partitions(self) -> list[TopicPartition]:
        """See `Cluster`."""
        return self._once("partitions", super().partitions)

    def topic_ids(self, places: Iterable[TopicPartition]) -> dict[str, str]:
        """See `Cluster`."""
        wanted = list(places)
        return self._once(("ids", *wanted), lambda: Cluster.topic_ids(self, wanted))

    def beginnings(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """See `Cluster`."""
        wanted = list(places)
        return self._once(("beginnings", *wanted), lambda: Cluster.beginnings(self, wanted))

    def ends(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """See `Cluster`."""
        wanted = list(places)
        return self._once(("ends", *wanted), lambda: Cluster.ends(self, wanted))

    def truncated(
        self, positions: Mapping[TopicPartition, LogPosition]
    ) -> dict[TopicPartition, LogPosition | None]:
        """See `Cluster`."""
        wanted = tuple(positions.items())
        return self._once(("truncated", *wanted), lambda: Cluster.truncated(self, positions))

    def high_watermarks(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """See `Cluster`."""
        wanted = list(places)
        return self._once(("high", *wanted), lambda: Cluster.high_watermarks(self, wanted))

    def together_reports(
        self, group: str, places: Iterable[TopicPartition]
    ) -> dict[TopicPartition, TogetherReport]:
        """Return what workers have reported about all streams."""
        wanted = list(places)
        return self._once(("reports", group, *wanted), lambda: self.reports(group, wanted, _read_report))

    def _once(self, question: Any, ask: Callable[[], T]) -> T:
        if question not in self._answers:
            self._answers[question] = ask()
        answer: T = self._answers[question]
        return answer


class _StreamReader(KafkaStreamReader):
    """One stream's part of the planning."""

    def __init__(self, name: str, options: KafkaOptions, cluster: RoundCluster) -> None:
        super().__init__(options, cluster.clock)
        self._name = name
        self._cluster = cluster
        self._round = cluster

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_round": None}

    def _reports(self, group: str, places: Iterable[TopicPartition]) -> dict[TopicPartition, Report]:
        reports = self._round.together_reports(group, places)
        return {
            place: Report(one.query, one.known[self._name])
            for place, one in reports.items()
            if self._name in one.known
        }


class TogetherReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Micro-batches of offsets; each stream has its own, with its own state of each partition."""

    def __init__(self, options: Mapping[str, KafkaOptions], filling: bool) -> None:
        self._options = options
        self._filling = filling
        self._end_file = next(iter(options.values())).end_file
        self._ending = False
        self._planning: tuple[RoundCluster, dict[str, _StreamReader]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        # The workers get a copy without connections.
        return {**self.__dict__, "_planning": None}

    def _begin_round(self) -> dict[str, _StreamReader]:
        """Begin a round of planning: return the streams' readers, with a fresh view of the cluster."""
        if self._planning is None:
            cluster = RoundCluster(next(iter(self._options.values())).unbounded())
            own = {name: replace(options, end_file=None) for name, options in self._options.items()}
            readers = {name: _StreamReader(name, options, cluster) for name, options in own.items()}
            self._planning = cluster, readers
        self._planning[0].begin_round()
        return self._planning[1]

    def initialOffset(self) -> dict[str, Any]:
        """Return where a new query begins."""
        query = uuid.uuid4().hex[:12]
        offsets = {n: Offsets.from_json(r.initialOffset()) for n, r in self._begin_round().items()}
        return _as_json({name: replace(one, query=query) for name, one in offsets.items()})

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return ``maxOffsetsPerTrigger``, if set."""
        return next(iter(self._begin_round().values())).getDefaultReadLimit()

    def prepareForTriggerAvailableNow(self) -> None:
        """From now on, read only up to the current ends."""
        self._ending = True
        for reader in self._begin_round().values():
            reader.prepareForTriggerAvailableNow()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return the ends of the partitions, for the query's progress."""
        return next(iter(self._begin_round().values())).reportLatestOffset()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return where the next micro-batch ends; `start` itself if no stream has anything to do.

        Raises `DefinitionChanged` for a checkpoint of other streams, or of another definition of one.
        """
        here, useful = self._offsets(start), False
        if not self._ending and self._end_file is not None and Path(self._end_file).exists():
            self.prepareForTriggerAvailableNow()
        ahead = {}
        for name, reader in self._begin_round().items():
            with in_stream(name):
                ahead[name], of_use = reader.ahead(here[name], limit)
                useful |= of_use
        if useful:
            return _as_json(ahead)
        if not self._ending or self._end_file is not None:
            time.sleep(_NOTHING_NEW_SECONDS)
        return start

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return a micro-batch's tasks. Raises `DefinitionChanged` if other definitions planned it."""
        before, there = self._offsets(start), self._offsets(end)
        by_place: dict[tuple[TopicPartition, ...], list[tuple[str, Task]]] = {}
        announced = {}
        for name, reader in self._begin_round().items():
            with in_stream(name):
                tasks = reader.partitions({}, there[name].to_json())
            for task in tasks:
                assert isinstance(task, Task)
                by_place.setdefault(tuple(r.place for r in task.ranges), []).append((name, task))
            if self._filling or there[name].watermark_us > before[name].watermark_us:
                announced[name] = there[name].watermark_us
        # A stream with nothing to read only announces its watermark, in any task.
        idle = by_place.pop((), [])
        first, *others = by_place.values() or [[]]
        return [TogetherTask((*first, *idle), announced), *(TogetherTask(tuple(own), {}) for own in others)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """In a worker: return the batches of one task."""
        assert isinstance(partition, TogetherTask)
        return _read_task(self._options, partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing: Spark's checkpoint has the offsets."""

    def stop(self) -> None:
        """Close the connections."""
        if self._planning is not None:
            self._planning[0].close()

    def _offsets(self, logged: Mapping[str, Any]) -> dict[str, Offsets]:
        by_name = offsets_of(logged)
        if by_name.keys() != self._options.keys():
            there, here = (", ".join(map(repr, names)) for names in (by_name, self._options))
            raise DefinitionChanged(
                f"the checkpoint was made by the streams {there}, and there are {here} now. Give these "
                "another checkpoint folder, or undo the change"
            )
        return by_name


def offsets_of(logged: Mapping[str, Any]) -> dict[str, Offsets]:
    """Parse each stream's offsets from Spark's log. Raises `ValueError` for another source's checkpoint."""
    streams = logged.get("streams")
    if not isinstance(streams, Mapping):
        raise ValueError(
            f"the checkpoint is not one of streams that run together: {str(logged)[:200]}; give the query a "
            "checkpoint folder of its own"
        )
    return {name: Offsets.from_json(fields) for name, fields in streams.items()}


def _as_json(offsets: Mapping[str, Offsets]) -> dict[str, Any]:
    return {"streams": {name: one.to_json() for name, one in offsets.items()}}


def _read_task(options: Mapping[str, KafkaOptions], task: TogetherTask) -> Iterator[pa.RecordBatch]:
    plan = TogetherPartials({name: own.stream for name, own in options.items() if own.stream is not None})
    accounts = {name: part.idle_account for name, part in task.parts}
    messages = dict.fromkeys(accounts, 0)
    work = {name: part for name, part in task.parts if part.ranges}
    for name, known, delta in _read_range(options, work) if work else ():
        accounts[name] += known.account
        messages[name] += delta.account.read
        yield from plan.batches_of(name, delta)
    freeze_imports()
    for name, part in task.parts:
        closed_us = task.announced.get(name)
        yield from plan.announcement(name, accounts[name], messages[name], part.lag, closed_us)


def _read_range(
    options: Mapping[str, KafkaOptions], work: Mapping[str, Task]
) -> list[tuple[str, Known, Delta]]:
    """Sketch a task's range for each stream; report what is known at its end."""
    ranges = {name: task.ranges[0] for name, task in work.items()}
    r = _same_range(ranges)
    first = options[next(iter(work))]
    headers = any(options[name].reads_headers for name in work)
    letters = Letters(first)
    with with_tables(*(own for name in work if (own := options[name].stream) is not None)) as bound:
        streams, buffers = dict(zip(work, bound)), {}
        for name, task in work.items():
            with in_stream(name):
                buffers[name] = RangeBuffer(options[name], streams[name], ranges[name], task)
        # Each stream replays earlier rows for its own ids, and ranges for which it has no report.
        for name, buffer in buffers.items():
            for messages in reading(options[name], r.place, buffer.begin, r.start, BATCH_MESSAGES):
                with in_stream(name):
                    buffer.add(messages)
                letters.take(buffer.intake, r.start)
        intakes = {name: buffer.intake for name, buffer in buffers.items()}
        shared = SharedDecoding(streams, intakes)
        for messages in reading(replace(first, headers=headers), r.place, r.start, r.end, BATCH_MESSAGES):
            shared.sketch(messages)
            letters.take_of_all(list(intakes.values()), r.start)
        results = []
        for name, buffer in buffers.items():
            with in_stream(name):
                results.append((name, *buffer.finish()))
        letters.take_of_all(list(intakes.values()), r.start)
        letters.deliver()
    query = next(iter(work.values())).query
    text = _report_text(query, {name: known.to_list() for name, known, _ in results})
    report_known(first, group_of(first, query), r.place, r.end, text)
    return results


def _same_range(ranges: Mapping[str, Range]) -> Range:
    """Return the range that all streams share. Raises `RunError` if their ranges differ."""
    first, *others = ranges.values()
    if any((r.place, r.start, r.end) != (first.place, first.start, first.end) for r in others):
        raise RunError(
            f"streams that run together are at different offsets of {first.place[0]}-{first.place[1]}: "
            + ", ".join(f"{name} reads {r.start} to {r.end}" for name, r in ranges.items())
        )
    return first


def _report_text(query: str, known: Mapping[str, Sequence[int]]) -> str:
    return json.dumps({"streamgauge": 1, "query": query, "streams": dict(known)}, separators=(",", ":"))


def _read_report(text: str | None) -> TogetherReport | None:
    """Parse the text of `_report_text`; None for anything else."""
    try:
        fields = json.loads(text or "")
        known = {name: Known.from_list(numbers) for name, numbers in fields["streams"].items()}
        return TogetherReport(str(fields["query"]), known)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
