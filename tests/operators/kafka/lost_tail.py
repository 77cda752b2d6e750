"""A topic whose last messages are lost while its broker is away, as an unclean election loses them."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from confluent_kafka import Producer

from streamgauge.apps.dev.kafka.broker import EmbeddedKafka

_BATCH = 10


def send_numbers(kafka: EmbeddedKafka, topic: str, numbers: Iterable[int]) -> None:
    """Send numbers, ten messages a batch."""
    producer = Producer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "enable.idempotence": True,
            "log_level": 0,
            "linger.ms": 1000,
        }
    )
    numbers = list(numbers)
    for low in range(0, len(numbers), _BATCH):
        for number in numbers[low : low + _BATCH]:
            producer.produce(topic, b'{"n": %d}' % number, partition=0, timestamp=1_700_000_000_000)
        assert producer.flush(120) == 0


def lose_tail(kafka: EmbeddedKafka, topic: str, end: int) -> None:
    """Kill a broker and start it again with a log that ends at an offset, where a batch begins."""
    kafka.kill()
    folder = kafka.folder / "log" / f"{topic}-0"
    log = folder / "00000000000000000000.log"
    data, at = log.read_bytes(), 0
    while at < len(data) and struct.unpack_from(">q", data, at)[0] < end:
        at += 12 + struct.unpack_from(">i", data, at + 8)[0]
    log.write_bytes(data[:at])
    for beside in (*folder.glob("*.index"), *folder.glob("*.timeindex"), *folder.glob("*.snapshot")):
        beside.unlink()
    kafka.start()
