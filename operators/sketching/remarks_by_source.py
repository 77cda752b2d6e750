"""Remarks about the messages of several sources, each with columns and mistakes of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..definition.merged import MergedSource
from ..definition.sources import KafkaSource
from ..definition.stream import Stream
from ..definition.topic_patterns import is_pattern
from ..formats.decode import Decoded
from ..formats.messages import Messages
from .dead_letters import DeadLetter
from .message_warnings import Remarks


class RemarksBySource:
    """The remarks about a stream's messages, by what reads them; `letters` names a topic's dead letters."""

    def __init__(self, stream: Stream, letters: Callable[[str], str | None]) -> None:
        self._stream = stream
        self._remarks = {
            source.topics: Remarks(source.topic, source.members, letters(_named(source)), part)
            for source, part in _parts(stream)
        }

    @property
    def texts(self) -> list[str]:
        """The remarks so far."""
        return [remark for remarks in self._remarks.values() for remark in remarks.texts]

    def observe(self, messages: Messages, decoded: Decoded) -> None:
        """Look at a batch of messages of one source and the rows made of it."""
        if len(messages):
            self._of(messages.topics[messages.topic[0]]).observe(messages, decoded)

    def refused(self, letter: DeadLetter) -> None:
        """Note a message that can't be counted."""
        self._of(letter.topic).refused(letter)

    def late(self, messages: Messages, rows: Sequence[int], late_us: np.ndarray) -> None:
        """Note messages of one source that came too late."""
        if len(rows):
            self._of(messages.topics[messages.topic[0]]).late(messages, rows, late_us)

    def report_due(self, messages: int = 20, rows: int = 1_000) -> None:
        """Give the remarks that are due (`Remarks.report_due`)."""
        for remarks in self._remarks.values():
            remarks.report_due(messages, rows)

    def _of(self, topic: str) -> Remarks:
        return self._remarks[self._stream.of_topic(topic).kafka_source.topics]


def _parts(stream: Stream) -> list[tuple[KafkaSource, Stream]]:
    """What is read, each with the stream whose event time its rows have."""
    if not isinstance(stream.source, MergedSource):
        return [(source, stream) for source in stream.kafka_sources]
    parts = [stream.of_topic(part.topics[0]) for part in stream.source.parts]
    return [(part.kafka_source, part) for part in parts]


def _named(source: KafkaSource) -> str:
    """The topic that a source reads, if it is one by its name."""
    first, *others = source.topics
    return "<topic>" if others or is_pattern(first) else first
