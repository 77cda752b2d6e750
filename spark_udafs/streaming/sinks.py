"""Sinks for closed windows: Parquet files, a Kafka topic, the console.

After a crash Spark repeats its last micro-batch with the same windows. The Parquet and Kafka sinks store each
micro-batch only once.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pyarrow as pa

from ...operators.consumer.log.messages import LARGEST, split
from ...operators.kafka.outgoing_message import Outgoing
from ...operators.kafka.topics import admin, partitions_of
from ...operators.rendering.names import escaped
from ...operators.secrets import Settings
from ...operators.table.merge import check_alike
from ...operators.table.query import query
from ...operators.table.schema import ArrowStream, arrow_table, to_ipc, write_parquet
from ...operators.table.sketch_table import SketchTable
from ...operators.table.stored import schema_in
from ...operators.table.stored_files import files_below, stored_at, write_whole
from ...operators.watching.terminal import write_line
from ...sketches.core.errors import RunError
from ..kafka.batch_positions import PREFIX
from ..kafka.batch_sender import BatchSender

_printing = threading.Lock()


class Batch(NamedTuple):
    """A micro-batch: the id of the query that the checkpoint belongs to, and the batch's number, from 0.

    `again` is true if an earlier run may have delivered it; this can only be a run's first micro-batch.
    Windows that end by `closed_us` are closed with it, or were before (event time in microseconds; None if no
    sink needs it).
    """

    query: str
    number: int
    again: bool = True
    closed_us: int | None = None


Sink = Callable[[SketchTable, Batch], None]
"""A function that accepts the windows that a micro-batch closed, as a table of sketches.

A sink may have true attributes. `once`: it stores all windows that it gets, so it can't accept windows that
are emitted again as they change. `clocked`: it gets each micro-batch, even one that closed no windows, and
the current event time. `provisional`: it also gets windows that are still open, if the query emits them
(`write_together`). A method ``beside(query)`` is called with the query when it has begun.
"""


class SketchesToParquet:
    """A folder of Parquet files, one for each micro-batch that closed windows.

    `read_table`, ``spark.read.parquet`` and ``streamgauge query`` read them. A batch that Spark repeats
    replaces its own file. The driver writes, so the folder must be on its machine or mounted there, or in an
    object store, ``"s3://bucket/minutes"``. Raises `SketchError` for a folder with windows of another
    definition.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import polars as pl
    >>> import streamgauge as sg
    >>> rows = sg.Stream.from_schema({"at": pl.Datetime("us")}, time="at").tumbling("1m").agg(rows=sg.count())
    >>> table = sg.StreamTester(rows).finish().tables()
    >>> with TemporaryDirectory() as folder:
    ...     sg.spark.SketchesToParquet(folder)(table, sg.spark.Batch(query="trades", number=7))
    ...     [file.name for file in Path(folder).iterdir()]
    ['trades-000000007.parquet']
    """

    once = True

    def __init__(self, folder: str | Path) -> None:
        self._folder = stored_at(folder)
        self._checked: pa.Schema | None = None

    def __call__(self, table: ArrowStream, batch: Batch) -> None:
        """Write a batch's windows."""
        windows = arrow_table(table)
        done = self._folder / f"{batch.query}-{batch.number:09d}.parquet"
        if self._checked is None or not self._checked.equals(windows.schema, check_metadata=True):
            own = (file for file in files_below(self._folder) if file.parent == self._folder)
            for there in [file for file in own if file.suffix == ".parquet"][:1]:
                check_alike(
                    schema_in(there), windows.schema, f"SketchesToParquet: {self._folder} and this query"
                )
            self._checked = windows.schema
        # Readers see a whole file or none, even after a crash.
        write_whole(done, lambda file: write_parquet(windows, file))


