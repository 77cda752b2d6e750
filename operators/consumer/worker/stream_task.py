"""A worker's task for one stream: its state for the assigned partitions, and their positions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from ...definition.stream import Stream
from ...kafka.outgoing_message import Outgoing
from ...sketching.account import Account
from ...sketching.dead_letters import DeadLetter
from ...sketching.delta import Delta
from ...sketching.forwarded_rows import outgoing
from ...sketching.late_messages import LateMessage
from ...sketching.partition_buffer import PartitionBuffer
from ...sketching.partition_state import PartitionState
from ...sketching.remarks_by_source import RemarksBySource
from ...steps.join_state import JoinStates
from ...watermarks.position import Input, Position
from ..group.co_partitioning import check_partners, partners_of
from ..log.log_scan import Ends
from ..merge.limits import StateLimitError
from ..run_plan import Plan
from .count_window_recovery import Beginnings
from .idle_detector import HighWatermarks, IdleDetector

_SENT_BYTES = 32 * 1024 * 1024
"""Forwarded rows are sent before they take up more memory than this."""


class StreamTask:
    """What a worker does for one stream. `stream` is the plan's, with its joins bound to loaded tables.

    `alive` and `stopping` are as in `PartitionBuffer`, `ends` and `clock` as in `IdleDetector`, and `logged`
    as in `Remarks`.
    """

    def __init__(
        self,
        plan: Plan,
        stream: Stream,
        alive: Callable[[], None],
        stopping: Callable[[], bool],
        ends: HighWatermarks,
        clock: Callable[[], float],
        logged: set[tuple[str, str]],
    ) -> None:
        self.plan = plan
        self.stream = stream
        remarks = RemarksBySource(stream, plan.letters, logged)
        late = plan.options.late is not None
        self.intake = PartitionBuffer(remarks, plan.ends, alive, stopping, late)
        self.idleness = IdleDetector(plan, ends, clock)
        self._pairings = JoinStates(stream)
        self._at: dict[Input, Position] = {}
        self._unpaired_of: dict[Input, tuple[int, ...]] = {}

    @property
    def progress(self) -> Mapping[Input, PartitionState]:
        """Its partitions, and what was read from each since its last delta."""
        return self.intake.progress

    @property
    def id_bytes(self) -> int:
        """The memory of remembered ids."""
        return sum(own.kept_bytes for own in list(self.progress.values()))

    @property
    def held_up(self) -> int:
        """The number of rows that wait for a silent partition of a join to show that they have no match."""
        return self._pairings.held_up

    def keep_within(self) -> None:
        """Raise `StateLimitError` if count windows need more than `state_bytes` of this worker's memory.

        Their rows are in the table topic, but the worker must know how many each group has.
        """
        limit = self.plan.options.state_bytes
        if (
            limit is not None
            and (used_bytes := sum(own.count_bytes for own in self.progress.values())) > limit
        ):
            raise StateLimitError(
                f"the row counts of the groups in open count windows take {used_bytes:,} bytes of a "
                f"worker's memory, and state_bytes allows {limit:,}. Nothing is lost: a run with a higher "
                "state_bytes, or with more workers, resumes from here; fewer keys take less"
            )

    @property
    def is_full(self) -> bool:
        """Whether sketches, or forwarded rows, take so much memory that they are delivered early."""
        limit = self.plan.options.state_bytes
        most = None if limit is None else limit // 4
        if self.stream.sending is not None:
            most = min(_SENT_BYTES, most or _SENT_BYTES)
        return most is not None and sum(own.nbytes for own in self.progress.values()) > most

    @property
    def all_read(self) -> bool:
        """Whether a bounded run has read its partitions to the end."""
        return all(
            own.next_offset >= (self.intake.end_of(where) or 0) for where, own in self.progress.items()
        )

    def ahead(self, paused: Collection[Input]) -> set[Input]:
        """The partitions of two joined streams that wait for their partners (`steps.join_state`)."""
        if self.stream.reading.joined is None:
            return set()
        silent = {where: own.rest is not None for where, own in self.progress.items()}
        return self._pairings.ahead(silent, paused)

    def partners(self, where: Input) -> set[Input]:
        """The partition that this one's rows are matched with, in joined streams."""
        return partners_of(self.stream, where)

    def waits_behind(self) -> list[PartitionState]:
        """Partitions of joined streams with buffered rows that must be reread."""
        if self.stream.reading.joined is None:
            return []
        return [own for own in self.progress.values() if own.recall_offset < own.next_offset]

    def recover(self, ends: Mapping[Input, Ends], counts: Mapping[Input, Beginnings] = {}) -> None:
        """Resume partitions at their positions. Raises `TopicError` for partitions without partners.

        `counts` is what `open_counts` returned for them, if the stream has count windows.
        """
        check_partners(self.stream, ends, self.progress)
        self._unpaired_of.clear()
        self._pairings.retain(self.progress)
        for where, end in ends.items():
            start, time = end.position.offset, replace(end.position.time)
            again = end.position.replay, end.position.replay_time
            progress = PartitionState(
                self.stream,
                *where,
                start,
                time,
                replay=again[0],
                replay_time=again[1],
                pairing=self._pairings.of(where),
                counts=counts.get(where, ()),
            )
            progress.leader_epoch = end.position.leader_epoch
            self.intake.add_partition(progress, end.cuts)
            if end.skip_to is not None:
                self.intake.leave_out(where, end.skip_to)
            self.idleness.track(where)
            self._at[where] = end.position

    def note_epochs(self, epochs: Mapping[tuple[str, int], int]) -> None:
        """Record the leader epochs of logs that were read, before their messages are sketched."""
        for where, own in self.progress.items():
            own.leader_epoch = epochs.get(where, own.leader_epoch)

    def pass_gaps(self, positions: Mapping[tuple[str, int], int]) -> None:
        """Move bounded partitions to their ends if only transactions' markers are left before them."""
        for place, position in positions.items():
            end = self.intake.end_of(where := Input(*place))
            progress = self.progress.get(where)
            if end is not None and progress is not None and progress.next_offset < end <= position:
                self.intake.skip_to(where, end)

    def update_idleness(self, positions: Mapping[Input, int], renew: bool) -> None:
        """Update how long its partitions have been silent (`IdleDetector`), and warn of waiting joins."""
        self.idleness.update(self.intake, positions, renew)
        self._pairings.warn_idle([where for where, own in self.progress.items() if own.rest])

    def deltas(
        self, inputs: Collection[Input] | None, ids: Mapping[str, str], epochs: Mapping[Input, int]
    ) -> list[Delta]:
        """Everything sketched since the last checkpoint, of some partitions or of all.

        `ids` are the input topics', `epochs` the claims under which partitions are read.
        """
        ready = [delta for delta in self.intake.ready if inputs is None or delta.input in inputs]
        fresh = [own for w, own in self.progress.items() if own.pending and (inputs is None or w in inputs)]
        made = [*ready, *(own.delta() for own in fresh)]
        made += self._unpaired(inputs)
        deltas = [
            replace(delta, source=ids.get(delta.topic, ""), epoch=epochs.get(delta.input, 0))
            for delta in made
        ]
        deltas[:-1] = [replace(delta, more=True) for delta in deltas[:-1]]
        return deltas

    def gone_back(self, where: Input, end: Position, ids: Mapping[str, str]) -> Delta | None:
        """A delta that takes a partition back to where its log was truncated; None if it was not beyond."""
        at = self._at.get(where)
        if at is None or at.offset <= end.offset:
            return None
        return Delta(
            fingerprint=self.stream.fingerprint(),
            topic=where.topic,
            partition=where.partition,
            first_offset=at.offset,
            next_offset=end.offset,
            table=None,
            time=at.time,
            account=Account(truncated=at.offset - end.offset),
            source=ids.get(where.topic, ""),
            replay=None if at.replay is None else min(at.replay, end.offset),
            replay_time=at.replay_time,
            leader_epoch=end.leader_epoch,
        )

    def _unpaired(self, inputs: Collection[Input] | None) -> list[Delta]:
        """The unmatched rows of a bounded run that has read both sides to their ends.

        Forwarded rows can't be recalled: a run that another one may continue sends none of these.
        """
        joined, sends = self.stream.reading.joined, self.stream.sending is not None
        lasting = self.plan.options.group_id is not None
        if self.plan.ends is None or joined is None or joined.how == "inner" or (sends and lasting):
            return []
        deltas = []
        for where, own in self.progress.items():
            pair = {where: own, **{w: self.progress[w] for w in self.partners(where)}}
            at = tuple(one.next_offset for one in pair.values())
            read = all(one.next_offset >= (self.intake.end_of(w) or 0) for w, one in pair.items())
            mine = inputs is None or pair.keys() <= set(inputs)
            if read and mine and self._unpaired_of.get(where) != at:
                self._unpaired_of[where] = at
                deltas.append(own.unpaired(last=sends))
        return deltas

    def forwarded_messages(self, deltas: Iterable[Delta]) -> list[Outgoing]:
        """The messages to send with its deltas, if the stream forwards its rows."""
        if (sending := self.stream.sending) is None:
            return []
        partitions = self.plan.sent_partitions
        return [row for d in deltas for row in outgoing(d.sent, d.input, sending.topic, partitions)]

    def dead_letters(self, inputs: Collection[Input] | None) -> list[DeadLetter]:
        """Messages refused since the last checkpoint."""
        return [letter for letter in self.intake.dead_letters if inputs is None or letter.input in inputs]

    def late_messages(self, inputs: Collection[Input] | None) -> list[LateMessage]:
        """Late messages since the last checkpoint, if they are collected."""
        return [one for one in self.intake.late if inputs is None or one.letter.input in inputs]

    def knows(self, where: Input) -> bool:
        """Whether it has ever had a partition."""
        return where in self._at

    def at(self, where: Input) -> Position:
        """Its position in a partition at the last checkpoint."""
        return self._at[where]

    def delivered(self, inputs: Collection[Input] | None, ends: Mapping[Input, Position]) -> None:
        """Record that deltas up to these ends, and refused messages of these partitions, are delivered."""
        self._at |= ends
        self.intake.clear(inputs)
