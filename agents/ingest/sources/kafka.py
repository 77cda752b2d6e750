"""Topics of another Kafka, as they are: a mirror, exactly once."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ....operators.formats.messages import Messages
from ....operators.kafka.reader import EARLIEST, LATEST, Reader
from ....operators.kafka.settings import check_settings, servers
from ....operators.kafka.topics import admin, end_offsets, partitions_of
from ..batch import Batch, Positions
from ..component import Place

_MOST = 20_000
"""Messages of a batch."""


@dataclass(frozen=True, kw_only=True)
class KafkaMirror:
    """The messages of `topics` at other brokers, with their keys, headers and timestamps.

    A partition that was never read begins at its `start`. Messages of one partition go to one partition, in
    their order, or by their keys where they have keys. `config` are librdkafka's settings.
    """

    topics: Sequence[str]
    bootstrap_servers: str
    start: Literal["earliest", "latest"] = "earliest"
    config: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.topics, str) or not self.topics:
            raise ValueError(f'topics must be a list, as in ["alerts"], got {self.topics!r}')
        try:
            check_settings(self.config)
        except ValueError as error:
            raise ValueError(f"config: {error}") from None

    def open(self, place: Place, positions: Positions) -> MirrorSource:
        """See `SourceSettings`."""
        return MirrorSource(self, positions)


class MirrorSource:
    """A `Source` of another Kafka's messages. Raises `ReadError` and `TopicError` if it can't read."""

    waited_for = finite = False

    def __init__(self, settings: KafkaMirror, positions: Positions) -> None:
        config = {"bootstrap.servers": servers(settings.bootstrap_servers), **settings.config}
        client = admin(config)
        start = EARLIEST if settings.start == "earliest" else LATEST
        self._places = [
            (topic, partition)
            for topic in settings.topics
            for partition in range(partitions_of(client, topic))
        ]
        known = {where: positions.get(_part(*where)) for where in self._places}
        self._reader = Reader(
            config,
            {where: int(place["offset"]) if place else start for where, place in known.items()},
            headers=True,
        )
        # What is there now is what an agent that runs once reads.
        self._ends = end_offsets(client, self._places)
        self._batches: deque[Batch] = deque()

    @property
    def ended(self) -> bool:
        """See `Source`."""
        reached = self._reader.positions()
        return not self._batches and all(reached[where] >= end for where, end in self._ends.items())

    def read(self, seconds: float) -> Batch | None:
        """See `Source`."""
        if not self._batches:
            messages = self._reader.read(_MOST, max(seconds, 0.001))
            if messages is not None:
                self._batches.extend(_batches(messages))
        return self._batches.popleft() if self._batches else None

    def close(self) -> None:
        """See `Source`."""
        self._reader.close()


def _part(topic: str, partition: int) -> str:
    return f"{topic}[{partition}]"


def _batches(messages: Messages) -> list[Batch]:
    """A batch for each partition."""
    batches = []
    for topic, partition in sorted({(int(t), int(p)) for t, p in zip(messages.topic, messages.partition)}):
        rows = np.flatnonzero((messages.topic == topic) & (messages.partition == partition))
        name = _part(messages.topics[topic], partition)
        listed = rows.tolist()
        keys = messages.key.take(rows).to_pylist()
        headers = None if messages.headers is None else messages.headers.take(rows).to_pylist()
        given = [[(one["key"], one["value"]) for one in own or ()] for own in headers or ()]
        nulls = messages.is_null[rows]
        batches.append(
            Batch(
                messages.lines,
                messages.starts[rows],
                np.where(nulls, 0, messages.ends[rows] - messages.starts[rows]),
                name,
                keys=keys if any(key is not None for key in keys) else None,
                own_headers=given if any(given) else None,
                timestamp_ms=np.maximum(messages.timestamp[rows], 0),
                nulls=nulls if nulls.any() else None,
                positions={name: {"offset": int(messages.offset[listed[-1]]) + 1}},
            )
        )
    return batches
