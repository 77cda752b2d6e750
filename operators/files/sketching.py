"""A stream's definition over frames and files: sketches rows on all cores into one table.

It runs the worker's and the merger's code, as in a consumer. The input is complete: all of its rows exist, in
any order, so none is late, and windows close at its end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa

from ...sketches.core.lazy import pl
from ...sketches.core.parallel import cores
from ..consumer.merge.merger import Merger
from ..definition.sources import FrameSource, KafkaSource
from ..definition.steps import Step
from ..definition.stream import Stream
from ..formats.messages import Messages
from ..sketching.account import Account
from ..sketching.delta import Delta
from ..sketching.sketcher import Sketcher
from ..steps.row_origin import RowOrigin
from ..table.final import with_final
from ..table.schema import END, START, keys_of, order_of, schema_of
from ..watermarks.partition_watermark import PartitionTime
from ..watermarks.position import Input
from ..windows.all_time import WholeInput
from ..windows.window import StreamWindows
from .inputs import InputError, RowInput, inputs_of, pieces

_TOPIC = "input"
_WAITING = 2
"""How many pieces of a frame wait for each thread."""
_LINE_BYTES = 1 << 24
_READ_BYTES = 1 << 22


class _NeverLate(PartitionTime):
    """The event time of rows that all exist at once: none of them is later than another."""

    def advance(
        self, times_us: np.ndarray, window: StreamWindows, delay_us: int, max_ahead_us: int = -1
    ) -> np.ndarray | None:
        """See `PartitionTime`: all rows are on time for all of their windows."""
        return None


@dataclass(frozen=True)
class Sketched:
    """The result of an input: the table, the outcome of its rows, and the first refused row."""

    table: pa.Table
    account: Account
    example: str


def sketch_over(
    stream: Stream,
    data: Any,
    threads: int | None = None,
    progress: Callable[[int, int | None], object] | None = None,
) -> Sketched:
    """The table of sketches of all rows of frames or files.

    `progress` is called with the number of rows read, and the total if known. Raises `TypeError` and
    `ValueError` for streams that need a topic, and what `inputs_of` and `pieces` raise.
    """
    stream = stream.complete()
    assert stream.window is not None
    _check(stream)
    inputs, narrow = inputs_of(data), _narrowed(stream)
    in_order = stream.reading.looks_back or not stream.window.of_time
    wanted = 1 if in_order else threads or cores()
    counts = [one.rows() for one in inputs] if progress is not None else [None]
    known = [rows for rows in counts if rows is not None]
    total = sum(known) if len(known) == len(counts) else None
    workers = [_Worker(narrow, stream.fingerprint(), number) for number in range(wanted)]
    begun = 0
    with ExitStack() as stack:
        pools = [stack.enter_context(ThreadPoolExecutor(1, "sketching")) for _ in workers]
        waiting: list[deque[Future[None]]] = [deque() for _ in workers]
        turns = count()
        for name, piece, first in _all_pieces(narrow, inputs):
            turn = next(turns) % wanted
            if len(waiting[turn]) >= _WAITING:
                waiting[turn].popleft().result()
            waiting[turn].append(pools[turn].submit(workers[turn].add, name, piece, begun, first))
            begun += len(piece)
            if progress is not None:
                progress(begun, total)
        for futures in waiting:
            for future in futures:
                future.result()
        deltas = list(stack.enter_context(ThreadPoolExecutor(wanted)).map(_Worker.delta, workers))
    account = sum((worker.account for worker in workers), Account())
    examples = sorted(worker.example for worker in workers if worker.example)
    table = _merged(stream, deltas)
    return Sketched(table, account, examples[0][1] if examples else "")


def _check(stream: Stream) -> None:
    if stream.sending is not None:
        raise TypeError(
            "over gives a table of sketches, and this stream sends its rows on to "
            f"{stream.sending.topic!r}; end it with windows and .agg(...)"
        )
    if stream.reading.tables:
        raise TypeError(
            "over: the stream is joined with a table that is read from a topic; join the frames before, "
            "or feed both to a StreamTester"
        )
    if not isinstance(stream.source, FrameSource | KafkaSource):
        raise TypeError(
            "over: the stream reads several topics, and a single input doesn't name each row's topic; feed "
            "them to a StreamTester by topic"
        )
    if stream.time is None and not isinstance(stream.window, WholeInput):
        raise TypeError(
            "over: windows need an event time, and this stream uses the messages' timestamps, which frames "
            'and files don\'t have; name a column, as in time="at"'
        )


def _narrowed(stream: Stream) -> Stream:
    """The stream restricted to the source columns that it uses, so that others are not read."""
    source = stream.source
    expressions = [] if stream.time is None else [stream.time]
    for step in stream.steps:
        if not isinstance(step, Step):
            return stream
        expressions += step.expressions
    if not isinstance(source, FrameSource) or any(one.meta.has_multiple_outputs() for one in expressions):
        return stream
    used = {*stream.keys, *(name for one in expressions for name in one.meta.root_names())}
    used |= {column for aggregate in stream.aggregates.values() for column in aggregate.columns}
    schema = pl.Schema({name: kind for name, kind in source.schema.items() if name in used})
    return replace(stream, source=FrameSource(schema)) if schema else stream


Piece = pl.DataFrame | Messages


def _all_pieces(stream: Stream, inputs: list[RowInput]) -> Iterator[tuple[str, Piece, int]]:
    """The pieces of all inputs in order, each with its input's name and its first row's number there."""
    source = stream.source
    for one in inputs:
        first = 0
        if isinstance(source, KafkaSource) and one.lines is not None:
            for messages in _lines(one):
                yield one.name, messages, first
                first += len(messages)
            continue
        for piece in pieces(one, source.schema):
            yield one.name, piece, first
            first += piece.height


def _lines(one: RowInput) -> Iterator[Messages]:
    """A file's lines as messages."""
    first, kept = 0, b""
    with pa.input_stream(str(one.lines), compression="detect") as file:
        while block := file.read(_READ_BYTES):
            *lines, kept = (kept + block).split(b"\n")
            if len(kept) > _LINE_BYTES:
                raise InputError(f"{one.name} has a line of more than {_LINE_BYTES:,} bytes")
            if lines:
                yield _messages(lines, first)
                first += len(lines)
    if kept:
        yield _messages([kept], first)


