"""A stream's definition on Spark: `on_spark` gives its table of sketches, `write` sends that on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from pyspark.sql import DataFrame, Row, SparkSession

from ..operators.definition.stream import Stream
from ..operators.sketching.accounting import Account
from .definitions import check_logged, label_of, labelled, unpack
from .kafka.offsets import Offsets
from .kafka.readable import check_sketched
from .kafka.source import bound
from .kafka.tasks import plan_of
from .merge.partials import ACCOUNT, Mode
from .merge.plan import OBSERVED, merge_announced
from .running import Running
from .sinks import Batch, Sink
from .tables import as_table


def on_spark(
    stream: Stream,
    spark: SparkSession,
    *,
    streaming: bool = True,
    start: Literal["earliest", "latest"] | Mapping[str, Mapping[str, int]] = "earliest",
    max_per_trigger: int | None = None,
    dead_letters: str | None = "",
    idle_seconds: float = 5.0,
    close_at_end: bool = True,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The table of sketches of a Kafka stream as a DataFrame, merged in Spark, its windows closed in time.

    Spark's Python workers read, decode and sketch; only partial sketches reach the JVM. Each window is given
    out once, in append mode, when it is complete: when all partitions' event time has passed its end by the
    stream's delay. Partitions that are silent for `idle_seconds` hold nothing up; `Stream.tumbling` says what
    is promised. One thing is different from a consumer: a window is final when it is given out, one that only
    silence has closed as well, so rows of the backlog after a pause are late if they are of the window that
    the pause has cut. Raise `idle_seconds` to sit out longer pauses.

    With the trigger ``availableNow`` the last windows are closed at the end, and rows that later come for
    them are late; with ``close_at_end=False`` they stay open for the next run.

    `start` is where a new query begins, `max_per_trigger` the offsets a micro-batch reads at most;
    `dead_letters` names the topic for messages that can't be counted (``"<topic>.dead-letters"`` unless
    named; None drops them). `options` are further ones of the source, in Spark's names: ``failOnDataLoss``,
    or ``groupIdPrefix``, with which the names of the consumer groups begin in which queries keep what their
    workers report. With ``streaming=False`` what is in the topic now is read once, as an ordinary DataFrame.

    A checkpoint is of one definition: a query that finds another's, or topics that were made anew, ends with
    an error that tells what is different before it reads anything. Spark shows neither the stream's settings
    nor its definition in plans, events or its pages.

    What Catalyst's own aggregates can't merge, our own merge does, in buckets of groups (`merge.plan`); as a
    stream that needs state in RocksDB, which `spark_udafs.session.session` sets.

    Raises `TypeError` for a stream of frames and for columns of types that Spark doesn't have, `ValueError`
    for state that isn't in RocksDB where it has to be.
    """
    check_sketched(stream)
    plan = plan_of(stream.complete())
    more = dict(options or {})
    settings = {name[len("kafka.") :]: more.pop(name) for name in list(more) if name.startswith("kafka.")}
    source = source_of(stream, spark, settings)
    topic = stream.kafka_source.topic
    letters = f"{topic}.dead-letters" if dead_letters == "" else dead_letters
    given = {
        "subscribe": topic,
        "startingOffsets": start if isinstance(start, str) else json.dumps(start),
        "idleTimeout": str(int(idle_seconds * 1000)),
        "closeAtEnd": str(close_at_end).lower(),
    }
    if max_per_trigger is not None:
        given["maxOffsetsPerTrigger"] = str(max_per_trigger)
    if letters is not None:
        given["deadLetterTopic"] = letters
    reader = spark.readStream if streaming else spark.read
    partials = reader.format(source).options(**{**given, **more}).load()
    return labelled(merge_announced(partials, plan), stream.definition())


