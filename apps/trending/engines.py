"""The engines that the demo runs on, as it needs them: start, look, finish, stop."""

from __future__ import annotations

import logging
import os
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from ...operators.consumer.options import RunOptions
from ...operators.consumer.run import Run
from ...operators.consumer.runner import start
from ...operators.definition.sources import KafkaSource
from ...operators.definition.stream import Stream
from ...operators.kafka.topics import admin, ensure_topic
from ...operators.sketching.accounting import Account
from ...operators.table.schema import END, START, schema_of
from ..java import find_java
from ..replay.generated import Generated
from ..replay.load import Load
from ..replay.sender import send

log = logging.getLogger("streamgauge.demo")

_STOP_SECONDS = 10.0
_DELIVERY_SECONDS = 60.0
"""A transaction that a killed broker left open may take its own time-out before the last one is committed."""


@dataclass(frozen=True, slots=True)
class Look:
    """What an engine has so far: all its windows, filling ones too, and what became of the messages.

    Windows that end at `closed_until` or earlier are closed.
    """

    table: pa.Table
    account: Account
    closed_until: datetime | None


class EngineError(RuntimeError):
    """An engine that could not start, or that ended; the message has the last lines of its log."""


class Engine(Protocol):
    """One way to run the trending stream."""

    name: str
    title: str
    takes: str
    """What to add to the line that is shown while it starts."""

    @staticmethod
    def check() -> None:
        """Raise what keeps it from running here, before anything is started."""

    def start(self, stream: Stream) -> None:
        """Begin to read; returns once it does."""

    def look(self) -> Look:
        """What it has so far. Raises what ended it, if it has failed."""

    def finish(self) -> Look:
        """End it, everything that was read counted, every window closed."""

    def stop(self) -> None:
        """End it now, in whatever state it is; more than once does no harm."""


class Local:
    """The standalone consumer: workers that sketch, and a merger that follows their deltas."""

    name = "local"
    title = "the standalone consumer"
    takes = ""

    @staticmethod
    def check() -> None:
        """It runs wherever the package does."""

    def __init__(self) -> None:
        self._run: Run | None = None

    def start(self, stream: Stream) -> None:
        """Begin to read."""
        # The run keeps nothing, and every window is taken as it stands at the end: a partition that pauses
        # must not close one earlier.
        self._run = start(stream, RunOptions(checkpoint_seconds=0.25, idle_seconds=3600.0))
        self._latest = Look(schema_of(stream).empty_table(), Account(), None)

    def look(self) -> Look:
        """What it has so far. Raises what ended it, if it has failed."""
        assert self._run is not None
        if not self._run.running:
            self._run.wait()
        summary = self._run.summary()
        # A merger that was long without its broker starts over: the last look holds until it has caught up.
        if summary.account.read >= self._latest.account.read:
            self._latest = Look(self._run.table(), summary.account, _latest_end(summary.table))
        return self._latest

    def finish(self) -> Look:
        """End it, everything that was read counted."""
        look = self.look()
        self.stop()
        return Look(look.table, look.account, _latest_end(look.table))

    def stop(self) -> None:
        """End it now."""
        if self._run is not None:
            self._run.stop()
            self._run.wait(_DELIVERY_SECONDS)
            self._run = None


