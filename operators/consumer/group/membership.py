"""A worker's place in its consumer group: which partitions it has, and how far they are committed.

The consumer here never reads: its partitions are paused, and a separate `Reader` reads them. It commits an
offset and, as its metadata, the partition's event time there, so that whoever reads on judges lateness by the
same rule.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from ...definition.change import DefinitionChanged
from ...kafka.clients import LIBRARY_LOG, member_config
from ...kafka.faults import LOST, passing, refused
from ...sketching.lateness import PartitionTime
from ...sketching.position import Input, Position
from .rebalance import Rebalance, as_exception

log = logging.getLogger("streamgauge.kafka")

_TIME = len(PartitionTime().to_list())


class MembershipLost(Exception):
    """The group gave this worker's partitions to others; what it holds of them must be dropped."""


@dataclass(frozen=True, slots=True)
class Committed:
    """What a group has committed of an input partition: its position, and what that is a position of.

    `log` is how far the table topic was then. All of it belongs to the definition with this fingerprint and
    to the input and table topics with these ids; what no stream has committed has none of them. `epoch` is
    that of the latest claim (`work.taking_up`), `moved` that of the claim under which the position was moved.
    """

    position: Position
    log: tuple[int, ...] = ()
    fingerprint: str = ""
    topic_id: str = ""
    table_id: str = ""
    epoch: int = 0
    moved: int = 0

    def metadata(self) -> str:
        """Everything but the offset, as text to commit with it."""
        position = self.position
        back = -1 if position.replay is None else position.offset - position.replay
        again = [] if position.replay_time is None else position.replay_time.to_list()
        beside = [back, self.epoch, self.moved, *again] if self.epoch or again else [back] if back else []
        known = [*position.time.to_list(), *beside]
        told = [self.fingerprint, self.topic_id, self.table_id, known, *self.log]
        return json.dumps(told, separators=(",", ":"))

    @classmethod
    def of(cls, offset: int, metadata: str | None) -> Committed:
        """What was committed; only the offset if no stream committed it."""
        try:
            fingerprint, topic_id, table_id, told, *log = json.loads(metadata or "[]")
            numbers = list(map(int, told))
            time, beside = numbers[:_TIME], numbers[_TIME:]
            back, epoch, moved, *again = (*beside, *(0, 0, 0)[len(beside) :])
            replay_time = PartitionTime(*again) if again else None
            position = Position(
                offset, PartitionTime(*time), None if back < 0 else offset - back, replay_time
            )
            ids = str(fingerprint), str(topic_id), str(table_id)
            return cls(position, tuple(log), *ids, epoch, moved)
        except (ValueError, TypeError):
            return cls(Position(offset))


