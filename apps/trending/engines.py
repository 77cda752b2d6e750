"""The engines that the demo runs on, as it needs them: start, look, finish, stop."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from ...operators.accounting import Account
from ...operators.runner import Run, start
from ...operators.stream import Stream
from ...operators.table import END, START, schema_of

_STOP_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Look:
    """What an engine has so far: all its windows, filling ones too, and what became of the messages.

    Windows that end at `closed_until` or earlier are closed.
    """

    table: pa.Table
    account: Account
    closed_until: datetime | None


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
        }
        self._session = session("streamgauge demo", config=config)
        self._empty = schema_of(stream).empty_table()

        def keep(frame: Any, _: int) -> None:
            for batch in as_table(frame).to_batches():
                for row in range(batch.num_rows):
                    one = pa.Table.from_batches([batch.slice(row, 1)])
                    self._windows[one.column(START)[0].as_py()] = one

        # In update mode, each micro-batch gives the windows that it changed: they can be seen as they fill.
        self._query = (
            stream.on_spark(self._session, idle_seconds=3600.0)
            .writeStream.outputMode("update")
            .option("checkpointLocation", f"{folder}/checkpoint")
            .foreachBatch(keep)
            .start()
        )

    def look(self) -> Look:
        """How far it is. Raises what ended it, if it has failed."""
        from ...spark_udafs.run import account_of

        if not self._query.isActive:
            self._query.awaitTermination()
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


def _latest_end(table: pa.Table) -> datetime | None:
    return pc.max(table.column(END)).as_py()


ENGINES: dict[str, type[Engine]] = {engine.name: engine for engine in (Spark, Local)}
