"""Kafka, exactly once: messages, dead letters and the source's positions in one transaction."""

from __future__ import annotations

import time
import uuid
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal

import numpy as np
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ConfigResource

from ....operators.kafka.batch_producer import BatchProducer
from ....operators.kafka.client_config import producer_config
from ....operators.kafka.faults import refused
from ....operators.kafka.retry import Retry
from ....operators.kafka.settings import check_settings, servers
from ....operators.kafka.topics import Admin, TopicError, admin, ensure_topic
from ....operators.sketching.dead_letters import LARGEST_REASON
from ....sketches.core.errors import StreamgaugeError
from ..batch import Batch, DeadLine, Headers, IngestError, Positions
from ..component import Delivered, Place
from ..kafka_positions import CLAIM, COUNT, TOPIC, KafkaPositions

_ANSWER_SECONDS = 10.0
_TRANSACTION_MS = 60_000
"""How long an agent that is killed during a transaction blocks readers, unless an agent of the same name
starts.
"""
_MESSAGES = 1_000_000
_QUEUE_KB = 512 * 1024
"""The size of the library's queue, which never fills, because an agent's transactions are smaller."""
_OVERHEAD = 256
"""The overhead of a record batch in bytes, besides a message's own bytes, without headers."""
_TOPIC_LIMIT = 1_048_588
"""Kafka's default limit of a topic's messages, in bytes."""
_LETTER = 100_000
"""The number of bytes of an oversized line that a dead letter contains."""
_CLAIM_SECONDS = 2.0
_FENCED = {KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH}
_TOO_LARGE = {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE}


@dataclass(frozen=True, kw_only=True)
class KafkaTopic:
    """A topic.

    It is created with `partitions` if missing. Messages that can't be sent go to the topic `dead_letters`,
    created when needed. The messages of a stream, such as a file, go to one partition and stay in order; with
    ``order="none"``, each batch goes to the next partition, or messages go by their keys if they have keys.
    `config` has librdkafka's settings.
    """

    topic: str
    bootstrap_servers: str = "localhost:9092"
    partitions: int = 1
    dead_letters: str = ""
    order: Literal["stream", "none"] = "stream"
    config: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.partitions < 1:
            raise ValueError(f"partitions must be an integer ≥ 1, got {self.partitions}")
        if not self.topic:
            raise ValueError("topic must name a topic, got ''")
        for name, value in self.config.items():
            if callable(value) or name == "logger":
                instead = 'write "sasl.oauthbearer.method": "oidc" with its client and endpoint'
                raise ValueError(
                    f'config: "{name}" must be a string or a number, because this sink doesn\'t call '
                    f"functions: {instead if name == 'oauth_cb' else 'leave it out'}"
                )
        try:
            check_settings(self.config)
        except ValueError as error:
            raise ValueError(f"config: {error}") from None

    def open(self, place: Place) -> KafkaSink:
        """See `SinkSettings`."""
        return KafkaSink(self, place)


