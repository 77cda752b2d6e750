"""What a task does: reads ranges of a micro-batch's offsets; gives messages, rows or partial sketches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import InputPartition

from ...operators.definition.stream import Stream
from ...operators.formats.decode import Decoded
from ...operators.formats.messages import HEADERS
from ...operators.sketching.accounting import Account
from ...operators.sketching.dead_letters import DeadLetter
from ...operators.sketching.intake import Intake
from ...operators.sketching.position import Input, Position
from ...operators.sketching.progress import Progress
from ...operators.sketching.row_steps import RowSteps
from ...operators.table.schema import schema_of
from ..merge.forms import spark_type
from ..merge.partials import Partials
from ..merge.plan import partials_of
from ..settled import settle
from .cluster import Report
from .offsets import Known, Offsets, TopicPartition
from .options import KafkaOptions
from .workers import Letters, ids_seen, keep_ids, reading, remarks_on, replay_from, report_known

BATCH_MESSAGES = 200_000
"""How many messages are decoded and sketched at a time."""

_UTC = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class Range:
    """Offsets `start` … `end` − 1 of a partition, and what is known about it at `start` or before."""

    place: TopicPartition
    start: int
    end: int
    known: Known


@dataclass(frozen=True)
class Task(InputPartition):
    """The work of one Spark task.

    `settled` is the account of partitions that no task reads in this micro-batch, and `lag` how many messages
    it leaves for later ones, both given to one task; `clock_us` is the wall clock when it was planned.
    """

    ranges: tuple[Range, ...]
    watermark_us: int
    clock_us: int
    query: str = ""
    settled: Account = field(default_factory=Account)
    lag: int = 0


def plan_tasks(options: KafkaOptions, batch: Offsets) -> list[Task]:
    """The tasks of a micro-batch, or of a bounded read. At least one, which may have nothing to read."""
    ranges = [
        Range(place, at, batch.ends[place], batch.known.get(place, Known(Position(at))))
        for place, at in sorted(batch.begin.items())
    ]
    # A range whose beginning is not known is read again from where the partition is known.
    waiting = [r for r in ranges if min(r.start, r.known.position.offset) < r.end]
    if options.emit != "sketches":
        waiting = _split(waiting, options.min_partitions or 0, options.max_records)
    idle = (r.known.account for r in ranges if r not in waiting)
    settled = sum(idle, Account())
    shares: list[tuple[Range, ...]] = [(r,) for r in waiting] or [()]
    first, *others = (Task(share, batch.watermark_us, batch.clock_us, batch.query) for share in shares)
    return [replace(first, settled=settled, lag=batch.lag), *others]


def group_of(options: KafkaOptions, query: str) -> str:
    """The consumer group to which a query's workers commit what they know."""
    return str(options.config.get("group.id", f"{options.group_prefix}-{query}"))


