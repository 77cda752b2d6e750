"""The sketching worker: it reads rows of its partitions and writes deltas to the table topic.

It is a member of a consumer group. At each checkpoint the sketches of everything read since the last one go
to the table topic together with the offsets they cover, and it starts empty, so a rebalance has no
state to restore.
"""

from __future__ import annotations

import logging
import time as wall
from collections.abc import Callable, Collection, Iterable, Mapping

from confluent_kafka import KafkaException

from ...formats.messages import Messages
from ...kafka.outgoing_message import Outgoing
from ...kafka.read_ahead import ReadAhead
from ...kafka.reader import LogPosition, LogTruncated, NoAnswer, Reader
from ...kafka.retry import Retry, Stopped
from ...kafka.topics import Admin, admin, ensure_topic
from ...sketching.dead_letters import TOPIC_CONFIG as DEAD_LETTERS
from ...sketching.partition_buffer import MessageObserver
from ...sketching.partition_state import PartitionState
from ...steps.table_readers import TableReaders
from ...watching.figures import WorkFigures
from ...watermarks.position import Input, Position
from ..group.committed import Committed, Places
from ..group.input_topics import TopicSearch
from ..group.membership import Membership, MembershipLost
from ..log.messages import encode
from ..run_plan import Plans
from .count_window_recovery import open_counts
from .idle_detector import HighWatermarks
from .partition_recovery import PartitionRecovery, counted_and_gone
from .shared_decoding import SharedDecoding
from .stream_task import StreamTask

log = logging.getLogger("streamgauge.kafka")

_BATCH_MESSAGES = 200_000
"""The most messages to read, decode and sketch at a time."""
_FIRST_PORTION = 10_000
_PORTION_SECONDS = 5.0
_KEEP_SECONDS = 2.0
_COLLECT_SECONDS = 0.1
"""How long messages may collect before they are read and sketched. Every batch has a fixed cost, and its
results aren't visible before the next checkpoint anyway."""
_PAUSE_SECONDS = 0.2
_DEAD_LETTER_BYTES = 16 * 1024 * 1024
"""Dead letters are sent before they take up more memory than this."""


