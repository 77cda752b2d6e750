"""A topic whose log on a broker's disk is damaged."""

from __future__ import annotations

import struct
import uuid

from confluent_kafka import Producer

from streamgauge.apps.dev.kafka.broker import EmbeddedKafka

CHECKSUM = 70, b"\xff"
"""Where to write what, so that a batch's checksum is wrong."""


class BrokenLog:
    """A topic of six batches of ten messages on a real broker's disk; the third of them can be damaged."""

    def __init__(self, kafka: EmbeddedKafka) -> None:
        self.topic = topic = f"broken-{uuid.uuid4().hex[:12]}"
        kafka.create_topic(topic)
        producer = Producer(
            {"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True, "linger.ms": 1000}
        )
        for batch in range(6):
            for number in range(10):
                producer.produce(topic, b'{"n": %d}' % (10 * batch + number), timestamp=1_700_000_000_000)
            assert producer.flush(120) == 0
        self._log = kafka.folder / "log" / f"{topic}-0" / "00000000000000000000.log"
        data, self._at = self._log.read_bytes(), 0
        for _ in range(2):
            self._at += 12 + struct.unpack_from(">i", data, self._at + 8)[0]
        assert struct.unpack_from(">q", data, self._at)[0] == 20

    def damage(self, at: int, new: bytes) -> BrokenLog:
        """Write other bytes at a place in the third batch."""
        with self._log.open("r+b") as file:
            file.seek(self._at + at)
            file.write(new)
        return self
