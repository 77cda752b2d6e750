"""One stream's share of a worker: what it holds of the partitions that are read, and how far it is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from ...definition.stream import Stream
from ...joins.pairing import Pairings
from ...kafka.outgoing import Outgoing
from ...sketching.dead_letters import DeadLetter
from ...sketching.delta import Delta
from ...sketching.intake import Intake
from ...sketching.late_messages import LateMessage
from ...sketching.position import Input, Position
from ...sketching.progress import Progress
from ...sketching.remarks_by_source import RemarksBySource
from ...sketching.sent_rows import outgoing
from ..group.co_partitioning import check_partners, partners_of
from ..log.tail import Ends
from ..merge.limits import StateLimitError
from ..plan import Plan
from .counted import Beginnings
from .idleness import HighWatermarks, Idleness

_SENT_BYTES = 32 * 1024 * 1024
"""Rows that are sent on are sent before they take up more memory than this."""


class StreamShare:
    """What a worker does for one stream. `stream` is the plan's, its joins bound to tables that are read.

    `alive` and `stopping` are as in `Intake`, `ends` and `clock` as in `Idleness`.
    """

    def __init__(
        self,
        plan: Plan,
        stream: Stream,
        alive: Callable[[], None],
        stopping: Callable[[], bool],
        ends: HighWatermarks,
        clock: Callable[[], float],
    ) -> None:
        self.plan = plan
        self.stream = stream
        remarks = RemarksBySource(stream, plan.letters)
        late = plan.options.late is not None
        self.intake = Intake(remarks, plan.ends, alive, stopping, late)
        self.idleness = Idleness(plan, ends, clock)
        self._pairings = Pairings(stream)
        self._at: dict[Input, Position] = {}

    @property
    def progress(self) -> Mapping[Input, Progress]:
        """Its partitions, and what was read of each since its last delta."""
        return self.intake.progress

    @property
    def kept_bytes(self) -> int:
        """The memory of the ids that it has seen."""
        return sum(own.kept_bytes for own in list(self.progress.values()))

    @property
    def held_up(self) -> int:
        """The rows that wait for a silent partner of a join to say that they have none."""
        return self._pairings.held_up

    def keep_within(self) -> None:
        """Raise `StateLimitError` if windows by count need more than `state_bytes` of this worker's memory.

        Their rows are in the table topic, but it must know how many each group has.
        """
        limit = self.plan.options.state_bytes
        if limit is not None and (taken := sum(own.count_bytes for own in self.progress.values())) > limit:
            raise StateLimitError(
                f"how many rows each group has in its open window by count takes {taken:,} bytes of a "
                f"worker's memory, and state_bytes allows {limit:,}. Nothing is lost: a run with a higher "
                "state_bytes, or with more workers, goes on from here; fewer keys take less"
            )

    @property
    def holds_much(self) -> bool:
        """Whether sketches, or rows to be sent on, take so much memory that they are delivered early."""
        limit = self.plan.options.state_bytes
        most = None if limit is None else limit // 4
        if self.stream.sending is not None:
            most = min(_SENT_BYTES, most or _SENT_BYTES)
        return most is not None and sum(own.nbytes for own in self.progress.values()) > most

    @property
    def all_read(self) -> bool:
        """Whether a bounded run has read its partitions to the end."""
        return all(own.next >= (self.intake.end_of(where) or 0) for where, own in self.progress.items())

    def ahead(self, paused: Collection[Input]) -> set[Input]:
        """Those of two joined streams' partitions that wait for the others (`joins.pairing.Pairings`)."""
        if self.stream.joined is None:
            return set()
        silent = {where: own.rest is not None for where, own in self.progress.items()}
        return self._pairings.ahead(silent, paused)

    def partners(self, where: Input) -> set[Input]:
        """The partition whose rows meet those of this one, in joined streams."""
        return partners_of(self.stream, where)

    def waits_behind(self) -> list[Progress]:
        """Partitions of joined streams whose rows that wait for partners are to be read again."""
        if self.stream.joined is None:
            return []
        return [own for own in self.progress.values() if own.reads_from < own.next]

    def take_up(self, ends: Mapping[Input, Ends], counts: Mapping[Input, Beginnings] = {}) -> None:
        """Go on with partitions where they were left. Raises `TopicError` for those without partners.

        Of windows by count, `counts` is what `open_counts` found of the partitions.
        """
        check_partners(self.stream, ends, self.progress)
        self._pairings.keep(self.progress)
        for where, end in ends.items():
            start, time = end.position.offset, replace(end.position.time)
            again = end.position.replay, end.position.replay_time
            progress = Progress(
                self.stream,
                *where,
                start,
                time,
                replay=again[0],
                replay_time=again[1],
                pairing=self._pairings.of(where),
                counts=counts.get(where, ()),
            )
            self.intake.begin(progress, end.cuts)
            self.idleness.take_up(where)
            self._at[where] = end.position

    def pass_gaps(self, positions: Mapping[tuple[str, int], int]) -> None:
        """Move bounded partitions to their ends if only transactions' markers are left before them."""
        for place, position in positions.items():
            end = self.intake.end_of(where := Input(*place))
            progress = self.progress.get(where)
            if end is not None and progress is not None and progress.next < end <= position:
                self.intake.pass_to(where, end)

    def look_for_silence(self, positions: Mapping[Input, int], anew: bool) -> None:
        """Note how long its partitions have been silent (`Idleness.look`), and warn of joins that wait."""
        self.idleness.look(self.intake, positions, anew)
        self._pairings.look([where for where, own in self.progress.items() if own.rest])

    def deltas(
        self, inputs: Collection[Input] | None, ids: Mapping[str, str], epochs: Mapping[Input, int]
    ) -> list[Delta]:
        """Everything sketched since the last checkpoint, of some partitions or of all.

        `ids` are the input topics', `epochs` the claims under which partitions are read.
        """
        ready = [delta for delta in self.intake.ready if inputs is None or delta.input in inputs]
        fresh = [own for w, own in self.progress.items() if own.pending and (inputs is None or w in inputs)]
        found = [
            replace(delta, source=ids.get(delta.topic, ""), epoch=epochs.get(delta.input, 0))
            for delta in (*ready, *(own.delta() for own in fresh))
        ]
        found[:-1] = [replace(delta, more=True) for delta in found[:-1]]
        return found

    def sent_on(self, deltas: Iterable[Delta]) -> list[Outgoing]:
        """The messages that go on beside its deltas, if it sends its rows on."""
        if (sending := self.stream.sending) is None:
            return []
        partitions = self.plan.sent_partitions
        return [row for d in deltas for row in outgoing(d.sent, d.input, sending.topic, partitions)]

    def dead(self, inputs: Collection[Input] | None) -> list[DeadLetter]:
        """What it refused since the last checkpoint."""
        return [letter for letter in self.intake.dead if inputs is None or letter.input in inputs]

    def late(self, inputs: Collection[Input] | None) -> list[LateMessage]:
        """What came too late since the last checkpoint, if that is kept."""
        return [one for one in self.intake.late if inputs is None or one.letter.input in inputs]

    def at(self, where: Input) -> Position:
        """How far it was in a partition at the last checkpoint."""
        return self._at[where]

    def delivered(self, inputs: Collection[Input] | None, ends: Mapping[Input, Position]) -> None:
        """Note that deltas up to these ends, and what was refused of the same partitions, are delivered."""
        self._at |= ends
        self.intake.clear(inputs)
