"""The merging worker: follows the table topic, closes windows, and stores its position.

It is a member of a separate consumer group, so that several mergers can share a table topic's partitions.
After a restart it resumes at the first delta of its oldest window that was not emitted or may be emitted
again (`checkpoint_store`), so every such window is complete again.
"""

from __future__ import annotations

import logging
import math
import threading
import time as wall
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaPartition

from ...kafka.chunked_records import ChunkAssembler
from ...kafka.client_config import LIBRARY_LOG, member_config
from ...kafka.faults import passing, refused
from ...kafka.log_faults import DeltaError
from ...kafka.retry import Retry, Stopped
from ...table.window_groups import WindowGroups
from ...watermarks.position import Input
from ..group.rebalance import Rebalance, as_exception
from ..log.merger_state import LogState
from ..log.messages import check_split
from ..log.snapshots import Snapshot, is_snapshot
from ..run_plan import Plan
from .bounded_end import BoundedEnd
from .checkpoint_store import CheckpointStore
from .closed_windows import ClosedWindows
from .limits import keep_within
from .log_folding import merge_message
from .log_observer import LogObserver, OtherMergers
from .merger import Merger
from .outbox import Outbox

T = TypeVar("T")
log = logging.getLogger("streamgauge.kafka")

_COMMIT_SECONDS = 5.0
_LAST_SECONDS = 3.0
_PAUSE_SECONDS = 0.2
_GROUP = {
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
    # Handling a window may take long; heartbeats show that the process is alive.
    "max.poll.interval.ms": 86_400_000,
}


