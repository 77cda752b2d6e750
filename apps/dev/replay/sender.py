"""Send messages to Kafka when they are due.

With room in the queue and time to fill a request, confluent-kafka's `produce` does not limit a replay (0.6 M
posts of 200 bytes per second, with a broker on the same two cores); its batch call doesn't support
timestamps.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from itertools import pairwise
from typing import Any

import numpy as np
from confluent_kafka import KafkaError, KafkaException, Producer

from ....operators.kafka.produce import CONNECT_SECONDS
from ....operators.sketching.dead_letters import LARGEST_LETTER
from ....operators.sketching.time_units import wrong_unit
from ....sketches.core.errors import StreamgaugeError
from ...recordings.batch import Batch, Source
from .epoch import EpochProducer

log = logging.getLogger("streamgauge.kafka")

_QUEUE = 500_000  # messages
_AT_ONCE = 20_000
_ANSWER = 5.0  # seconds
_PATIENCE = 300.0  # seconds: librdkafka's time limit to deliver a message
_AWAY = (
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.REQUEST_TIMED_OUT,
)
_TICK = 0.02  # seconds between two checks for due messages

DEFAULTS: dict[str, Any] = {
    "compression.type": "lz4",
    "linger.ms": 5,
    "batch.size": 1_000_000,
    "batch.num.messages": 100_000,
    "queue.buffering.max.messages": _QUEUE,
    "queue.buffering.max.kbytes": 1_000_000,
    "enable.idempotence": True,  # a retry after a lost answer doesn't put a post there twice
    "message.max.bytes": LARGEST_LETTER,  # the topic decides what is too large
    "log_level": 0,
}


class Undelivered(StreamgaugeError, RuntimeError):
    """The broker did not accept some messages; the error says how many and why."""


def producer_for(bootstrap_servers: str, config: Mapping[str, Any] | None = None) -> Producer:
    """Return a producer for `send`. It needs half a second to connect before it can send."""
    return Producer({**DEFAULTS, "bootstrap.servers": bootstrap_servers, **(config or {})})


def send(
    source: Source,
    topic: str,
    bootstrap_servers: str,
    *,
    pace: bool = True,
    config: Mapping[str, Any] | None = None,
    progress: Callable[[int], object] = lambda sent: None,
    producer: Producer | None = None,
) -> int:
    """Send all of a source's messages and return how many there were, once the broker has them all.

    With `pace`, no message is sent before it is due; without, messages are sent as fast as possible. It waits
    five minutes for an unreachable broker, librdkafka's `delivery.timeout.ms`. `progress` is called with the
    number of messages sent so far. `producer` is a result of `producer_for`, by default a new one. Raises
    `KafkaException` if the topic is unknown, `Undelivered` if messages were lost.
    """
    if producer is None:
        producer = producer_for(bootstrap_servers, config)
        time.sleep(CONNECT_SECONDS)
    partitions = _partitions(producer, topic)
    lost: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Any) -> None:
        if error is not None:
            lost.append(error)

    begin = time.monotonic()
    sent, doubt = 0, None
    with closing(EpochProducer({**(config or {}), "bootstrap.servers": bootstrap_servers})) as epoch:
        for batch in source.batches():
            if not sent and (doubt := doubted(batch)):
                log.warning("%s", doubt)
            at = 0
            while at < len(batch):
                ready = len(batch)
                if pace:
                    ready = int(np.searchsorted(batch.due, time.monotonic() - begin, side="right"))
                if ready <= at:
                    producer.poll(_TICK)
                    continue
                stop = min(ready, at + _AT_ONCE)
                for run in _runs(batch.slice(at, stop)):
                    if run.partitions is not None and not run.sent[0]:
                        while producer.flush(0.5):
                            pass
                        epoch.send(topic, run)
                    else:
                        _hand_over(producer, topic, partitions, run, delivered)
                sent += stop - at
                at = stop
                progress(sent)
    while producer.flush(0.5):
        pass
    if lost:
        why = lost[0].str() + (f"; {doubt}" if doubt else "")
        raise Undelivered(f"{len(lost)} of {sent} messages to topic {topic!r} were lost: {why}")
    return sent


def doubted(batch: Batch) -> str | None:
    """Return a warning if most timestamps would be plausible in another unit; None otherwise."""
    doubt = wrong_unit(batch.sent, "ms", int(time.time() * 1e6))
    if doubt is None:
        return None
    return f"the timestamp of a message {doubt[1]}: the times of what is replayed are in another unit"


def _partitions(producer: Producer, topic: str) -> int:
    """Return the topic's number of partitions, waiting for an unreachable broker."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            known = producer.list_topics(topic, timeout=_ANSWER).topics[topic]
        except KafkaException as error:
            if error.args[0].code() not in _AWAY or time.monotonic() > deadline:
                raise
            time.sleep(_TICK)  # some of these errors are raised immediately
            continue
        if known.error is None:
            return len(known.partitions)
        if known.error.code() not in _AWAY or time.monotonic() > deadline:
            raise KafkaException(known.error)
        time.sleep(_TICK)


def _runs(batch: Batch) -> Iterator[Batch]:
    """Split the batch into pieces whose messages all have timestamp 0, and the others."""
    if batch.partitions is None or batch.sent.all():
        yield batch
        return
    bounds = [0, *(np.flatnonzero(np.diff(batch.sent == 0)) + 1).tolist(), len(batch)]
    for start, stop in pairwise(bounds):
        yield batch.slice(start, stop)


def _hand_over(
    producer: Producer, topic: str, partitions: int, batch: Batch, delivered: Callable[..., None]
) -> None:
    while len(producer) + len(batch) > _QUEUE:
        producer.poll(_TICK)
    produce = producer.produce
    partition = (batch.keys % partitions if batch.partitions is None else batch.partitions).tolist()
    named = [None] * len(batch) if batch.named is None else batch.named
    headers = [None] * len(batch) if batch.headers is None else batch.headers
    columns = zip(batch.values.to_pylist(), named, partition, batch.sent.tolist(), headers)
    for value, key, where, stamp, of_one in columns:
        produce(topic, value, key, where, delivered, None, stamp, of_one)
    producer.poll(0)