def _messages(lines: list[bytes], first: int) -> Messages:
    return Messages.of([line.removesuffix(b"\r") for line in lines], topic=_TOPIC, first_offset=first)


class _Worker:
    """One thread's sketches."""

    def __init__(self, stream: Stream, fingerprint: str, number: int) -> None:
        self._stream, self._fingerprint, self._number = stream, fingerprint, number
        self._sketcher = Sketcher(stream, salt=number)
        self._time = _NeverLate()
        self.account = Account()
        self.example: tuple[int, str] | None = None

    def add(self, name: str, piece: Piece, begun: int, first: int) -> None:
        """Sketch the rows of a piece; `begun` rows of all inputs and `first` of its own precede it."""
        frame, numbers = piece, None
        if isinstance(piece, Messages):
            frame, numbers = self._decoded(name, piece, begun, first)
        assert isinstance(frame, pl.DataFrame)

        def refuse(rows: np.ndarray, reason: str) -> None:
            self._refuse(name, begun, first, rows if numbers is None else numbers[rows], reason)

        stamps = np.zeros(frame.height, np.int64) if self._stream.time is None else None
        place = RowOrigin(0, np.arange(begun, begun + frame.height) if numbers is None else begun + numbers)
        self.account += self._sketcher.add(frame, self._time, stamps, refuse, place)

    def _decoded(
        self, name: str, messages: Messages, begun: int, first: int
    ) -> tuple[pl.DataFrame, np.ndarray]:
        source = self._stream.source
        assert isinstance(source, KafkaSource)
        frames, numbers = [], []
        for part, decoded in source.decoded(messages):
            at = part.offset - messages.offset[0]
            for row, reason in zip(decoded.refused.tolist(), decoded.reasons):
                self._refuse(name, begun, first, at[row : row + 1], reason)
            refused, skipped = len(decoded.refused), len(decoded.skipped)
            self.account += Account(read=refused + skipped, filtered=skipped, dead_lettered=refused)
            frames.append(decoded.frame)
            numbers.append(at if decoded.rows is None else at[decoded.rows])
        return pl.concat(frames), np.concatenate(numbers)

    def _refuse(self, name: str, begun: int, first: int, rows: np.ndarray, reason: str) -> None:
        row = int(rows.min())
        if self.example is None or begun + row < self.example[0]:
            self.example = begun + row, f"row {first + row + 1:,} of {name}: {reason}"

    def delta(self) -> Delta:
        """A delta of everything, as a consumer's worker sends it."""
        return Delta(
            self._fingerprint,
            _TOPIC,
            self._number,
            0,
            max(self.account.read, 1),
            self._sketcher.drain(),
            account=self.account,
        )


def _merged(stream: Stream, deltas: list[Delta]) -> pa.Table:
    """The table of all windows, by window and keys."""
    merger = Merger(stream, [Input(_TOPIC, delta.partition) for delta in deltas])
    for offset, delta in enumerate(deltas):
        merger.offer(delta, offset)
    schema = schema_of(stream)
    closed = [table.cast(schema) for table in (*merger.close(), *merger.at_end())]
    table = pa.concat_tables(closed) if closed else schema.empty_table()
    order = order_of(table.select([START, END, *keys_of(schema)]))
    return with_final(table if order is None else table.take(order), True)
