"""The sketching worker: rows of its partitions in, deltas to the table topic out, nothing kept.

It is a member of a consumer group. At each checkpoint the sketches of everything read since the last one go
to the table topic together with the offsets they cover, and it starts empty; so a rebalance restores nothing.
"""

from __future__ import annotations

import logging
import time as wall
from collections.abc import Callable, Collection
from dataclasses import replace

from confluent_kafka import KafkaException

from ...definition.sources import FrameSource
from ...formats.messages import Messages
from ...joins.joined import JoinedTables
from ...joins.pairing import Pairings
from ...kafka.patience import Patience, Stopped
from ...kafka.read_ahead import ReadAhead
from ...kafka.reader import NoAnswer, Reader
from ...kafka.topics import Admin, admin, ensure_topic
from ...sketching.dead_letters import TOPIC_CONFIG as DEAD_LETTERS
from ...sketching.intake import Intake
from ...sketching.position import Input
from ...sketching.progress import Progress
from ...sketching.remarks_by_source import RemarksBySource
from ...sketching.sent_rows import outgoing
from ...watching.figures import WorkFigures
from ..group.co_partitioning import check_partners
from ..group.input_topics import TopicSearch
from ..group.membership import Membership, MembershipLost
from ..log.messages import encode
from ..plan import Plan
from .idleness import Idleness
from .taking_up import TakingUp

log = logging.getLogger("streamgauge.kafka")

_BATCH_MESSAGES = 200_000
"""Messages read, decoded and sketched at a time, at most."""
_FIRST_PORTION = 10_000
_PORTION_SECONDS = 5.0
_KEEP_SECONDS = 2.0
_PAUSE_SECONDS = 0.2
_DEAD_LETTER_BYTES = 16 * 1024 * 1024
"""Dead letters are sent before they take up more memory than this."""
_SENT_BYTES = 32 * 1024 * 1024
"""And so are rows that are sent on."""


