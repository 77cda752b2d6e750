"""Join two streams in a task: it gets the ranges of both partitions with one number and matches their rows.

A stream that is joined with itself has one such range, which serves as both.

Rows that wait for partners stay in this process from task to task. A process that has not seen them, or only
some of them, rereads the rows that may still pair, like a consumer's worker that takes over a partition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...operators.definition.stream import Stream
from ...operators.definition.tables import TableJoin
from ...operators.kafka.source import TopicPartition
from ...operators.sketching.account import Account
from ...operators.sketching.delta import Delta
from ...operators.sketching.partition_buffer import PartitionBuffer
from ...operators.sketching.partition_state import PartitionState
from ...operators.steps.join_state import JoinState
from ...operators.watermarks.position import Input, Position
from ...operators.windows.window import EARLIEST
from .offsets import Known, Partner
from .options import KafkaOptions
from .planning import BATCH_MESSAGES, Range, Task
from .workers import Letters, kept_join, reading, remarks_on, rows_from

Deltas = dict[TopicPartition, list[Delta]]


class JoinSides:
    """Both partitions with one number, up to where they were read, and the rows that wait for partners."""

    def __init__(self, stream: Stream, options: KafkaOptions, ranges: Sequence[Range]) -> None:
        """Start with only both positions, from which rows are read again."""
        pairing = JoinState(stream, ranges[0].place[1])
        self.clock_us = 0
        self.letters_from: dict[TopicPartition, int] = {}
        self.states: dict[TopicPartition, PartitionState] = {}
        for r in ranges:
            position, replay = r.known.position, r.known.position.replay
            if replay is not None and replay < position.offset:
                replay = rows_from(options, r.place, replay, position.offset)
            self.states[r.place] = PartitionState(
                stream,
                *r.place,
                position.offset,
                replace(position.time),
                lambda: self.clock_us / 1e6,
                replay,
                position.replay_time,
                pairing,
            )
        self._pairing = pairing

    def leads_to(self, ranges: Sequence[Range]) -> bool:
        """Whether this state can continue to the known positions of these ranges with all rows that may pair.

        State from before a query's last task, after which no row waits any more, doesn't count.
        """
        known = {r.place: r.known.position for r in ranges}
        held = [
            (state.next_offset, known[place].replay or 0, known[place].offset)
            for place, state in self.states.items()
        ]
        if any(here > offset for here, _, offset in held):
            return False
        of_use = [here > replay for here, replay, _ in held]
        return any(of_use) and all(
            used or replay >= offset for used, (_, replay, offset) in zip(of_use, held)
        )

    def begin(self, task: Task, ranges: Sequence[Range]) -> None:
        """Close windows up to a task's watermark; the task's clock now decides which times are broken."""
        self.clock_us = task.clock_us
        self.letters_from = {r.place: r.start for r in ranges}
        for state in self.states.values():
            state.time.closed_us = max(state.time.closed_us, task.watermark_us)
            state.heard = False

    def read_to(self, options: KafkaOptions, letters: Letters, upto: Mapping[TopicPartition, int]) -> Deltas:
        """Read both partitions to these offsets, always the one behind in event time; return deltas."""
        buffers, unread = {}, {}
        for place, state in self.states.items():
            keeps_late = options.late_topic is not None
            buffers[place] = PartitionBuffer(remarks_on(options, place[0]), keeps_late=keeps_late)
            buffers[place].add_partition(state, [])
            unread[place] = reading(options, place, state.recall_offset, upto[place], BATCH_MESSAGES)
        while unread:
            place = min(unread, key=self._event_time)
            messages = next(unread[place], None)
            if messages is None:
                del unread[place]
                continue
            buffers[place].sketch(
                self.states[place].stream.reading.of_topic(place[0]).reading.kafka_source, messages
            )
            letters.take(buffers[place], self.letters_from[place])
        for place, state in self.states.items():
            # Only transaction markers and gaps are left.
            buffers[place].skip_to(state.input, upto[place])
            letters.take(buffers[place], self.letters_from[place])
            if state.recall_offset < state.next_offset:
                state.recalled_to(state.next_offset)
        return {place: [state.delta()] for place, state in self.states.items()}

    def known(self, r: Range, partner: Range, account: Account, end: Position, last: bool) -> Known:
        """Return what is known at the end of a range, when its partner's range has ended as well."""
        heard = 0 if r.known.partner is None else r.known.partner.heard
        side = self._pairing.inputs.index(Input(*r.place))
        holds = not last and self._pairing.holds(side)
        beside = Partner(partner.end, holds, heard + self.states[r.place].heard)
        return Known(end, r.known.account + account, beside)

    def _event_time(self, place: TopicPartition) -> int:
        time = self._pairing.times[self._pairing.inputs.index(Input(*place))]
        return EARLIEST if time is None else time.seen_us


def join_ranges(
    options: KafkaOptions, stream: Stream, ranges: Sequence[Range], task: Task, letters: Letters
) -> list[tuple[Range, Known, list[Delta]]]:
    """Return the deltas of both ranges and what is known at their ends; `stream` is bound to its tables.

    A query's `last` task also emits rows without partners, so that none waits any more.
    """
    tables = (id(step.lookup) for step in stream.steps if isinstance(step, TableJoin))
    with kept_join(options, (task.query, ranges[0].place[1], *tables)) as kept:
        sides = kept.value
        if sides is None or not sides.leads_to(ranges):
            sides = JoinSides(stream, options, ranges)
        sides.begin(task, ranges)
        # First rows that this process missed, then rows that were counted but not reported, then new rows.
        sides.read_to(options, letters, {r.place: r.known.position.offset for r in ranges})
        again = sides.read_to(options, letters, {r.place: r.start for r in ranges})
        deltas = sides.read_to(options, letters, {r.place: r.end for r in ranges})
        if task.last:
            for place, state in sides.states.items():
                deltas[place].append(state.unpaired(last=True))
        result = []
        for r, partner in zip(ranges, ranges[::-1]):
            account = sum((delta.account for delta in again[r.place] + deltas[r.place]), Account())
            end = deltas[r.place][-1].end
            result.append((r, sides.known(r, partner, account, end, task.last), deltas[r.place]))
        kept.value = None if task.last else sides
    return result
