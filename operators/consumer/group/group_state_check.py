"""What earlier runs of a consumer group left behind, checked before a run begins.

A group resumes only with the definition, input topic and table topic that it started with: anything else
would mix different results or silently miss rows. Its state is in three places, each of which may be missing:
the group's offsets (they expire), the table topic's snapshots, and the table topics' names. A topic's name
shows whether state can be merged. The steps before that are compared with the definition in the topic's
snapshots; the first snapshot is written before anything is read. Snapshots also record the names of all
streams that run together: a group continues with exactly these.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as KafkaPartition

from ...definition.definition_diff import DefinitionChanged, differences, rewritten
from ...definition.lasting_state import goes_on
from ...definition.stream import Stream
from ...kafka.client_config import LIBRARY_LOG, member_config, producer_config
from ...kafka.faults import LOST
from ...kafka.outgoing_message import Outgoing
from ...kafka.produce import Faults, produce
from ...kafka.topics import Admin, TopicError, begin_offsets, end_offsets, id_of, recreated, remove
from ...watermarks.position import Input, Position, inputs_of
from ..log.log_scan import Tail, follow, read_tail
from ..log.merger_state import EMPTY_STATE
from ..log.messages import LARGEST, log_group, table_topic
from ..log.snapshots import Snapshot
from .committed import LONE, Committed, Places, committable, places_of
from .group_registry import committed_by, other_streams, recorded_in, tables_together
from .set_offsets import check_ahead, check_within, counted_until

log = logging.getLogger("streamgauge.kafka")

_SECONDS = 30.0


@dataclass
class GroupState:
    """A group's committed positions by input partition, and the log in its table topic, if there are any.

    `partitions` is the number of partitions of each of the stream's input topics, `topic_ids` are the topics'
    current ids. Each of several streams that run together has its own state, under its `name`; `together` are
    the names of all of them.
    """

    client: Admin
    config: Mapping[str, Any]
    group_id: str
    stream: Stream
    partitions: Mapping[str, int]
    topic_ids: Mapping[str, str]
    name: str = LONE
    together: tuple[str, ...] = ()
    places: dict[Input, Committed] = field(default_factory=dict)
    logs: dict[int, Tail] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.fingerprint = self.stream.fingerprint()
        self.log_group = log_group(self.group_id, self.name)
        self.table_topic = table_topic(self.log_group, self.fingerprint)
        self._names = self.together or (LONE,)
        self.existed = False
        self._recorded: Snapshot | None = None

    def read(self) -> None:
        """Read the group's state.

        Raises `DefinitionChanged`, and `TopicError` if the topics are not those that the group started with.
        """
        self.read_committed()
        topics = self.client.list_topics(timeout=_SECONDS).topics
        self._go_on(set(topics))
        self._check_definition(set(topics))
        exists = self.existed = self.table_topic in topics
        table_id = id_of(self.client, self.table_topic) if exists else ""
        for where, place in self.places.items():
            self._check_topic(where.topic, place.topic_id)
            if place.fingerprint and (not exists or (place.table_id and place.table_id != table_id)):
                raise TopicError(
                    f"the table topic {self.table_topic!r} of the group {self.group_id!r} was deleted"
                    f"{' and recreated' if exists else ''}, and with it the counts not yet emitted; "
                    "give the run a new group_id to count again from the input topic"
                )
        if exists:
            self._recorded = recorded_in(self.config, self.table_topic)
            self._check_recorded()
        check_within(self.client, self.group_id, self.places)
        by_hand = any(not place.fingerprint for place in self.places.values())
        if exists and (by_hand or set(inputs_of(self.partitions)) - self.places.keys()):
            starts = dict.fromkeys(topics[self.table_topic].partitions, 0)
            self.logs = read_tail(self.config, self.table_topic, starts)
            self._check_source()
            for where, place in self.places.items():
                if (counted := counted_until(where, self.logs)) is not None:
                    check_ahead(self.stream, self.group_id, where, place, counted.position.offset)

    def claim(self) -> None:
        """Claim the group in its table topic, which exists by now; fail if another definition has claimed it.

        If two definitions start a group at the same time, both find it new, and would split its partitions.
        If their states can't be merged, each has its own topic, created before it looks for the other's, so
        at least one of them sees the other's. If they share a topic, the group belongs to the definition that
        the topic has first. A definition that is refused leaves no topic behind that would block the other
        one. Raises `DefinitionChanged`.
        """
        try:
            self._check_definition(set(self.client.list_topics(timeout=_SECONDS).topics))
        except DefinitionChanged:
            if not self.existed and not any(end_offsets(self.client, [(self.table_topic, 0)]).values()):
                remove(self.client, [self.table_topic], [])
            raise
        if self._recorded is None:
            own = self.stream.definition()
            nothing = Snapshot(self.fingerprint, self.topic_ids, 0, EMPTY_STATE, own, together=self.together)
            write_to_log(self.config, self.group_id, nothing.outgoing(self.table_topic, 0))
            self._recorded = recorded_in(self.config, self.table_topic)
            self._check_recorded()

    @property
    def new(self) -> bool:
        """Whether the group has never run."""
        return not self.places and all(
            (tail.snapshot is None or not tail.snapshot.marks) and not tail.deltas
            for tail in self.logs.values()
        )

    def starts_to_commit(self, ends: Mapping[Input, int] | None) -> dict[Input, Committed]:
        """The offsets from which partitions without a commit resume.

        A partition that the table topic knows resumes after its last delta; the group's offsets had expired.
        A group that never ran starts at `ends`, if passed. Otherwise, and for partitions added later, reading
        starts at the first message, which needs no position.
        """
        places: dict[Input, Committed] = {}
        for where in set(inputs_of(self.partitions)) - self.places.keys():
            first = [d.first_offset for tail in self.logs.values() for d in tail.deltas if d.input == where]
            start = Position(min(first, default=-1))
            position = follow(start, where, self.logs).position if self.logs else start
            if position.offset >= 0:
                places[where] = self.place(where, position)
            elif self.new and ends is not None:
                places[where] = self.place(where, Position(ends[where], replay=ends[where]))
        return places

    def warn_lost(self, committed: Mapping[Input, Committed]) -> None:
        """Warn if these positions came from the table topic because the group's offsets had expired."""
        if committed and not self.new:
            known = ", ".join(f"{where} at {committed[where].position.offset}" for where in sorted(committed))
            log.warning(
                "the group %s has lost its offsets; continuing where the table topic ends: %s",
                *(self.log_group, known),
            )

    def place(self, where: Input, position: Position) -> Committed:
        """A committed position of this stream."""
        return Committed(position, (), self.fingerprint, self.topic_ids[where.topic])

    def read_committed(self) -> None:
        """Read what the group has committed. Raises `DefinitionChanged` if it belongs to other streams."""
        self.places = self._committed()

    def commit(self, places: Mapping[Input, Places]) -> bool:
        """Commit for the group while it has no members; False if it has, as members commit themselves."""
        consumer = Consumer(member_config(self.config, self.group_id), logger=LIBRARY_LOG)
        try:
            consumer.commit(offsets=committable(places), asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() not in LOST:
                raise
            return False
        finally:
            consumer.close()
        return True

    def _go_on(self, topics: set[str]) -> None:
        """Continue under the group's first fingerprint, if the changes don't affect state."""
        others = self._other_fingerprints(topics)
        if len(others) != 1 or self.table_topic in topics:
            return
        topic = table_topic(self.log_group, began_as := others.pop())
        recorded = recorded_in(self.config, topic) if topic in topics else None
        own = self.stream.definition()
        if recorded is None or recorded.fingerprint != began_as or not goes_on(recorded.definition, own):
            return
        self.stream = replace(self.stream, began_as=began_as)
        self.fingerprint, self.table_topic = began_as, topic
        if changes := differences(recorded.definition, own):
            log.warning(
                "the group %s continues with its open windows under a changed definition: %s",
                *(self.log_group, "; ".join(changes)),
            )

    def _other_fingerprints(self, topics: set[str]) -> set[str]:
        """Fingerprints of other definitions in the group's offsets and table topics."""
        others = {place.fingerprint for place in self.places.values()} - {"", self.fingerprint}
        pattern = re.compile(re.escape(f"{self.log_group}.table.") + "([0-9a-f]{16})")
        known = {match[1] for topic in topics if (match := pattern.fullmatch(topic))}
        return others | known - {self.fingerprint}

    def _check_definition(self, topics: set[str]) -> None:
        for _, of_another in tables_together(self.config, self.group_id, topics, self.together):
            raise other_streams(self.group_id, of_another.together, self._names)
        if not (others := self._other_fingerprints(topics)):
            return
        other = min(others)
        topic = table_topic(self.log_group, other)
        recorded = recorded_in(self.config, topic) if topic in topics else None
        changes = differences(recorded.definition, self.stream.definition()) if recorded else []
        raise self._changed(changes or ["the earlier definition is no longer known"])

    def _check_recorded(self) -> None:
        """Raise `DefinitionChanged` if rows are treated differently than in the group's first run."""
        if self._recorded is None:
            return
        if set(self._recorded.together) != set(self.together):
            raise other_streams(self.group_id, self._recorded.together or (LONE,), self._names)
        recorded, own = self._recorded.definition, self.stream.definition()
        if (changes := differences(recorded, own)) and not goes_on(recorded, own):
            raise self._changed(changes)
        for sentence in rewritten(recorded, own):
            log.warning(
                "the group %s continues with another version of Polars or Python, which writes an "
                "expression differently; check that it still means the same: %s",
                self.group_id,
                sentence,
            )

    def _changed(self, changes: list[str]) -> DefinitionChanged:
        of = f" of the stream {self.name!r}" if self.name else ""
        error = DefinitionChanged(
            f"the group {self.group_id!r} has state from another definition{of}: {'; '.join(changes)}. Use "
            "another group_id for the changed stream, or restore the earlier definition; to switch this "
            "group once the earlier windows have closed, stop its runs and run: streamgauge kafka groups "
            f"migrate {self.group_id} MODULE:STREAM"
        )
        error.stream = self.name
        return error

    def _check_source(self) -> None:
        for tail in self.logs.values():
            known = [(delta.topic, delta.source) for delta in tail.deltas]
            known += tail.snapshot.sources.items() if tail.snapshot is not None else []
            for topic, source in known:
                self._check_topic(topic, source)

    def _check_topic(self, topic: str, known: str) -> None:
        """Raise `TopicError` if the topic's id is no longer the one that the group knows."""
        if known and self.topic_ids.get(topic, known) not in ("", known):
            raise recreated(topic)

    def _committed(self) -> dict[Input, Committed]:
        partitions = [KafkaPartition(*where) for where in inputs_of(self.partitions)]
        committed = committed_by(self.config, self.group_id, partitions)
        known = {
            Input(p.topic, p.partition): places_of(p.offset, p.metadata, p.leader_epoch)
            for p in committed
            if p.offset >= 0
        }
        for places in known.values():
            # An offset that was set by hand belongs to no stream yet.
            if all(place.fingerprint for place in places.values()) and self.name not in places:
                raise other_streams(self.group_id, places, self._names)
        return {where: places.get(self.name) or places[LONE] for where, places in known.items()}


def write_to_log(config: Mapping[str, Any], group_id: str, messages: Sequence[Outgoing]) -> None:
    """Write to a table topic outside of a run. Raises `KafkaException` if that fails."""
    # Making a producer idempotent takes the library half a second; duplicates are harmless here.
    settings = producer_config(config, LARGEST) | {"enable.idempotence": False}
    producer = Producer(settings, logger=LIBRARY_LOG)
    faults = Faults(messages)
    for message in messages:
        produce(producer, message, faults.record)
    if producer.flush(_SECONDS) or faults.error is not None:
        raise faults.exception(faults.error or KafkaError(KafkaError._MSG_TIMED_OUT), group_id)


def commit_starts(
    histories: Sequence[GroupState], ends: Mapping[Input, int] | None
) -> dict[str, dict[Input, int]]:
    """Commit the offsets from which the streams of a group start or resume (`starts_to_commit`).

    Returns the offsets of all known positions, by stream name.
    """
    fresh = {own.name: own.starts_to_commit(ends) for own in histories}
    inputs = {where for places in fresh.values() for where in places}
    lows = begin_offsets(histories[0].client, sorted(inputs)) if len(histories) > 1 else {}
    wanted: dict[Input, Places] = {
        where: {
            # It has counted nothing from partitions only the others know.
            own.name: fresh[own.name].get(where) or own.place(where, Position(lows[where]))
            for own in histories
            if where.topic in own.partitions
        }
        for where in inputs
    }
    if wanted and not histories[0].commit(wanted):
        # Others have started meanwhile, and committed positions of their own.
        for own in histories:
            own.read_committed()
        wanted = {}
    elif wanted:
        for own in histories:
            own.warn_lost(fresh[own.name])
    known = {own.name: dict(own.places) for own in histories}
    for where, places in wanted.items():
        for name, place in places.items():
            known[name][where] = place
    return {
        name: {where: place.position.offset for where, place in places.items()}
        for name, places in known.items()
    }