class Membership:
    """Membership in a group that reads these topics.

    `revoked` is called with partitions that other members get next, while this worker still has them, to send
    what it holds of them. `lost` is called with partitions that others already have. `member` tells apart the
    members of one run.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        group_id: str,
        topics: Collection[str],
        fingerprint: str,
        revoked: Callable[[list[Input]], None],
        lost: Callable[[list[Input]], None],
        member: str = "",
    ) -> None:
        self.group_id = group_id
        self._topics = list(topics)
        self._fingerprint = fingerprint
        self._rebalance = Rebalance(config)
        self._revoked, self._lost = revoked, lost
        self._delivering = self._in_callback = self._taken = False
        self.assigned: set[Input] = set()
        self.rebalances = 0
        """How often the group has given it partitions, none included."""
        self._consumer = Consumer(member_config(config, group_id, member), logger=LIBRARY_LOG)
        self._late: set[str] = set()
        self.subscribe(topics)

    def subscribe(self, topics: Collection[str]) -> None:
        """Take part in the reading of these topics."""
        self._late |= set(topics) - set(self._topics)
        self._topics = list(topics)
        self._consumer.subscribe(
            self._topics, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )

    def poll(self, seconds: float = 0.0) -> None:
        """Keep the membership and take part in rebalances."""
        message = as_exception(lambda: self._consumer.poll(seconds))
        error = None if message is None else message.error()
        if error is None:
            return
        if self._late and error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            log.debug("not all brokers know of new topics yet: %s", error)
            return
        if error.fatal() or not passing(error):
            raise self._refused(error, "let it take part")
        log.debug("membership: %s", error.str())

    def keep(self) -> None:
        """Like `poll`, while a delivery waits. Raises `MembershipLost` if partitions were taken meanwhile."""
        if self._in_callback:
            return
        self._delivering, self._taken = True, False
        try:
            self.poll(0.0)
        finally:
            self._delivering = False
        if self._taken:
            raise MembershipLost("a rebalance took its partitions while a delivery waited")

    def committed(self, inputs: Iterable[Input], seconds: float) -> dict[Input, Committed | None]:
        """What the group has committed; None where nothing is. Raises `KafkaException`."""
        asked = [KafkaPartition(*where) for where in inputs]
        try:
            found = self._consumer.committed(asked, timeout=seconds)
        except KafkaException as error:
            raise self._refused(error.args[0], "tell positions") from None
        for place in found:
            if place.error is not None:
                raise self._refused(place.error, "tell positions")
        return {_input(place): self._place(place) for place in found}

    def _place(self, place: KafkaPartition) -> Committed | None:
        if place.offset < 0:
            return None
        found = Committed.of(place.offset, place.metadata)
        if found.fingerprint not in ("", self._fingerprint):
            raise DefinitionChanged(
                f"the group has committed {_input(place)} by another definition "
                f"({found.fingerprint}, this one is {self._fingerprint}): a run of it is going on side by "
                "side; give one of them a group_id of its own"
            )
        return found

    def commit(self, places: Mapping[Input, Committed]) -> None:
        """Commit now. Raises `MembershipLost`, or `KafkaException` for errors after which to try again."""
        try:
            found = self._consumer.commit(offsets=self.offsets(places), asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() in LOST:
                raise MembershipLost(error.args[0].str()) from None
            raise self._refused(error.args[0], "commit positions") from None
        for place in found or ():
            if place.error is not None:
                if place.error.code() in LOST:
                    raise MembershipLost(place.error.str())
                raise self._refused(place.error, "commit positions")

    def offsets(self, places: Mapping[Input, Committed]) -> list[KafkaPartition]:
        """Places in the client library's form."""
        return [KafkaPartition(*where, c.position.offset, c.metadata()) for where, c in places.items()]

    def group_metadata(self) -> Any:
        """The identity of the membership; brokers refuse transactions of members that lost it."""
        return self._consumer.consumer_group_metadata()

    def watermarks(self, where: Input, seconds: float) -> tuple[int, int]:
        """A partition's first offset and the one after its last readable message. Raises `KafkaException`."""
        place = KafkaPartition(*where)
        try:
            found = self._consumer.get_watermark_offsets(place, timeout=seconds)
        except KafkaException as error:
            raise self._refused(error.args[0], "tell a partition's offsets") from None
        if found is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return found

    def close(self) -> None:
        """Leave the group."""
        as_exception(self._consumer.close)

    def _refused(self, error: KafkaError, doing: str) -> KafkaException:
        of = f"topic{'s' * (len(self._topics) > 1)} {', '.join(map(repr, self._topics))}"
        doing += f" in the group {self.group_id!r} of the {of}"
        return refused(error, doing, topic=self._topics, group=self.group_id)

    def _on_assign(self, consumer: Consumer, partitions: list[KafkaPartition]) -> None:
        self._rebalance.take(consumer, partitions)
        consumer.pause(partitions)
        self.assigned |= set(map(_input, partitions))
        self.rebalances += 1

    def _on_revoke(self, consumer: Consumer, partitions: list[KafkaPartition]) -> None:
        if self._delivering:
            self._on_lost(consumer, partitions)
            return
        self._in_callback = True
        try:
            self._revoked(list(map(_input, partitions)))
        finally:
            self._in_callback = False
        self.assigned -= set(map(_input, partitions))
        self._rebalance.let_go(consumer, partitions)

    def _on_lost(self, consumer: Consumer, partitions: list[KafkaPartition]) -> None:
        self._taken = True
        self.assigned -= set(map(_input, partitions))
        self._lost(list(map(_input, partitions)))
        self._rebalance.let_go(consumer, partitions)


def _input(place: KafkaPartition) -> Input:
    return Input(place.topic, place.partition)
