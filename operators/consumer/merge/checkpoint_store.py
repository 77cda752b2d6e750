"""Mergers' checkpoints in the table topic: found after a restart, kept up to date, and trimmed behind.

A snapshot goes to the topic first. Then the group's offset is committed, with the snapshot's own offset as
metadata, so that a successor finds it directly. If the group's offsets have expired, the topic is searched
for it. Messages before the committed offset are no longer needed and are deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as KafkaPartition

from ...definition.description import fingerprint_of
from ...kafka.client_config import LIBRARY_LOG, producer_config
from ...kafka.faults import LOST, passing
from ...kafka.log_faults import DeltaError
from ...kafka.outgoing_message import Outgoing
from ...kafka.topics import admin, recreated
from ...watermarks.global_watermark import Mark
from ...watermarks.position import Input
from ..log.log_scan import Tail, log_ends, read_tail
from ..log.messages import LARGEST, check_split
from ..log.snapshots import Snapshot
from ..run_plan import Plan
from .checkpoint_transactions import CheckpointTransactions
from .merger import Merger
from .outbox import Outbox

log = logging.getLogger("streamgauge.kafka")

_ANSWER_SECONDS = 10.0
_FLUSH_SECONDS = 5.0
_LAST_SECONDS = 2.0


class _Checkpoint(NamedTuple):
    """The position from which a merger resumes, its state there, and the memory of its sinks."""

    next_offset: int
    state: str
    memory: Mapping[str, str]


class CheckpointStore:
    """Finds and saves the checkpoints of a run's mergers."""

    def __init__(self, plan: Plan, outbox: Outbox) -> None:
        self._plan = plan
        self._outbox = outbox
        self._transactions = CheckpointTransactions(plan, outbox) if outbox.sends else None
        # It connects while the log is read, so that the first checkpoint doesn't wait for the connection.
        self._producer = None if self._transactions else self._fresh_producer()
        self._admin = admin(plan.config)
        self._saved: dict[int, _Checkpoint] = {}
        self._snapshots: dict[int, int] = {}
        self._hidden: dict[int, int] = {}
        self._trimming: dict[Any, Future[Any]] = {}
        self._may_trim = True
        self._definition, self._fingerprint = plan.stream.definition(), plan.stream.fingerprint()
        self.behind = False
        """Whether the last attempt to save checkpoints failed."""

    def find(self, consumer: Consumer, partitions: Iterable[int]) -> dict[int, Snapshot | None]:
        """The snapshot from which to resume in each partition of the table topic; None means its beginning.

        Raises `KafkaException` if brokers don't answer or a checkpoint is still hidden by a transaction,
        `DeltaError` if needed messages are gone, and `TopicError` if the log belongs to another input topic
        of the same name.
        """
        topic = self._plan.table_topic
        kafka_partitions = [KafkaPartition(topic, p) for p in partitions]
        ends = {
            p.partition: consumer.get_watermark_offsets(p, timeout=_ANSWER_SECONDS) for p in kafka_partitions
        }
        if None in ends.values():
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"no answer from the topic {topic}"))
        if all(end == (0, 0) for end in ends.values()):
            return dict.fromkeys(ends)  # nothing was ever written
        places = consumer.committed(kafka_partitions, timeout=_ANSWER_SECONDS)
        metadata = {place.partition: place.metadata or "" for place in places}
        hints = {partition: int(hint) for partition, hint in metadata.items() if hint.isdigit()}
        tails = read_tail(self._plan.config, topic, {p.partition: hints.get(p.partition, 0) for p in places})
        if missing := _without_snapshot(tails, hints):
            self._see_all(consumer, missing)
            # What hid a snapshot may have ended only now: it is gone if it can't be read from now on.
            tails |= read_tail(self._plan.config, topic, {p: hints.get(p, 0) for p in missing})
        if missing := _without_snapshot(tails, hints):
            self._check_hints({p: hint for p, hint in hints.items() if p in missing}, tails)
            tails |= read_tail(self._plan.config, topic, dict.fromkeys(missing, 0))
        return {partition: self._checked(partition, tail) for partition, tail in tails.items()}

    def save(self, consumer: Consumer, mergers: Mapping[int, Merger]) -> None:
        """Save the mergers' checkpoints unless they are up to date; `behind` tells whether it failed.

        Raises `KafkaException` for errors that can't be retried.
        """
        now = {
            p: _Checkpoint(*merger.restore_point(), self._outbox.memory(p)) for p, merger in mergers.items()
        }
        waiting = {partition for partition in now if self._outbox.waiting(partition)}
        fresh = {p: place for p, place in now.items() if self._saved.get(p) != place or p in waiting}
        if not fresh:
            self.behind = False
            return
        try:
            if self._transactions is None:
                self._commit(consumer, fresh)
            else:
                for p, place in fresh.items():
                    snapshot = self._snapshot(p, place)
                    self._snapshots[p] = self._transactions.send(consumer, p, place.next_offset, snapshot)
        except KafkaException as error:
            # Not retried in a loop here: the consumer must be polled to rejoin the group.
            fault = error.args[0]
            if not passing(fault):
                raise
            if not self.behind and fault.code() not in LOST:
                windows = self._outbox.describe_waiting()
                what = (
                    f"the merger's position and {windows}, can't"
                    if windows
                    else "the merger's position can't"
                )
                log.warning("%s be stored now; trying again: %s", what, fault.str())
            self.behind = True
            return
        if self.behind:
            log.warning("stored the merger's position; continuing")
        self.behind = False
        last = {p: self._saved[p].next_offset if p in self._saved else 0 for p in fresh}
        self._trim({p: place.next_offset for p, place in fresh.items() if place.next_offset > last[p]})
        self._saved |= fresh

    def behind_by(self, partition: int, position: int) -> int:
        """The number of messages between the last checkpoint and an offset; 0 before the first one."""
        kept = self._saved.get(partition)
        return 0 if kept is None else max(0, position - kept.next_offset)

    def end_open_transactions(self, partitions: Iterable[int]) -> None:
        """End the transactions that a predecessor left open in these partitions. Raises `KafkaException`."""
        if self._transactions is not None:
            for partition in partitions:
                self._transactions.end_open_transaction(partition)

    def forget(self, partitions: Iterable[int]) -> None:
        """Forget these partitions, which other members have now."""
        for partition in partitions:
            self._saved.pop(partition, None)
        if self._transactions is not None:
            self._transactions.forget(partitions)

    def close(self) -> None:
        """Close the connections, once the last deletion is confirmed."""
        wait(self._trimming.values(), timeout=_LAST_SECONDS)
        if self._transactions is not None:
            self._transactions.close()
        if self._producer is not None:
            self._producer.purge()
            self._producer.flush(1.0)
            self._producer = None

    def is_passed(self, consumer: Consumer, partition: int, offset: int) -> bool:
        """Whether another member has this partition by now, and has merged it beyond an offset.

        Raises `KafkaException` if brokers don't answer.
        """
        try:
            wanted = [KafkaPartition(self._plan.table_topic, partition)]
            return consumer.committed(wanted, timeout=_ANSWER_SECONDS)[0].offset > offset
        except KafkaException as error:
            if error.args[0].code() in LOST:
                return True
            raise

    def gone(self, partition: int, begin: int | None, needed: str) -> DeltaError:
        """The error if needed deltas were deleted."""
        now = "later" if begin is None else f"at offset {begin}"
        return DeltaError(
            f"the table topic {self._plan.table_topic!r}[{partition}] begins {now}, but {needed}: deltas "
            "were deleted before their windows were emitted, by retention or by hand; give the run "
            "a new group_id to count again from the input topic, and leave retention.ms=-1 and "
            "retention.bytes=-1 on table topics"
        )

    def log_ends(self, partitions: Iterable[int]) -> dict[int, int]:
        """The offset after each partition's last message. Raises `KafkaException` without an answer."""
        return log_ends(self._admin, self._plan.table_topic, partitions)

    def check_reaches(self, partition: int, marks: Mapping[Input, Mark], reached: Collection[Input]) -> None:
        """Raise `DeltaError` if the log ends before what the group had counted when the run began.

        Inputs in `reached` pass: the log once had everything counted for them, whatever their marks are now.
        """
        for where, counted in self._plan.counted.items():
            known = marks[where].position.offset if where in marks else 0
            if known < counted and where not in reached:
                raise self.truncated(
                    partition,
                    f"the deltas of {counted - known:,} offsets of {where} that were counted ({known} … "
                    f"{counted - 1}) no longer exist",
                )

    def truncated(self, partition: int, lost: str) -> DeltaError:
        """The error that ends a run whose table topic has lost messages at its end."""
        return DeltaError(
            f"the table topic {self._plan.table_topic!r}[{partition}] was truncated, as an unclean leader "
            f"election does: {lost}. To count again from the input: streamgauge kafka groups reset "
            f"{self._plan.group_id} --offset …; to prevent it, give the topic min.insync.replicas=2 and "
            "leave unclean.leader.election.enable=false"
        )

    def _check_hints(self, hints: Mapping[int, int], tails: Mapping[int, Tail]) -> None:
        """Raise `DeltaError` for a snapshot that was committed and is no longer in the log."""
        for partition, hint in hints.items():
            if tails[partition].damaged is None and tails[partition].begin <= hint:
                raise self.truncated(
                    partition,
                    f"the merger's state at offset {hint} no longer exists, and windows that it had handed "
                    "over would be emitted again",
                )

    def _see_all(self, consumer: Consumer, partitions: Sequence[int]) -> None:
        """Raise `KafkaException` until everything is readable that existed when this was first called.

        A worker that died or hangs may have left a transaction open; the newest snapshot can't be read until
        that ends, and resuming from an older one would deliver windows twice.
        """
        topic = self._plan.table_topic
        self._hidden |= log_ends(self._admin, topic, [p for p in partitions if p not in self._hidden])
        for partition in partitions:
            edges = consumer.get_watermark_offsets(KafkaPartition(topic, partition), timeout=_ANSWER_SECONDS)
            if edges is None or edges[1] < self._hidden[partition]:
                problem = f"a transaction on {topic}[{partition}] is still open"
                problem += ", and the merger's state may lie behind it"
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, problem))
        for partition in partitions:
            del self._hidden[partition]

    def _checked(self, partition: int, tail: Tail) -> Snapshot | None:
        snapshot = tail.snapshot
        if snapshot is None and tail.begin > 0:
            raise self.gone(partition, tail.begin, "no merger's state is left in it")
        for topic, known in ({} if snapshot is None else snapshot.sources).items():
            if known and self._plan.topic_ids.get(topic, known) not in ("", known):
                raise recreated(topic)
        if snapshot is not None and snapshot.next_offset < tail.begin:
            raise self.gone(
                partition, tail.begin, f"the oldest open window began at offset {snapshot.next_offset}"
            )
        if snapshot is not None and snapshot.memory:
            check_split(self._plan.split, snapshot.split, "the group's last run")
        if tail.damaged is not None and self._outbox.sends:
            raise DeltaError(
                f"the merger's state at offset {tail.damaged} of {self._plan.table_topic!r}[{partition}] is "
                "damaged, so it isn't known which windows the sinks have, and they might get some twice; "
                "give the run a new group_id to count again, or run it without sinks that send"
            )
        return snapshot

    def _commit(self, consumer: Consumer, places: Mapping[int, _Checkpoint]) -> None:
        self._snapshots |= self._write(places)
        topic = self._plan.table_topic
        offsets = [
            KafkaPartition(topic, p, place.next_offset, str(self._snapshots[p]))
            for p, place in places.items()
        ]
        consumer.commit(offsets=offsets, asynchronous=False)

    def _snapshot(self, partition: int, place: _Checkpoint) -> list[Outgoing]:
        snapshot = Snapshot(
            self._fingerprint,
            self._plan.topic_ids,
            place.next_offset,
            place.state,
            self._definition,
            self._plan.options.delivery,
            place.memory,
            self._plan.together,
            self._plan.split,
            fingerprint_of(self._definition),
        )
        return snapshot.outgoing(self._plan.table_topic, partition)

    def _write(self, places: Mapping[int, _Checkpoint]) -> dict[int, int]:
        """Send snapshots; returns their offsets."""
        if self._producer is None:
            self._producer = self._fresh_producer()
        offsets: dict[int, int] = {}
        faults: list[KafkaError] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            partition, offset = message.partition(), message.offset()
            if error is not None:
                faults.append(error)
            elif partition is not None and offset is not None:
                offsets[partition] = min(offset, offsets.get(partition, offset))

        for partition, place in places.items():
            for message in self._snapshot(partition, place):
                self._producer.produce(
                    message.topic,
                    message.value,
                    partition=partition,
                    headers=list(message.headers),
                    on_delivery=delivered,
                )
        if self._producer.flush(_FLUSH_SECONDS) or faults:
            self._producer.purge()
            self._producer.flush(1.0)
            self._producer = None  # a purged producer may have lost its order
            raise KafkaException(faults[0] if faults else KafkaError(KafkaError._MSG_TIMED_OUT))
        return offsets

    def _fresh_producer(self) -> Producer:
        return Producer(producer_config(self._plan.config, LARGEST), logger=LIBRARY_LOG)

    def _trim(self, places: Mapping[int, int]) -> None:
        """Delete the messages before these offsets; the next call checks whether that worked."""
        for done in self._trimming.values():
            if self._may_trim and done.done() and (error := done.exception()) is not None:
                fault = error.args[0] if isinstance(error, KafkaException) else None
                if fault is not None and fault.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                    self._may_trim = False
                    log.warning(
                        "the table topic %r can't be trimmed and will grow; allow DELETE on it",
                        self._plan.table_topic,
                    )
        if self._may_trim and places:
            wanted = [KafkaPartition(self._plan.table_topic, p, offset) for p, offset in places.items()]
            self._trimming = self._admin.delete_records(wanted, operation_timeout=_ANSWER_SECONDS)


def _without_snapshot(tails: Mapping[int, Tail], hints: Mapping[int, int]) -> list[int]:
    """The partitions of which a snapshot must exist, as one was committed or messages were trimmed."""
    return [p for p, tail in tails.items() if tail.snapshot is None and (p in hints or tail.begin > 0)]