class KafkaSink:
    """A `Sink` that commits transactions; `positions` returns what the last one stored for this source.

    Once it exists, an older agent of the same name can no longer commit anything.
    """

    def __init__(self, settings: KafkaTopic, place: Place) -> None:
        self._settings, self._place = settings, place
        self._config = {"bootstrap.servers": servers(settings.bootstrap_servers), **settings.config}
        self._admin = admin(self._config)
        self._partitions = ensure_topic(self._admin, settings.topic, settings.partitions)
        largest = _largest_batch(self._admin, settings.topic)
        self._longest = largest - _OVERHEAD
        self._letters = settings.dead_letters or f"{settings.topic}.dead-letters"
        self._letters_made = False
        self._kept = KafkaPositions(self._admin, self._config, place.agent, place.source)
        self._producer_config = {
            # A request with many lines is sent when it is full, or after some milliseconds.
            "linger.ms": 20,
            "compression.type": "lz4",
            "partitioner": "murmur2_random",
            "batch.num.messages": 100_000,
            **producer_config(self._config, max(largest, _TOPIC_LIMIT) + _OVERHEAD),
            "batch.size": min(int(self._config.get("batch.size", 1_000_000)), largest - _OVERHEAD),
            "queue.buffering.max.messages": _MESSAGES,
            "queue.buffering.max.kbytes": _QUEUE_KB,
            "transactional.id": f"streamgauge-ingest-{place.owner}",
            "transaction.timeout.ms": self._config.get("transaction.timeout.ms", _TRANSACTION_MS),
            "metadata.recovery.strategy": "none",  # as in `consumer.worker.delivery.ExactlyOnce`
        }
        self._commit_seconds = int(self._producer_config["transaction.timeout.ms"]) / 1000
        self._turn = count()
        self._producer: BatchProducer | None = None
        self._begun = False
        self._begun_at = self._clocks()
        self._failed: KafkaException | None = None
        self._instance = uuid.uuid4().hex
        retry = Retry("begin transactions", place.stopping)
        while self._producer is None:
            try:
                self._producer = self._fresh()
                self._claim(self._producer)
            except KafkaException as error:
                self.close()
                retry.failed(self._refused(error.args[0]))
        retry.done()
        kept = self._kept.read()
        kept.pop(CLAIM, None)
        self._transactions = int(kept.pop(COUNT, {}).get("transactions", 0))
        self.positions: Positions = kept

    def write(self, batch: Batch) -> None:
        """See `Sink`. `commit` retries whatever fails here."""
        if self._failed is not None or self._producer is None:
            return
        try:
            if not self._begun:
                self._begin(self._producer)
            self._send(self._producer, batch)
        except KafkaException as error:
            self._failed = error

    def commit(self, batches: Sequence[Batch]) -> Delivered:
        """See `Sink`."""
        retry = Retry("commit to Kafka", self._place.stopping)
        number, unsure = self._transactions + 1, False
        while True:
            try:
                if self._failed is not None:
                    failed, self._failed = self._failed, None
                    raise failed
                producer = self._producer = self._producer or self._fresh()
                producer.wait(0)
                if producer.cut_off:
                    raise KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN))
                if unsure and int(self._last(COUNT).get("transactions", 0)) >= number:
                    break
                unsure = False
                if not self._begun:
                    self._begin(producer)
                    for batch in batches:
                        self._send(producer, batch)
                self._send_positions(producer, batches, number)
                unsure = True
                producer.commit(self._commit_seconds)
                self._begun = False
                break
            except KafkaException as error:
                unsure = self._clear(error.args[0]) and unsure
                self._give_up_or_wait(error.args[0], batches, retry)
        retry.done()
        self._transactions = number
        dead = [line for batch in batches for line in self._split(batch)[1]]
        return Delivered(sum(self._split(batch)[0] for batch in batches), len(dead))

    def close(self) -> None:
        """See `Sink`."""
        if self._producer is not None:
            if self._begun:
                # Readers wait for an open transaction, so closing during one aborts it.
                self._clear(KafkaError(KafkaError._FAIL, "closing", False, False, True))
            if self._producer is not None:
                self._producer.close()
            self._producer = None

    def _fresh(self) -> BatchProducer:
        return BatchProducer(self._producer_config, _ANSWER_SECONDS)

    def _split(self, batch: Batch) -> tuple[int, Sequence[DeadLine]]:
        """Split a batch into messages for the topic and dead letters."""
        whole = batch.without_long(self._longest_with(batch), _LETTER)
        return len(whole), whole.dead

    def _longest_with(self, batch: Batch) -> int:
        headers = _bytes_of(batch.headers) + max(map(_bytes_of, batch.own_headers or ()), default=0)
        return self._longest - headers - max((len(key or b"") for key in batch.keys or ()), default=0)

    def _send(self, producer: BatchProducer, batch: Batch) -> None:
        batch = batch.without_long(self._longest_with(batch), _LETTER)
        topic, partition = self._settings.topic, self._partition(batch)
        plain = batch.keys is batch.own_headers is batch.nulls is None and not batch.headers
        plain = plain and isinstance(batch.timestamp_ms, int) and not batch.timestamp_ms
        sent = 0
        while sent < len(batch):
            rest = batch.part(sent)
            block = rest.data, rest.starts, rest.lengths
            if plain:
                sent += producer.send(topic, partition, *block)
            else:
                sent += producer.send_fully(
                    topic,
                    partition,
                    *block,
                    keys=rest.keys,
                    headers=rest.headers,
                    own_headers=rest.own_headers,
                    timestamp_ms=rest.timestamp_ms,
                    nulls=rest.nulls,
                )
            if sent < len(batch):
                producer.wait(0.01)
        for line in batch.dead:
            self._send_letter(producer, line, batch)

    def _partition(self, batch: Batch) -> int:
        if batch.keys is not None:
            return -1
        if self._settings.order == "stream" and batch.stream:
            return zlib.crc32(batch.stream.encode()) % self._partitions
        return next(self._turn) % self._partitions

    def _send_letter(self, producer: BatchProducer, line: DeadLine, batch: Batch) -> None:
        if not self._letters_made:
            try:
                ensure_topic(self._admin, self._letters, 1)
            except TopicError as error:
                raise IngestError(
                    f"{self._place.owner} has a line that can't be sent ({line.reason}): {error}"
                ) from None
            self._letters_made = True
        headers = [
            ("reason", line.reason[:LARGEST_REASON].encode(errors="replace")),
            ("source", self._place.owner.encode()),
            ("stream", batch.stream.encode(errors="replace")),
            ("timestamp", str(int(time.time() * 1000)).encode()),
        ]
        letter = Batch.of([line.value])
        producer.send_fully(self._letters, -1, letter.data, letter.starts, letter.lengths, headers=headers)

    def _send_positions(self, producer: BatchProducer, batches: Sequence[Batch], number: int) -> None:
        changed: dict[str, Mapping[str, Any] | None] = {}
        for batch in batches:
            changed.update(batch.positions)
        self._send_records(producer, {**changed, COUNT: {"transactions": number}, **self._own_claim()})

    def _begin(self, producer: BatchProducer) -> None:
        producer.begin()
        self._begun, self._begun_at = True, self._clocks()

    @staticmethod
    def _clocks() -> tuple[float, float]:
        """Read a monotonic clock that continues while the machine sleeps."""
        return time.monotonic(), time.time()

    def _claim(self, producer: BatchProducer) -> None:
        """Publish immediately which agent reads the source now: reading positions may have to wait for other
        transactions, and a predecessor may look for the claim.
        """
        producer.begin()
        self._send_records(producer, self._own_claim())
        producer.commit(self._commit_seconds)

    def _own_claim(self) -> Positions:
        return {CLAIM: {"instance": self._instance}}

    def _send_records(self, producer: BatchProducer, changed: Positions) -> None:
        records = list(self._kept.records(changed))
        block = Batch.of([value or b"" for _, value in records])
        producer.send_fully(
            TOPIC,
            self._kept.partition,
            *(block.data, block.starts, block.lengths),
            keys=[key for key, _ in records],
            nulls=np.array([value is None for _, value in records]),
        )

    def _last(self, part: str) -> Mapping[str, Any]:
        """Fetch a part's position after the last transaction. Raises `KafkaException` without an answer."""
        try:
            return self._kept.read().get(part, {})
        except (StreamgaugeError, OSError) as error:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, str(error))) from None

    def _clear(self, error: KafkaError) -> bool:
        """Return to a producer without a transaction, or to none; return whether the outcome may be
        unknown."""
        self._begun = False
        if self._producer is None:
            return True
        if error.txn_requires_abort():
            try:
                self._producer.abort(_ANSWER_SECONDS)
                return False
            except KafkaException:
                pass
        self._producer.close()
        self._producer = None
        return True

    def _give_up_or_wait(self, error: KafkaError, batches: Sequence[Batch], retry: Retry) -> None:
        if error.code() in _FENCED and self._taken_over():
            raise IngestError(
                f"another agent named {self._place.agent!r} has taken over {self._place.source!r}: "
                "this one ends; give one of them another name if both are to run"
            )
        if error.code() in _TOO_LARGE and (shorter := self._shorter(batches)):
            self._longest = shorter
            return
        retry.failed(self._refused(error))

    def _taken_over(self) -> bool:
        """Whether another agent has taken over, rather than a transaction having exceeded the brokers' limit.

        The broker can't have ended a transaction that was not open that long. Otherwise, this looks for the
        other agent's claim, which it writes just after it has fenced its predecessor, and with every commit.
        An agent whose first claim comes too late is fenced in turn, and claims again.
        """
        open_for = max(now - then for now, then in zip(self._clocks(), self._begun_at))
        if open_for < 0.9 * self._commit_seconds:
            return True
        time.sleep(_CLAIM_SECONDS)
        try:
            return self._last(CLAIM).get("instance", self._instance) != self._instance
        except KafkaException:
            return False  # the next attempt checks again

    def _shorter(self, batches: Sequence[Batch]) -> int | None:
        """Return a limit just below the longest message, because the user may not be allowed to read the
        topic's
        limit.
        """
        longest = max(
            (int(batch.lengths[batch.lengths <= self._longest].max(initial=0)) for batch in batches),
            default=0,
        )
        return longest - 1 if longest > 1000 else None

    def _refused(self, error: KafkaError) -> KafkaException:
        topics = [self._settings.topic, self._letters, TOPIC]
        return refused(
            error,
            "take messages",
            topic=topics,
            group=self._producer_config["transactional.id"],
            right="WRITE",
        )


def _bytes_of(headers: Headers) -> int:
    return sum(len(name) + len(value or b"") + 16 for name, value in headers)


def _largest_batch(client: Admin, topic: str) -> int:
    """Return the largest record batch of a topic in bytes; the default if this user may not read it."""
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    try:
        entries = client.describe_configs([resource], request_timeout=_ANSWER_SECONDS)[resource].result(
            _ANSWER_SECONDS
        )
        return int(entries["max.message.bytes"].value)
    except (KafkaException, TimeoutError, KeyError, TypeError, ValueError):
        return _TOPIC_LIMIT