class MergeWorker:
    """Folds a run's deltas into windows and emits each as it closes.

    The run's `on_window` gets the table of sketches of a closed window, in the thread of `run`: once per run,
    or again, complete, if rows followed for a window that only silence had closed. A window counts as emitted
    once that call returns. If it raises, the window is emitted again; after a crash so are all windows
    emitted since the last commit. With several table partitions, each emits the windows of its own groups.
    Emitted tables go to `closed`. Once `seconds_left` shows that a stop leaves no time for another window, it
    stores its position and ends; the next run emits the rest.
    """

    def __init__(
        self,
        plan: Plan,
        closed: ClosedWindows,
        stopping: Callable[[], bool],
        draining: Callable[[], bool] = lambda: False,
        seconds_left: Callable[[], float] = lambda: math.inf,
    ) -> None:
        self._plan = plan
        self._draining = draining
        self._seconds_left = seconds_left
        self._outbox = Outbox(plan, seconds_left)
        self._closed = closed
        self._stopping = stopping
        self._due = self._next_look = 0.0
        self._leaving = self._abandoned = False
        self._last_known: list[LogState] = []
        self._inputs = set(plan.inputs)
        self._gone: set[str] = set()
        self._others = OtherMergers(plan)
        self._watch: LogObserver | None = None
        self._gathers: dict[int, ChunkAssembler] = {}
        self._starts: dict[int, int] = {}
        self.mergers: dict[int, Merger] = {}
        self.progressed = wall.monotonic()
        self.emitted_windows = 0
        """How many windows were emitted, repeated ones included."""
        self._read_through: set[int] = set()
        self._ended: dict[int, int] = {}
        self._log_ends: dict[int, int] = {}
        self._reached: set[tuple[int, Input]] = set()
        # Held while deltas are folded in, not while a window is emitted, so that its holder sees each
        # window once.
        self.lock = threading.RLock()
        self._checkpoints, self._end = CheckpointStore(plan, self._outbox), BoundedEnd(plan)
        self._rebalance = Rebalance(plan.config)
        settings = {**member_config(plan.config, plan.merger_group, "merger"), **_GROUP}
        self._consumer = Consumer(settings, logger=LIBRARY_LOG)
        self._consumer.subscribe(
            [plan.table_topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
        )

    def run(self) -> None:
        """Follow the log until stopped, or, in a bounded run, until all is merged and every window closed.

        After a stop request it still merges what is in the log, if that takes only seconds, or if the run is
        draining.
        """
        try:
            last = None
            while not self.finished:
                messages = self._read() if not self._outbox.full else self._wait()
                with self.lock:
                    for message in messages:
                        self._merge(message)
                    for merger in self.mergers.values():
                        merger.leave_out(self._gone)
                self._emit_due()
                with self.lock:
                    keep_within(self._plan.options, self.mergers.values())
                self._observe()
                if wall.monotonic() >= self._due:
                    self._save_checkpoint()
                if self._stopping():
                    last = last or wall.monotonic() + _LAST_SECONDS
                    late = wall.monotonic() > last and not self._draining()
                    if late or self._overdue or (not messages and self._at_end()):
                        break
            if self.finished:
                self._emit()
                self._emit_open()
            self._warn_postponed()
            last = wall.monotonic() + _LAST_SECONDS
            self._save_checkpoint()
            # In a bounded run, messages that wait to be sent are part of the result.
            while self._checkpoints.behind and self._in_time(last):
                self._consumer.poll(_PAUSE_SECONDS)
                self._save_checkpoint()
            self._outbox.check_empty()
        except Stopped as error:
            log.warning("stopped before the merger's position was stored: %s", error)
        finally:
            self._last_known = self.states()
            self._leaving = True
            if not self._abandoned:
                as_exception(self._consumer.close)
            self._checkpoints.close()
            self._stop_observing()

    def warn_if_slow(self) -> None:
        """Warn if a sink or a callback blocks it; called from another thread."""
        self._outbox.warn_if_slow()

    @property
    def occupied_by(self) -> str:
        """The window that a callback or sink is handling now, in words; empty if there is none."""
        return self._outbox.occupied_by

    def abandon(self) -> None:
        """Leave the group while a callback does not return, so that others take over.

        Called from another thread. Does nothing if `run` is anywhere else, because it uses the same consumer.
        """
        self._abandoned = True  # when the callback returns, `run` ends without using the consumer
        if not self._outbox.occupied_by:
            self._abandoned = False
            return
        as_exception(self._consumer.close)

    def states(self) -> list[LogState]:
        """The state of the whole run according to each partition of the log; equal once all are read.

        While another process merges all partitions, this is the state according to the first of them; while a
        merger rereads the log, it is the state known before.
        """
        states = [merger.state for merger in self._known]
        return max(
            self._last_known,
            states,
            key=lambda candidate: max((s.account.read for s in candidate), default=-1),
        )

    @property
    def caught_up(self) -> bool:
        """Whether it has merged everything that was in the log when it began."""
        watch = self._watch
        if self.mergers:
            return self.mergers.keys() <= self._read_through
        return watch is not None and watch.caught_up

    def window_counts(self) -> tuple[int, int]:
        """The number of open windows, and of groups in them."""
        with self.lock:
            sizes = [merger.window_counts() for merger in self.mergers.values()]
        return sum(windows for windows, _ in sizes), sum(groups for _, groups in sizes)

    def state_bytes(self) -> int:
        """Bytes of memory that the open windows take."""
        with self.lock:
            return sum(merger.state_bytes for merger in self.mergers.values())

    @property
    def replayed(self) -> int:
        """The number of messages in the table topic that a merger taking over from here must reread."""
        with self.lock:
            return sum(self._checkpoints.behind_by(p, merger.position) for p, merger in self.mergers.items())

    def open_tables(self) -> list[tuple[int, pa.Table]]:
        """The current content of open windows, each with its partition of the table topic."""
        with self.lock:
            return [(p, table) for p, merger in self.mergers.items() for table in merger.close_all()]

    def inputs_are(self, inputs: Iterable[Input]) -> None:
        """Set the input partitions; no window closes before a delta of each has arrived."""
        with self.lock:
            self._inputs = set(inputs)
            for merger in self.mergers.values():
                merger.inputs |= self._inputs

    def left_out(self, topics: Iterable[str]) -> None:
        """Set the deleted input topics; no window waits for them."""
        with self.lock:
            self._gone = set(topics)

    @property
    def finished(self) -> bool:
        """Whether a bounded run has merged everything that it reads."""
        return self._end.reached(self._known)

    @property
    def _known(self) -> list[Merger]:
        """Its mergers or, while others have all partitions of the log, the observer's."""
        return list(self.mergers.values()) or ([] if self._watch is None else [self._watch.merger])

    @property
    def _overdue(self) -> bool:
        """Whether a stop leaves only the time to save the checkpoint and leave the group."""
        return self._seconds_left() <= 0

    def _in_time(self, last: float) -> bool:
        """Whether there is time for another attempt to save the checkpoint."""
        return not self._overdue and (self._patient or wall.monotonic() < last)

    @property
    def _patient(self) -> bool:
        """Whether it waits without limit until the checkpoint is saved."""
        return self._draining() or (self._outbox.sends and not self._stopping())

    def _read(self) -> list[Message]:
        """New messages of the log as soon as there are any; `consume` alone would wait for a full batch."""
        first = as_exception(lambda: self._consumer.poll(0.1))
        if first is None:
            return []
        merger = self.mergers.get(first.partition() or 0)
        rest = as_exception(lambda: self._consumer.consume(500, 0.0))
        if self.mergers.get(first.partition() or 0) is not merger:
            return rest  # a rebalance intervened; the partition's new owner rereads the first message
        return [first, *rest]

    def _wait(self) -> list[Message]:
        """Stay in the group without reading, while too much waits to be sent."""
        self._consumer.pause(held := self._consumer.assignment())
        error = as_exception(lambda: self._consumer.poll(_PAUSE_SECONDS))
        self._consumer.resume([place for place in self._consumer.assignment() if place in held])
        self._due = 0.0
        return [] if error is None else [error]

    def _at_end(self) -> bool:
        """Whether it has read the whole log."""
        try:
            for place in self._consumer.position(self._consumer.assignment()):
                end = self._consumer.get_watermark_offsets(place, timeout=1.0)
                offset = place.offset if place.offset >= 0 else self._starts[place.partition]
                # A transaction marker may follow the last message, and several if transactions overlap.
                known = max(offset + (not self._draining()), self._ended.get(place.partition, -1))
                if end is None or known < end[1]:
                    return False
        except KafkaException:
            return False
        return True

    def _merge(self, message: Message) -> None:
        error = message.error()
        partition, offset = message.partition(), message.offset()
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF and partition is not None:
                self._read_through.add(partition)
                self._ended[partition] = offset or 0
                self._check_end(partition, offset or 0)
                return
            if error.code() == KafkaError._AUTO_OFFSET_RESET and partition is not None:
                if "truncation" in error.str():
                    lost = f"messages before offset {offset}, up to which it was merged, no longer exist"
                    raise self._checkpoints.truncated(partition, lost)
                passed = partial(self._checkpoints.is_passed, self._consumer, partition, offset or 0)
                if not self._answered(passed):
                    raise self._checkpoints.gone(partition, None, f"offset {offset} was to be read next")
                # It has trimmed the log; this process is told at its next heartbeat.
                log.info("another process of the group merges partition %d of its log by now", partition)
                self._forget([partition])
                return
            if error.fatal() or not passing(error):
                raise self._refused(error, "let it follow")
            return
        assert partition is not None and offset is not None
        if partition not in self.mergers:
            return
        self._check_end(partition, offset)
        merger, gather = self.mergers[partition], self._gathers[partition]
        try:
            self._check_split(message.headers())
            folded = merge_message(merger, gather, offset, message.value(), message.headers())
        except DeltaError as refused:
            raise DeltaError(f"{self._plan.table_topic}[{partition}] at offset {offset}: {refused}") from None
        if folded is None:
            return
        delta, accepted = folded
        if accepted and delta.account.read:
            self.progressed = wall.monotonic()
        # Remembered first, because the delta may itself go back to where the input was truncated.
        if accepted and delta.first_offset >= self._plan.counted.get(delta.input, math.inf):
            self._reached.add((partition, delta.input))
        if not accepted:
            about = {"topic": delta.topic, "partition": delta.partition, "offset": delta.first_offset}
            log.info(
                "dropped %s at offset %d: its range was already merged", delta.range_text, offset, extra=about
            )

    def _check_end(self, partition: int, offset: int) -> None:
        """Check for missing messages once everything up to an offset that existed at the start is merged.

        Raises `DeltaError` if the partition ends before what the group had counted when the run began.
        """
        if partition in self.mergers and offset >= self._log_ends.get(partition, math.inf):
            del self._log_ends[partition]
            reached = {where for p, where in self._reached if p == partition}
            self._checkpoints.check_reaches(partition, self.mergers[partition].state.marks, reached)

    def _check_split(self, headers: Any) -> None:
        """Raise `DeltaError` for a delta of a run that spreads groups by other keys."""
        if self._plan.table_partitions == 1:
            return
        known = dict(headers or ())
        if "fingerprint" in known and not is_snapshot(known):
            split_by = known.get("split") or b""
            check_split(self._plan.split, split_by.decode(errors="replace"), "a run of the group")

    def _emit_due(self) -> None:
        """Emit what is due, and at checkpoints pass open windows to the callback if requested."""
        options = self._plan.options
        due = wall.monotonic() >= self._next_look
        if options.emit != "checkpoint" or due or self._stopping():
            self._emit()
        if options.emit == "close" or not due:
            return
        self._next_look = wall.monotonic() + options.checkpoint_seconds
        for merger in self.mergers.values():
            with self.lock:
                tables = merger.updates()
            for table in tables:
                if not self._outbox.out_of_time:
                    self._outbox.emit_provisional(table)

    def _emit(self) -> None:
        """Emit the windows that the watermark has passed; a window counts only if its call returned."""
        for partition, merger in self.mergers.items():
            while not (self._outbox.full or self._outbox.out_of_time):
                with self.lock:
                    groups = merger.due()
                if groups is None:
                    self._outbox.advance(partition, merger.progress(wall.time()))
                    break
                self._outbox.emit(
                    partition, groups, merger.final, partial(self._mark_emitted, partition, len(groups))
                )

    def _warn_postponed(self) -> None:
        """Warn if closed windows were not emitted because a stop left no time for them."""
        if not self._outbox.out_of_time:
            return
        due = [groups for merger in self.mergers.values() if (groups := merger.due()) is not None]
        if count := sum(len(groups.windows()) for groups in due):
            log.warning(
                "stopped before %d closed window%s could be handed over: %s",
                *(count, "s" * (count > 1)),
                "start the run again"
                if self._plan.options.group_id is None
                else "the next run of the group hands them over",
            )

    def _mark_emitted(self, partition: int, due: int, groups: WindowGroups) -> None:
        """Record that windows were emitted: all that are due, or only the first of them."""
        if self._abandoned:
            raise Stopped("a callback returned after its run had ended; its window will be delivered again")
        merger = self.mergers[partition]
        with self.lock:
            self._closed.add(partition, groups)
            merger.mark_emitted(None if len(groups) == due else int(groups.ends[-1]))
        self.emitted_windows += len(groups.windows())
        self._due = 0.0

    def _emit_open(self) -> None:
        """Emit the windows that a bounded run leaves open; a later run continues with them."""
        self._last_known = [merger.state_at_end for merger in self._known]
        for partition, merger in self.mergers.items():
            if not (tables := merger.end()):
                continue
            # With a long delay there are thousands of windows, and rules are evaluated over all of them at
            # once.
            groups = WindowGroups.of_table(pa.concat_tables(tables))
            # No later run continues with the windows of a run without a group.
            self._outbox.emit(partition, groups, final=self._plan.options.group_id is None)
            self._closed.add(partition, groups)
            self.emitted_windows += len(groups.windows())

    def _observe(self) -> None:
        """Follow the log as an observer while other processes have all of its partitions."""
        if self.mergers:
            self._stop_observing()
            return
        if self._watch is None and not self._others.have_all(self._consumer.memberid()):
            return
        try:
            if self._watch is None:
                place = self._checkpoints.find(self._consumer, [0])[0]
                self._watch = LogObserver(self._plan, place)
                log.info(
                    "another process of the group %s is its merger, and emits the windows",
                    self._plan.log_group,
                )
            elif not self._watch.follow():
                self._stop_observing()
        except KafkaException as error:
            if not passing(error.args[0]):
                raise self._refused(error.args[0], "read along") from None
            log.debug("reading along: %s", error)

    def _stop_observing(self) -> None:
        if self._watch is not None:
            self._last_known = self.states()
            self._watch.close()
            self._watch = None

    def _save_checkpoint(self) -> None:
        self._due = wall.monotonic() + _COMMIT_SECONDS
        try:
            self._checkpoints.save(self._consumer, self.mergers)
        except KafkaException as error:
            raise self._refused(error.args[0], "store the merger's position in", "WRITE") from None

    def _assigned(self, consumer: Consumer, partitions: list[KafkaPartition]) -> None:
        if self._leaving:
            return  # a closing consumer is still assigned partitions that another member leaves
        numbers = [place.partition for place in partitions]
        places = self._places(consumer, numbers) if numbers else {}
        for partition, place in places.items():
            options = self._plan.options
            # Callbacks that see provisional windows must also get the final one.
            confirms = options.emit != "close"
            merger = Merger(self._plan.stream, self._inputs, options.delivery, confirms=confirms)
            if place is not None:
                merger.restore(place.next_offset, place.state)
            self._outbox.restore(partition, {} if place is None else place.memory)
            self._gathers[partition] = ChunkAssembler()
            self.mergers[partition] = merger
        self._starts |= (
            starts := {p: 0 if place is None else place.next_offset for p, place in places.items()}
        )
        topic = self._plan.table_topic
        self._rebalance.assign(consumer, [KafkaPartition(topic, p, start) for p, start in starts.items()])
        self._due = 0.0  # a merger's first snapshot records which stream the log belongs to

    def _places(self, consumer: Consumer, partitions: list[int]) -> dict[int, Snapshot | None]:
        def find() -> dict[int, Snapshot | None]:
            self._checkpoints.end_open_transactions(partitions)
            places = self._checkpoints.find(consumer, partitions)
            deliveries = {one.delivery for one in places.values() if one is not None}
            if "at_most_once" not in {*deliveries, self._plan.options.delivery}:
                self._log_ends |= self._checkpoints.log_ends(partitions)
            return places

        return self._answered(find)

    def _answered(self, ask: Callable[[], T]) -> T:
        """The answer to a question about mergers' positions, asked until brokers give one."""
        waiting = Retry("find the merger's position", self._stopping)
        while True:
            try:
                return ask()
            except KafkaException as error:
                waiting.failed(self._refused(error.args[0], "read the merger's position in"))

    def _revoked(self, consumer: Consumer, partitions: list[KafkaPartition]) -> None:
        try:
            self._save_checkpoint()
        except KafkaException as error:
            log.warning("the last windows will be delivered again: %s", error)
        self._lost(consumer, partitions)

    def _lost(self, consumer: Consumer, partitions: list[KafkaPartition]) -> None:
        self._forget([place.partition for place in partitions])
        self._rebalance.unassign(consumer, partitions)

    def _forget(self, partitions: Sequence[int]) -> None:
        """Drop the mergers of partitions that another member has or will have."""
        self._last_known = self.states()  # remember the state until there is a merger again
        for partition in partitions:
            self.mergers.pop(partition, None)
            self._read_through.discard(partition)
        self._checkpoints.forget(partitions)
        self._outbox.forget(partitions)

    def _refused(self, error: KafkaError, doing: str, right: str = "READ") -> KafkaException:
        topic, group = self._plan.table_topic, self._plan.merger_group
        return refused(error, f"{doing} the table topic {topic!r}", topic=topic, group=group, right=right)
