"""The buffers of streams that run together: a message is decoded once for all that decode it alike."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping

import numpy as np

from ...definition.sources import KafkaSource
from ...definition.stream import Stream
from ...formats.decode import Decoded
from ...formats.messages import Messages
from ...sketching.partition_buffer import PartitionBuffer, by_partition
from ..error_context import in_stream

Readers = list[tuple[KafkaSource, tuple[str, ...]]]
"""The ways in which a topic's messages are decoded, and the streams that get the rows of each."""


class SharedDecoding:
    """A worker's buffers for several streams, by name; a lone stream's name is empty.

    Streams decode a topic alike if their sources have the same definition, whatever they do with the rows.
    `sketch` raises the errors of decoders and steps, with the stream's name.
    """

    def __init__(self, streams: Mapping[str, Stream], intakes: Mapping[str, PartitionBuffer]) -> None:
        self._streams = streams
        self._intakes = intakes
        self._ways: list[Readers] = []
        self._known: dict[tuple[tuple[str, tuple[str, ...]], ...], int] = {}
        self._of_topic: dict[str, int] = {}

    def sketch(self, messages: Messages) -> None:
        """Sketch a batch of messages, for each stream those that it reads."""
        if messages.broken is not None:
            for intake in self._intakes.values():
                intake.skip(messages.broken)
            return
        for names, part, decoded in self._decoded(by_partition(messages)):
            for name in names:
                with in_stream(name):
                    self._intakes[name].add(part, decoded)
        for intake in self._intakes.values():
            intake.remarks.report_due()

    def recall(self, messages: Messages) -> None:
        """Restore the earlier rows of joined streams; other streams restore theirs as they continue."""
        if messages.broken is not None:
            return
        for names, part, decoded in self._decoded(messages):
            for name in names:
                if self._streams[name].reading.joined is not None:
                    with in_stream(name):
                        self._intakes[name].recall(part, decoded)

    def _decoded(self, messages: Messages) -> Iterator[tuple[tuple[str, ...], Messages, Decoded]]:
        """The messages in parts, each with its rows and the streams that get them."""
        for part, readers in self._parts(messages):
            for source, names in readers:
                for some, decoded in self._intakes[names[0]].decoded(source, part):
                    yield names, some, decoded

    def _parts(self, messages: Messages) -> Iterator[tuple[Messages, Readers]]:
        """The messages in order, in ranges that the same streams decode alike."""
        ways = [self._way_of(topic) for topic in messages.topics]
        if len(set(ways)) == 1:
            yield messages, self._ways[ways[0]]
            return
        way = np.array(ways)[messages.topic]
        edges = [0, *(np.flatnonzero(np.diff(way)) + 1).tolist(), len(messages)]
        for low, high in itertools.pairwise(edges):
            if low < high:
                yield messages.slice(low, high), self._ways[way[low]]

    def _way_of(self, topic: str) -> int:
        """The number of the way in which a topic is decoded."""
        if topic not in self._of_topic:
            sources: dict[str, KafkaSource] = {}
            names: dict[str, tuple[str, ...]] = {}
            for name, stream in self._streams.items():
                if stream.reading.reads_topic(topic):
                    source = stream.reading.of_topic(topic).reading.kafka_source
                    definition = json.dumps(source.definition(), sort_keys=True)
                    sources.setdefault(definition, source)
                    names[definition] = (*names.get(definition, ()), name)
            number = self._known.setdefault(tuple(names.items()), len(self._ways))
            if number == len(self._ways):
                self._ways.append([(sources[definition], names[definition]) for definition in names])
            self._of_topic[topic] = number
        return self._of_topic[topic]
