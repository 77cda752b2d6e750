"""What a group commits of an input partition: an offset, and as its metadata what that is an offset of.

The group of a lone stream commits one place, as a JSON list. Streams that run together commit a place each,
as a JSON object by their names: they have read the same messages, but event time, what was seen, and the log
are each one's own. Kafka's offset is the least of theirs, and each says how far it is beyond.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from confluent_kafka import TopicPartition as KafkaPartition

from ...watermarks.partition_watermark import PartitionTime
from ...watermarks.position import Input, Position

LONE = ""
"""The name of a stream that runs by itself."""

STREAM_NAME = "[A-Za-z0-9_-]{1,40}"
"""What a stream among several may be called: it has no dot, so that a table topic's name shows its group."""

LARGEST = 4_096
"""Bytes of metadata that a broker accepts by default (``offset.metadata.max.bytes``)."""

_SKIPPING = "skip"
"""In the place of a fingerprint: messages before the offset may be left out."""

_TIME = len(PartitionTime().to_list())


@dataclass(frozen=True, slots=True)
class Committed:
    """What a group has committed of an input partition: its position, and what that is a position of.

    `log` is how far the table topic was then. All of it belongs to the definition with this fingerprint and
    to the input and table topics with these ids; what no stream has committed has none of them. `epoch` is
    that of the latest claim (`work.partition_recovery`), `moved` that of the claim under which the position
    was moved. `skipping` says that messages before the position may be left out (`set_offsets`).
    """

    position: Position
    log: tuple[int, ...] = ()
    fingerprint: str = ""
    topic_id: str = ""
    table_id: str = ""
    epoch: int = 0
    moved: int = 0
    skipping: bool = False

    @property
    def has_deltas(self) -> bool:
        """Whether it was committed with deltas, or after them; at first there is a start, or a claim."""
        return bool(self.fingerprint and self.table_id) and (not self.epoch or self.moved > 0)

    def describe(self) -> list[Any]:
        """Everything but the offset, as plain JSON."""
        position = self.position
        back = -1 if position.replay is None else position.offset - position.replay
        again = [] if position.replay_time is None else position.replay_time.to_list()
        beside = [back, self.epoch, self.moved, *again] if self.epoch or again else [back] if back else []
        known = [*position.time.to_list(), *beside]
        whose = _SKIPPING if self.skipping else self.fingerprint
        return [whose, self.topic_id, self.table_id, known, *self.log]

    @classmethod
    def of(cls, offset: int, fields: list[Any]) -> Committed:
        """What `describe` gave. Raises `ValueError` and `TypeError` for anything else."""
        fingerprint, topic_id, table_id, known, *log = fields
        numbers = list(map(int, known))
        time, beside = numbers[:_TIME], numbers[_TIME:]
        back, epoch, moved, *again = (*beside, *(0, 0, 0)[len(beside) :])
        replay_time = PartitionTime(*again) if again else None
        position = Position(offset, PartitionTime(*time), None if back < 0 else offset - back, replay_time)
        skipping = fingerprint == _SKIPPING
        ids = "" if skipping else str(fingerprint), str(topic_id), str(table_id)
        return cls(position, tuple(map(int, log)), *ids, epoch, moved, skipping)


Places = Mapping[str, Committed]
"""What is committed of one input partition, by the names of the streams; a lone stream's is `LONE`."""


def offset_of(places: Places) -> int:
    """The offset to commit: that from which a reader must go on for all of the streams."""
    return min(place.position.offset for place in places.values())


def metadata_of(places: Places) -> str:
    """What to commit with the offset.

    >>> at = [Committed(Position(offset, replay=offset), (), "fingerprint") for offset in (7, 9)]
    >>> places = {"a": at[0], "b": at[1]}
    >>> places_of(offset_of(places), metadata_of(places)) == places
    True
    """
    if LONE in places:
        fields: Any = places[LONE].describe()
    else:
        least = offset_of(places)
        fields = {name: [place.position.offset - least, *place.describe()] for name, place in places.items()}
    return _to_json(fields)


def committable(places: Mapping[Input, Places]) -> list[KafkaPartition]:
    """Places as the client library commits them."""
    return [
        KafkaPartition(*where, offset_of(own), metadata_of(own), leader_epoch=epoch_of(own))
        for where, own in places.items()
    ]


def largest_metadata(ids: Mapping[str, tuple[str, str]], joined: Collection[str] = ()) -> int:
    """The bytes that metadata of several streams may take; `ids` are those of input and table topics.

    `joined` are those streams that are joins of two.
    """
    most = 1 << 62
    time = PartitionTime(-most, -most, 99, 99, -most, -most)
    known = {name: Position(most, time, -most, time if name in joined else None) for name in ids}
    places = {name: Committed(known[name], (), "0" * 16, *own) for name, own in ids.items()}
    return len(_to_json({name: [most, *place.describe()] for name, place in places.items()}))


def epoch_of(places: Places) -> int:
    """The leader's epoch to commit with the offset: of one log, the latest of them is of all; −1: unknown."""
    return max(place.position.leader_epoch for place in places.values())


def places_of(offset: int, metadata: str | None, leader_epoch: int | None = None) -> dict[str, Committed]:
    """What was committed; only the offset, as of a lone stream, if no stream committed it."""
    try:
        fields = json.loads(metadata or "[]")
        if isinstance(fields, dict):
            places = {name: Committed.of(offset + own[0], own[1:]) for name, own in fields.items()}
        else:
            places = {LONE: Committed.of(offset, fields)}
    except (ValueError, TypeError, LookupError):
        places = {LONE: Committed(Position(offset))}
    epoch = -1 if leader_epoch is None else leader_epoch
    return {
        name: replace(place, position=replace(place.position, leader_epoch=epoch))
        for name, place in places.items()
    }


def _to_json(fields: Any) -> str:
    return json.dumps(fields, separators=(",", ":"))
