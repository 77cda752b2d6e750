"""An app on Spark Structured Streaming, on this machine."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...operators.definition.definition_diff import DefinitionChanged
from ...operators.definition.stream import Stream
from ...operators.rules.alerting import Alerting, Outlet
from ...operators.rules.late_readings import LateReadings
from ...operators.sketching.account import Account
from ...operators.table.final import is_final
from ...operators.table.schema import END, START, schema_of
from ...operators.table.sketch_table import SketchTable
from ..app import Feed
from ..jobs.job import Going, Job, Live, RunView, least
from ..jobs.outcome import AlertList, Outcome

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ...spark_udafs.streaming.query_handle import Running
    from ...spark_udafs.streaming.sinks import Batch, Sink

_PATIENT = 3600.0
"""The idle time in a replay, in which no partition may become idle: only the recording closes windows."""
_IDLE_SECONDS = 5.0
_LOOK_SECONDS = 0.2
_QUICKLY = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


def replay(
    job: Job,
    feed: Feed,
    send: Callable[[], int],
    at_once: bool,
    to: Sequence[Outlet],
    view: RunView | None = None,
) -> Outcome:
    """Like `apps.running.local.replay`; `view` also gets open windows at each micro-batch."""
    from ...spark_udafs.streaming.shared_query import accounts_of

    streams, alerts = job.streams(feed), AlertList()
    tables = {part.name: KeptWindows(part.name, view) for part in job.parts}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="streamgauge-spark-")))
        spark = stack.enter_context(SESSION.joined(folder))

        query = AppQuery(job, streams, folder, [alerts, *to], tables, ending=folder / "end")
        if view is not None:
            view.watch_late(partial(_late_readings, query.alerting))
        if at_once:
            send()
            running = query.start(spark, _PATIENT, available_now=True)
            running.awaitTermination()
        else:
            running = query.start(spark, _PATIENT, filling=view is not None)
            try:
                sent = send()
                while running.isActive and _account(running, view).read < sent:
                    time.sleep(_LOOK_SECONDS)
                query.close(running)
            finally:
                running.end()
        accounts = accounts_of(running)
        _account(running, view)
    shown = job.shown({name: _whole(kept.tables, streams[name]) for name, kept in tables.items()})
    known = [accounts.get(name, Account()) for name in streams]
    return Outcome(known, alerts.alerts, shown, _late_readings(query.alerting))


def live(request: Live) -> Going:
    """Like `apps.running.local.live`; closed windows are Parquet files in ``tables`` of its folder.

    Raises `DefinitionChanged` for a folder from which a run of this version can't resume.
    """
    from ...spark_udafs.streaming.sinks import SketchesToParquet

    assert request.state is not None
    _check_one_checkpoint(request.state)
    streams = request.job.streams(request.feed)
    stack = ExitStack()
    spark = stack.enter_context(SESSION.joined(request.state / "temporary"))
    kept: dict[str, Sink] = {name: SketchesToParquet(request.state / "tables" / name) for name in streams}
    query = AppQuery(
        request.job, streams, request.state, request.to, kept, request.stale, truncated=request.truncated
    )
    return _SparkQuery(query.start(spark, _IDLE_SECONDS), stack, query.alerting)


def _check_one_checkpoint(state: Path) -> None:
    """Raise `DefinitionChanged` for a folder with a separate checkpoint for each part of the app.

    Spark would not see these checkpoints, and count the topic into the same tables again.
    """
    checkpoint = state / "checkpoint"
    parts = sorted(file.parent.name for file in checkpoint.glob("*/metadata"))
    if parts and not (checkpoint / "metadata").exists():
        raise DefinitionChanged(
            f"{checkpoint} holds a checkpoint for each part of the app ({', '.join(parts)}), as earlier "
            "versions kept them; this version keeps one for the whole app, and can't resume from "
            "those. Nothing was read. Name another folder with --state to count the topic from its beginning "
            "into tables of its own, or continue with the version that wrote this folder"
        )


@dataclass(frozen=True)
class _SparkQuery:
    """See `apps.jobs.job.Going`."""

    query: Running
    session: ExitStack
    alerting: Sequence[Alerting]

    def account(self) -> Account:
        """See `Going`."""
        return _account(self.query)

    def wait(self) -> None:
        """See `Going`."""
        from ...spark_udafs.streaming.query_handle import end_signalled

        # An interrupted request would break the connection to Java.
        with end_signalled() as signalled:
            while self.query.isActive and not signalled.wait(_LOOK_SECONDS):
                pass

    def stop(self) -> Account:
        """See `Going`."""
        with self.session:
            failed = self.query.exception() is not None
            self.query.end()
            if failed:
                self.query.awaitTermination()
            return self.account()

    def late_readings(self) -> LateReadings:
        """See `Going`."""
        return _late_readings(self.alerting)


def _late_readings(alerting: Sequence[Alerting]) -> LateReadings:
    return sum((one.late_readings() for one in alerting), LateReadings())


def _account(query: Running, view: RunView | None = None) -> Account:
    """Return the outcome of the messages so far, for the part with the least progress; pass it to `view`."""
    from ...spark_udafs.streaming.shared_query import accounts_of

    accounts = accounts_of(query)
    if view is not None:
        view.count(accounts)
    return least(list(accounts.values()) or [Account()])


@dataclass(frozen=True)
class AppQuery:
    """The query of an app's parts, which share one read; each has its rules, and a sink for its table."""

    job: Job
    streams: Mapping[str, Stream]
    folder: Path
    to: Sequence[Outlet]
    kept: Mapping[str, Sink]
    stale: str | None = None
    ending: Path | None = None
    """A file for which the query waits, and that `close` creates."""
    truncated: str = "stop"
    alerting: list[Alerting] = field(default_factory=list, init=False)
    """The rules of its parts, after the start."""

    def start(
        self, spark: SparkSession, idle_seconds: float, available_now: bool = False, filling: bool = False
    ) -> Running:
        """Start the query; with `filling` it also emits open windows."""
        from ...spark_udafs.streaming.alerts import AlertingSink
        from ...spark_udafs.streaming.shared_query import write_together

        sinks, stale = {}, self.stale
        for part in self.job.parts:
            sinks[part.name] = [self.kept[part.name]]
            alerting = self.job.alerting(part, self.to, stale)
            if alerting is not None:
                # The first part also reports a lack of messages.
                stale = None
                self.alerting.append(alerting)
                rules = self.folder / "rules" / part.name
                sinks[part.name].append(AlertingSink(self.streams[part.name], alerting, rules))
        return write_together(
            self.streams,
            spark,
            self.folder / "checkpoint",
            sinks,
            available_now=available_now,
            emit="both" if filling else "close",
            idle_seconds=idle_seconds,
            close_at_end=True,
            options={"truncated": self.truncated}
            | ({} if self.ending is None else {"endFile": str(self.ending)}),
        )

    def close(self, query: Running) -> None:
        """Count all remaining messages and close the last windows; raises the query's error.

        Restarting the query for this would start new processes.
        """
        assert self.ending is not None
        self.ending.touch()
        # If two triggers have nothing to do, the first may have begun before the file existed.
        query.processAllAvailable()
        query.processAllAvailable()


