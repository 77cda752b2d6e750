"""Write DataFrames to Kafka topics: the writing side of ``streamgauge-kafka``.

Tasks encode their rows. The driver then sends a micro-batch's messages in one transaction with the batch's
number (`batch_sender`), so a batch that Spark repeats is sent once, even if its rows are in other tasks the
second time. With `delivery` ``at_least_once`` the tasks send their messages themselves.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import ArrayType, BinaryType, DataType, IntegerType, StringType, StructType

from ...operators.consumer.log.messages import LARGEST, split
from ...operators.formats.encode import json_rows, keys_bytes
from ...operators.kafka.client_config import producer_config
from ...operators.kafka.outgoing_message import ANY_PARTITION, Outgoing
from ...operators.kafka.produce import Faults, connected_producer, flush, produce
from ...operators.kafka.settings import check_settings
from ...operators.kafka.topics import admin, partitions_of, remove
from ...operators.table.query import query
from ...operators.table.schema import keys_of, to_ipc
from ...sketches.core.errors import RunError
from ..table_columns import schema_of_columns, table_of_rows
from ..worker_errors import raised_alone
from .batch_positions import PREFIX
from .batch_sender import BatchSender
from .options import check_known, client_settings

Content = Literal["messages", "answers", "sketches"]
Delivery = Literal["exactly_once", "at_least_once"]

_KNOWN = ("topic", "emit", "delivery", "groupIdPrefix")
_CHOICES = {
    "emit": ("messages", "answers", "sketches"),
    "delivery": ("exactly_once", "at_least_once"),
}
_QUERY = "sql.streaming.queryId"
"""The task property with the query's id, which is stored in the checkpoint."""
_FLUSH_SECONDS = 120.0

_HEADER = StructType().add("key", StringType()).add("value", BinaryType())
_COLUMNS: dict[str, tuple[DataType, ...]] = {
    "key": (StringType(), BinaryType()),
    "value": (StringType(), BinaryType()),
    "topic": (StringType(),),
    "partition": (IntegerType(),),
    "headers": (ArrayType(_HEADER),),
}
"""The columns of messages and their accepted types, as in Spark's own Kafka sink."""


@dataclass(frozen=True)
class SinkOptions:
    """What to write and where, validated."""

    config: Mapping[str, Any]
    topic: str | None
    emit: Content
    delivery: Delivery
    prefix: str

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> SinkOptions:
        """Read the options of ``df.write`` and ``df.writeStream``.

        Raises `ValueError` with the option, what is wrong with it and what it may be.
        """
        given = {key.lower(): str(value) for key, value in options.items()}
        given.pop("checkpointlocation", None)  # Spark's own, which it passes on
        check_known(given, _KNOWN, " for writing")
        config = client_settings(given)
        check_settings(config)
        chosen = {name: given.get(name, choices[0]) for name, choices in _CHOICES.items()}
        for name, choices in _CHOICES.items():
            if chosen[name] not in choices:
                raise ValueError(f"{name} must be {', '.join(choices)}, got {chosen[name]!r}")
        prefix = given.get("groupidprefix", PREFIX)
        return cls(config, given.get("topic"), chosen["emit"], chosen["delivery"], prefix)  # type: ignore[arg-type]

    def encoder(self, columns: StructType) -> Callable[[pa.Table], Iterator[Outgoing]]:
        """Return the encoder from rows with these columns to messages.

        Raises `ValueError` for unsuitable columns, and `SketchError` for anything but a table of sketches.
        """
        if self.emit == "messages":
            self._check_messages(columns)
            return self._messages
        topic = self.topic
        if topic is None:
            raise ValueError(f'emit {self.emit!r} needs .option("topic", "name")')
        schema_of_columns(columns)
        encode = _answers if self.emit == "answers" else self._sketches
        return lambda rows: encode(topic, columns, rows)

    def _check_messages(self, columns: StructType) -> None:
        names = columns.fieldNames()
        if "value" not in names:
            raise ValueError(
                "a message needs a column value (string or binary), as Spark's own Kafka sink does; the "
                f"DataFrame has {', '.join(names)}. Make it with to_json(struct('*')) AS value, or, for a "
                'table of sketches, set .option("emit", "answers") or "sketches"'
            )
        for one in columns:
            kinds = _COLUMNS.get(one.name)
            if kinds is None:
                raise ValueError(
                    f"a message has no column {one.name!r}; it has {', '.join(_COLUMNS)}. Select these, or "
                    "put the column into value"
                )
            if one.dataType.simpleString() not in {kind.simpleString() for kind in kinds}:
                wanted = " or ".join(kind.simpleString() for kind in kinds)
                raise ValueError(f"{one.name} must be {wanted}, got {one.dataType.simpleString()}")
        if self.topic is None and "topic" not in names:
            raise ValueError('streamgauge-kafka needs .option("topic", "name") or a column topic')

    def _messages(self, rows: pa.Table) -> Iterator[Outgoing]:
        columns = {name: rows[name].to_pylist() for name in rows.column_names}
        for at, value in enumerate(columns["value"]):
            row = {name: values[at] for name, values in columns.items()}
            topic = row.get("topic") or self.topic
            if topic is None:
                raise ValueError(
                    'a row has no topic: its column topic is null, and the option "topic" is not set'
                )
            partition = row.get("partition")
            headers = [(one["key"], one["value"]) for one in row.get("headers") or ()]
            yield Outgoing(
                topic,
                ANY_PARTITION if partition is None else partition,
                _bytes(value),
                headers,
                _bytes(row.get("key")),
            )

    def _sketches(self, topic: str, columns: StructType, rows: pa.Table) -> Iterator[Outgoing]:
        table = table_of_rows(rows, columns)
        for partition, part in enumerate(split(table, partitions_of(admin(self.config), topic))):
            if part.num_rows:
                yield Outgoing(topic, partition, to_ipc(part))


