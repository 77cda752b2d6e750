"""Warnings about the messages of several sources, each with its own columns and problems."""

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
    """The warnings about a stream's messages, by source; `letters` returns a topic's dead-letter topic.

    `logged` is as in `Remarks`.
    """

    def __init__(
        self,
        stream: Stream,
        letters: Callable[[str], str | None],
        logged: set[tuple[str, str]] | None = None,
    ) -> None:
        self._stream = stream
        logged = set() if logged is None else logged
        self._remarks = {
            source.topics: Remarks(source.topic, source.members, letters(_named(source)), part, logged)
            for source, part in _parts(stream)
        }

    @property
    def texts(self) -> list[str]:
        """The warnings so far."""
        return [remark for remarks in self._remarks.values() for remark in remarks.texts]

    @property
    def example(self) -> str:
        """Why the first refused message of one of the sources can't be counted; empty if none was refused."""
        return next((one.example for one in self._remarks.values() if one.example), "")

    def observe(self, messages: Messages, decoded: Decoded) -> None:
        """Examine a batch of messages from one source and its rows."""
        if len(messages):
            self._of(messages.topics[messages.topic[0]]).observe(messages, decoded)

    def refused(self, letter: DeadLetter) -> None:
        """Record a message that can't be counted."""
        self._of(letter.topic).refused(letter)

    def late(self, messages: Messages, rows: Sequence[int], late_us: np.ndarray) -> None:
        """Record late messages of one source."""
        if len(rows):
            self._of(messages.topics[messages.topic[0]]).late(messages, rows, late_us)

    def report_due(self, messages: int = 20, rows: int = 1_000) -> None:
        """Log the warnings that are due (`Remarks.report_due`)."""
        for remarks in self._remarks.values():
            remarks.report_due(messages, rows)

    def _of(self, topic: str) -> Remarks:
        return self._remarks[self._stream.reading.of_topic(topic).reading.kafka_source.topics]


def _parts(stream: Stream) -> list[tuple[KafkaSource, Stream]]:
    """The sources, each with the stream that defines its rows' event time."""
    if not isinstance(stream.source, MergedSource):
        return [(source, stream) for source in stream.reading.kafka_sources]
    parts = [stream.reading.of_topic(part.topics[0]) for part in stream.source.parts]
    return [(part.reading.kafka_source, part) for part in parts]


def _named(source: KafkaSource) -> str:
    """The topic that a source reads, if it is a single one, given by name."""
    first, *others = source.topics
    return "<topic>" if others or is_pattern(first) else first