class Worker:
    """A member of a run's group. `run` returns when `stopping` says so, with everything delivered.

    It reads for all streams of its plans: each partition once, decoded once for all streams that decode it
    alike, and committed together. Raises `ReadError`, `DeltaError` and `KafkaException` for errors that can't
    be retried.
    """

    def __init__(
        self, plans: Plans, stopping: Callable[[], bool], clock: Callable[[], float] = wall.monotonic
    ) -> None:
        self._plans = plans
        self._plan = plan = plans.first
        self._stopping = stopping
        self._clock = clock
        streams = {name: plan.stream for name, plan in plans.by_name.items()}
        self._tables = TableReaders(streams.values(), self._keep_alive, stopping)
        self._ends = HighWatermarks(self._administration)
        logged = set[tuple[str, str]]()
        self._tasks = {
            name: StreamTask(
                own, self._tables.bound(own.stream), self._keep_alive, stopping, self._ends, clock, logged
            )
            for name, own in plans.by_name.items()
        }
        self._paused = set[Input]()
        self._decoding = SharedDecoding(streams, {name: share.intake for name, share in self._tasks.items()})
        self._ids = plans.topic_ids
        others = {plan.options.dead_letters, plan.options.late}
        sources = [own.sources for own in plans.by_name.values()]
        self._search = TopicSearch(self._administration, sources, plans.config, plans.partitions, others)
        self._portion, self._last_kept_alive = _FIRST_PORTION, wall.monotonic()
        self._reader: Reader | None = None
        self._truncated: LogTruncated | None = None
        self._ahead: ReadAhead | None = None
        self._admin: Admin | None = None
        self._due = clock() + plan.options.checkpoint_seconds
        self._checkpoints, self._deltas = WorkFigures().checkpoints, WorkFigures().deltas
        self._membership = Membership(
            plans.config,
            plan.group_id,
            plans.partitions,
            {name: stream.fingerprint() for name, stream in streams.items()},
            self._revoked,
            self._lost,
            plan.member,
        )
        self._recovery = PartitionRecovery(plans, self._membership, self._administration, stopping, self._ids)

    @property
    def assigned(self) -> set[Input]:
        """Its current input partitions."""
        return set(self._membership.assigned)

    @property
    def figures(self) -> WorkFigures:
        """Its figures: what it has done, and its current state."""
        assigned = frozenset((topic, number) for topic, number in self.assigned)
        kept = sum(share.id_bytes for share in self._tasks.values()) + self._tables.size
        held_up = sum(share.held_up for share in self._tasks.values())
        return WorkFigures(
            self._checkpoints, self._deltas, self._membership.rebalances, assigned, kept, held_up
        )

    def remarks(self, name: str) -> MessageObserver:
        """Its warnings about a stream's messages."""
        return self._tasks[name].intake.remarks

    def run(self) -> None:
        """Join the group; read, sketch and deliver until a stop is requested."""
        try:
            self._membership.join()
            self._recovery.prepare()
            while not self._stopping():
                self._turn()
            self._checkpoint()
            for share in self._tasks.values():
                share.intake.remarks.report_due(1, 1)
        except (MembershipLost, Stopped) as error:
            log.warning("stopped with messages read but not delivered; they will be read again: %s", error)
        except BaseException:
            # A half-processed batch must not be delivered when it leaves the group.
            self._forget()
            raise
        finally:
            self._close()

    def _turn(self) -> None:
        try:
            if self._truncated is not None:
                error, self._truncated = self._truncated, None
                self._go_back(error)
            self._membership.poll(0.0)
            self._poll_topics()
            self._recover(self._membership.assigned - self._inputs)
            self._read()
            for share in self._tasks.values():
                share.keep_within()
            due = self._clock() >= self._due
            if due or self._is_full() or self._all_read():
                self._update_idleness(renew=due)
                self._checkpoint()
                self._due = self._next_due()
        except MembershipLost as error:
            log.warning("the group %s moved on without this worker: %s", self._plan.group_id, error)
            self._forget()
            self._membership.poll(0.1)
        except LogTruncated as error:
            # What was not delivered of it is reread, as far as the log still has it.
            self._forget()
            self._truncated = self._check_truncated(error)

    def _next_due(self) -> float:
        """When the next checkpoint is due: at regular times, unless checkpoints take most of the time."""
        every = self._plan.options.checkpoint_seconds
        return max(self._due + every, self._clock() + every / 2)

    def _counted_of(self, error: LogTruncated) -> int:
        """The position up to which a partition with a truncated log is delivered."""
        where = Input(*error.where)
        known = [share.at(where) for share in self._tasks.values() if share.knows(where)]
        return max((position.offset for position in known), default=0)

    def _check_truncated(self, error: LogTruncated) -> LogTruncated | None:
        """The truncation that `_go_back` must handle first; None if no delivered message is gone.

        Raises `LogTruncated`, with what was counted beyond the log's end, unless the run is to continue.
        """
        counted = self._counted_of(error)
        if error.end is not None and counted <= error.end:
            log.warning("%s; none of that was counted: continuing at offset %s", error, counted)
            return None
        if error.end is None or self._plan.options.truncated == "stop":
            raise counted_and_gone(error, counted) from None
        log.warning(
            "%s; continuing from there: %s counted messages no longer exist",
            *(error, f"{counted - error.end:,}"),
        )
        return error

    def _go_back(self, error: LogTruncated) -> None:
        """Deliver that a partition resumes where its log was truncated, and how many messages were lost."""
        assert error.end is not None and self._recovery.delivery is not None
        where, end = Input(*error.where), Position(error.end, leader_epoch=error.epoch)
        messages, places = list[Outgoing](), dict[str, Committed]()
        for name, share in self._tasks.items():
            if not share.knows(where):
                continue
            delta, plan = share.gone_back(where, end, self._ids), share.plan
            if delta is not None:
                messages += encode(delta, plan.table_topic, plan.table_partitions, split_keys=plan.split_keys)
            at = share.at(where) if delta is None else delta.end
            places[name] = self._recovery.committed(name, where, at)
        self._recovery.delivery.deliver(messages, {where: places})

    def _poll_topics(self) -> None:
        """Read topics that began to match a pattern, unless the run is bounded."""
        if self._plan.ends is not None or (fresh := self._search.poll()) is None:
            return
        self._ids |= fresh.ids
        besides = (*map(self._plan.letters, fresh.ids), *map(self._plan.late_topic, fresh.ids))
        for beside in dict.fromkeys(besides):
            if beside is not None:
                ensure_topic(self._administration(), beside, 1, DEAD_LETTERS)
        self._membership.subscribe(self._ids)

    @property
    def _inputs(self) -> set[Input]:
        """The input partitions that it has recovered."""
        return {where for share in self._tasks.values() for where in share.progress}

    def _forget(self) -> None:
        """Drop everything that was not delivered; another worker rereads it."""
        for share in self._tasks.values():
            share.intake.forget()

    def _is_full(self) -> bool:
        """Whether it holds so much that it is delivered early."""
        shares = self._tasks.values()
        dead_bytes = sum(share.intake.dead_bytes for share in shares)
        return dead_bytes > _DEAD_LETTER_BYTES or any(share.is_full for share in shares)

    def _update_idleness(self, renew: bool) -> None:
        positions = self._positions()
        self._ends.forget()
        for share in self._tasks.values():
            share.update_idleness(positions, renew)

    def _read(self) -> None:
        if self._ahead is None or not self._inputs:
            self._membership.poll(0.1)
            return
        self._pace()
        if self._ahead.collects:
            wall.sleep(min(max(self._due - self._clock(), 0.0), _COLLECT_SECONDS))
        messages = self._ahead.read(0.02 if self._all_read() else 0.1)
        for share in self._tasks.values():
            share.note_epochs(self._ahead.epochs())
        self._tables.refresh()
        if messages is not None:
            self._sketch(messages)
        if self._plan.ends is not None:
            for share in self._tasks.values():
                share.pass_gaps(self._ahead.positions())

    def _pace(self) -> None:
        """Pause the side of a join that is ahead while it has many rows buffered."""
        ahead = set[Input]()
        for share in self._tasks.values():
            # Joins of the same topics may judge their times differently; both sides must never wait.
            own = {where for where in share.ahead(self._paused) if not ahead & share.partners(where)}
            ahead |= own
        if ahead != self._paused:
            self._paused = ahead
            self._read_on()

    def _sketch(self, messages: Messages) -> None:
        """Sketch a batch in portions of a few seconds, so that the group never waits too long for a poll."""
        if messages.broken is not None:
            self._decoding.sketch(messages)
        low = 0
        while low < len(messages):
            high = min(low + self._portion, len(messages))
            began = wall.monotonic()
            self._decoding.sketch(messages.slice(low, high))
            each = max(wall.monotonic() - began, 1e-3) / (high - low)
            low = high
            self._portion = max(1, min(int(_PORTION_SECONDS / each), _BATCH_MESSAGES))
            self._keep_alive()

    def _keep_alive(self) -> None:
        """Keep the membership while work takes long. Raises `MembershipLost`."""
        if wall.monotonic() - self._last_kept_alive > _KEEP_SECONDS:
            self._last_kept_alive = wall.monotonic()
            self._membership.keep_alive()

    def _all_read(self) -> bool:
        """Whether a bounded run has read its partitions to the end."""
        return self._plan.ends is not None and all(share.all_read for share in self._tasks.values())

    def _positions(self) -> dict[Input, int]:
        """The reader's positions, past transaction markers; empty while it waits for brokers."""
        if self._reader is None or self._ahead is None or self._reader.waiting is not None:
            return {}
        return {Input(*where): position for where, position in self._ahead.positions().items()}

    def _administration(self) -> Admin:
        if self._admin is None:
            self._admin = admin(self._plans.config)
        return self._admin

    def _checkpoint(self, inputs: Collection[Input] | None = None) -> None:
        """Deliver everything sketched since the last checkpoint, of some partitions or of all."""
        shares, epochs = self._tasks, self._recovery.epochs
        deltas = {name: share.deltas(inputs, self._ids, epochs) for name, share in shares.items()}
        # Streams that refuse a message for the same reason send it once.
        dead = dict.fromkeys(letter for share in shares.values() for letter in share.dead_letters(inputs))
        late = dict.fromkeys(message for share in shares.values() for message in share.late_messages(inputs))
        if not any(deltas.values()) and not dead:
            return
        assert self._recovery.delivery is not None
        parts = [
            encode(delta, plan.table_topic, plan.table_partitions, split_keys=plan.split_keys)
            for plan, own in ((shares[name].plan, own) for name, own in deltas.items())
            for delta in own
        ]
        messages = [message for part in parts for message in part]
        for letter in dead:
            if (letters := self._plan.letters(letter.topic)) is not None:
                messages.append(letter.outgoing(letters))
        for message in late:
            if (topic := self._plan.late_topic(message.letter.topic)) is not None:
                messages.append(message.outgoing(topic))
        for name, share in shares.items():
            messages += share.forwarded_messages(deltas[name])
        began = wall.monotonic()
        ends = {name: {delta.input: delta.end for delta in own} for name, own in deltas.items()}
        self._recovery.delivery.deliver(messages, self._places(ends))
        for name, share in shares.items():
            share.delivered(inputs, ends[name])
        self._checkpoints = self._checkpoints.with_value(wall.monotonic() - began)
        for part in parts:
            self._deltas = self._deltas.with_value(sum(message.size for message in part))

    def _places(self, ends: Mapping[str, Mapping[Input, Position]]) -> dict[Input, Places]:
        """What to commit with deltas up to these ends: the positions of all streams in their partitions."""
        return {
            where: {
                name: self._recovery.committed(name, where, ends[name].get(where) or share.at(where))
                for name, share in self._tasks.items()
                if where in share.progress
            }
            for where in dict.fromkeys(where for own in ends.values() for where in own)
        }

    def _recover(self, inputs: set[Input]) -> None:
        """Resume newly assigned partitions where the group, or a predecessor that died, left them."""
        if not inputs:
            return
        self._tables.load()
        waiting = Retry("find the offsets to resume from", self._stopping)
        while True:
            try:
                ends = self._recovery.places(inputs)
                counts = {
                    name: open_counts(share.plan, ends[name], self._administration)
                    for name, share in self._tasks.items()
                }
                break
            except KafkaException as error:
                waiting.failed(error)
        waiting.done()
        for name, share in self._tasks.items():
            share.recover(ends[name], counts[name])
        self._paused &= self._inputs
        self._recall()
        self._read_on()

    def _recall(self) -> None:
        """Reread the buffered rows of both sides of joined streams, before any new row is processed."""
        behind = [own for share in self._tasks.values() for own in share.waits_behind()]
        if not behind:
            return
        if self._ahead is not None:
            self._ahead.close()
            self._ahead = None
        self._begin_reading(behind)
        assert self._reader is not None
        while any(own.recall_offset < own.next_offset for own in behind):
            if self._stopping():
                raise Stopped("stopped while reading again the rows that wait for partners")
            messages = self._reader.read(_BATCH_MESSAGES, 0.1)
            if messages is not None:
                self._decoding.recall(messages)
            positions = self._reader.positions()
            for own in behind:
                if positions.get(own.input, -1) >= own.next_offset:
                    own.recalled_to(own.next_offset)  # only transaction markers and gaps are left
            self._membership.keep_alive()

    def _read_on(self) -> None:
        """Read its partitions from their positions, except those that wait for their partners."""
        parts = [own for share in self._tasks.values() for own in share.progress.values()]
        if self._ahead is not None:
            self._ahead.close()
        self._begin_reading([own for own in parts if own.input not in self._paused])
        assert self._reader is not None
        self._ahead = ReadAhead(self._reader, _BATCH_MESSAGES, may_collect=self._plan.ends is None)

    def _begin_reading(self, parts: Iterable[PartitionState]) -> None:
        """Read these partitions, each from the earliest position that a stream needs."""
        starts: dict[tuple[str, int], int] = {}
        known: dict[tuple[str, int], LogPosition] = {}
        for own in parts:
            starts[own.input] = min(own.recall_offset, starts.get(own.input, own.recall_offset))
            at = LogPosition(own.next_offset, own.leader_epoch)
            known[own.input] = LogPosition(*map(max, at, known.get(own.input, at)))
        waiting = Retry("read on", self._stopping)
        while True:
            try:
                self._reader = self._reading()
                self._reader.assign(starts, known)
                break
            except NoAnswer as error:
                waiting.still(str(error))
                wall.sleep(_PAUSE_SECONDS)
        waiting.done()

    def _reading(self) -> Reader:
        return self._reader or Reader(
            {**self._plans.config, "group.id": self._plan.group_id},
            {},
            any(source.reads_headers for source in self._plans.sources),
            corrupt=self._plan.sources[0].corrupt,
        )

    def _revoked(self, inputs: list[Input]) -> None:
        """Deliver what it holds of these partitions, and continue with the others."""
        try:
            self._checkpoint(inputs)
        except (MembershipLost, Stopped) as error:
            log.warning("partitions were revoked before their last delta was delivered: %s", error)
        self._lost(inputs)

    def _lost(self, inputs: list[Input]) -> None:
        for share in self._tasks.values():
            share.intake.release(inputs)
        if self._inputs and self._ahead is not None and not self._stopping():
            self._read_on()  # without the revoked partitions

    def _close(self) -> None:
        for part in (self._ahead, self._reader, self._recovery.delivery, self._tables):
            if part is not None:
                part.close()
        self._membership.close()
