"""Mirror topics of another Kafka cluster unchanged, exactly once."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ....operators.formats.messages import Messages
from ....operators.kafka.reader import EARLIEST, LATEST, Reader
from ....operators.kafka.settings import check_settings, servers
from ....operators.kafka.source import TopicPartition
from ....operators.kafka.topics import TopicError, admin, end_offsets, id_of, partitions_of
from ..batch import Batch, IngestError, Positions
from ..component import Place

log = logging.getLogger("streamgauge.ingest")

_MOST = 20_000
"""The most messages in a batch."""
_LOOK_SECONDS = 30.0
"""The interval of checks for new partitions."""


@dataclass(frozen=True, kw_only=True)
class KafkaMirror:
    """The messages of `topics` at other brokers, with their keys, headers and timestamps.

    At the first start, partitions are read from `start` on; partitions added later are read from the
    beginning, within a minute. Messages of one partition go to one partition, in order, or by their keys if
    they have keys. `config` has librdkafka's settings.
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
    """A `Source` of another Kafka's messages.

    Raises `ReadError` and `TopicError` if it can't read, `IngestError` if a topic is not the one that was
    read before.
    """

    waited_for = finite = False

    def __init__(self, settings: KafkaMirror, positions: Positions) -> None:
        config = {"bootstrap.servers": servers(settings.bootstrap_servers), **settings.config}
        self._client, self._topics = admin(config), settings.topics
        self._ids = {topic: id_of(self._client, topic) for topic in settings.topics}
        known = {part: place for part, place in positions.items() if place and "offset" in place}
        for part, before in known.items():
            topic = part.rpartition("[")[0]
            topic_id, now = before.get("topic_id"), self._ids.get(topic)
            if topic_id and now and topic_id != now:
                raise IngestError(
                    f"the topic {topic!r} was deleted and recreated since it was read: offset "
                    f"{before['offset']} now belongs to a different message; to read the new topic from its "
                    "start, give this source another name"
                )
        first = EARLIEST if settings.start == "earliest" else LATEST
        read_before = {part.rpartition("[")[0] for part in known}
        offsets = {}
        for where in self._listed():
            place = known.get(_part(*where))
            start = EARLIEST if where[0] in read_before else first
            offsets[where] = int(place["offset"]) if place else start
        self._reader = Reader(config, offsets, headers=True)
        self._places = set(offsets)
        # An agent that runs once reads the messages that exist now.
        self._ends = end_offsets(self._client, self._places)
        # Positions are stored before anything is read, so that a restart doesn't begin at a later `start`.
        begins = {_part(*where): at for where, at in self._reader.positions().items()}
        new = {part: self._position(part, at) for part, at in begins.items() if part not in known}
        self._batches: deque[Batch] = deque([Batch.of([], positions=new)] if new else [])
        self._next_look = time.monotonic() + _LOOK_SECONDS
        self._warned = False

    @property
    def ended(self) -> bool:
        """See `Source`."""
        reached = self._reader.positions()
        return not self._batches and all(reached[where] >= end for where, end in self._ends.items())

    def read(self, seconds: float) -> Batch | None:
        """See `Source`."""
        if not self._batches:
            self._look_for_partitions()
            messages = self._reader.read(_MOST, max(seconds, 0.001))
            if messages is not None:
                self._batches.extend(self._split(messages))
        return self._batches.popleft() if self._batches else None

    def close(self) -> None:
        """See `Source`."""
        self._reader.close()

    def _listed(self) -> list[TopicPartition]:
        return [(topic, n) for topic in self._topics for n in range(partitions_of(self._client, topic))]

    def _look_for_partitions(self) -> None:
        """Add new partitions to those that are read."""
        if time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + _LOOK_SECONDS
        try:
            added = set(self._listed()) - self._places
        except TopicError as error:
            log.warning("can't check for added partitions; trying again later: %s", error)
            return
        if added:
            log.info("partitions were added: %s", ", ".join(sorted(_part(*where) for where in added)))
            self._reader.assign({**self._reader.positions(), **dict.fromkeys(added, EARLIEST)})
            self._places |= added

    def _position(self, part: str, offset: int) -> dict[str, Any]:
        topic_id = self._ids.get(part.rpartition("[")[0])
        return {"offset": offset, **({"topic_id": topic_id} if topic_id else {})}

    def _split(self, messages: Messages) -> list[Batch]:
        """Split messages into a batch for each partition."""
        if not self._warned and (messages.timestamp == 0).any():
            self._warned = True
            log.warning(
                "messages with timestamp 0 are sent with the current time, because Kafka clients can't send "
                "timestamp 0"
            )
        batches = []
        for topic, partition in sorted(
            {(int(t), int(p)) for t, p in zip(messages.topic, messages.partition)}
        ):
            rows = np.flatnonzero((messages.topic == topic) & (messages.partition == partition))
            name = _part(messages.topics[topic], partition)
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
                    timestamp_ms=messages.timestamp[rows],
                    nulls=nulls if nulls.any() else None,
                    positions={name: self._position(name, int(messages.offset[rows[-1]]) + 1)},
                )
            )
        return batches


def _part(topic: str, partition: int) -> str:
    return f"{topic}[{partition}]"
