"""An app on Spark Structured Streaming, on this machine."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...operators.definition.stream import Stream
from ...operators.rules.alerting import Outlet
from ...operators.sketching.accounting import Account
from ...operators.table.schema import END, START, schema_of
from ..app import Feed
from ..java import find_java
from .asked import Going, Job, Live, least
from .outcome import AlertList, Outcome

if TYPE_CHECKING:
    from ...spark_udafs.running import Running
    from ...spark_udafs.sinks import Batch, Sink

_PATIENT = 3600.0
"""In a replay no partition is idle: what closes windows is the recording alone."""
_IDLE_SECONDS = 5.0
_LOOK_SECONDS = 0.2


def replay(
    job: Job,
    feed: Feed,
    send: Callable[[], int],
    at_once: bool,
    to: Sequence[Outlet],
    seen: Callable[[str, pa.Table], None] | None = None,
) -> Outcome:
    """What `apps.running.local.replay` does."""
    from ...spark_udafs.run import account_of

    streams, told = job.streams(feed), AlertList()
    tables: dict[str, list[pa.Table]] = {part.name: [] for part in job.parts}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="streamgauge-spark-")))
        spark = stack.enter_context(_session(folder))

        def started(available_now: bool) -> list[Running]:
            kept = {name: partial(_keep, name, own, seen) for name, own in tables.items()}
            asked = _Queries(job, streams, spark, folder, [told, *to], kept)
            return asked.start(_PATIENT, available_now)

        if at_once:
            send()
        else:
            queries = started(False)
            try:
                sent = send()
                while any(account_of(query).read < sent for query in queries if query.isActive):
                    time.sleep(_LOOK_SECONDS)
            finally:
                for query in queries:
                    query.end()
        ended = started(True)
        for query in ended:
            query.awaitTermination()
        account = least([account_of(query) for query in ended])
    shown = job.shown({name: _whole(found, streams[name]) for name, found in tables.items()})
    return Outcome(account, told.alerts, shown)


def live(asked: Live) -> Going:
    """What `apps.running.local.live` does; closed windows are Parquet files in ``tables`` of its folder."""
    from ...spark_udafs.sinks import ParquetSink

    assert asked.state is not None
    streams = asked.job.streams(asked.feed)
    stack = ExitStack()
    spark = stack.enter_context(_session(asked.state / "temporary"))
    kept: dict[str, Sink] = {name: ParquetSink(asked.state / "tables" / name) for name in streams}
    queries = _Queries(asked.job, streams, spark, asked.state, asked.to, kept, asked.stale)
    return _SparkQueries(queries.start(_IDLE_SECONDS), stack)


@dataclass(frozen=True)
class _SparkQueries:
    """See `apps.running.asked.Going`."""

    queries: Sequence[Running]
    session: ExitStack

    def account(self) -> Account:
        """See `Going`."""
        from ...spark_udafs.run import account_of

        return least([account_of(query) for query in self.queries])

    def wait(self) -> None:
        """See `Going`."""
        from ...spark_udafs.running import told_to_end

        # An interrupted question would break the connection to Java.
        with told_to_end() as told:
            while all(query.isActive for query in self.queries) and not told.wait(_LOOK_SECONDS):
                pass

    def stop(self) -> Account:
        """See `Going`."""
        with self.session:
            failed = [query for query in self.queries if query.exception() is not None]
            for query in self.queries:
                query.end()
            for query in failed:
                query.awaitTermination()
            return self.account()


@dataclass(frozen=True)
class _Queries:
    """The queries of an app's parts: each with its rules, and a sink for its table."""

    job: Job
    streams: Mapping[str, Stream]
    spark: Any
    folder: Path
    to: Sequence[Outlet]
    kept: Mapping[str, Sink]
    stale: str | None = None

    def start(self, idle_seconds: float, available_now: bool = False) -> list[Running]:
        """Start all of them."""
        from ...spark_udafs.alerts import AlertSink
        from ...spark_udafs.run import on_spark, write

        found, stale = [], self.stale
        for part in self.job.parts:
            stream, sinks = self.streams[part.name], [self.kept[part.name]]
            alerting = self.job.alerting(part, self.to, stale)
            if alerting is not None:
                # That nothing comes is told by the first of them.
                stale = None
                sinks.append(AlertSink(stream, alerting, self.folder / "rules" / part.name))
            table = on_spark(stream, self.spark, idle_seconds=idle_seconds)
            checkpoint = self.folder / "checkpoint" / part.name
            found.append(write(table, checkpoint, *sinks, available_now=available_now))
        return found


@contextmanager
def _session(folder: Path) -> Iterator[Any]:
    """The session of this program, if it has one; else one that ends with the run."""
    from pyspark.sql import SparkSession

    from ...spark_udafs.session import session

    os.environ["JAVA_HOME"] = str(find_java().home)  # PySpark looks for Java on PATH only
    config = {
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.local.dir": str(folder),
        "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    if (running := SparkSession.getActiveSession()) is not None:
        yield running
        return
    spark = session("streamgauge run", config=config)
    try:
        yield spark
    finally:
        spark.stop()


def _keep(
    name: str,
    tables: list[pa.Table],
    seen: Callable[[str, pa.Table], None] | None,
    table: pa.Table,
    batch: Batch,
) -> None:
    tables.append(table)
    if seen is not None:
        seen(name, table)


def _whole(tables: list[pa.Table], stream: Stream) -> pa.Table:
    if not tables:
        return schema_of(stream).empty_table()
    return pa.concat_tables(tables).sort_by([(END, "ascending"), (START, "ascending")])
