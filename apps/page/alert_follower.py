"""Follow an alerts topic into `AlertLog`s, in a separate thread, for as long as they are served."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaPartition

from ...operators.kafka.faults import passing, refused
from ...operators.kafka.topics import admin, begin_offsets, end_offsets, partitions_of
from ...operators.rules.alert import Alert
from ...operators.secrets import Settings, without_secrets
from ...operators.watermarks.position import Input
from ...queries.views.topic_reading import reader, reason_of
from .alert_log import AlertLog

log = logging.getLogger("streamgauge.serving")

_AGAIN_SECONDS = 0.5
_SECONDS = 5.0
_END_SECONDS = 15.0


class AlertFollower:
    """Reads committed messages of the topic that `AlertsToKafka` writes, without joining a group.

    While it can't be read, or doesn't exist yet, the logs are stale and say why. Messages that aren't alerts
    are left out, and a warning says so once.
    """

    def __init__(self, topic: str, config: Mapping[str, Any], logs: Sequence[AlertLog]) -> None:
        self._topic, self._logs = topic, logs
        self._config = Settings(config)
        self._stop = threading.Event()
        self._reached: dict[int, int] = {}
        self._strange = False
        self._thread = threading.Thread(target=self._run, name=f"follow {topic}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop following."""
        self._stop.set()
        self._thread.join(_END_SECONDS)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._follow()
            except Exception as error:
                self._say(reason_of(error, f"the alerts in {self._topic}"))
            self._stop.wait(_AGAIN_SECONDS)

    def _follow(self) -> None:
        client = admin(self._config)
        inputs = [Input(self._topic, p) for p in range(partitions_of(client, self._topic, _SECONDS))]
        begins = {w.partition: at for w, at in begin_offsets(client, inputs, _SECONDS).items()}
        ends = {w.partition: at for w, at in end_offsets(client, inputs, _SECONDS).items()}
        # From the first message on, because an event that still lasts may have begun at any time.
        starts = {p: max(begin, min(self._reached.get(p, begin), ends[p])) for p, begin in begins.items()}
        consumer = reader(self._config, "streamgauge-page")
        try:
            consumer.assign([KafkaPartition(self._topic, p, at) for p, at in starts.items()])
            self._say(None)
            while not self._stop.is_set():
                self._read(consumer)
        finally:
            consumer.close()

    def _read(self, consumer: Consumer) -> None:
        first = consumer.poll(0.2)
        alerts: list[Alert] = []
        for message in [] if first is None else [first, *consumer.consume(500, 0.0)]:
            error, partition, offset = message.error(), message.partition(), message.offset()
            if error is not None:
                if error.code() == KafkaError._AUTO_OFFSET_RESET:
                    self._reached.clear()  # offsets were deleted meanwhile: read the remaining messages again
                    raise KafkaException(error)
                if not passing(error) and error.code() != KafkaError._PARTITION_EOF:
                    raise refused(error, "read the alerts", topic=self._topic)
                continue
            assert partition is not None and offset is not None
            self._reached[partition] = offset + 1
            if (alert := self._alert(message)) is not None:
                alerts.append(alert)
        for one in self._logs if alerts else ():
            one.add(alerts)

    def _alert(self, message: Message) -> Alert | None:
        try:
            return alert_of(message.value() or b"")
        except (ValueError, KeyError, TypeError, RecursionError, OverflowError) as error:
            if not self._strange:
                log.warning(
                    "%s[%s] at offset %s is not an alert (%s); such messages are skipped",
                    self._topic,
                    message.partition(),
                    message.offset(),
                    error,
                )
            self._strange = True
            return None

    def _say(self, why: str | None) -> None:
        for one in self._logs:
            one.is_stale(None if why is None else without_secrets(why, self._config))


def alert_of(value: bytes) -> Alert:
    """Parse an alert. Raises `ValueError`, `KeyError` or `TypeError` for messages that aren't our alerts.

    Any program may write to a topic: one message must not break every response that would contain it.

    >>> alert_of(b'{"rule": 5}')
    Traceback (most recent call last):
    KeyError: 'key'
    """
    alert = Alert.from_dict(json.loads(value))
    for name in ("rule", "kind", "state", "why", "app"):
        if not isinstance(getattr(alert, name), str):
            raise TypeError(f"{name} must be text, got {getattr(alert, name)!r:.80}")
    for part in alert.key:
        if not isinstance(part, str | int | float | None):
            raise TypeError(f"key must be plain values, got {part!r:.80}")
    for name in ("value", "lower", "upper", "limit"):
        if not isinstance(getattr(alert, name), str | int | float | None):
            raise TypeError(f"{name} must be a number, got {getattr(alert, name)!r:.80}")
    if not isinstance(alert.details, dict):
        raise TypeError(f"details must be an object, got {alert.details!r:.80}")
    return alert