def _answers(topic: str, columns: StructType, rows: pa.Table) -> Iterator[Outgoing]:
    table = table_of_rows(rows, columns)
    answers = query(table)
    for key, value in zip(keys_bytes(answers, keys_of(table.schema)), json_rows(answers)):
        yield Outgoing(topic, ANY_PARTITION, value, (), key)


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


@dataclass
class TaskMessages(WriterCommitMessage):
    """The messages that a task has encoded but not sent, and its query."""

    query: str | None = None
    messages: list[Outgoing] = field(default_factory=list)


class _Writing:
    """The common part of both kinds of writers."""

    def __init__(self, options: SinkOptions, columns: StructType) -> None:
        self._options = options
        self._columns = columns
        options.encoder(columns)  # refuses unsuitable columns before anything runs

    @raised_alone()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessages:
        """Encode a task's rows; send them here if no transaction does."""
        encode = self._options.encoder(self._columns)
        messages: Iterable[Outgoing] = (
            message
            for batch in iterator
            if batch.num_rows
            for message in encode(pa.Table.from_batches([batch]))
        )
        if self._options.delivery == "at_least_once":
            _send(self._options.config, map(_sendable, messages))
            return TaskMessages()
        context = TaskContext.get()
        named = None if context is None else context.getLocalProperty(_QUERY)
        return TaskMessages(named, list(map(_sendable, messages)))

    def _commit(self, parts: Iterable[Any], query: str, number: int, lasting: bool) -> None:
        messages = [message for part in parts if part is not None for message in part.messages]
        if not messages:
            return
        client = admin(self._options.config)
        for name in dict.fromkeys(message.topic for message in messages):
            partitions_of(client, name)
        topic, prefix = self._options.topic or messages[0].topic, self._options.prefix
        BatchSender(self._options.config, topic, query, prefix, lasting).send(messages, number)


class KafkaBatchWriter(_Writing, DataSourceArrowWriter):
    """``df.write``: all messages of the DataFrame in one transaction, or none."""

    @raised_alone()
    def commit(self, messages: list[Any]) -> None:
        """Send the tasks' messages."""
        job = str(uuid.uuid4())
        # No later run of a job would look up what was sent.
        self._commit(messages, job, 0, lasting=False)
        if self._options.delivery == "exactly_once":
            remove(admin(self._options.config), (), (f"{self._options.prefix}-{job}",))

    def abort(self, messages: list[Any]) -> None:
        """Nothing was sent."""


class KafkaStreamWriter(_Writing, DataSourceStreamArrowWriter):
    """``df.writeStream``: each micro-batch in one transaction, once, however often Spark repeats it."""

    def __init__(self, options: SinkOptions, columns: StructType) -> None:
        super().__init__(options, columns)
        if options.topic is None and options.delivery == "exactly_once":
            raise ValueError(
                'a stream needs .option("topic", "name"): the position of its query is committed under this '
                "topic, also if a column topic sends each row to its own"
            )

    @raised_alone()
    def commit(self, messages: list[Any], batchId: int) -> None:
        """Send the messages of a micro-batch's tasks, unless they were sent before."""
        named = next((part.query for part in messages if part is not None and part.query), None)
        if named is None and any(part is not None and part.messages for part in messages):
            raise RunError(
                "Spark doesn't tell its tasks which query they are of, so a repeated micro-batch can't be "
                'recognised; set .option("delivery", "at_least_once")'
            )
        self._commit(messages, str(named), batchId, lasting=True)

    def abort(self, messages: list[Any], batchId: int) -> None:
        """Nothing was sent."""


def _sendable(message: Outgoing) -> Outgoing:
    if message.size > LARGEST:
        raise RunError(f"a message for {message.topic!r} takes {message.size:,} bytes, more than {LARGEST:,}")
    return message


def _send(config: Mapping[str, Any], messages: Iterable[Outgoing]) -> None:
    """Send messages and wait for delivery. Raises `RunError` if one isn't delivered."""
    client, known = admin(config), set()
    faults = Faults([])
    producer = None
    for message in messages:
        if message.topic not in known:
            partitions_of(client, message.topic)
            known.add(message.topic)
        producer = producer or connected_producer(producer_config(config, LARGEST + 4096))
        produce(producer, message, faults.record)
        producer.poll(0)
    if producer is not None and not flush(producer, _FLUSH_SECONDS, lambda: faults.error is not None):
        if faults.error is not None:
            raise RunError(str(faults.exception(faults.error)))
        raise RunError(f"Kafka hasn't accepted all messages within {_FLUSH_SECONDS:.0f} s")
