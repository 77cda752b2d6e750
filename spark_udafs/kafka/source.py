"""``streamgauge-kafka``: reads, decodes and sketches Kafka inside Spark's Python workers.

    register(spark)
    spark.readStream.format("streamgauge-kafka").option("kafka.bootstrap.servers", "localhost:9092")
        .option("subscribe", "posts").load()

By itself, the source returns messages with the columns and options of Spark's own Kafka source. Bound to a
stream (`bound`), it returns that stream's rows, or partial sketches of them, which `merge.merge_plan` merges;
`run.on_spark` does both, so that no row enters the JVM.

Spark's checkpoint holds the offsets, the ids of their topics, and the definition that read them. Reading the
same range of offsets again produces the same rows and the same sketches.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ...operators.archive.archived_source import recordings_of
from ...operators.consumer.forwarding_options import forwarding_partitions
from ...operators.consumer.group.co_partitioning import partners_of
from ...operators.consumer.worker.partition_recovery import counted_and_gone
from ...operators.definition.stream import Stream
from ...operators.kafka.reader import LogPosition, LogTruncated
from ...operators.kafka.topics import admin, ensure_topic
from ...operators.secrets import Settings
from ...operators.sketching.dead_letters import TOPIC_CONFIG as DEAD_LETTERS
from ...operators.watermarks.clock import wall_clock
from ...operators.watermarks.global_watermark import Mark, closing_times, update_idleness
from ...operators.watermarks.idle_timer import IdleTimer, Rest
from ...operators.watermarks.position import Input, Position
from ...operators.windows.window import EARLIEST, YEAR_10000
from ...sketches.core.errors import RunError
from ..definitions import check_same, pack
from ..read_limits import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
    need_limits,
)
from ..worker_errors import raised_alone
from .admission import Pace
from .bounds import check_order
from .cluster import Cluster, Report, read_report
from .offsets import Known, Offsets, TopicPartition, last_window_end, share
from .options import KafkaOptions
from .planning import group_of, plan_tasks
from .stream_checks import check_readable, check_rows
from .tasks import columns_of, read_task

if TYPE_CHECKING:
    from .sink import KafkaBatchWriter, KafkaStreamWriter

log = logging.getLogger("streamgauge.kafka")

NAME = "streamgauge-kafka"
_NOTHING_NEW_SECONDS = 0.05


class KafkaSketchSource(DataSource):
    """Kafka topics as messages, rows or partial sketches; the module's docstring shows how to use it."""

    label = NAME
    stream: Stream | None = None
    settings: Mapping[str, Any] = {}

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return cls.label

    @raised_alone()
    def schema(self) -> StructType:
        """The columns that the options request."""
        return from_arrow_schema(columns_of(self._parsed()))

    # Spark passes the argument of both by name.
    @raised_alone()
    def reader(self, schema: StructType) -> DataSourceReader:
        """For ``spark.read``."""
        return KafkaBatchReader(self._parsed().bounded())

    @raised_alone()
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """For ``spark.readStream``. Raises `SparkTooOldError` with PySpark 4.1."""
        need_limits("Kafka messages")
        return KafkaStreamReader(self._parsed())

    @raised_alone()
    def writer(self, schema: StructType, overwrite: bool) -> KafkaBatchWriter:
        """For ``df.write``, which can only append to a topic."""
        if overwrite:
            raise ValueError('a topic can\'t be overwritten: use .mode("append")')
        # This import loads Polars, which a process that forks others must not do (`preload_server`).
        from .sink import KafkaBatchWriter, SinkOptions

        return KafkaBatchWriter(SinkOptions.parse(self.options), schema)

    @raised_alone()
    def streamWriter(self, schema: StructType, overwrite: bool) -> KafkaStreamWriter:
        """For ``df.writeStream``."""
        from .sink import KafkaStreamWriter, SinkOptions

        return KafkaStreamWriter(SinkOptions.parse(self.options), schema)

    def _parsed(self) -> KafkaOptions:
        options = KafkaOptions.parse(self.options, self.stream, self.settings)
        if options.emit == "rows" and options.stream is not None:
            check_rows(options.stream)
        return options


