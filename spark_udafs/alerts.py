"""Rules over the windows that a Spark query closes."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as Partition

from ..operators.definition.stream import Stream
from ..operators.kafka.clients import client_config, producer_config
from ..operators.kafka.faults import refused
from ..operators.kafka.outgoing import Outgoing
from ..operators.kafka.patience import Patience
from ..operators.kafka.secrets import Settings
from ..operators.kafka.topics import admin, ensure_topic
from ..operators.rules.alerting import Alerting
from ..operators.sinks.sink import ClosedWindow, Origin
from .kafka.cluster import reporting_consumer
from .sinks import Batch

_SECONDS = 10.0


class AlertSink:
    """Apply rules to the windows that a query closes, with the alerts that a consumer's run gives.

    What the rules remember is a file in `folder`, which belongs to the query as its checkpoint does, with the
    number of the micro-batch: a batch that is repeated after a crash begins with what they remembered before
    it. Alerts to topics go out once, in a transaction that notes the batch's number; to the other outlets
    those of the last batch may go again, under the same ids. `config` are settings of librdkafka for the
    topics, with the `bootstrap.servers`; unless given, those of the stream.

    Raises `ValueError` for rules that don't suit the stream.

    >>> from tempfile import mkdtemp
    >>> import polars as pl
    >>> from streamgauge import Stream, StreamTester, Threshold, count
    >>> rows = Stream.from_batches({"at": pl.Int64}, time=pl.from_epoch("at")).tumbling("1m").agg(n=count())
    >>> sink = AlertSink(rows, Alerting([Threshold("busy", value="n", at_least=2)]), mkdtemp())
    >>> tester = StreamTester(rows)
    >>> _ = tester.feed([{"at": 1_767_225_600}] * 2)
    >>> sink(tester.finish().tables(), Batch(query="posts", number=0))
    2026-01-01T00:01:00+00:00 busy fired: n is 2: at least 2
    """

    def __init__(
        self,
        stream: Stream,
        alerting: Alerting,
        folder: str | Path,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self._stream = stream
        self._alerting = alerting
        self._folder = Path(folder)
        self._config = Settings(config or {})
        self._sender: _AlertSender | None = None
        self._begin(Origin.of(stream, "", named=True))

    def __call__(self, table: pa.Table, batch: Batch) -> None:
        """Fold a batch's windows in, and tell what follows from them."""
        origin = Origin.of(self._stream, batch.query, named=True)
        folding = self._alerting.folding(origin, 0)
        kept = self._kept(batch)
        before = kept["memory"] if kept["batch"] < batch.number else kept["before"]
        if before is not None:
            folding.resume(before)
        messages = folding.take(ClosedWindow(table, 0, True, origin))
        if messages:
            self._send(messages, batch)
        self._keep(batch, {"batch": batch.number, "before": before, "memory": folding.memory()})

    def _begin(self, origin: Origin) -> None:
        topics = self._alerting.topics(origin, 1)
        if not topics:
            return
        if not self._config:
            self._config = self._stream.kafka_sources[0].settings
        client = admin(self._config)
        for topic in topics:
            ensure_topic(client, topic.name, topic.partitions or 1, topic.config)

    def _file(self, batch: Batch) -> Path:
        return self._folder / f"{self._alerting.name}-{batch.query}.json"

    def _kept(self, batch: Batch) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(self._file(batch).read_text(encoding="utf-8"))
            return found
        except FileNotFoundError:
            return {"batch": -1, "before": None, "memory": None}

    def _keep(self, batch: Batch, kept: dict[str, Any]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        done = self._file(batch)
        unfinished = done.with_name(f".{done.name}.unfinished")
        with unfinished.open("w", encoding="utf-8") as file:
            json.dump(kept, file)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(done)

    def _send(self, messages: list[Outgoing], batch: Batch) -> None:
        waiting = Patience(f"tell the alerts of batch {batch.number}", lambda: False)
        while True:
            try:
                # A producer that starts settles the transaction that its predecessor left open.
                self._sender = self._sender or _AlertSender(
                    self._config, f"{self._alerting.name}-{batch.query}"
                )
                self._sender.send(messages, batch)
                waiting.done()
                return
            except KafkaException as error:
                self._sender = None
                told = refused(
                    error.args[0], "tell alerts", topic=messages[0].topic, group=batch.query, right="WRITE"
                )
                waiting.failed(told)


class _AlertSender:
    """A transactional producer, and the consumer group that remembers which batch was sent."""

    def __init__(self, config: Mapping[str, Any], name: str) -> None:
        self._name = name
        self._group = reporting_consumer(client_config(config), name)
        settings = {
            "partitioner": "murmur2_random",
            **producer_config(config, 1_000_000),
            "transactional.id": name,
        }
        self._producer = Producer(settings, logger=logging.getLogger("streamgauge.kafka"))
        self._producer.init_transactions(_SECONDS)

    def send(self, messages: list[Outgoing], batch: Batch) -> None:
        """Send a batch's messages, unless they were sent before."""
        place = Partition(messages[0].topic, 0)
        (sent,) = self._group.committed([place], timeout=_SECONDS)
        if sent.offset > batch.number:
            return
        faults: list[KafkaError] = []

        def delivered(error: KafkaError | None, _: Message) -> None:
            faults.extend([] if error is None else [error])

        self._producer.begin_transaction()
        for message in messages:
            self._producer.produce(
                message.topic,
                message.value,
                message.key,
                message.partition,
                delivered,
                headers=list(message.headers),
            )
        if self._producer.flush(_SECONDS) or faults:
            raise KafkaException(faults[0] if faults else KafkaError(KafkaError._MSG_TIMED_OUT))
        done = Partition(place.topic, 0, batch.number + 1)
        self._producer.send_offsets_to_transaction([done], self._group.consumer_group_metadata(), _SECONDS)
        self._producer.commit_transaction(_SECONDS)
