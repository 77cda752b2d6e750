"""The tasks of a micro-batch: which ranges of offsets one Python worker reads together."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise

from pyspark.sql.datasource import InputPartition

from ...operators.definition.stream import Stream
from ...operators.sketching.account import Account
from ...operators.watermarks.position import Position
from .offsets import Known, Offsets, TopicPartition
from .options import KafkaOptions

BATCH_MESSAGES = 200_000
"""The number of messages that are decoded and sketched at a time."""


@dataclass(frozen=True)
class Range:
    """Offsets `start` … `end` − 1 of a partition, and what is known about it at `start` or before."""

    place: TopicPartition
    start: int
    end: int
    known: Known

    @property
    def waiting(self) -> bool:
        """Whether there is anything to read, even if only again to learn what came before `start`."""
        return min(self.start, self.known.position.offset) < self.end

    @property
    def holds(self) -> bool:
        """Whether rows of the partner partition wait for this one to show that they have no match."""
        return self.known.partner is not None and self.known.partner.holds


@dataclass(frozen=True)
class Task(InputPartition):
    """The work of one Spark task.

    `idle_account` is the account of partitions that no task reads in this micro-batch, and `lag` the number
    of messages that it leaves for later batches; one task gets both. `clock_us` is the wall clock when it was
    planned; `sent_partitions` is the number of partitions of the topic to which rows are forwarded. For two
    joined streams, a task has the ranges of both, the left one first; in a query's `last` task no row waits
    for a partner any more.
    """

    ranges: tuple[Range, ...]
    watermark_us: int
    clock_us: int
    query: str = ""
    idle_account: Account = field(default_factory=Account)
    lag: int = 0
    last: bool = False
    sent_partitions: int = 0


def plan_tasks(options: KafkaOptions, batch: Offsets) -> list[Task]:
    """Return the tasks of a micro-batch or a bounded read; at least one, which may have nothing to read."""
    ranges = [
        Range(place, at, batch.ends[place], batch.known.get(place, Known(Position(at))))
        for place, at in sorted(batch.begin.items())
    ]
    waiting = [r for r in ranges if r.waiting]
    if options.emit != "sketches":
        waiting = _split(waiting, options.min_partitions or 0, options.max_records)
    shares: list[tuple[Range, ...]] = [(r,) for r in waiting]
    if (
        options.emit == "sketches"
        and options.stream is not None
        and options.stream.reading.joined is not None
    ):
        shares = _pairs(options.stream, ranges, batch.last)
    read = {r.place for share in shares for r in share}
    idle_account = sum((r.known.account for r in ranges if r.place not in read), Account())
    first, *others = (
        Task(share, batch.watermark_us, batch.clock_us, batch.query, last=batch.last)
        for share in shares or [()]
    )
    return [replace(first, idle_account=idle_account, lag=batch.lag), *others]


def _pairs(stream: Stream, ranges: list[Range], last: bool) -> list[tuple[Range, ...]]:
    """Pair the ranges of partitions with the same number, if either has anything to read or to end."""
    topics = [part.topics[0] for part in stream.reading.parts()]
    pairs: dict[int, list[Range]] = {}
    for r in sorted(ranges, key=lambda r: topics.index(r.place[0])):
        pairs.setdefault(r.place[1], []).append(r)
    return [tuple(pair) for pair in pairs.values() if any(r.waiting or (last and r.holds) for r in pair)]


def group_of(options: KafkaOptions, query: str) -> str:
    """Return the consumer group to which a query's workers commit their reports."""
    return str(options.config.get("group.id", f"{options.group_prefix}-{query}"))


def _split(ranges: list[Range], wanted: int, most: int | None = None) -> list[Range]:
    """Split into at least `wanted` ranges of similar size, if there are enough offsets, of at most `most`."""
    total = sum(r.end - r.start for r in ranges)
    tasks = []
    for r in ranges:
        size = r.end - r.start
        parts = min(max(1, round(wanted * size / total)), size) if total and wanted > len(ranges) else 1
        if most is not None:
            parts = max(parts, -(-size // most))
        edges = [r.start + size * part // parts for part in range(parts + 1)]
        tasks += [replace(r, start=low, end=high) for low, high in pairwise(edges)]
    return tasks
