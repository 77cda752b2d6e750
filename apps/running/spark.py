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
from ...operators.sketching.account import Account
from ...operators.table.schema import END, START, schema_of
from ...operators.table.sketch_table import SketchTable
from ..app import Feed
from ..java import find_java
from ..jobs.job import Going, Job, Live, least
from ..jobs.outcome import AlertList, Outcome

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ...spark_udafs.query_handle import Running
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

    streams, alerts = job.streams(feed), AlertList()
    tables: dict[str, list[pa.Table]] = {part.name: [] for part in job.parts}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="streamgauge-spark-")))
        spark = stack.enter_context(_session(folder))

        kept = {name: partial(_keep, name, own, seen) for name, own in tables.items()}
        queries = _Queries(job, streams, spark, folder, [alerts, *to], kept, ending=folder / "end")
        if at_once:
            send()
            running = queries.start(_PATIENT, available_now=True)
            for query in running:
                query.awaitTermination()
        else:
            running = queries.start(_PATIENT)
            try:
                sent = send()
                while any(account_of(query).read < sent for query in running if query.isActive):
                    time.sleep(_LOOK_SECONDS)
                queries.close(running)
            finally:
                for query in running:
                    query.end()
        accounts = [account_of(query) for query in running]
    shown = job.shown({name: _whole(table, streams[name]) for name, table in tables.items()})
    return Outcome(accounts, alerts.alerts, shown)


def live(request: Live) -> Going:
    """What `apps.running.local.live` does; closed windows are Parquet files in ``tables`` of its folder."""
    from ...spark_udafs.sinks import SketchesToParquet

    assert request.state is not None
    streams = request.job.streams(request.feed)
    stack = ExitStack()
    spark = stack.enter_context(_session(request.state / "temporary"))
    kept: dict[str, Sink] = {name: SketchesToParquet(request.state / "tables" / name) for name in streams}
    queries = _Queries(request.job, streams, spark, request.state, request.to, kept, request.stale)
    return _SparkQueries(queries.start(_IDLE_SECONDS), stack)


@dataclass(frozen=True)
class _SparkQueries:
    """See `apps.jobs.job.Going`."""

    queries: Sequence[Running]
    session: ExitStack

    def account(self) -> Account:
        """See `Going`."""
        from ...spark_udafs.run import account_of

        return least([account_of(query) for query in self.queries])

    def wait(self) -> None:
        """See `Going`."""
        from ...spark_udafs.query_handle import end_signalled

        # An interrupted question would break the connection to Java.
        with end_signalled() as signalled:
            while all(query.isActive for query in self.queries) and not signalled.wait(_LOOK_SECONDS):
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
    ending: Path | None = None
    """A file that `close` makes, for which the queries wait."""

    def start(self, idle_seconds: float, available_now: bool = False) -> list[Running]:
        """Start all of them."""
        from ...spark_udafs.alerts import AlertingSink
        from ...spark_udafs.run import on_spark, write

        queries, stale = [], self.stale
        for part in self.job.parts:
            stream, sinks = self.streams[part.name], [self.kept[part.name]]
            alerting = self.job.alerting(part, self.to, stale)
            if alerting is not None:
                # The first of them reports that nothing comes.
                stale = None
                sinks.append(AlertingSink(stream, alerting, self.folder / "rules" / part.name))
            options = {} if self.ending is None else {"endFile": str(self.ending)}
            table = on_spark(stream, self.spark, idle_seconds=idle_seconds, options=options)
            checkpoint = self.folder / "checkpoint" / part.name
            queries.append(write(table, checkpoint, *sinks, available_now=available_now))
        return queries

    def close(self, queries: Sequence[Running]) -> None:
        """Have all that has come counted, and the last windows closed; raises what a query fails with.

        Queries that are started once more to do that would start processes of their own.
        """
        assert self.ending is not None
        self.ending.touch()
        for query in queries:
            # Of two triggers that have nothing to do, the first may have begun before the file was there.
            query.processAllAvailable()
            query.processAllAvailable()


@contextmanager
def _session(folder: Path) -> Iterator[Any]:
    """The session of this program, if it has one; else one that ends with the run."""
    from pyspark.sql import SparkSession

    if (running := SparkSession.getActiveSession()) is not None:
        yield running
        return
    spark = start_session(folder)
    try:
        yield spark
    finally:
        spark.stop()


def start_session(folder: Path) -> SparkSession:
    """The session for a run on this machine, its scratch files in `folder`; or the one that runs.

    Started before the run, in any thread, it takes no time from the run, which ends it.
    """
    from ...spark_udafs.session import session

    os.environ["JAVA_HOME"] = str(find_java().home)  # PySpark looks for Java on PATH only
    config = {
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.local.dir": str(folder),
        "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    return session("streamgauge run", config=config)


def end_session() -> None:
    """End this process's session, if it has one."""
    from pyspark.sql import SparkSession

    running = SparkSession._instantiatedSession
    if running is not None:
        running.stop()


def _keep(
    name: str,
    tables: list[pa.Table],
    seen: Callable[[str, pa.Table], None] | None,
    table: SketchTable,
    batch: Batch,
) -> None:
    tables.append(table.to_arrow())
    if seen is not None:
        seen(name, tables[-1])


def _whole(tables: list[pa.Table], stream: Stream) -> pa.Table:
    if not tables:
        return schema_of(stream).empty_table()
    return pa.concat_tables(tables).sort_by([(END, "ascending"), (START, "ascending")])
