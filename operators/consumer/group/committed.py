"""What a group commits for an input partition: an offset, with metadata that says what it refers to.

A lone stream commits one position, as a JSON list. Streams that run together each commit a position, as a
JSON object by stream name: they have read the same messages, but each has its own event time, remembered ids
and log. The offset in Kafka is the lowest of theirs, and each records how far it is beyond it.
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
"""The name of a stream that runs alone."""

STREAM_NAME = "[A-Za-z0-9_-]{1,40}"
"""A valid stream name. It has no dot, so that a table topic's name shows its group."""

LARGEST = 4_096
"""The bytes of metadata that a broker accepts by default (``offset.metadata.max.bytes``)."""

_SKIPPING = "skip"
"""Stands in place of a fingerprint: messages before the offset may be skipped."""

_TIME = len(PartitionTime().to_list())


@dataclass(frozen=True, slots=True)
class Committed:
    """What a group has committed for an input partition: its position, and what that position belongs to.

    `log` is the end of the table topic at that time. All of it belongs to the definition with this
    fingerprint and to the input and table topics with these ids, which are empty if no stream has committed
    the position. `epoch` is that of the latest claim (`worker.partition_recovery`), `moved` that of the claim
    under which the position was moved. `skipping` means that messages before the position may be skipped
    (`set_offsets`).
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
        """Whether it was committed with or after deltas, rather than as a start or a claim."""
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
        """Parse what `describe` returned. Raises `ValueError` and `TypeError` for anything else."""
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
"""The committed positions in one input partition, by stream name; a lone stream's is `LONE`."""


def offset_of(places: Places) -> int:
    """The offset to commit: the lowest from which any of the streams must resume."""
    return min(place.position.offset for place in places.values())


def metadata_of(places: Places) -> str:
    """The metadata to commit with the offset.

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
    """Committed positions in the client library's form."""
    return [
        KafkaPartition(*where, offset_of(own), metadata_of(own), leader_epoch=epoch_of(own))
        for where, own in places.items()
    ]


def largest_metadata(ids: Mapping[str, tuple[str, str]], joined: Collection[str] = ()) -> int:
    """The most bytes that the metadata of several streams may take.

    `ids` are those of their input and table topics; `joined` are the streams that are joins.
    """
    most = 1 << 62
    time = PartitionTime(-most, -most, 99, 99, -most, -most)
    known = {name: Position(most, time, -most, time if name in joined else None) for name in ids}
    places = {name: Committed(known[name], (), "0" * 16, *own) for name, own in ids.items()}
    return len(_to_json({name: [most, *place.describe()] for name, place in places.items()}))


def epoch_of(places: Places) -> int:
    """The leader epoch to commit with the offset: the latest of the streams' epochs; −1 if unknown."""
    return max(place.position.leader_epoch for place in places.values())


def places_of(offset: int, metadata: str | None, leader_epoch: int | None = None) -> dict[str, Committed]:
    """Parse a commit; if no stream committed it, only its offset, for a lone stream."""
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
