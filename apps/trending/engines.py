"""The engines that the demo runs on, as it needs them: start, look, finish, stop."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from ...operators.accounting import Account
from ...operators.kafka.topics import admin, ensure_topic
from ...operators.runner import Run, start
from ...operators.sources import KafkaSource
from ...operators.stream import Stream
from ...operators.table import END, START, schema_of
from ..replay.generated import Generated
from ..replay.load import Load
from ..replay.sender import send

_STOP_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Look:
    """What an engine has so far: all its windows, filling ones too, and what became of the messages.

    Windows that end at `closed_until` or earlier are closed.
    """

    table: pa.Table
    account: Account
    closed_until: datetime | None


class EngineError(RuntimeError):
    """An engine that could not start, or ended by itself; the message has its last words."""


class Engine(Protocol):
    """One way to run the trending stream."""

    name: str
    title: str

    def start(self, stream: Stream) -> None:
        """Begin to read; returns once it does."""

    def look(self) -> Look:
        """How far it is. Raises what ended it, if it has failed."""

    def finish(self) -> Look:
        """End it, everything that was read counted, every window closed."""

    def stop(self) -> None:
        """End it now, in whatever state it is; more than once does no harm."""


class Local:
    """The standalone consumer: workers that sketch, and a merger that follows their deltas."""

    name = "local"
    title = "the standalone consumer"

    def __init__(self) -> None:
        self._run: Run | None = None

    def start(self, stream: Stream) -> None:
        """Begin to read."""
        # Nothing of a run that ends by itself is to be kept, and every window is taken as it stands then:
        # a partition that pauses must not close one before.
        self._run = start(stream, checkpoint_seconds=0.25, idle_seconds=3600.0)

    def look(self) -> Look:
        """How far it is. Raises what ended it, if it has failed."""
        assert self._run is not None
        if not self._run.running:
            self._run.wait()
        summary = self._run.summary()
        return Look(self._run.table(), summary.account, _latest_end(summary.table))

    def finish(self) -> Look:
        """End it, everything that was read counted."""
        look = self.look()
        self.stop()
        return Look(look.table, look.account, _latest_end(look.table))

    def stop(self) -> None:
        """End it now."""
        if self._run is not None:
            self._run.stop()
            self._run.wait(_STOP_SECONDS)
            self._run = None


class Spark:
    """Spark Structured Streaming on this machine: workers sketch, Catalyst merges."""

    name = "spark"
    title = "Spark"

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="streamgauge-spark-")
        self._session: Any = None
        self._query: Any = None
        self._windows: dict[datetime, pa.Table] = {}
        self._empty: pa.Table = None

    def start(self, stream: Stream) -> None:
        """Begin to read."""
        from ...spark_udafs.session import session
        from ...spark_udafs.tables import as_table

        folder = self._folder.name
        config = {
            "spark.ui.enabled": "false",
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
            "spark.local.dir": folder,
            # The JVM lives for a minute: its second compiler would take longer than what it saves.
            "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        }
        self._empty = schema_of(stream).empty_table()
        # The JVM and its workers inherit it: what they say would spoil the screen.
        with _errors_to(Path(folder, "spark.log")):
            try:
                with _interrupts_put_off():
                    self._session = session("streamgauge demo", config=config)
                self._rehearse(stream)
            except Exception as error:
                raise self._failed(error) from error

        def keep(frame: Any, _: int) -> None:
            for batch in as_table(frame).to_batches():
                for row in range(batch.num_rows):
                    one = pa.Table.from_batches([batch.slice(row, 1)])
                    self._windows[one.column(START)[0].as_py()] = one

        self._query = self._writer(stream, "query").foreachBatch(keep).start()

    def _failed(self, error: Exception | None) -> EngineError:
        said = Path(self._folder.name, "spark.log")
        last = said.read_text(errors="replace").splitlines()[-15:] if said.exists() else []
        return EngineError("\n  ".join([f"Spark ended: {error}", "its last words:", *last]))

    def _rehearse(self, stream: Stream) -> None:
        """Run a few posts through a topic beside, so that the first micro-batch finds everything running.

        Spark generates its code and starts its Python workers at the first batch: some seconds of stream.
        """
        assert isinstance(stream.source, KafkaSource)
        servers = stream.source.bootstrap_servers
        aside_topic = f"{stream.source.topic}.rehearsal"
        aside = replace(stream, source=replace(stream.source, topic=aside_topic))
        ensure_topic(admin({"bootstrap.servers": servers}), aside_topic, 2)
        send(Generated(Load(rate=1_000.0), posts=1_000), aside_topic, servers, pace=False)
        writer = self._writer(aside, "rehearsal").trigger(availableNow=True)
        writer.foreachBatch(lambda frame, _: frame.toArrow()).start().awaitTermination()

    def _writer(self, stream: Stream, name: str) -> Any:
        # In update mode, each micro-batch gives the windows that it changed: they can be seen as they fill.
        table = stream.on_spark(self._session, idle_seconds=3600.0)
        checkpoint = f"{self._folder.name}/{name}"
        return table.writeStream.outputMode("update").option("checkpointLocation", checkpoint)

    def look(self) -> Look:
        """How far it is. Raises what ended it, if it has failed."""
        from ...spark_udafs.run import account_of

        if not self._query.isActive:
            raise self._failed(self._query.exception())
        # The account first: it is told after its batch's windows.
        account = account_of(self._query)
        tables = list(self._windows.values())
        progress = self._query.lastProgress
        watermark = progress and progress["eventTime"].get("watermark")
        until = datetime.fromisoformat(watermark) if watermark else None
        return Look(pa.concat_tables(tables) if tables else self._empty, account, until)

    def finish(self) -> Look:
        """End it, everything that was read counted."""
        look = self.look()
        self.stop()
        return Look(look.table, look.account, _latest_end(look.table))

    def stop(self) -> None:
        """End it now."""
        if self._query is not None:
            self._query.stop()
            self._query = None
        if self._session is not None:
            self._session.stop()
            self._session = None
        self._folder.cleanup()


@contextmanager
def _interrupts_put_off() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM wait until the end of the block.

    PySpark, interrupted while it launches Java, removes the folder in which Java is to say its port; Java
    then fails, but its gateway's threads go on for ever, and nobody knows the process.
    """
    asked: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _: asked.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if asked:
        raise KeyboardInterrupt


@contextmanager
def _errors_to(file: Path) -> Iterator[None]:
    """Standard error of this process, and of those it starts meanwhile, into a file."""
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
