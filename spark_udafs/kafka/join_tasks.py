"""Two joined streams in a task: the ranges of both partitions of one number, whose rows meet in this process.

Rows that wait for partners stay here from task to task. A process that has not seen them, or only some, reads
those again that may still pair, as a consumer's worker does that goes on with another's partitions.
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
    """Both partitions of one number and the rows that wait between them, up to where they were read."""

    def __init__(self, stream: Stream, options: KafkaOptions, ranges: Sequence[Range]) -> None:
        """Nothing is known but the positions of both, from which rows are read again."""
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
        """Whether it can go on to where these ranges are known, and knows rows that still may pair.

        What it has from before a query's last task, after which none waits any more, doesn't count.
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
        """Windows up to a task's watermark are closed from now on; its clock says which times are broken."""
        self.clock_us = task.clock_us
        self.letters_from = {r.place: r.start for r in ranges}
        for state in self.states.values():
            state.time.closed_us = max(state.time.closed_us, task.watermark_us)
            state.heard = False

    def read_to(self, options: KafkaOptions, letters: Letters, upto: Mapping[TopicPartition, int]) -> Deltas:
        """Read both up to these offsets, always on where event time is behind; gives what came of it."""
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
            buffers[place].sketch(self.states[place].stream.of_topic(place[0]).kafka_source, messages)
            letters.take(buffers[place], self.letters_from[place])
        for place, state in self.states.items():
            # What is left are transactions' markers and gaps.
            buffers[place].skip_to(state.input, upto[place])
            letters.take(buffers[place], self.letters_from[place])
            if state.recall_offset < state.next_offset:
                state.recalled_to(state.next_offset)
        return {place: [state.delta()] for place, state in self.states.items()}

    def known(self, r: Range, partner: Range, account: Account, end: Position, last: bool) -> Known:
        """What is known at the end of a range, where its partner's ends too."""
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
    """What both ranges give, and what is known at their ends. `stream` is bound to the tables that it reads.

    In the `last` task of a query its rows without partners come too, and none waits any more.
    """
    one, two = ranges
    tables = (id(step.lookup) for step in stream.steps if isinstance(step, TableJoin))
    with kept_join(options, (task.query, one.place[1], *tables)) as kept:
        sides = kept.value
        if sides is None or not sides.leads_to(ranges):
            sides = JoinSides(stream, options, ranges)
        sides.begin(task, ranges)
        # What this process has missed, then what was counted before but has no account, then what is new.
        sides.read_to(options, letters, {r.place: r.known.position.offset for r in ranges})
        again = sides.read_to(options, letters, {r.place: r.start for r in ranges})
        deltas = sides.read_to(options, letters, {r.place: r.end for r in ranges})
        if task.last:
            for place, state in sides.states.items():
                deltas[place].append(state.unpaired(last=True))
        result = []
        for r, partner in ((one, two), (two, one)):
            account = sum((delta.account for delta in again[r.place] + deltas[r.place]), Account())
            end = deltas[r.place][-1].end
            result.append((r, sides.known(r, partner, account, end, task.last), deltas[r.place]))
        kept.value = None if task.last else sides
    return result
