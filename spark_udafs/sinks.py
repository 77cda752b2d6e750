"""Where closed windows go: Parquet files, a Kafka topic, the console. Each takes a micro-batch once.

After a crash Spark repeats its last micro-batch, with the same windows; what is already there is not written
again.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pyarrow as pa
from confluent_kafka import KafkaException, Producer
from confluent_kafka import TopicPartition as Partition

from ..operators.consumer.delta_log import LARGEST, split
from ..operators.kafka.clients import client_config, producer_config
from ..operators.kafka.faults import Refused, refused
from ..operators.kafka.patience import Patience
from ..operators.kafka.secrets import Settings
from ..operators.kafka.topics import admin, partitions_of
from ..operators.table.query import query
from ..operators.table.schema import to_ipc, write_parquet
from .kafka.cluster import reporting_consumer

_SECONDS = 10.0
_printing = threading.Lock()


class Batch(NamedTuple):
    """Which micro-batch it is: of the query whose checkpoint it is, and its number there, from 0."""

    query: str
    number: int


Sink = Callable[[pa.Table, Batch], None]
"""Takes the windows that a micro-batch closed, as a table of sketches."""


class ParquetSink:
    """A folder of Parquet files, one a micro-batch that closed windows; `operators.table.schema` reads them.

    A batch that is repeated replaces its own file. The folder is one of this machine, or mounted on it.
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)

    def __call__(self, table: pa.Table, batch: Batch) -> None:
        """Write a batch's windows."""
        self._folder.mkdir(parents=True, exist_ok=True)
        done = self._folder / f"{batch.query}-{batch.number:09d}.parquet"
        # Readers, and a crash, see all of a file or nothing.
        unfinished = done.with_name(f".{done.name}.unfinished")
        write_parquet(table, unfinished)
        unfinished.replace(done)


class KafkaSink:
    """A Kafka topic of tables of sketches, exactly once: each message an Arrow IPC stream.

    A message holds the windows that one micro-batch closed, of the groups that belong to its partition by the
    hash of their keys; its headers `query` and `batch` say which. Messages and the batch's number are
    committed in one transaction, the number as an offset of the consumer group ``<prefix>-<query>``, so that
    a batch that is there is not sent again; the transaction's id is ``<prefix>-<query>-<topic>``. Read the
    topic with ``isolation.level=read_committed``. Any number of queries may share a sink.

    Raises `TopicError` for a topic that doesn't exist, `RuntimeError` where Kafka refuses, with the right
    that is missing.
    """

    def __init__(
        self,
        topic: str,
        bootstrap_servers: str,
        config: Mapping[str, Any] | None = None,
        prefix: str = "streamgauge-sink",
    ) -> None:
        self._topic = topic
        self._config = Settings({**(config or {}), "bootstrap.servers": bootstrap_servers})
        self._prefix = prefix
        self._senders: dict[str, _Sender] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_senders": {}}

    def __call__(self, table: pa.Table, batch: Batch) -> None:
        """Send a batch's windows; waits while brokers are away."""
        waiting = Patience(f"write batch {batch.number} to {self._topic}", lambda: False)
        parts = split(table, partitions_of(admin(self._config), self._topic))
        messages = [(partition, to_ipc(part)) for partition, part in enumerate(parts) if part.num_rows]
        if (largest := max(len(value) for _, value in messages)) > LARGEST:
            raise RuntimeError(
                f"the windows of batch {batch.number} take {largest:,} bytes, more than the {LARGEST:,} of a "
                f"message; give {self._topic!r} more partitions"
            )
        while True:
            try:
                # A producer that starts settles the transaction that its predecessor left.
                if batch.query not in self._senders:
                    self._senders[batch.query] = _Sender(
                        self._config, self._topic, f"{self._prefix}-{batch.query}"
                    )
                self._senders[batch.query].send(messages, batch)
                waiting.done()
                return
            except KafkaException as error:
                self._senders.pop(batch.query, None)
                told = refused(
                    error.args[0],
                    f"write batch {batch.number} to {self._topic!r}",
                    topic=self._topic,
                    group=f"{self._prefix}-{batch.query}",
                    right="WRITE",
                )
                if isinstance(told, Refused):
                    raise RuntimeError(f"{told}; the sink's names begin with its prefix") from None
                waiting.failed(error)


class _Sender:
    """A transactional producer, and the group that remembers what it sent."""

    def __init__(self, config: Mapping[str, Any], topic: str, group: str) -> None:
        self._topic = topic
        self._group = reporting_consumer(client_config(config), group)
        # Sinks of one query that write to several topics would fence each other by the same id.
        settings = {**producer_config(config, LARGEST + 4096), "transactional.id": f"{group}-{topic}"}
        self._producer = Producer(settings, logger=logging.getLogger("streamgauge.kafka"))
        self._producer.init_transactions(_SECONDS)

    def send(self, messages: list[tuple[int, bytes]], batch: Batch) -> None:
        """Send a batch, unless it is there."""
        (sent,) = self._group.committed([Partition(self._topic, 0)], timeout=_SECONDS)
        if sent.offset > batch.number:
            return
        headers: dict[str, str | bytes | None] = {"query": batch.query, "batch": str(batch.number)}
        self._producer.begin_transaction()
        for partition, value in messages:
            self._producer.produce(self._topic, value, headers=headers, partition=partition)
        done = [Partition(self._topic, 0, batch.number + 1)]
        self._producer.send_offsets_to_transaction(done, self._group.consumer_group_metadata(), _SECONDS)
        self._producer.commit_transaction(_SECONDS)


class ConsoleSink:
    """The answers of each closed window, with their bounds, on standard output."""

    def __init__(self, rows: int = 50) -> None:
        self._rows = rows

    def __call__(self, table: pa.Table, batch: Batch) -> None:
        """Print a batch's windows."""
        # Polars has one way to print for the whole process, and queries have a thread each.
        with (
            _printing,
            pl.Config(tbl_rows=self._rows, tbl_cols=-1, fmt_str_lengths=60, tbl_hide_dataframe_shape=True),
        ):
            print(query(table).sort("window_start"), file=sys.stdout, flush=True)