class Worker:
    """One member of a run's group. `run` returns when `stopping` says so, with everything delivered.

    Raises `ReadError`, `DeltaError` and `KafkaException` for errors that waiting won't mend.
    """

    def __init__(
        self, plan: Plan, stopping: Callable[[], bool], clock: Callable[[], float] = wall.monotonic
    ) -> None:
        self._plan = plan
        self._stopping = stopping
        self._clock = clock
        self._tables = JoinedTables(plan.stream, self._keep, stopping)
        self._stream = self._tables.bound(plan.stream)
        source = plan.stream.source
        assert not isinstance(source, FrameSource)
        remarks = RemarksBySource(plan.stream, plan.letters)
        self._pairings, self._paused = Pairings(self._stream), set[Input]()
        self._intake = Intake(source, remarks, plan.ends, self._keep, stopping, plan.options.late is not None)
        self._ids = dict(plan.topic_ids)
        own = {plan.options.dead_letters, plan.options.late}
        self._search = TopicSearch(self._administration, plan.sources, plan.config, plan.partitions, own)
        self._portion, self._kept = _FIRST_PORTION, wall.monotonic()
        self._reader: Reader | None = None
        self._ahead: ReadAhead | None = None
        self._admin: Admin | None = None
        self._idleness = Idleness(plan, self._administration, clock)
        self._due = clock() + plan.options.checkpoint_seconds
        self._checkpoints, self._deltas = WorkFigures().checkpoints, WorkFigures().deltas
        self._membership = Membership(
            plan.config,
            plan.group_id,
            plan.partitions,
            plan.stream.fingerprint(),
            self._revoked,
            self._lost,
            plan.member,
        )
        self._taking_up = TakingUp(plan, self._membership, self._administration, stopping, self._ids)

    @property
    def assigned(self) -> set[Input]:
        """The input partitions that it has now."""
        return set(self._membership.assigned)

    @property
    def figures(self) -> WorkFigures:
        """What it did so far, and what it has now."""
        assigned = frozenset((topic, number) for topic, number in self.assigned)
        ids = sum(own.kept_bytes for own in list(self._intake.progress.values()))
        kept = ids + self._tables.size
        return WorkFigures(self._checkpoints, self._deltas, self._membership.rebalances, assigned, kept)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Its remarks about the messages."""
        return tuple(self._intake.remarks.told)

    def run(self) -> None:
        """Read, sketch and deliver until told to stop."""
        try:
            while not self._stopping():
                self._turn()
            self._checkpoint()
            self._intake.remarks.look(1, 1)
        except (MembershipLost, Stopped) as error:
            log.warning("stopped with messages read but not delivered; they will be read again: %s", error)
        except BaseException:
            # A delta that failed half-way must not be delivered when it leaves the group.
            self._intake.forget()
            raise
        finally:
            self._close()

    def _turn(self) -> None:
        try:
            self._membership.poll(0.0)
            self._look_for_topics()
            self._take_up(self._membership.assigned - self._intake.progress.keys())
            self._read()
            full = self._intake.dead_bytes > _DEAD_LETTER_BYTES or self._holds_much()
            due = self._clock() >= self._due
            if due or full or self._all_read():
                self._idleness.look(self._intake, self._positions(), anew=due)
                self._pairings.look([where for where, own in self._intake.progress.items() if own.rest])
                self._checkpoint()
                self._due = self._clock() + self._plan.options.checkpoint_seconds
        except MembershipLost as error:
            log.warning("the group %s moved on without this worker: %s", self._plan.group_id, error)
            self._intake.forget()
            self._membership.poll(0.1)

    def _look_for_topics(self) -> None:
        """Read topics that began to match a pattern, unless the run ends with what was there."""
        if self._plan.ends is not None or (fresh := self._search.look()) is None:
            return
        self._ids |= fresh.ids
        besides = (*map(self._plan.letters, fresh.ids), *map(self._plan.late_topic, fresh.ids))
        for beside in dict.fromkeys(besides):
            if beside is not None:
                ensure_topic(self._administration(), beside, 1, DEAD_LETTERS)
        self._membership.subscribe(self._ids)

    def _holds_much(self) -> bool:
        """Whether sketches, or rows to be sent on, take so much memory that they are delivered early."""
        limit = self._plan.options.state_bytes
        most = None if limit is None else limit // 4
        if self._plan.stream.sending is not None:
            most = min(_SENT_BYTES, most or _SENT_BYTES)
        return most is not None and sum(p.nbytes for p in self._intake.progress.values()) > most

    def _read(self) -> None:
        if self._ahead is None or not self._intake.progress:
            self._membership.poll(0.1)
            return
        self._pace()
        messages = self._ahead.read(0.02 if self._all_read() else 0.1)
        self._tables.refresh()
        if messages is not None:
            self._take(messages)
        if self._plan.ends is not None:
            self._pass_gaps()

    def _pace(self) -> None:
        """Of joined streams, read on only with the side that is behind while the other has much waiting."""
        if self._stream.joined is None:
            return
        silent = {where: own.rest is not None for where, own in self._intake.progress.items()}
        ahead = self._pairings.ahead(silent, self._paused)
        if ahead != self._paused:
            self._paused = ahead
            self._read_on()

    def _take(self, messages: Messages) -> None:
        """Sketch a batch in portions of a few seconds, so that the group never waits too long for a poll."""
        if messages.broken is not None:
            self._intake.take(messages)
        low = 0
        while low < len(messages):
            high = min(low + self._portion, len(messages))
            began = wall.monotonic()
            self._intake.take(messages.slice(low, high))
            each = max(wall.monotonic() - began, 1e-3) / (high - low)
            low = high
            self._portion = max(1, min(int(_PORTION_SECONDS / each), _BATCH_MESSAGES))
            self._keep()

    def _keep(self) -> None:
        """Keep the membership while work takes long. Raises `MembershipLost`."""
        if wall.monotonic() - self._kept > _KEEP_SECONDS:
            self._kept = wall.monotonic()
            self._membership.keep()

    def _all_read(self) -> bool:
        """Whether a bounded run has read its partitions to the end."""
        progress = self._intake.progress
        return self._plan.ends is not None and all(
            own.next >= (self._intake.end_of(where) or 0) for where, own in progress.items()
        )

    def _pass_gaps(self) -> None:
        """Move bounded partitions to their ends if only transactions' markers are left before them."""
        assert self._ahead is not None
        for place, position in self._ahead.positions().items():
            end = self._intake.end_of(where := Input(*place))
            progress = self._intake.progress.get(where)
            if end is not None and progress is not None and progress.next < end <= position:
                self._intake.pass_to(where, end)

    def _positions(self) -> dict[Input, int]:
        """The reader's positions, behind transactions' markers; empty while it waits for brokers."""
        if self._reader is None or self._ahead is None or self._reader.waiting is not None:
            return {}
        return {Input(*where): position for where, position in self._ahead.positions().items()}

    def _administration(self) -> Admin:
        if self._admin is None:
            self._admin = admin(self._plan.config)
        return self._admin

    def _checkpoint(self, inputs: Collection[Input] | None = None) -> None:
        """Deliver everything sketched since the last checkpoint, of some partitions or of all."""
        intake, plan = self._intake, self._plan
        chosen = intake.progress.keys() if inputs is None else inputs
        ready = [delta for delta in intake.ready if delta.input in chosen]
        dead = [letter for letter in intake.dead if letter.input in chosen]
        late = [one for one in intake.late if one.letter.input in chosen]
        deltas = [*ready, *(p.delta() for w, p in intake.progress.items() if w in chosen and p.pending)]
        deltas[:-1] = [replace(delta, more=True) for delta in deltas[:-1]]
        if not deltas and not dead:
            return
        assert self._taking_up.delivery is not None
        epochs = self._taking_up.epochs
        deltas = [
            replace(delta, source=self._ids.get(delta.topic, ""), epoch=epochs.get(delta.input, 0))
            for delta in deltas
        ]
        parts = [encode(delta, plan.table_topic, plan.table_partitions) for delta in deltas]
        messages = [message for part in parts for message in part]
        for letter in dead:
            if (letters := plan.letters(letter.topic)) is not None:
                messages.append(letter.outgoing(letters))
        for message in late:
            if (topic := plan.late_topic(message.letter.topic)) is not None:
                messages.append(message.outgoing(topic))
        if (sending := plan.stream.sending) is not None:
            for delta in deltas:
                messages += outgoing(delta.sent, delta.input, sending.topic, plan.sent_partitions)
        places = {}
        for delta in deltas:
            places[delta.input] = self._taking_up.committed(delta.input, delta.end)
        began = wall.monotonic()
        self._taking_up.delivery.deliver(messages, places)
        intake.clear(inputs)
        self._checkpoints = self._checkpoints.with_value(wall.monotonic() - began)
        for part in parts:
            self._deltas = self._deltas.with_value(sum(message.size for message in part))

    def _take_up(self, inputs: set[Input]) -> None:
        """Go on with newly assigned partitions where the group, or a predecessor that died, left them."""
        if not inputs:
            return
        self._tables.load()
        waiting = Patience("learn where to read on", self._stopping)
        while True:
            try:
                ends = self._taking_up.places(inputs)
                break
            except KafkaException as error:
                waiting.failed(error)
        waiting.done()
        check_partners(self._stream, inputs, self._intake.progress)
        self._pairings.keep(self._intake.progress)
        self._paused &= self._intake.progress.keys()
        for where, end in ends.items():
            start, time = end.position.offset, replace(end.position.time)
            again = end.position.replay, end.position.replay_time
            progress = Progress(
                self._stream,
                *where,
                start,
                time,
                replay=again[0],
                replay_time=again[1],
                pairing=self._pairings.of(where),
            )
            self._intake.begin(progress, end.cuts)
            self._idleness.take_up(where)
        if self._stream.joined is not None:
            self._recall()
        self._read_on()

    def _recall(self) -> None:
        """Read again the rows that joined streams wait with, of both sides, before any new one is judged."""
        if self._ahead is not None:
            self._ahead.close()
            self._ahead = None
        behind = {where: own for where, own in self._intake.progress.items() if own.reads_from < own.next}
        if not behind:
            return
        self._begin_reading({where: own.reads_from for where, own in behind.items()})
        assert self._reader is not None
        while any(own.reads_from < own.next for own in behind.values()):
            if self._stopping():
                raise Stopped("stopped while reading again the rows that wait for partners")
            messages = self._reader.read(_BATCH_MESSAGES, 0.1)
            if messages is not None:
                self._intake.recall(messages)
            for place, position in self._reader.positions().items():
                if position >= (own := behind[Input(*place)]).next:
                    own.recalled_to(own.next)  # only transactions' markers and gaps are left
            self._membership.keep()

    def _read_on(self) -> None:
        """Read the partitions that it has, each from where it is, but for those that wait for others."""
        own = {where: one for where, one in self._intake.progress.items() if where not in self._paused}
        starts: dict[tuple[str, int], int] = {where: one.reads_from for where, one in own.items()}
        if self._ahead is not None:
            self._ahead.close()
        self._begin_reading(starts)
        assert self._reader is not None
        self._ahead = ReadAhead(self._reader, _BATCH_MESSAGES)

    def _begin_reading(self, starts: dict[tuple[str, int], int]) -> None:
        waiting = Patience("read on", self._stopping)
        while True:
            try:
                self._reader = self._reading(starts)
                break
            except NoAnswer as error:
                waiting.still(str(error))
                wall.sleep(_PAUSE_SECONDS)
        waiting.done()

    def _reading(self, starts: dict[tuple[str, int], int]) -> Reader:
        if self._reader is not None:
            self._reader.assign(starts)
            return self._reader
        return Reader(
            {**self._plan.config, "group.id": self._plan.group_id},
            starts,
            any(source.reads_headers for source in self._plan.sources),
            corrupt=self._plan.sources[0].corrupt,
        )

    def _revoked(self, inputs: list[Input]) -> None:
        """Deliver what it holds of these partitions, and go on with the others."""
        try:
            self._checkpoint(inputs)
        except (MembershipLost, Stopped) as error:
            log.warning("partitions were taken before their last delta was delivered: %s", error)
        self._lost(inputs)

    def _lost(self, inputs: list[Input]) -> None:
        self._intake.release(inputs)
        if self._intake.progress and self._ahead is not None and not self._stopping():
            self._read_on()  # without those that are gone

    def _close(self) -> None:
        for part in (self._ahead, self._reader, self._taking_up.delivery, self._tables):
            if part is not None:
                part.close()
        self._membership.close()
