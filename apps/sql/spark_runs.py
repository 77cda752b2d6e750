"""The queries of a script on Spark Structured Streaming, on this machine."""

from __future__ import annotations

import queue
import re
import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...operators.rules.alerting import Alerting
from ...operators.sinks.sketches_to_parquet import SketchesToParquet
from ...operators.sketching.account import Account
from ...operators.table.schema import END, START, schema_of
from ...operators.table.sketch_table import SketchTable
from ...queries.sql.plan.logical_plan import LogicalPlan
from ...queries.sql.run.consumer_runs import KeptQuery, RunningQueries, Start, drained
from ...sketches.core.errors import StreamgaugeError
from ...spark_udafs.streaming import sinks as spark_sinks
from ...spark_udafs.streaming.alerts import AlertingSink
from ...spark_udafs.streaming.messages_sink import MessagesSink
from ...spark_udafs.streaming.query_handle import Running
from ...spark_udafs.streaming.run import account_of, on_spark, write
from ..running.spark import start_session


@contextmanager
def spark_session(state: Path | None) -> Iterator[Any]:
    """Yield this program's session, if it has one; else a new one that ends with the block."""
    from pyspark.sql import SparkSession

    if (running := SparkSession.getActiveSession()) is not None:
        yield running
        return
    with tempfile.TemporaryDirectory(prefix="streamgauge-sql-", dir=state) as folder:
        spark = start_session(Path(folder))
        try:
            yield spark
        finally:
            spark.stop()


class SparkRuns:
    """Runs queries on Spark, each separately. `state` is the folder of their checkpoints.

    Without it, checkpoints are in a temporary folder, and queries begin where topics begin.
    """

    def __init__(self, spark: Any, state: Path | None = None) -> None:
        self._spark = spark
        self._temporary = None if state else tempfile.TemporaryDirectory(prefix="streamgauge-sql-")
        self._folder = state or Path(self._temporary.name)  # type: ignore[union-attr]

    def run(self, queries: Sequence[KeptQuery], start: Start) -> None:
        """See `QueryRuns`."""
        running = [(one.name, self._written(one, start, available_now=True)) for one in queries]
        for name, query in running:
            with _failures_of(name):
                query.awaitTermination()

    def start(self, queries: Sequence[KeptQuery], start: Start) -> list[RunningQueries]:
        """See `QueryRuns`."""
        return [_Query((one.name,), self._written(one, start)) for one in queries]

    def table(self, plan: LogicalPlan) -> tuple[SketchTable, Account, str]:
        """See `QueryRuns`. Reasons stay in Spark's workers."""
        tables: list[SketchTable] = []
        with tempfile.TemporaryDirectory(prefix="streamgauge-sql-") as folder:
            table = on_spark(plan.stream, self._spark, dead_letters=None, close_at_end=True)
            query = write(table, folder, lambda part, _: tables.append(part), available_now=True)
            query.awaitTermination()
            account = account_of(query)
        whole = [part.to_arrow() for part in tables] or [schema_of(plan.stream).empty_table()]
        closed = pa.concat_tables(whole).sort_by([(END, "ascending"), (START, "ascending")])
        return SketchTable(closed), account, ""

    def tables(self, plan: LogicalPlan, start: Start) -> Generator[SketchTable]:
        """See `QueryRuns`. A window is emitted once, when it is complete, even with EMIT CHANGES."""
        tables: queue.SimpleQueue[SketchTable] = queue.SimpleQueue()
        with tempfile.TemporaryDirectory(prefix="streamgauge-sql-") as folder:
            table = on_spark(plan.stream, self._spark, start=start, dead_letters=None)
            query = write(table, folder, lambda part, _: tables.put(part))
            yield from drained(tables, _Query((), query))

    def _written(self, one: KeptQuery, start: Start, available_now: bool = False) -> Running:
        stream = one.plan.stream
        sinks = [self._sink(one, sink) for sink in one.sinks]
        table = on_spark(stream, self._spark, start=start, close_at_end=available_now)
        return write(table, self._folder / "checkpoint" / one.name, *sinks, available_now=available_now)

    def _sink(self, one: KeptQuery, sink: Any) -> Any:
        if isinstance(sink, Alerting):
            return AlertingSink(one.plan.stream, sink, self._folder / "rules" / one.name)
        if isinstance(sink, SketchesToParquet):
            if sink.keep is not None:
                raise ValueError("KEEP is for runs as consumers: on Spark leave it out")
            return spark_sinks.SketchesToParquet(sink.folder)
        return MessagesSink(one.plan.stream, sink)


@dataclass(frozen=True)
class _Query:
    """See `RunningQueries`."""

    names: tuple[str, ...]
    query: Running

    @property
    def running(self) -> bool:
        return bool(self.query.isActive)

    def stop(self) -> None:
        self.query.end()

    def wait(self) -> None:
        if self.query.exception() is not None:
            with _failures_of(*self.names):
                self.query.awaitTermination()


class SparkQueryFailed(StreamgaugeError):
    """Spark stopped a query with an error. `stream` is its name; the message has Spark's reason."""

    stream = ""


@contextmanager
def _failures_of(name: str = "") -> Iterator[None]:
    """Convert a query's failure to an error with its name and the reason."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        # For an error in Python, Spark returns the traceback, whose last line has the message.
        why = re.findall(r"^[\w.]*(?:Error|Changed|Refused): (.+)$", str(error), re.M)
        said = why[-1] if why else str(error).splitlines()[0]
        failed = SparkQueryFailed(f"the query {name} failed: {said}")
        failed.stream = name
        raise failed from None