def _split(ranges: list[Range], wanted: int, most: int | None = None) -> list[Range]:
    """At least `wanted` ranges of about one size, if there are so many offsets; of at most `most` each."""
    total = sum(r.end - r.start for r in ranges)
    found = []
    for r in ranges:
        size = r.end - r.start
        parts = min(max(1, round(wanted * size / total)), size) if total and wanted > len(ranges) else 1
        if most is not None:
            parts = max(parts, -(-size // most))
        edges = [r.start + size * part // parts for part in range(parts + 1)]
        found += [replace(r, start=low, end=high) for low, high in pairwise(edges)]
    return found


def columns_of(options: KafkaOptions) -> pa.Schema:
    """The columns that the options ask for."""
    if options.emit == "messages":
        return _MESSAGES if not options.headers else _MESSAGES.append(pa.field("headers", HEADERS))
    assert options.stream is not None
    if options.emit == "rows":
        types = options.stream.arrow_types()
        return pa.schema([pa.field(name, spark_type(kind, name)) for name, kind in types.items()])
    return plan_of(options.stream).schema


def plan_of(stream: Stream) -> Partials:
    """The partial rows of a stream."""
    return partials_of(schema_of(stream), stream.arrow_types())


def read_task(options: KafkaOptions, task: Task) -> Iterator[pa.RecordBatch]:
    """In a worker: what a task reads, as columns for Spark."""
    if options.emit == "sketches":
        return _sketches(options, task)
    rows = _rows if options.emit == "rows" else _messages
    return rows(options, task)


_MESSAGES = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", _UTC),
        pa.field("timestampType", pa.int32()),
    ]
)


def _messages(options: KafkaOptions, task: Task) -> Iterator[pa.RecordBatch]:
    schema, letters = columns_of(options), Letters(options)
    for r in task.ranges:
        for messages in reading(options, r.place, r.start, r.end, BATCH_MESSAGES):
            letters.skip(messages)
            whole = messages.to_arrow()
            columns = {name: whole.column(name) for name in whole.schema.names}
            appended = messages.appended
            types = np.zeros(len(messages), np.int32) if appended is None else appended.astype(np.int32)
            columns["timestampType"] = pa.array(types)
            if options.headers:
                columns["headers"] = _or_null(columns["headers"])
            yield pa.RecordBatch.from_arrays(
                [columns[field.name].cast(field.type) for field in schema], schema=schema
            )
        letters.deliver()


def _or_null(headers: pa.ListArray) -> pa.ListArray:
    """Null for the messages without headers, as Spark's own source has it."""
    return pc.if_else(pc.equal(pc.list_value_length(headers), 0), pa.scalar(None, headers.type), headers)


def _rows(options: KafkaOptions, task: Task) -> Iterator[pa.RecordBatch]:
    schema = columns_of(options)
    stream = options.stream
    assert stream is not None
    steps, letters = RowSteps(stream, stream.columns), Letters(options)
    for r in task.ranges:
        remarks = remarks_on(options, r.place[0])
        for messages in reading(options, r.place, r.start, r.end, BATCH_MESSAGES):
            letters.skip(messages)
            for part, decoded in stream.kafka_source.decoded(messages):
                remarks.saw(part, decoded)
                frame, refused = _stepped(steps, decoded)
                dead = [DeadLetter.of(Input(*r.place), part, row, reason) for row, reason in refused]
                for letter in dead:
                    remarks.refused(letter)
                letters.add(dead)
                yield from frame.to_arrow().cast(schema).combine_chunks().to_batches()
        letters.deliver()
        remarks.look(1)


def _stepped(steps: RowSteps, decoded: Decoded) -> tuple[pl.DataFrame, list[tuple[int, str]]]:
    """The rows after all steps; the numbers of refused messages, in order, each with the reason."""
    refused = list(zip(decoded.refused.tolist(), decoded.reasons))

    def refuse(rows: np.ndarray, reason: str) -> None:
        numbers = rows if decoded.rows is None else decoded.rows[rows]
        refused.extend((number, reason) for number in numbers.tolist())

    return steps.apply(decoded.frame, refuse).frame, sorted(refused)


def _sketches(options: KafkaOptions, task: Task) -> Iterator[pa.RecordBatch]:
    assert options.stream is not None
    plan = plan_of(options.stream)
    total, messages = task.settled, 0
    letters = Letters(options)
    for r in task.ranges:
        intake = _take_in(options, r, task, letters)
        progress = intake.progress[Input(*r.place)]
        again = sum((delta.account for delta in intake.ready), Account())
        delta = progress.delta()
        # Only ids need rows to be read again; without them the place says it all.
        replay = delta.replay if options.stream.looks_back else None
        known = Known(Position(r.end, delta.time, replay), r.known.account + again + delta.account)
        total += known.account
        messages += delta.account.read
        letters.deliver()
        if task.query and progress.once is not None and progress.reads_from == r.end:
            keep_ids(options, task.query, r.place, r.end, progress.once)
        if task.query:
            report_known(options, group_of(options, task.query), r.place, Report(task.query, known))
        if delta.table is not None:
            yield from plan.batches(delta.table)
    settle()
    yield plan.announcement(total, task.watermark_us, messages, task.lag)


def _take_in(options: KafkaOptions, r: Range, task: Task, letters: Letters) -> Intake:
    """Read a range, from where its partition is known."""
    where = Input(*r.place)
    stream = options.stream
    assert stream is not None
    remarks = remarks_on(options, where.topic)
    intake = Intake(remarks, {where: r.end})
    known = r.known.floored(task.watermark_us)
    first = min(known.position.offset, r.start)
    # Rows that were counted before are cut off; only their account and event time are wanted.
    clock = task.clock_us / 1e6
    once, replay = None, known.position.replay
    if stream.looks_back and replay is not None and replay < first:
        once = ids_seen(options, task.query, r.place, first)
        replay = replay_from(options, r.place, replay, first) if once is None else None
    time = replace(known.position.time)
    progress = Progress(stream, *where, first, time, lambda: clock, replay, once=once)
    intake.begin(progress, [r.start] * (first < r.start))
    for messages in reading(options, r.place, progress.reads_from, r.end, BATCH_MESSAGES):
        intake.take(stream.kafka_source, messages)
        letters.take(intake, r.start)
    intake.pass_to(where, r.end)
    letters.take(intake, r.start)
    # In a stream, fields that few messages have may still come.
    remarks.look(1) if task.query else remarks.look(1, 1)
    return intake