class SketchesToKafka:
    """A Kafka topic of tables of sketches, written exactly once; each message is an Arrow IPC stream.

    A message contains the windows that one micro-batch closed, for the groups whose keys hash to its
    partition; the headers `query` and `batch` name the micro-batch. Messages are committed in one transaction
    with the batch's number, so a batch that was sent is not sent again, however long the query was down. The
    number is an offset of the consumer group ``<prefix>-<query>`` and a message in the compacted topic
    ``<prefix>.batch-positions``. The transactional id is ``<prefix>-<query>-<topic>``. Read the topic with
    ``isolation.level=read_committed``. Any number of queries may share a sink.

    A call waits while brokers are unreachable. It raises `TopicError` if the topic doesn't exist, and
    `RunError` if Kafka refuses, with the missing permission, or if a window is too large for one message.

    >>> import polars as pl
    >>> import streamgauge as sg
    >>> sink = sg.spark.SketchesToKafka("windows", "localhost:9092")
    >>> rows = sg.Stream.from_schema({"at": pl.Int64}, time=pl.from_epoch("at"))
    >>> by_minute = rows.tumbling("1m").agg(n=sg.count())
    >>> tester = sg.StreamTester(by_minute)
    >>> _ = tester.feed([{"at": 1_767_225_600}])
    >>> sink(tester.finish().tables(), sg.spark.Batch(query="posts", number=0))
    """

    once = True

    def __init__(
        self,
        topic: str,
        bootstrap_servers: str,
        config: Mapping[str, Any] | None = None,
        prefix: str = PREFIX,
    ) -> None:
        self._topic = topic
        self._config = Settings({**(config or {}), "bootstrap.servers": bootstrap_servers})
        self._prefix = prefix
        self._senders: dict[str, BatchSender] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_senders": {}}

    def __call__(self, table: ArrowStream, batch: Batch) -> None:
        """Send a batch's windows, or nothing if it was sent before."""
        parts = split(arrow_table(table), partitions_of(admin(self._config), self._topic))
        headers = [("query", batch.query.encode()), ("batch", str(batch.number).encode())]
        messages = [
            Outgoing(self._topic, partition, to_ipc(part), headers)
            for partition, part in enumerate(parts)
            if part.num_rows
        ]
        if (largest := max(message.size for message in messages)) > LARGEST:
            raise RunError(
                f"the windows of batch {batch.number} take {largest:,} bytes, more than the {LARGEST:,} of a "
                f"message; give {self._topic!r} more partitions"
            )
        if batch.query not in self._senders:
            sender = BatchSender(self._config, self._topic, batch.query, self._prefix)
            self._senders[batch.query] = sender
        self._senders[batch.query].send(messages, batch.number)


class AnswersToConsole:
    """The answers of each closed window, with their bounds, on standard output.

    At most `rows` rows of a micro-batch are shown.

    >>> from datetime import datetime
    >>> import polars as pl
    >>> import streamgauge as sg
    >>> rows = sg.Stream.from_schema({"at": pl.Datetime("us")}, time="at").tumbling("1m").agg(rows=sg.count())
    >>> tester = sg.StreamTester(rows)
    >>> _ = tester.feed([{"at": datetime(2026, 1, 1)}])
    >>> sg.spark.AnswersToConsole()(tester.finish().tables(), sg.spark.Batch(query="trades", number=0))
    ┌─────────────────────────┬─────────────────────────┬──────┐
    │ window_start            ┆ window_end              ┆ rows │
    │ ---                     ┆ ---                     ┆ ---  │
    │ datetime[μs, UTC]       ┆ datetime[μs, UTC]       ┆ i64  │
    ╞═════════════════════════╪═════════════════════════╪══════╡
    │ 2026-01-01 00:00:00 UTC ┆ 2026-01-01 00:01:00 UTC ┆ 1    │
    └─────────────────────────┴─────────────────────────┴──────┘
    """

    def __init__(self, rows: int = 50) -> None:
        self._rows = rows

    def __call__(self, table: ArrowStream, batch: Batch) -> None:
        """Print a batch's windows."""
        # Polars' print settings apply to the whole process, and each query has its own thread.
        with (
            _printing,
            pl.Config(tbl_rows=self._rows, tbl_cols=-1, fmt_str_lengths=60, tbl_hide_dataframe_shape=True),
        ):
            shown = query(table)
            if "window_start" in shown.columns:
                shown = shown.sort("window_start")
            shown = shown.with_columns(pl.col(pl.String).map_elements(escaped, return_dtype=pl.String))
            for line in str(shown).splitlines():
                write_line(line)
            sys.stdout.flush()
