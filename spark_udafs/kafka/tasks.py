"""Run a task: read ranges of a micro-batch's offsets, and yield messages, rows or partial sketches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...operators.archive.recording import RecordedClock
from ...operators.definition.stream import Stream
from ...operators.formats.decode import Decoded
from ...operators.formats.messages import Messages, headers_type
from ...operators.sketching.account import Account
from ...operators.sketching.dead_letters import DeadLetter
from ...operators.sketching.delta import Delta
from ...operators.sketching.partition_buffer import PartitionBuffer
from ...operators.sketching.partition_state import PartitionState
from ...operators.steps.row_steps import RowSteps
from ...operators.watermarks.position import Input, Position
from ...sketches.core.lazy import pl
from ..gc_freeze import freeze_imports
from ..merge.column_codecs import spark_type
from ..merge.merge_plan import plan_of
from .cluster import Report, report
from .join_tasks import join_ranges
from .offsets import Known
from .options import KafkaOptions
from .planning import BATCH_MESSAGES, Range, Task, group_of
from .row_sending import RangeRead, send_ranges
from .workers import (
    Letters,
    ids_seen,
    keep_ids,
    reading,
    remarks_on,
    replay_from,
    report_known,
    with_tables,
)

_UTC = pa.timestamp("us", "UTC")


def columns_of(options: KafkaOptions) -> pa.Schema:
    """Return the columns that the options request."""
    if options.emit == "messages":
        return _MESSAGES if not options.headers else _MESSAGES.append(pa.field("headers", headers_type()))
    assert options.stream is not None
    if options.emit == "rows":
        types = options.stream.reading.arrow_types()
        return pa.schema([pa.field(name, spark_type(kind, name)) for name, kind in types.items()])
    return plan_of(options.stream).schema


def read_task(options: KafkaOptions, task: Task) -> Iterator[pa.RecordBatch]:
    """In a worker: read a task's ranges, and yield columns for Spark."""
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
    """Replace empty headers by null, as Spark's own source does."""
    return pc.if_else(pc.equal(pc.list_value_length(headers), 0), pa.scalar(None, headers.type), headers)


def _rows(options: KafkaOptions, task: Task) -> Iterator[pa.RecordBatch]:
    assert options.stream is not None
    with with_tables(options.stream) as (stream,):
        yield from _rows_of(options, stream, task)


def _rows_of(options: KafkaOptions, bound: Stream, task: Task) -> Iterator[pa.RecordBatch]:
    schema, letters = columns_of(options), Letters(options)
    for r in task.ranges:
        stream = bound.reading.of_topic(r.place[0])
        steps = RowSteps(stream, stream.columns)
        remarks = remarks_on(options, r.place[0])
        for messages in reading(options, r.place, r.start, r.end, BATCH_MESSAGES):
            letters.skip(messages)
            for part, decoded in stream.reading.kafka_source.decoded(messages):
                remarks.observe(part, decoded)
                frame, refused = _stepped(steps, decoded)
                dead = [DeadLetter.of(Input(*r.place), part, row, reason) for row, reason in refused]
                for letter in dead:
                    remarks.refused(letter)
                letters.add(dead)
                yield from frame.to_arrow().cast(schema).combine_chunks().to_batches()
        letters.deliver()
        remarks.report_due(1)


def _stepped(steps: RowSteps, decoded: Decoded) -> tuple[pl.DataFrame, list[tuple[int, str]]]:
    """Return the rows after all steps, and the numbers of refused messages, in order, with the reasons."""
    refused = list(zip(decoded.refused.tolist(), decoded.reasons))

    def refuse(rows: np.ndarray, reason: str) -> None:
        numbers = rows if decoded.rows is None else decoded.rows[rows]
        refused.extend((number, reason) for number in numbers.tolist())

    return steps.apply(decoded.frame, refuse).frame, sorted(refused)


