"""Several streams of one topic in one Spark query, which reads and decodes each message once."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from pyspark.sql import DataFrame, SparkSession

from ...operators.consumer.error_context import in_stream
from ...operators.consumer.group.committed import STREAM_NAME
from ...operators.definition.stream import Stream
from ...operators.sketching.account import Account
from ...operators.table.sketch_table import SketchTable
from ..definitions import logged
from ..kafka.offsets import Offsets
from ..kafka.shared_source import bound_together, offsets_of
from ..merge.partials import ACCOUNT
from ..merge.shared_state import TogetherPartials
from ..session.preload_server import prepare_server
from ..session.worker_interpreter import check_worker_python
from ..slow_starts import patiently
from .query_handle import Running
from .run import call_sink, check_sinks, observed_in, query_id, source_options, started
from .sinks import Batch, Sink


def write_together(
    streams: Mapping[str, Stream],
    spark: SparkSession,
    checkpoint: str | Path,
    sinks: Mapping[str, Sequence[Sink]],
    *,
    available_now: bool = False,
    every: str | None = None,
    name: str | None = None,
    emit: Literal["close", "both"] = "close",
    start: Literal["earliest", "latest"] | Mapping[str, Mapping[str, int]] = "earliest",
    max_per_trigger: int | None = None,
    dead_letters: str | None = "",
    late: str | None = None,
    idle_seconds: float = 5.0,
    close_at_end: bool = False,
    options: Mapping[str, str] | None = None,
) -> Running:
    """Start one query for several streams of the same topics; returns the query.

    `streams` maps names of your choice to streams, most often branches of one stream. A message is read once,
    and decoded once for all streams that use the same decoder. Each stream has its own account
    (`accounts_of`), event time and late rows, and its windows close by its own watermark, whatever their
    kind. `sinks` maps a stream's name to its sinks, which get its windows like the sinks of `write`; for them
    the query is ``<id>-<name>``. With ``emit="both"``, sinks with a true attribute ``provisional`` also get
    all open windows at each micro-batch, in their current state (`SketchTable.is_final` is False), except
    count windows.

    All other options are those of `write` and `Stream.on_spark`, and apply to all streams. A checkpoint
    belongs to these streams and their definitions: a changed, additional or missing stream is refused by
    name. Merging is always done by our own merge, in buckets of groups, with state in RocksDB.

    Raises `TypeError` for streams and sinks that are not given by name; `ValueError` for streams that can't
    be read together, and for streams that join two streams or forward rows, which need queries of their own;
    and what `on_spark` and `write` raise.

    >>> from tempfile import mkdtemp
    >>> import polars as pl
    >>> import streamgauge as sg
    >>> schema = {"user": pl.String, "lang": pl.String, "at": pl.String}
    >>> value, broker = sg.json(schema), "localhost:9092"
    >>> posts = sg.Stream.from_kafka("posts", value=value, time="at", bootstrap_servers=broker)
    >>> streams = {
    ...     "languages": posts.group_by("lang").tumbling("1m").agg(posts=sg.count()),
    ...     "users": posts.tumbling("1h").agg(users=sg.distinct("user")),
    ... }
    >>> sinks = {"languages": [sg.spark.SketchesToParquet(mkdtemp())]}
    >>> query = sg.spark.write_together(streams, spark, mkdtemp(), sinks, available_now=True)
    >>> query.awaitTermination(), {name: one.counted for name, one in sg.spark.accounts_of(query).items()}
    (True, {'languages': 4, 'users': 4})
    """
    _check_streams(streams, sinks)
    streams = {name: stream.complete() for name, stream in streams.items()}
    first = next(iter(streams.values()))
    given, settings = source_options(
        first, start, max_per_trigger, dead_letters, late, idle_seconds, close_at_end, options
    )
    if "group.id" in settings:
        raise ValueError(
            "kafka.group.id can't be given for streams that run together: the names of their groups begin "
            "with the option groupIdPrefix"
        )
    if emit not in ("close", "both"):
        raise ValueError(f"emit must be 'close' or 'both', got {emit!r}")
    made = bound_together(streams, {**first.reading.kafka_sources[0].settings, **settings}, emit == "both")
    plan = TogetherPartials(streams)
    prepare_server(streams.values())
    check_worker_python(spark)
    spark.dataSource.register(made)
    loading = spark.readStream.format(made.name()).options(**given)
    partials = patiently(f"the streams of {first.reading.in_words()}", loading.load)
    tables, known = plan.merged(partials, emit == "both"), dict[str, str]()

    def hand_on(frame: DataFrame, number: int) -> None:
        again = not known
        if again:
            known["id"] = query_id(frame.sparkSession, str(checkpoint))
        rows = frame.toArrow()
        closed = _closed_by(frame.sparkSession, str(checkpoint), number)
        for one, its in sinks.items():
            table = SketchTable(plan.table_of(one, rows, final=True))
            filling = SketchTable(plan.table_of(one, rows, final=False))
            batch = Batch(f"{known['id']}-{one}", number, again, closed[one])
            with in_stream(one):
                for sink in its:
                    if table.num_rows or getattr(sink, "clocked", False):
                        call_sink(sink, table, batch)
                    if emit == "both" and getattr(sink, "provisional", False):
                        call_sink(sink, filling, batch)

    every_sink = [sink for its in sinks.values() for sink in its]
    return started(tables, "append", checkpoint, hand_on, known.clear, every_sink, available_now, every, name)


def _check_streams(streams: Any, sinks: Any) -> None:
    if not isinstance(streams, Mapping) or not streams:
        raise TypeError(f'streams must map names to streams, as in {{"english": english}}, got {streams!r}')
    for name, stream in streams.items():
        if not isinstance(name, str) or not re.fullmatch(STREAM_NAME, name):
            raise ValueError(
                f"streams: {name!r} is not a name of at most 40 letters, digits, dashes and underscores"
            )
        if not isinstance(stream, Stream):
            raise TypeError(f"streams: {name!r} is {stream!r}, not a stream")
        stream.reading.check_on_brokers()
    if not isinstance(sinks, Mapping):
        raise TypeError(
            f'sinks must be given by names of streams, as in {{"english": [sink]}}, got {sinks!r}'
        )
    if unknown := [name for name in sinks if name not in streams]:
        there = ", ".join(map(repr, streams))
        raise ValueError(f"sinks names {unknown[0]!r}, which is not a stream; there are {there}")
    for its in sinks.values():
        check_sinks(its)


def accounts_of(query: Any) -> dict[str, Account]:
    """The account of every message, for each stream of a query of `write_together`, including restarts.

    It is like `account_of` for a query of one stream.

    >>> from types import SimpleNamespace
    >>> import streamgauge as sg
    >>> sg.spark.accounts_of(SimpleNamespace(recentProgress=[]))
    {}
    """
    progressed = query.recentProgress
    for progress in reversed(progressed):
        figures = observed_in(progress)
        names = [key.removesuffix(":read") for key, read in figures.items() if key.endswith(":read")]
        if names and all(figures[f"{name}:read"] is not None for name in names):
            planned = _planned(progress)
            return {
                name: Account(
                    **{column: figures[f"{name}:{column}"] for column in ACCOUNT},
                    truncated=planned[name].truncated if name in planned else 0,
                )
                for name in names
            }
    for progress in reversed(progressed):
        if planned := _planned(progress):
            return {name: one.account() for name, one in planned.items()}
    return {}


def _planned(progress: Any) -> dict[str, Offsets]:
    """Return where each stream of a micro-batch was planned to end; empty if that isn't known."""
    for source in progress["sources"]:
        with suppress(ValueError):
            return offsets_of(json.loads(source["endOffset"] or "null") or {})
    return {}


def _closed_by(spark: SparkSession, checkpoint: str, number: int) -> dict[str, int]:
    """Return each stream's watermark in a micro-batch, which closes the stream's windows that end by then."""
    (offsets,) = (offsets_of(entry) for entry in logged(spark, checkpoint, number) if "streams" in entry)
    return {name: one.watermark_us for name, one in offsets.items()}