class Spark:
    """Spark Structured Streaming on this machine: workers sketch, Catalyst merges."""

    name = "spark"
    title = "Spark"
    takes = " and its workers, with a rehearsal"

    @staticmethod
    def check() -> None:
        """Raises `SparkMissingError` where PySpark isn't installed."""
        from ...spark_udafs.extra import need_pyspark

        need_pyspark()

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="streamgauge-spark-")
        self._turned_away = ExitStack()
        self._session: Any = None
        self._query: Any = None
        self._windows: dict[datetime, pa.Table] = {}
        self._changed: deque[tuple[int, pa.Table]] = deque()
        self._empty: pa.Table = None

    def start(self, stream: Stream) -> None:
        """Begin to read."""
        from ...spark_udafs.tables import as_table

        # PySpark looks for Java on PATH only.
        os.environ["JAVA_HOME"] = str(find_java().home)
        folder = self._folder.name
        config = {
            "spark.ui.enabled": "false",
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
            "spark.local.dir": folder,
            # The JVM lives for a minute: its optimising compiler would cost more time than it saves.
            "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        }
        self._empty = schema_of(stream).empty_table()
        # The JVM and its workers inherit stderr, and PySpark's threads write to it when Java is gone: that
        # would garble the screen.
        self._turned_away.enter_context(_errors_to(Path(folder, "spark.log")))
        try:
            self._session = _session(config)
            self._rehearse(stream)
        except Exception as error:
            raise self._failed(error) from error

        def keep(frame: Any, number: int) -> None:
            self._changed.append((number, as_table(frame)))

        self._query = self._writer(stream, "query").foreachBatch(keep).start()

    def _failed(self, error: Exception | None) -> EngineError:
        said = Path(self._folder.name, "spark.log")
        last = said.read_text(errors="replace").splitlines()[-15:] if said.exists() else []
        return EngineError("\n  ".join([f"Spark ended: {error}", "the last lines of its log:", *last]))

    def _rehearse(self, stream: Stream) -> None:
        """Run a few posts through a topic of their own, so that the first micro-batch finds it all running.

        Spark generates its code and starts its Python workers at the first batch: some seconds of stream.
        """
        assert isinstance(stream.source, KafkaSource)
        servers = stream.source.bootstrap_servers
        aside_topic = f"{stream.source.topic}.rehearsal"
        aside = replace(stream, source=replace(stream.source, topics=(aside_topic,)))
        ensure_topic(admin({"bootstrap.servers": servers}), aside_topic, 2)
        send(Generated(Load(rate=1_000.0), posts=1_000), aside_topic, servers, pace=False)
        writer = self._writer(aside, "rehearsal").trigger(availableNow=True)
        writer.foreachBatch(lambda frame, _: frame.toArrow()).start().awaitTermination()

    def _writer(self, stream: Stream, name: str) -> Any:
        from ...spark_udafs.run import on_spark

        # In update mode, each micro-batch gives the windows that it changed: they can be seen as they fill.
        table = on_spark(stream, self._session, idle_seconds=3600.0)
        checkpoint = f"{self._folder.name}/{name}"
        return table.writeStream.outputMode("update").option("checkpointLocation", checkpoint)

    def look(self) -> Look:
        """What it has so far. Raises what ended it, if it has failed."""
        from ...spark_udafs.run import account_of

        if not self._query.isActive:
            raise self._failed(self._query.exception())
        # Spark reports a batch's account some time after its windows: show both together.
        account, progress = account_of(self._query), self._query.lastProgress
        while self._changed and progress and self._changed[0][0] <= progress["batchId"]:
            self._take(self._changed.popleft()[1])
        tables = list(self._windows.values())
        watermark = progress and progress["eventTime"].get("watermark")
        until = datetime.fromisoformat(watermark) if watermark else None
        return Look(pa.concat_tables(tables) if tables else self._empty, account, until)

    def _take(self, changed: pa.Table) -> None:
        """Replace what was known of these windows."""
        for row in range(changed.num_rows):
            one = changed.slice(row, 1)
            self._windows[one.column(START)[0].as_py()] = one

    def finish(self) -> Look:
        """End it, everything that was read counted."""
        look = self.look()
        self.stop()
        return Look(look.table, look.account, _latest_end(look.table))

    def stop(self) -> None:
        """End it now."""
        query, session = self._query, self._session
        self._query = self._session = None
        try:
            if query is not None:
                query.stop()
            if session is not None:
                session.stop()
        except Exception as error:
            # Java is gone already: closing a terminal ends everything that runs in it.
            log.debug("Spark did not stop in order: %s", error)
        finally:
            self._turned_away.close()
            self._folder.cleanup()


def _session(config: dict[str, str]) -> Any:
    """A Spark session, made in another thread so that this one can be interrupted; Java then ends too.

    PySpark itself, interrupted while it launches Java, removes the folder in which Java is to say its port:
    Java fails, but its gateway's threads go on for ever, and nobody knows the process. And in the main thread
    it would take over Ctrl-C.
    """
    from pyspark import SparkContext

    from ...spark_udafs.session import session

    made: Future[Any] = Future()

    def make() -> None:
        try:
            made.set_result(session("streamgauge demo", config=config))
        except BaseException as error:
            made.set_exception(error)

    thread = threading.Thread(target=make, name="streamgauge-spark", daemon=True)
    thread.start()
    try:
        return made.result()
    except KeyboardInterrupt:
        while thread.is_alive() and SparkContext._gateway is None:
            time.sleep(0.05)
        if (gateway := SparkContext._gateway) is not None:
            gateway.proc.terminate()
            gateway.proc.wait(_STOP_SECONDS)
        raise


@contextmanager
def _errors_to(file: Path) -> Iterator[None]:
    """Send standard error of this process, and of those it starts meanwhile, to a file."""
    own = os.dup(2)
    with file.open("wb") as log:
        os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(own, 2)
        os.close(own)


def _latest_end(table: pa.Table) -> datetime | None:
    return pc.max(table.column(END)).as_py()


ENGINES: dict[str, type[Engine]] = {engine.name: engine for engine in (Spark, Local)}