def _sketches(options: KafkaOptions, task: Task) -> Iterator[pa.RecordBatch]:
    assert options.stream is not None
    plan = plan_of(options.stream)
    total, messages = task.idle_account, 0
    letters = Letters(options)
    for r, known, deltas in _read(options, task, letters):
        total += known.account
        messages += sum(delta.account.read for delta in deltas)
        if task.query and options.stream.sending is None:
            text = report(Report(task.query, known))
            report_known(options, group_of(options, task.query), r.place, known.position.offset, text)
        for delta in deltas:
            yield from plan.batches_of(delta)
    freeze_imports()
    yield plan.announcement(total, task.watermark_us, messages, task.lag)


def _read(options: KafkaOptions, task: Task, letters: Letters) -> Iterator[RangeRead]:
    """Return the deltas of a task's ranges and what is known at their ends, after sending dead letters."""
    assert options.stream is not None
    with with_tables(options.stream) as (stream,):

        def read(ranges: Sequence[Range]) -> Sequence[RangeRead]:
            if stream.reading.joined is not None:
                result = join_ranges(options, stream, ranges, task, letters)
            else:
                result = [(r, *_read_range(options, stream, r, task, letters)) for r in ranges]
            letters.deliver()
            return result

        together = [task.ranges] if stream.reading.joined is not None else [(r,) for r in task.ranges]
        for ranges in filter(None, together):
            yield from read(ranges) if stream.sending is None else send_ranges(options, task, ranges, read)


def _read_range(
    options: KafkaOptions, stream: Stream, r: Range, task: Task, letters: Letters
) -> tuple[Known, list[Delta]]:
    buffer = RangeBuffer(options, stream, r, task)
    for messages in reading(options, r.place, buffer.begin, r.end, BATCH_MESSAGES):
        buffer.add(messages)
        letters.take(buffer.intake, r.start)
    known, delta = buffer.finish()
    letters.take(buffer.intake, r.start)
    return known, [delta]


class RangeBuffer:
    """A range of a partition on its way through a stream, read from the partition's known position on.

    `begin` is where to read from: before the range if ids, or the partition's event time, have to be learned
    again. Rows that were counted before are cut off.
    """

    def __init__(self, options: KafkaOptions, stream: Stream, r: Range, task: Task) -> None:
        self._options, self._range, self._task = options, r, task
        where = Input(*r.place)
        self._remarks = remarks_on(options, where.topic)
        self.intake = PartitionBuffer(
            self._remarks, {where: r.end}, keeps_late=options.late_topic is not None
        )
        known = r.known.floored(task.watermark_us)
        first = min(known.position.offset, r.start)
        self._clock = RecordedClock(task.clock_us / 1e6 if options.archive is None else 0.0)
        once, replay = None, known.position.replay
        self._source = stream.reading.of_topic(where.topic)
        if self._source.reading.looks_back and replay is not None and replay < first:
            once = ids_seen(options, task.query, r.place, first)
            replay = replay_from(options, r.place, replay, first) if once is None else None
        time = replace(known.position.time)
        sketches = plan_of(stream).sketches if stream.sending is None else None
        self._state = PartitionState(
            stream, *where, first, time, self._clock, replay, once=once, sketches=sketches
        )
        self.intake.add_partition(self._state, [r.start] * (first < r.start))
        self.begin = self._state.recall_offset

    def add(self, messages: Messages) -> None:
        """Add the next messages."""
        if self._options.archive is not None:
            self._clock.advance(messages)
        self.intake.sketch(self._source.reading.kafka_source, messages)

    def finish(self) -> tuple[Known, Delta]:
        """Return what is known at the range's end, and the delta, once all messages were added."""
        r, state, task = self._range, self._state, self._task
        self.intake.skip_to(state.input, r.end)
        # In a stream, rare fields may still turn up.
        self._remarks.report_due(1) if task.query else self._remarks.report_due(1, 1)
        again = sum((delta.account for delta in self.intake.ready), Account())
        delta = state.delta()
        # Only ids need earlier rows to be read again; without them the position is enough.
        replay = delta.replay if self._source.reading.looks_back else None
        known = Known(Position(r.end, delta.time, replay), r.known.account + again + delta.account)
        if task.query and state.once is not None and state.recall_offset == r.end:
            keep_ids(self._options, task.query, r.place, r.end, state.once)
        return known, delta