def bound(stream: Stream, settings: Mapping[str, Any]) -> type[KafkaSketchSource]:
    """Return a source for one stream, read with librdkafka's `settings`, under a name of its own.

    Spark shows a source's name and options in plans, events and statements, but never the pickled class. So
    the class carries the stream and its settings, including passwords.

    Raises what `check_readable` does.
    """
    check_readable(stream)
    label = f"{NAME}-{uuid.uuid4().hex[:8]}"
    # A class outside a module is pickled whole, not by name.
    members = {"label": label, "stream": stream, "settings": Settings(settings)}
    return type(KafkaSketchSource.__name__, (KafkaSketchSource,), members)


class KafkaBatchReader(DataSourceReader):
    """A bounded range of offsets, read once."""

    def __init__(self, options: KafkaOptions) -> None:
        self._options = options

    @raised_alone()
    def partitions(self) -> Sequence[InputPartition]:
        """Return one task per partition; more if ``minPartitions`` requests them and rows are emitted."""
        options = self._options
        begin, ends = self._archived() if options.archive is not None else self._in_topics()
        check_order(begin, ends)
        known = {place: Known(Position(at)) for place, at in begin.items()}
        last = _waits(options)
        return plan_tasks(options, Offsets("", ends, begin, known, clock_us=_now_us(), last=last))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """In a worker: return the batches of one task."""
        return read_task(self._options, partition)  # type: ignore[arg-type]

    def _in_topics(self) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        """Return where each partition of the topics begins and ends for this read."""
        options = self._options
        cluster = Cluster(options)
        places = cluster.partitions()
        _ensure_letters(options, places)
        begin = cluster.resolve(places, options.starting or "earliest")
        ends = cluster.resolve(places, options.ending or "latest", "endingOffsets")
        cluster.close()
        return begin, ends

    def _archived(self) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        """Return the same for the partitions of an archive: everything that they contain."""
        assert self._options.stream is not None
        bounds = {
            (recording.topic, partition): recording.bounds(partition)
            for source in self._options.stream.reading.kafka_sources
            for recording in recordings_of(source)
            for partition in range(recording.n_partitions)
        }
        return {p: at for p, (at, _) in bounds.items()}, {p: end for p, (_, end) in bounds.items()}


class KafkaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Micro-batches of offsets, planned in one process and read in the workers.

    Workers commit what they learn about a partition (its event time, its account) to Kafka, with the offset
    that they have reached, and the next batch adds it to Spark's log. If it gets lost, a worker reads the
    previous batch once more.
    """

    def __init__(self, options: KafkaOptions, clock: Callable[[], float] = time.monotonic) -> None:
        self._options = options
        self._clock = clock
        self._cluster: Cluster | None = None
        self._target: dict[TopicPartition, int] | None = None
        self._marks: dict[TopicPartition, Mark] = {}
        self._silences: dict[TopicPartition, IdleTimer] = {}
        self._heard: dict[TopicPartition, int] = {}
        self._held_up: set[TopicPartition] = set()
        self._gone: dict[TopicPartition, int] = {}
        self._late_before: int | None = None
        self._warned_of_closed = False
        self._pace = Pace(options.min_per_trigger, options.max_delay_seconds)
        self._looked = False
        self._sent = 0
        self._reporting: set[TopicPartition] = set()
        self._cut: dict[TopicPartition, int] = {}
        self._whole: set[tuple[TopicPartition, int, int]] = set()
        stream = options.stream if options.emit == "sketches" else None
        self._definition = None if stream is None else pack(stream.definition())

    def __getstate__(self) -> dict[str, Any]:
        # Workers get a copy without connections.
        return {**self.__dict__, "_cluster": None, "_clock": time.monotonic}

    @property
    def _kafka(self) -> Cluster:
        if self._cluster is None:
            # Not in the constructor: Spark hides errors raised there behind one of its own.
            self._cluster = Cluster(self._options.unbounded())
        return self._cluster

    @raised_alone()
    def initialOffset(self) -> dict[str, Any]:
        """Return where a new query begins."""
        options, kafka = self._options, self._kafka
        places = kafka.partitions()
        _ensure_letters(options, places)
        topics = kafka.topic_ids(places)
        begin = kafka.resolve(places, options.starting or "latest")
        query = uuid.uuid4().hex[:12]
        return Offsets(query, begin, topics=topics, definition=self._definition).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return ``maxOffsetsPerTrigger``, if set."""
        most = self._options.max_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:
        """From now on, read only up to the current ends."""
        self._target = self._kafka.ends(self._kafka.partitions())

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return the ends of the partitions, for the query's progress."""
        return Offsets("", self._kafka.ends(self._kafka.partitions())).to_json()

    @raised_alone()
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return where the next micro-batch ends; `start` itself if there is nothing to do.

        Raises `DefinitionChanged` for a checkpoint of another definition.
        """
        ahead, useful = self.ahead(Offsets.from_json(start), limit)
        return ahead.to_json() if useful else self._nothing(start)

    def ahead(self, here: Offsets, limit: ReadLimit) -> tuple[Offsets, bool]:
        """Return where the next micro-batch ends, and whether it would do anything.

        Raises `DefinitionChanged` for a checkpoint of another definition.
        """
        check_same(here.definition, self._definition)
        ending = self._options.end_file
        if self._target is None and ending is not None and Path(ending).exists():
            self.prepareForTriggerAvailableNow()
        here, begin, there = self._waiting(here)
        self._looked = True
        ends = share(begin, there, limit.max_rows) if isinstance(limit, ReadMaxRows) else there
        if self._target is None and not self._pace.enough(_between(begin, there), self._clock()):
            ends = begin
        drained = all(ends[place] == begin[place] for place in ends)
        if self._options.emit != "sketches":
            return replace(here, ends=ends, begin=begin, epochs=self._epochs(ends)), not drained
        known = self._known(here, {**begin, **self._cut})
        for place in self._cut:
            known[place] = known[place].moved(min(begin[place], known[place].position.offset))
        last = drained and self._target is not None and self._options.close_at_end
        mark = max(here.watermark_us, self._watermark(known, last))
        # If a report was lost, rows are read once more, and judged by the watermark that applied before.
        again = any(k.position.offset < begin[place] for place, k in known.items() if place not in self._gone)
        if again:
            mark = here.watermark_us
        useful = not drained or self._is_news(here, known, mark)
        # Only once, because reports may be lost for good.
        useful |= again and here.ends != here.begin
        ahead = replace(here, ends=ends, begin=begin, known=known, watermark_us=mark, clock_us=_now_us())
        ahead = replace(ahead, definition=self._definition, lag=_between(ends, there))
        ahead = replace(ahead, epochs=self._epochs(ends))
        self._warn_of_closed(here, known)
        if last and mark > EARLIEST:
            ahead = replace(ahead, closed_us=mark)
        return replace(ahead, last=last and _waits(self._options)), useful

    @raised_alone()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return a micro-batch's tasks; if there is nothing to read, a single task that only announces.

        Raises `DefinitionChanged` for an unfinished batch that another definition planned.
        """
        there = Offsets.from_json(end)
        check_same(there.definition, self._definition)
        # A batch that an earlier query left unfinished.
        if not self._looked:
            there = self._still_there(there)
        tasks = [
            replace(task, sent_partitions=self._sent_partitions(there))
            for task in plan_tasks(self._options, there)
        ]
        self._reporting = {r.place for task in tasks for r in task.ranges if task.query}
        return tasks

    def _sent_partitions(self, batch: Offsets) -> int:
        """Return the number of partitions of the topic to which rows are forwarded; 0 if there is none."""
        stream = self._options.stream
        if stream is not None and stream.sending is not None and not self._sent:
            inputs = Counter(topic for topic, _ in batch.ends)
            self._sent = forwarding_partitions(stream, admin(self._options.config), inputs)
        return self._sent

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """In a worker: return the batches of one task."""
        return read_task(self._options, partition)  # type: ignore[arg-type]

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing: Spark's checkpoint has the offsets."""

    def stop(self) -> None:
        """Close the connections."""
        if self._cluster is not None:
            self._cluster.close()

    def _waiting(self, here: Offsets) -> tuple[Offsets, dict[TopicPartition, int], dict[TopicPartition, int]]:
        """Return `here`, updated for recreated topics, and where each partition resumes and ends."""
        kafka = self._kafka
        places = kafka.partitions()
        here = self._restart_recreated(here, places)
        ends = kafka.ends(places)
        gone = [place for place in here.ends if place not in ends]
        begin = {place: here.ends[place] for place in places if place in here.ends}
        appeared = [place for place in places if place not in begin]
        _ensure_letters(self._options, appeared)
        begin.update(kafka.beginnings(appeared))
        here = self._check_truncated(here, begin)
        lost = [f"{t}-{p} is gone" for t, p in gone]
        lost += [
            f"{t}-{p} ends at {ends[t, p]}, before {at}" for (t, p), at in begin.items() if ends[t, p] < at
        ]
        if lost:
            self._losing("; ".join(lost))
        self._gone = {place: here.ends[place] for place in gone}
        for place in gone:
            begin[place] = ends[place] = here.ends[place]
        # A recreated topic is read from its beginning.
        begin.update(kafka.beginnings([place for place, at in begin.items() if ends[place] < at]))
        if self._target is not None:
            ends = {place: min(end, self._target.get(place, 0)) for place, end in ends.items()}
        return here, begin, {place: max(end, begin[place]) for place, end in ends.items()}

    def _restart_recreated(self, here: Offsets, places: Sequence[TopicPartition]) -> Offsets:
        """Update `here` for the topics that exist now; a recreated topic begins again.

        The account continues from the logged one, because the last batch's reports were lost with the topic.
        """
        ids = self._kafka.topic_ids(places)
        recreated = self._changed(here, ids)
        if not recreated:
            return replace(here, topics={**here.topics, **ids})
        begin = self._kafka.beginnings([place for place in places if place[0] in recreated])
        return replace(
            here,
            ends={**here.ends, **begin},
            known={**here.known, **_moved_to(begin, here.known)},
            topics={**here.topics, **ids},
            epochs={place: epoch for place, epoch in here.epochs.items() if place not in begin},
        )

    def _epochs(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the epochs of the leaders whose logs reach these partitions' ends."""
        return {place: epoch for place in places if (epoch := self._kafka.epochs.get(place, -1)) >= 0}

    def _check_truncated(self, here: Offsets, begin: dict[TopicPartition, int]) -> Offsets:
        """Rewind partitions whose logs have lost messages that were read, and count these, if so configured.

        Otherwise, raises `LogTruncated`.
        """
        now = self._kafka.epochs
        moved = {
            place: LogPosition(begin[place], epoch)
            for place, epoch in here.epochs.items()
            if place in begin and now.get(place, epoch) != epoch
        }
        unchecked = {
            place: at for place, at in moved.items() if (place, at.offset, now[place]) not in self._whole
        }
        lost = self._kafka.truncated(unchecked) if unchecked else {}
        self._whole |= {(place, at.offset, now[place]) for place, at in moved.items() if place not in lost}
        self._cut = {place: begin[place] for place in lost}
        for place, end in lost.items():
            error = counted_and_gone(
                LogTruncated(place, begin[place], None if end is None else end.offset),
                begin[place],
                'set the option truncated to "continue"',
            )
            if end is None or self._options.truncated == "stop":
                raise error
            log.warning("%s", error)
            begin[place] = end.offset
        gone = sum(at - begin[place] for place, at in self._cut.items())
        return replace(here, truncated=here.truncated + gone)

    def _still_there(self, batch: Offsets) -> Offsets:
        """Remove ranges of since recreated topics from a planned batch."""
        recreated = self._changed(batch, self._kafka.topic_ids(batch.ends))
        gone = {place: end for place, end in batch.ends.items() if place[0] in recreated}
        return replace(
            batch, begin={**batch.begin, **gone}, known={**batch.known, **_moved_to(gone, batch.known)}
        )

    def _changed(self, offsets: Offsets, ids: Mapping[str, str]) -> set[str]:
        """Return the topics that were recreated since. Raises `RunError` if failOnDataLoss is set."""
        recreated = {topic for topic, new in ids.items() if offsets.topics.get(topic, new) != new}
        if recreated:
            self._losing(
                "; ".join(f"the topic {topic!r} is not the one read before" for topic in sorted(recreated))
            )
        return recreated

    def _losing(self, what: str) -> None:
        if self._options.fail_on_data_loss:
            raise RunError(
                f"messages are lost: {what}. The topic was deleted or recreated; start with a new "
                "checkpoint, or set the option failOnDataLoss to false to continue with the remaining ones"
            )

    def _known(self, here: Offsets, begin: dict[TopicPartition, int]) -> dict[TopicPartition, Known]:
        """Return what is known about each partition, if possible at the offset from which it resumes."""
        group = group_of(self._options, here.query)
        reported = self._reports(group, begin) if here.known and begin else {}
        if any(place in reported and reported[place].query != here.query for place in self._reporting):
            raise RunError(
                f"another query reports to the consumer group {group!r} at the same time; give each query "
                "its own by the option kafka.group.id, or leave that out and give a groupIdPrefix"
            )
        known = {
            place: reported[place].known
            for place, at in begin.items()
            if place in reported
            and (reported[place].query, reported[place].known.position.offset) == (here.query, at)
        }
        for place in self._known_alone(known, begin):
            del known[place]
        for place, at in begin.items():
            if place not in known:
                logged = here.known.get(place, Known(Position(at))).floored(here.watermark_us)
                known[place] = logged if logged.position.offset <= at else logged.moved(at)
        return known

    def _reports(self, group: str, places: Iterable[TopicPartition]) -> dict[TopicPartition, Report]:
        """Return what workers have reported about these partitions."""
        return self._kafka.reports(group, places, read_report)

    def _known_alone(
        self, known: Mapping[TopicPartition, Known], begin: Mapping[TopicPartition, int]
    ) -> list[TopicPartition]:
        """Return a join's partitions whose report doesn't match the offset where their partner resumes."""
        if self._options.stream is None or self._options.stream.reading.joined is None:
            return []
        if self._options.stream.reading.joined.of_itself:
            return []
        alone = []
        for place, k in known.items():
            (other,) = partners_of(self._options.stream, Input(*place))
            together = other in known and k.partner is not None and k.partner.offset == begin[other]
            mutual = known[other].partner if together else None
            if mutual is None or mutual.offset != begin[place]:
                alone.append(place)
        return alone

    def _watermark(self, known: dict[TopicPartition, Known], last: bool) -> int:
        stream = self._options.stream
        assert stream is not None and stream.window is not None
        if not stream.window.of_time and stream.sending is None:
            self._listen(known)
            return EARLIEST
        if last and stream.sending is None:
            # Spark's watermark has whole milliseconds.
            return -(-last_window_end(known, stream.window) // 1_000) * 1_000
        self._listen(known)
        if stream.sending is not None:
            return EARLIEST  # there are no windows
        # Spark emits a window once, so a window that closes for now is closed for good here.
        return closing_times(self._marks.values(), stream.window, stream.closing_delay_us).due_us

    def _listen(self, known: dict[TopicPartition, Known]) -> None:
        """Update which partitions are silent, by the consumer's rules (`global_watermark`)."""
        now, patience = self._clock(), self._options.idle_timeout_ms / 1000
        for place, k in known.items():
            if place not in self._marks:
                self._marks[place], self._silences[place] = Mark(), IdleTimer(now)
            elif k.heard != self._heard[place]:
                self._silences[place].heard(now)
            self._heard[place] = k.heard
            self._marks[place].position = k.position
        over = self._gone
        if self._target is not None:
            over = {place: self._target.get(place, 0) for place in known}
        quiet = [
            place for place in known if place not in over and self._silences[place].since(now) >= patience
        ]
        ends = self._kafka.high_watermarks(quiet)
        for place, k in known.items():
            rest, offset = None, k.position.offset
            if place in over and offset >= over[place]:
                rest = _rest(self._silences[place].since(now), 0.0)
            elif place in ends:
                silent = self._silences[place].update(offset, ends[place], now)
                rest = _rest(silent, max(patience, 1e-6)) if silent >= patience else None
            if rest is not None and k.partner is not None and k.partner.holds:
                self._warn_held_up(place)
                rest = None
            update_idleness(self._marks, place, rest)

    def _warn_held_up(self, place: TopicPartition) -> None:
        """Warn, once, about a silent partition if only its rows can show that other rows have no partner."""
        if place not in self._held_up and place not in (self._target or {}):
            self._held_up.add(place)
            log.warning(
                "%s-%s is silent, and rows of the stream that it is joined with wait to learn from it that "
                "they have no partner: their windows stay open until it has a message with a later time",
                *place,
            )

    def _warn_of_closed(self, here: Offsets, known: dict[TopicPartition, Known]) -> None:
        """Warn, once, about late rows after a run that closed its last windows although rows could follow."""
        late = sum(each.account.late for each in known.values())
        if self._late_before is None:
            self._late_before = late
        elif self._late_before < late and here.closed_us > EARLIEST and not self._warned_of_closed:
            self._warned_of_closed = True
            log.warning(
                "%d rows of this run are late so far: an earlier run, with close_at_end=True, closed all "
                "windows that end at or before %s for good; leave close_at_end out if runs follow each other",
                late - self._late_before,
                datetime.fromtimestamp(min(here.closed_us, YEAR_10000 - 1) / 1e6, UTC).isoformat(),
            )

    def _is_news(self, here: Offsets, known: dict[TopicPartition, Known], mark: int) -> bool:
        """Whether a micro-batch without messages is useful: it closes windows, or completes accounts."""
        stream = self._options.stream
        assert stream is not None and stream.window is not None
        closes = stream.window.pane_start(mark) > stream.window.pane_start(here.watermark_us)
        # Sessions also end between pane borders; nothing else advances time while all partitions are idle.
        closes |= stream.window.of_time and mark > here.watermark_us and self._quiet()
        if closes or not here.known:
            return closes
        if self._target is None and not self._quiet():
            return False
        return known != here.known

    def _quiet(self) -> bool:
        """Whether all partitions are idle."""
        return all(mark.rest is not None for mark in self._marks.values())

    def _nothing(self, start: dict[str, Any]) -> dict[str, Any]:
        """Wait a little before reporting that there is nothing to do: Spark asks again immediately."""
        if self._target is None or self._options.end_file is not None:
            time.sleep(_NOTHING_NEW_SECONDS)
        return start


def _ensure_letters(options: KafkaOptions, places: Sequence[TopicPartition]) -> None:
    """Create the topics for these partitions' dead letters and late messages if missing."""
    topics = {topic for topic, _ in places}
    names = {*map(options.letters_of, topics), *map(options.late_messages_of, topics)}
    for letters in sorted(name for name in names if name):
        ensure_topic(admin(options.config), letters, 1, DEAD_LETTERS)


def _moved_to(
    places: Mapping[TopicPartition, int], known: Mapping[TopicPartition, Known]
) -> dict[TopicPartition, Known]:
    """Move what is known about these partitions to other offsets."""
    return {place: known[place].moved(at) for place, at in places.items() if place in known}


def _waits(options: KafkaOptions) -> bool:
    """Whether rows of a join wait for partners, and are emitted without one at the end."""
    stream = options.stream if options.emit == "sketches" else None
    if stream is None or stream.reading.joined is None or stream.sending is not None:
        return False
    return stream.reading.joined.how != "inner"


def _between(here: Mapping[TopicPartition, int], there: Mapping[TopicPartition, int]) -> int:
    """Return the number of offsets between the two."""
    return sum(there[place] - at for place, at in here.items())


def _rest(silent: float, patience: float) -> Rest:
    return Rest(int(silent * 1e6), int(patience * 1e6), _now_us())


def _now_us() -> int:
    return int(wall_clock() * 1e6)