def source_of(stream: Stream, spark: SparkSession, settings: Mapping[str, Any] = {}) -> str:
    """Registers the source that reads a stream; gives its name, for ``spark.readStream.format(…)``.

    With the option ``emit="rows"`` it gives the stream's rows, transformed and not yet sketched. Messages
    that are none, and rows on which a step fails, go to the topic that the option ``deadLetterTopic`` names;
    they are dropped without one. `settings` go over those of the stream's own Kafka source. Raises
    `TypeError` for a stream of frames.
    """
    made = bound(stream, {**stream.kafka_sources[0].settings, **settings})
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
    """Start a query that hands each micro-batch's closed windows to the sinks, in order; gives the query.

    `table` is what `on_spark` or `sketch` gave; `checkpoint` is a folder for this query alone. A batch that
    is repeated after a crash comes with the same number and the same windows, and the sinks in
    `spark_udafs.sinks` take it once. `every` is the time between micro-batches (as soon as possible by
    default); with `available_now` the query ends by itself when everything that is there now is counted.
    Ctrl-C while ``awaitTermination()`` waits ends the query in order, with one line on the terminal.

    The output mode is that of the table, ``"append"`` unless `sketch(df).outputMode` said another. Raises
    `ValueError` for a sink that would keep windows which come again in that mode.

    >>> from tempfile import mkdtemp
    >>> import polars as pl
    >>> from streamgauge import ParquetSink, Stream, account_of, count, json
    >>> schema = {"user": pl.String, "lang": pl.String, "at": pl.String}
    >>> posts = Stream.from_kafka("posts", value=json(schema), time="at", bootstrap_servers="localhost:9092")
    >>> table = posts.group_by("lang").tumbling("1m").agg(posts=count()).on_spark(spark)
    >>> folder = mkdtemp()
    >>> sink = ParquetSink(f"{folder}/windows")
    >>> query = write(table, f"{folder}/checkpoint", sink, available_now=True)
    >>> query.awaitTermination(), account_of(query).counted
    (True, 4)
    """
    mode = mode_of(table)
    writer = table.writeStream.outputMode(mode).option("checkpointLocation", str(checkpoint))
    for sink in sinks:
        if mode != "append" and getattr(sink, "once", False):
            raise ValueError(
                f"write: {type(sink).__name__} keeps every window it is given, and in {mode} mode windows "
                "come again as they change; TableSink(..., upsert=True) replaces them, or a function of yours"
            )
    if name is not None:
        writer = writer.queryName(name)
    if available_now:
        writer = writer.trigger(availableNow=True)
    elif every is not None:
        writer = writer.trigger(processingTime=every)

    known: dict[str, str] = {}

    def hand_on(frame: DataFrame, number: int) -> None:
        again = not known
        if again:
            check_logged(frame, str(checkpoint), number)
            known["id"] = _query_id(frame.sparkSession, str(checkpoint))
        found = as_table(frame)
        if not found.num_rows:
            return
        for sink in sinks:
            sink(found, Batch(known["id"], number, again))

    running = Running(writer.foreachBatch(hand_on).start(), str(checkpoint))
    for sink in sinks:
        if (beside := getattr(sink, "beside", None)) is not None:
            beside(running)
    return running


def mode_of(table: DataFrame) -> Mode:
    """The output mode in which a streaming table of sketches gives out its windows."""
    label = label_of(table)
    return "append" if label is None else unpack(label).get("mode", "append")


def _query_id(spark: SparkSession, checkpoint: str) -> str:
    """The query's own name, which Spark gave it with its checkpoint."""
    (told,) = spark.read.text(f"{checkpoint.rstrip('/')}/metadata").collect()
    return str(json.loads(told[0])["id"])


def account_of(query: Any) -> Account:
    """What became of every message that a query has read since it first began, restarts included.

    While a micro-batch runs, this is the account of the previous one. A query that was started again and has
    found nothing to do yet knows only what was settled when its last batch was planned. `write` shows an
    example:

    >>> from types import SimpleNamespace
    >>> account_of(SimpleNamespace(recentProgress=[]))
    Account(read=0, counted=0, filtered=0, late=0, dead_lettered=0)
    """
    progressed = query.recentProgress
    for progress in reversed(progressed):
        observed = progress["observedMetrics"].get(OBSERVED)
        # A batch in which the source had no part observes nulls.
        found = {} if observed is None else _by_name(observed)
        if found.get("read") is not None:
            return Account(**{name: found[name] for name in ACCOUNT})
    for progress in reversed(progressed):
        for source in progress["sources"]:
            # Spark describes the source by a class of its own.
            with suppress(ValueError):
                return Offsets.from_json(json.loads(source["endOffset"] or "null")).account()
    return Account()


def _by_name(observed: Row) -> dict[str, Any]:
    """What was observed; Spark Connect gives a row of values and of the schema that names them."""
    found = observed.asDict()
    if found.keys() != {"values", "schema"}:
        return found
    return dict(zip((field["name"] for field in found["schema"]["fields"]), found["values"]))
