"""Forward rows from Spark's tasks to a topic, each once, even if Spark repeats a task.

A task sends its rows and commits its progress in the same transaction. Spark may run a task twice, or repeat
a micro-batch after a crash: the next attempt resumes where the last transaction ended. All attempts at one
partition share a transactional id, so an attempt that was presumed dead can no longer commit anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as Partition

from ...operators.consumer.worker.delivery import ExactlyOnce
from ...operators.kafka.faults import refused
from ...operators.sketching.delta import Delta
from ...operators.sketching.forwarded_rows import outgoing
from ...operators.watermarks.position import Input
from ...sketches.core.errors import RunError
from .cluster import Report, read_report, report, reporting_consumer
from .offsets import Known, share
from .options import KafkaOptions
from .planning import Range, Task, group_of

RangeRead = tuple[Range, Known, Sequence[Delta]]
"""A range, what is known at its end, and its deltas."""

_PIECE = 100_000
"""The number of messages whose rows go into one transaction, which must not last minutes."""
_ANSWER_SECONDS = 10.0


def send_ranges(
    options: KafkaOptions,
    task: Task,
    ranges: Sequence[Range],
    read: Callable[[Sequence[Range]], Sequence[RangeRead]],
) -> Iterator[RangeRead]:
    """Send the rows of ranges that are read together, piece by piece, without what was sent before.

    Raises `RunError` if another attempt at the same task has overtaken this one.
    """
    assert options.stream is not None and options.stream.sending is not None
    topic, group = options.stream.sending.topic, group_of(options, task.query)
    positions = _Positions(options.config, group, task.query)
    attempts = "-".join(map(str, (group, *ranges[0].place)))
    delivery = ExactlyOnce(options.config, positions, lambda: False, attempts)
    try:
        delivery.ready()
        ranges = positions.resumed(ranges)
        gave: dict[Input, list[Delta]] = {Input(*r.place): [] for r in ranges}
        while any(r.waiting for r in ranges):
            ends = share({r.place: r.start for r in ranges}, {r.place: r.end for r in ranges}, _PIECE)
            done = read([replace(r, end=ends[r.place]) for r in ranges])
            deltas = [delta for _, _, of_range in done for delta in of_range]
            rows = [row for d in deltas for row in outgoing(d.sent, d.input, topic, task.sent_partitions)]
            places: dict[Input, Any] = {Input(*r.place): {task.query: known} for r, known, _ in done}
            delivery.deliver(rows, places)
            for delta in deltas:
                gave[delta.input].append(replace(delta, sent=()))
            known_at = {piece.place: known for piece, known, _ in done}
            ranges = [replace(r, start=ends[r.place], known=known_at[r.place]) for r in ranges]
    finally:
        delivery.close()
        positions.close()
    yield from ((r, r.known, gave[Input(*r.place)]) for r in ranges)


class _Positions:
    """A query's progress in sending rows, which each transaction commits to the query's consumer group."""

    def __init__(self, config: Mapping[str, Any], group: str, query: str) -> None:
        self.group_id = group
        self._query = query
        self._consumer = reporting_consumer(config, group)

    def resumed(self, ranges: Sequence[Range]) -> list[Range]:
        """Cut off what was sent before. Raises `RunError` if more was sent than the ranges contain."""
        known = self._known([Input(*r.place) for r in ranges])
        for r in ranges:
            self._check_ours(Input(*r.place), known, r.end)
        if any(Input(*r.place) not in known for r in ranges):
            return list(ranges)
        at = {r.place: known[Input(*r.place)] for r in ranges}
        if any(at[r.place].position.offset < r.start for r in ranges):
            return list(ranges)
        return [replace(r, start=at[r.place].position.offset, known=at[r.place]) for r in ranges]

    def committed(self, places: Mapping[Input, Any], seconds: float) -> dict[Input, dict[str, Known]]:
        """Return the committed positions for these places, where there are any."""
        known = self._known(places)
        committed: dict[Input, dict[str, Known]] = {where: {} for where in places}
        for where, own in places.items():
            self._check_ours(where, known, own[self._query].position.offset)
            if where in known and known[where].position.offset == own[self._query].position.offset:
                committed[where] = own
        return committed

    def offsets(self, places: Mapping[Input, Any]) -> list[Partition]:
        """Convert places for the client library."""
        return [
            Partition(*where, own[self._query].position.offset, report(Report(self._query, own[self._query])))
            for where, own in places.items()
        ]

    def group_metadata(self) -> Any:
        """Return the group's identity for a transaction."""
        return self._consumer.consumer_group_metadata()

    def keep_alive(self) -> None:
        """Do nothing: this consumer is not a member of the group."""

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()

    def _known(self, inputs: Sequence[Input] | Mapping[Input, Any]) -> dict[Input, Known]:
        try:
            answers = self._consumer.committed([Partition(*at) for at in inputs], timeout=_ANSWER_SECONDS)
        except KafkaException as error:
            raise refused(error.args[0], "read positions", group=self.group_id) from None
        reports = {Input(a.topic, a.partition): read_report(a.metadata) for a in answers if a.offset >= 0}
        return {
            where: one.known for where, one in reports.items() if one is not None and one.query == self._query
        }

    def _check_ours(self, where: Input, known: Mapping[Input, Known], end: int) -> None:
        if where in known and known[where].position.offset > end:
            raise RunError(
                f"the rows of {where} are sent up to offset {known[where].position.offset}, and this task "
                f"ends at {end}: another attempt is ahead, and only that one counts"
            )
