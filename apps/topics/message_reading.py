"""Read a topic's committed messages from a position on, without joining a group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaPartition

from ...operators.kafka.faults import passing, refused
from ...operators.kafka.topics import TopicError, admin, begin_offsets, end_offsets
from ...operators.table.stored import moment
from ...operators.watermarks.position import Input
from ...queries.views.topic_reading import reader, whole
from .known import SECONDS, known_topics, not_there

USUAL = 10
"""The number of last messages that are shown by default."""
_OFFSETS, _MORE = 3, 50


@dataclass(frozen=True)
class Span:
    """The range to read in each partition, of which only the `last` messages are wanted."""

    parts: Mapping[int, tuple[int, int]]
    last: int | None = None


class TopicReading:
    """Reads a topic, or some of its partitions.

    Raises `TopicError` if no broker answers, or for a topic or a partition that doesn't exist.
    """

    def __init__(self, settings: Mapping[str, Any], topic: str, partitions: Sequence[int] | None) -> None:
        client = admin(settings)
        known = known_topics(client)
        if topic not in known:
            raise TopicError(not_there(topic, known))
        there = sorted(known[topic].partitions)
        if wrong := [one for one in partitions or () if one not in there]:
            raise TopicError(f"the topic {topic!r} has no partition {wrong[0]}; it has 0 … {len(there) - 1}")
        places = [Input(topic, one) for one in sorted(set(partitions or there))]
        self._topic = topic
        self._begins = {w.partition: at for w, at in begin_offsets(client, places, SECONDS).items()}
        self._ends = {w.partition: at for w, at in end_offsets(client, places, SECONDS).items()}
        self._consumer = reader(settings, "streamgauge-tail")

    def span(self, begin: str | None, n: int | None) -> Span:
        """Return the range of existing messages to read. Raises `ValueError` for an invalid position."""
        if begin is None:
            last = USUAL if n is None else n
            # Transaction markers use offsets, too.
            back = _OFFSETS * last + _MORE if last else 0
            return Span({p: (max(self._begins[p], end - back), end) for p, end in self._ends.items()}, last)
        if begin in ("earliest", "latest"):
            starts = self._begins if begin == "earliest" else self._ends
        elif begin.isdigit():
            starts = {p: max(int(begin), low) for p, low in self._begins.items()}
        else:
            starts = self._at(begin)
        return Span({p: (min(starts[p], end), end) for p, end in self._ends.items()})

    def until(self, span: Span) -> Iterator[Message]:
        """Read the messages of a span."""
        for partition, offset, message in whole(self._consumer, self._topic, span.parts, "be read"):
            if offset < self._ends[partition]:
                yield message

    def on(self) -> Iterator[Message]:
        """Read messages after the previous end, forever."""
        self._consumer.assign([KafkaPartition(self._topic, p, at) for p, at in self._ends.items()])
        while True:
            for message in self._consumer.consume(500, 0.2):
                error = message.error()
                if error is None:
                    yield message
                elif not passing(error) and error.code() != KafkaError._PARTITION_EOF:
                    raise refused(error, "be read", topic=self._topic)

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()

    def _at(self, begin: str) -> dict[int, int]:
        at = moment(begin)
        assert at is not None
        stamp = int(at.timestamp() * 1_000)
        partitions = [KafkaPartition(self._topic, p, stamp) for p in self._ends]
        try:
            offsets = self._consumer.offsets_for_times(partitions, timeout=SECONDS)
        except KafkaException as error:
            raise TopicError(f"no broker said what {self._topic} has from {begin} on: {error}") from None
        return {p.partition: p.offset if p.offset >= 0 else self._ends[p.partition] for p in offsets}
