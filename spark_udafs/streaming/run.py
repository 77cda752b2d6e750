"""A stream's definition on Spark: `on_spark` returns its table of sketches, `write` sends it to sinks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from pyspark.sql import DataFrame, Row, SparkSession

from ...operators.archive.archived_source import check_over_archive
from ...operators.consumer.group.input_topics import check_apart
from ...operators.definition.stream import Stream
from ...operators.sinks.sink import SinkError
from ...operators.sketching.account import Account
from ...operators.table.sketch_table import SketchTable
from ...sketches.core.errors import StreamgaugeError
from ..definitions import check_logged, closed_by, label_of, labelled, unpack
from ..frames.tables import as_table
from ..kafka.offsets import Offsets
from ..kafka.options import EACH
from ..kafka.source import bound
from ..kafka.stream_checks import check_sending
from ..merge.merge_plan import OBSERVED, merge_announced, plan_of
from ..merge.partials import ACCOUNT, Mode
from ..read_limits import need_limits
from ..session.preload_server import prepare_server
from ..session.worker_interpreter import check_worker_python
from ..slow_starts import patiently
from .query_handle import Running
from .shuffle_partitions import few_partitions
from .sinks import Batch, Sink


def on_spark(
    stream: Stream,
    spark: SparkSession,
    *,
    streaming: bool = True,
    start: Literal["earliest", "latest"] | Mapping[str, Mapping[str, int]] = "earliest",
    max_per_trigger: int | None = None,
    dead_letters: str | None = "",
    late: str | None = None,
    idle_seconds: float = 5.0,
    close_at_end: bool = False,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Return the table of sketches of a Kafka stream as a DataFrame, merged in Spark, with windows closed by
    event time.

    Spark's Python workers read, decode and sketch; only partial sketches reach the JVM. Overlapping windows
    are composed of panes, in which each row is sketched once. Each window is emitted once, in append mode,
    when it is complete: when all partitions' event time has passed its end by the stream's delay. Partitions
    that are silent for `idle_seconds` don't hold windows open; `Stream.tumbling` describes the promises.
    Unlike on the consumer, a window is final when it is emitted, even if only silence has closed it. Rows of
    the backlog after a pause are therefore late if they belong to the window that the pause has closed. Raise
    `idle_seconds` to sit out longer pauses.

    With the trigger ``availableNow``, windows that are incomplete at the end of a run stay open for the next
    one, so a scheduled query counts like one that never stops. With ``close_at_end=True`` they are closed and
    emitted for good at the end: rows that a later run finds for them are late, and it warns once.

    A stream may read several topics, by name or by pattern, and merge streams of several formats. A newly
    matching topic is read from its beginning, starting with the next micro-batch.

    `start` is where a new query begins, `max_per_trigger` the largest number of offsets per micro-batch.
    `dead_letters` names the topic for messages that can't be counted (``"<topic>.dead-letters"`` by default,
    one for each topic; None drops them), `late` the topic for messages whose windows are all over
    (``"<topic>.late-messages"`` if empty; None only counts them). `options` are further options of the
    source, with Spark's names: ``failOnDataLoss``, or ``groupIdPrefix``, the prefix of the consumer groups in
    which queries store the reports of their workers. With ``streaming=False`` the data that exists now is
    read once, as an ordinary DataFrame.

    Joins are the consumer's own (docs/spark_streams.md): tables are held in each Python worker, and the rows
    of two streams are matched there. For a stream that ends with `rows_to_kafka` the table stays empty, and
    the query that `write` starts sends the rows, each once.

    A checkpoint belongs to one definition: if a query finds another definition, or recreated topics, it ends
    with an error that names the difference before it reads anything. Spark shows neither the stream's
    settings nor its definition in plans, events or its pages.

    Columns that Catalyst's own aggregates can't merge are merged by our own merge, in buckets of groups
    (`merge.merge_plan`); in a stream this needs state in RocksDB, which `spark_udafs.session.session.session`
    sets.

    Raises `TypeError` for a stream of frames and for columns of types that Spark doesn't have; `ValueError`
    for steps that only the consumer supports (docs/spark_streams.md has the table), for dead letters that
    would be read as input, and if state has to be in RocksDB and isn't; and what `source_of` raises.
    """
    if streaming:
        need_limits(f"the topic {stream.reading.in_words()}")
    plan = plan_of(stream.complete())
    if stream.reading.reads_archive:
        check_over_archive(stream)
        if streaming:
            raise ValueError(
                "this stream reads an archive, which ends: write .on_spark(spark, streaming=False)"
            )
        dead_letters = late = None
    given, settings = source_options(
        stream, start, max_per_trigger, dead_letters, late, idle_seconds, close_at_end, options
    )
    check_sending(stream, streaming, given.get("deadLetterTopic"))
    source = source_of(stream, spark, settings)
    reader = spark.readStream if streaming else spark.read
    loading = reader.format(source).options(**given)
    partials = patiently(f"the stream of {stream.reading.in_words()}", loading.load)
    return labelled(merge_announced(partials, plan), stream.definition())


