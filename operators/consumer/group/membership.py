"""A worker's membership in its consumer group: its partitions, and their committed positions.

The consumer here never reads: its partitions are paused, and a separate `Reader` reads them. It commits an
offset and, as metadata, the partition's event time at that offset (`committed`), so that the next reader
judges lateness by the same rule.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from ....sketches.core.errors import StreamgaugeError
from ...definition.definition_diff import DefinitionChanged
from ...kafka.client_config import LIBRARY_LOG, member_config
from ...kafka.faults import LOST, passing, refused
from ...watermarks.position import Input
from .committed import Places, committable, places_of
from .rebalance import Rebalance, as_exception

log = logging.getLogger("streamgauge.kafka")

_STEP_SECONDS = 0.01
"""The client library keeps waiting for a message after a rebalance, so polls are short."""


class MembershipLost(StreamgaugeError):
    """The group gave this worker's partitions to others; results held for them must be dropped."""


class Membership:
    """Membership in a group that reads these topics, starting with `join`.

    `revoked` is called with partitions that other members get next, while this worker still owns them, so
    that it can deliver its results for them. `lost` is called with partitions that others already own.
    `fingerprints` are those of the group's streams, by name. `member` distinguishes the members of one run.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        group_id: str,
        topics: Collection[str],
        fingerprints: Mapping[str, str],
        revoked: Callable[[list[Input]], None],
        lost: Callable[[list[Input]], None],
        member: str = "",
    ) -> None:
        self.group_id = group_id
        self._topics = list(topics)
        self._fingerprints = fingerprints
        self._rebalance = Rebalance(config)
        self._revoked, self._lost = revoked, lost
        self._delivering = self._in_callback = self._partitions_lost = False
        self.assigned: set[Input] = set()
        self.rebalances = 0
        """How often the group has assigned it partitions, empty assignments included."""
        self._consumer = Consumer(member_config(config, group_id, member), logger=LIBRARY_LOG)
        self._late: set[str] = set()

    def join(self) -> None:
        """Join the group."""
        self.subscribe(self._topics)

    def subscribe(self, topics: Collection[str]) -> None:
        """Subscribe to these topics."""
        self._late |= set(topics) - set(self._topics)
        self._topics = list(topics)
        self._consumer.subscribe(
            self._topics, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )

    def poll(self, seconds: float = 0.0) -> None:
        """Stay a member and take part in rebalances, for `seconds` or until one has changed anything."""
        deadline = time.monotonic() + seconds
        before, left = self.rebalances, seconds
        while (message := as_exception(partial(self._consumer.poll, min(left, _STEP_SECONDS)))) is None:
            left = deadline - time.monotonic()
            if left <= 0 or self.rebalances > before:
                break
        error = None if message is None else message.error()
        if error is None:
            return
        if self._late and error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            log.debug("not all brokers know of new topics yet: %s", error)
            return
        if error.fatal() or not passing(error):
            raise self._refused(error, "let it take part")
        log.debug("membership: %s", error.str())

    def keep_alive(self) -> None:
        """Like `poll`, while a delivery waits. Raises `MembershipLost` if partitions were revoked."""
        if self._in_callback:
            return
        self._delivering, self._partitions_lost = True, False
        try:
            self.poll(0.0)
        finally:
            self._delivering = False
        if self._partitions_lost:
            raise MembershipLost("a rebalance revoked its partitions while a delivery waited")

    def committed(self, inputs: Iterable[Input], seconds: float) -> dict[Input, Places]:
        """What the group has committed; partitions without a commit are empty. Raises `KafkaException`."""
        partitions = [KafkaPartition(*where) for where in inputs]
        try:
            committed = self._consumer.committed(partitions, timeout=seconds)
        except KafkaException as error:
            raise self._refused(error.args[0], "read positions") from None
        for place in committed:
            if place.error is not None:
                raise self._refused(place.error, "read positions")
        return {_input(place): self._places(place) for place in committed}

    def _places(self, place: KafkaPartition) -> Places:
        if place.offset < 0:
            return {}
        places = places_of(place.offset, place.metadata, place.leader_epoch)
        for name, own in places.items():
            known = self._fingerprints.get(name, "no such stream")
            if own.fingerprint not in ("", known):
                of = f" of the stream {name!r}" if name else ""
                raise DefinitionChanged(
                    f"the group has committed {_input(place)} by another definition{of} "
                    f"({own.fingerprint}, this one is {known}): a run of it is active at the "
                    "same time; give one of them another group_id"
                )
        return places

    def commit(self, places: Mapping[Input, Places]) -> None:
        """Commit now. Raises `MembershipLost`, or `KafkaException` for errors that should be retried."""
        try:
            results = self._consumer.commit(offsets=self.offsets(places), asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() in LOST:
                raise MembershipLost(error.args[0].str()) from None
            raise self._refused(error.args[0], "commit positions") from None
        for place in results or ():
            if place.error is not None:
                if place.error.code() in LOST:
                    raise MembershipLost(place.error.str())
                raise self._refused(place.error, "commit positions")

    def offsets(self, places: Mapping[Input, Places]) -> list[KafkaPartition]:
        """Committed positions in the client library's form."""
        return committable(places)

    def group_metadata(self) -> Any:
        """The identity of the member; brokers refuse transactions of members that lost their membership."""
        return self._consumer.consumer_group_metadata()

    def watermarks(self, where: Input, seconds: float) -> tuple[int, int]:
        """A partition's first offset, and that after its last readable message. Raises `KafkaException`."""
        place = KafkaPartition(*where)
        try:
            offsets = self._consumer.get_watermark_offsets(place, timeout=seconds)
        except KafkaException as error:
            raise self._refused(error.args[0], "read a partition's offsets") from None
        if offsets is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return offsets

    def close(self) -> None:
        """Leave the group."""
        as_exception(self._consumer.close)

    def _refused(self, error: KafkaError, doing: str) -> KafkaException:
        of = f"topic{'s' * (len(self._topics) > 1)} {', '.join(map(repr, self._topics))}"
        doing += f" in the group {self.group_id!r} of the {of}"
        return refused(error, doing, topic=self._topics, group=self.group_id)

    def _on_assign(self, consumer: Consumer, partitions: list[KafkaPartition]) -> None:
        self._rebalance.assign(consumer, partitions)
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
        self._rebalance.unassign(consumer, partitions)

    def _on_lost(self, consumer: Consumer, partitions: list[KafkaPartition]) -> None:
        self._partitions_lost = True
        self.assigned -= set(map(_input, partitions))
        self._lost(list(map(_input, partitions)))
        self._rebalance.unassign(consumer, partitions)


def _input(place: KafkaPartition) -> Input:
    return Input(place.topic, place.partition)