class KeptWindows:
    """A sink that stores a part's closed windows, and shows these and open ones."""

    def __init__(self, part: str, view: RunView | None) -> None:
        self.tables: list[pa.Table] = []
        self.provisional = view is not None
        self._part, self._view = part, view

    def __call__(self, table: SketchTable, batch: Batch) -> None:
        """Receive windows."""
        windows = table.to_arrow()
        if is_final(windows):
            self.tables.append(windows)
        if self._view is not None:
            show = self._view.take if is_final(windows) else self._view.fill
            show(self._part, windows)


class SharedSession:
    """This process's Spark session, started by its first user and stopped by the last.

    A session that was already running is used and left running. All apps that run on Spark in one process
    are queries of one application and share its Python workers.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._own = False
        self._spark: Any = None

    @contextmanager
    def joined(self, folder: Path) -> Iterator[SparkSession]:
        """Yield the session for the duration of the block; its scratch files are in the first user's
        folder."""
        with self._lock:
            if not self._users:
                self._spark = _running_session()
                self._own = self._spark is None
                if self._own:
                    self._spark = start_session(folder)
            self._users += 1
        try:
            yield self._spark
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    if self._own:
                        self._spark.stop()
                    self._spark = None


SESSION = SharedSession()
"""This process's session."""


def _running_session() -> Any:
    """Return this process's session, whichever thread started it; None without one."""
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession() or SparkSession._instantiatedSession


def start_session(folder: Path) -> SparkSession:
    """Start the session for runs on this machine, with scratch files in `folder`."""
    from ...spark_udafs.session.session import session

    config = {
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.local.dir": str(folder),
        # The micro-batches of several apps take turns.
        "spark.scheduler.mode": "FAIR",
        "spark.driver.defaultJavaOptions": " ".join(_QUICKLY),
    }
    return session("streamgauge run", config=config)


def _whole(tables: list[pa.Table], stream: Stream) -> pa.Table:
    if not tables:
        return schema_of(stream).empty_table()
    tables = [table.replace_schema_metadata(schema_of(stream).metadata) for table in tables]
    return pa.concat_tables(tables).sort_by([(END, "ascending"), (START, "ascending")])
