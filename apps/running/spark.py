"""An app on Spark Structured Streaming, on this machine."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...operators.definition.stream import Stream
from ...operators.rules.alerting import Outlet
from ...operators.sketching.accounting import Account
from ...operators.table.schema import END, START, schema_of
from ..app import Feed
from ..java import find_java
from .asked import Job
from .outcome import AlertList, Outcome

_PATIENT = 3600.0
"""In a replay no partition is idle: what closes windows is the recording alone."""
_LOOK_SECONDS = 0.2


def replay(job: Job, feed: Feed, send: Callable[[], int], at_once: bool, to: Sequence[Outlet]) -> Outcome:
    """What `apps.running.local.replay` does."""
    from ...spark_udafs.run import account_of

    streams, told = job.streams(feed), AlertList()
    tables: dict[str, list[pa.Table]] = {part.name: [] for part in job.parts}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="streamgauge-spark-")))
        spark = stack.enter_context(_session(folder))

        def started(available_now: bool) -> list[Any]:
            return [
                _write(job, part.name, streams[part.name], spark, folder, tables, [told, *to], available_now)
                for part in job.parts
            ]

        if at_once:
            send()
        else:
            queries = started(False)
            sent = send()
            while any(account_of(query).read < sent for query in queries if query.isActive):
                time.sleep(_LOOK_SECONDS)
            for query in queries:
                query.stop()
        ended = started(True)
        for query in ended:
            query.awaitTermination()
        account = account_of(ended[0]) if ended else Account()
    shown = {part.name: _whole(tables[part.name], streams[part.name]) for part in job.parts if part.shown}
    return Outcome(account, told.alerts, shown)


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


def _write(
    job: Job,
    name: str,
    stream: Stream,
    spark: Any,
    folder: Path,
    tables: dict[str, list[pa.Table]],
    to: Sequence[Outlet],
    available_now: bool,
) -> Any:
    from ...spark_udafs.alerts import AlertSink
    from ...spark_udafs.run import on_spark, write

    (part,) = (one for one in job.parts if one.name == name)
    sinks: list[Any] = [lambda table, batch: tables[name].append(table)]
    alerting = job.alerting(part, to)
    if alerting is not None:
        sinks.append(AlertSink(stream, alerting, folder / "rules" / name))
    table = on_spark(stream, spark, idle_seconds=_PATIENT, dead_letters=None)
    return write(table, folder / "checkpoint" / name, *sinks, available_now=available_now)


def _whole(tables: list[pa.Table], stream: Stream) -> pa.Table:
    if not tables:
        return schema_of(stream).empty_table()
    return pa.concat_tables(tables).sort_by([(END, "ascending"), (START, "ascending")])
