"""Send messages about the windows that a Spark query closes, once for each micro-batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...operators.definition.stream import Stream
from ...operators.kafka.topics import admin, ensure_topic
from ...operators.secrets import Settings
from ...operators.sinks.sink import ClosedWindow, MessageSink, Origin
from ...operators.table.schema import ArrowStream, arrow_table
from ...operators.table.window_groups import WindowGroups
from .alert_sender import AlertSender
from .sinks import Batch


class MessagesSink:
    """Sends the messages of a consumer's sink, such as `AnswersToKafka`, from a Spark query.

    The messages of a micro-batch are sent in one transaction that records the batch's number, so a batch that
    is repeated after a crash is not sent again. `config` has librdkafka's settings; by default the stream's.
    """

    once = True

    def __init__(self, stream: Stream, sink: MessageSink, config: Mapping[str, Any] | None = None) -> None:
        self._stream, self._sink = stream, sink
        self._config = Settings(config or stream.reading.kafka_sources[0].settings)
        self._sender: AlertSender | None = None
        topic = sink.topic(Origin.of(stream, "", named=True))
        ensure_topic(admin(self._config), topic.name, topic.partitions or 1, topic.config)

    def __call__(self, table: ArrowStream, batch: Batch) -> None:
        """Send a batch's messages."""
        origin = Origin.of(self._stream, batch.query, named=True)
        groups = WindowGroups.of_table(arrow_table(table))
        messages = list(self._sink.messages(ClosedWindow(groups, 0, True, origin)))
        if messages:
            self._sender = self._sender or AlertSender(self._config, f"answers-{batch.query}", what="answers")
            self._sender.send(messages, batch.number)