def source_options(
    stream: Stream,
    start: str | Mapping[str, Mapping[str, int]],
    max_per_trigger: int | None,
    dead_letters: str | None,
    late: str | None,
    idle_seconds: float,
    close_at_end: bool,
    options: Mapping[str, str] | None,
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the source's options for the arguments of `on_spark`, and the librdkafka settings among them.

    Raises `ValueError` for dead letters and late messages that would be read as input.
    """
    more = dict(options or {})
    settings = {name[len("kafka.") :]: more.pop(name) for name in list(more) if name.startswith("kafka.")}
    topic = EACH if stream.reading.reads_several else stream.reading.kafka_source.topic
    letters = f"{topic}.dead-letters" if dead_letters == "" else dead_letters
    late_messages = f"{topic}.late-messages" if late == "" else late
    check_apart(stream.reading.kafka_sources, [letters, late_messages])
    given = {
        "startingOffsets": start if isinstance(start, str) else json.dumps(start),
        "idleTimeout": str(int(idle_seconds * 1000)),
        "closeAtEnd": str(close_at_end).lower(),
    }
    if not stream.reading.reads_several:
        given["subscribe"] = topic
    if max_per_trigger is not None:
        given["maxOffsetsPerTrigger"] = str(max_per_trigger)
    if letters is not None:
        given["deadLetterTopic"] = letters
    if late_messages is not None:
        given["lateTopic"] = late_messages
    return {**given, **more}, settings


def source_of(stream: Stream, spark: SparkSession, settings: Mapping[str, Any] = {}) -> str:
    """Register the source that reads a stream; returns its name, for ``spark.readStream.format(…)``.

    With the option ``emit="rows"`` it returns the stream's rows, transformed and not yet sketched. Messages
    that can't be decoded, and rows on which a step fails, go to the topic in the option ``deadLetterTopic``,
    or are dropped without it. `settings` override those of the stream's own Kafka source. Raises `TypeError`
    for a stream of frames, and `WorkerPythonError` for a session whose Python workers would run an
    interpreter without this package.
    """
    made = bound(stream, {**stream.reading.kafka_sources[0].settings, **settings})
    prepare_server([stream])
    check_worker_python(spark)
    spark.dataSource.register(made)
    return made.name()


def write(
    table: DataFrame,
    checkpoint: str | Path,
    *sinks: Sink,
    available_now: bool = False,
    every: str | None = None,
    name: str | None = None,
) -> Running:
    """Start a query that passes each micro-batch's closed windows to the sinks, in order; returns the query.

    `table` is the result of `on_spark` or `sketch`; `checkpoint` is a folder for this query only. A batch
    that is repeated after a crash has the same number and the same windows, and the sinks in
    `streaming.sinks` store it once. `every` is the time between micro-batches (as soon as possible by
    default); with `available_now` the query ends when everything that exists now is counted. Ctrl-C during
    ``awaitTermination()`` ends the query cleanly, with one line on the terminal. If Spark ends the query
    because a Python process took longer to start than Spark's ten seconds, the query is started again from
    its checkpoint, up to nine times, with a warning. An error of a sink ends the query with a `SinkError`
    that names the sink; ``awaitTermination()`` raises its message as `QueryFailed`.

    If the session doesn't set ``spark.sql.shuffle.partitions``, a new query gets two for each core instead of
    Spark's 200, nearly all of which would be empty tasks in every micro-batch; not with dynamic allocation.

    The output mode is the table's, ``"append"`` unless `sketch(df).outputMode` set another. Raises
    `ValueError` for a sink that would store repeated windows in that mode, and `TypeError` for anything that
    can't be called, such as the sinks of a consumer's run.

    >>> from tempfile import mkdtemp
    >>> import polars as pl
    >>> import streamgauge as sg
    >>> schema = {"user": pl.String, "lang": pl.String, "at": pl.String}
    >>> value, broker = sg.json(schema), "localhost:9092"
    >>> posts = sg.Stream.from_kafka("posts", value=value, time="at", bootstrap_servers=broker)
    >>> table = posts.group_by("lang").tumbling("1m").agg(posts=sg.count()).on_spark(spark)
    >>> folder = mkdtemp()
    >>> sink = sg.spark.SketchesToParquet(f"{folder}/windows")
    >>> query = sg.spark.write(table, f"{folder}/checkpoint", sink, available_now=True)
    >>> query.awaitTermination(), sg.spark.account_of(query).counted
    (True, 4)
    """
    check_sinks(sinks)
    mode = mode_of(table)
    for sink in sinks:
        if mode != "append" and getattr(sink, "once", False):
            raise ValueError(
                f"write: {type(sink).__name__} stores every window, but in {mode} mode windows "
                "are repeated as they change; use SketchesToTable(..., upsert=True), or your own function, "
                "to replace them"
            )
    known: dict[str, str] = {}
    clocked = [sink for sink in sinks if getattr(sink, "clocked", False)]

    def hand_on(frame: DataFrame, number: int) -> None:
        again = not known
        if again:
            check_logged(frame, str(checkpoint), number)
            known["id"] = query_id(frame.sparkSession, str(checkpoint))
        table = as_table(frame)
        if not (table.num_rows or clocked):
            return
        closed_us = closed_by(frame.sparkSession, str(checkpoint), number) if clocked else None
        for sink in sinks if table.num_rows else clocked:
            call_sink(sink, table, Batch(known["id"], number, again, closed_us))

    return started(table, mode, checkpoint, hand_on, known.clear, sinks, available_now, every, name)


def started(
    table: DataFrame,
    mode: Mode,
    checkpoint: str | Path,
    hand_on: Callable[[DataFrame, int], None],
    begun: Callable[[], None],
    sinks: Iterable[Sink],
    available_now: bool,
    every: str | None,
    name: str | None,
) -> Running:
    """Start a query that calls `hand_on` with each micro-batch, and `begun` whenever it starts."""
    writer = table.writeStream.outputMode(mode).option("checkpointLocation", str(checkpoint))
    if name is not None:
        writer = writer.queryName(name)
    if available_now:
        writer = writer.trigger(availableNow=True)
    elif every is not None:
        writer = writer.trigger(processingTime=every)

    def begin() -> Any:
        begun()
        with few_partitions(table.sparkSession):
            return writer.foreachBatch(hand_on).start()

    running = Running(patiently("write", begin), str(checkpoint), begin)
    for sink in sinks:
        if (beside := getattr(sink, "beside", None)) is not None:
            beside(running)
    return running


def call_sink(sink: Sink, table: SketchTable, batch: Batch) -> None:
    """Pass a table to a sink. Raises `SinkError` with the sink's name for what it raises."""
    try:
        sink(table, batch)
    except StreamgaugeError:
        raise
    except Exception as error:
        name = getattr(sink, "__name__", type(sink).__name__)
        raise SinkError(
            f"the sink {name} raised {type(error).__name__} in micro-batch {batch.number}: {error}"
        ) from error


def check_sinks(sinks: Iterable[Any]) -> None:
    """Raise `TypeError` for anything but a sink for Spark."""
    for sink in sinks:
        if not callable(sink):
            raise TypeError(
                f"write: {sink!r} is not a sink for Spark; use one from streamgauge.spark, such as "
                'streamgauge.spark.SketchesToParquet("windows")'
            )


def mode_of(table: DataFrame) -> Mode:
    """The output mode in which a streaming table of sketches emits its windows."""
    label = label_of(table)
    return "append" if label is None else unpack(label).get("mode", "append")


def query_id(spark: SparkSession, checkpoint: str) -> str:
    """Return the query's id, which Spark stores in its checkpoint."""
    (metadata,) = spark.read.text(f"{checkpoint.rstrip('/')}/metadata").collect()
    return str(json.loads(metadata[0])["id"])


def account_of(query: Any) -> Account:
    """The account of every message that a query has read since it first began, including restarts.

    During a micro-batch, this is the account after the previous one. A query that was restarted and has had
    nothing to do yet only knows the account as of the planning of its last batch. `write` shows an example:

    >>> from types import SimpleNamespace
    >>> import streamgauge as sg
    >>> sg.spark.account_of(SimpleNamespace(recentProgress=[]))
    Account(read=0, counted=0, filtered=0, late=0, dead_lettered=0)
    """
    progressed = query.recentProgress
    for progress in reversed(progressed):
        figures = observed_in(progress)
        if figures.get("read") is not None:
            truncated = max(map(_truncated, progress["sources"]), default=0)
            return Account(**{name: figures[name] for name in ACCOUNT}, truncated=truncated)
    for progress in reversed(progressed):
        for source in progress["sources"]:
            # Spark describes the source by a class of Spark's.
            with suppress(ValueError):
                return Offsets.from_json(json.loads(source["endOffset"] or "null")).account()
    return Account()


def _truncated(source: Any) -> int:
    """Return how many messages were read that logs have lost since; 0 for another package's source."""
    with suppress(ValueError):
        return Offsets.from_json(json.loads(source["endOffset"] or "null")).truncated
    return 0


def observed_in(progress: Any) -> dict[str, Any]:
    """Return the observed metrics of a micro-batch by name; nulls if the source took no part in it."""
    observed = progress["observedMetrics"].get(OBSERVED)
    return {} if observed is None else _by_name(observed)


def _by_name(observed: Row) -> dict[str, Any]:
    """Return observed metrics by name; Spark Connect has a row of values with a schema that names them."""
    by_name = observed.asDict()
    if by_name.keys() != {"values", "schema"}:
        return by_name
    return dict(zip((field["name"] for field in by_name["schema"]["fields"]), by_name["values"]))
