"""Test your streams without a broker, on a clock that you move.

The real parts of the worker and the merger run, as in Kafka's `TopologyTestDriver`; only Kafka is replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from .consumer.merge.closed_windows import ClosedWindows
from .consumer.merge.figures import figures_of
from .consumer.merge.merger import Merger
from .definition.event_time import in_utc
from .definition.sources import FrameSource
from .definition.stream import Stream
from .definition.tables import LookupTable
from .definition.topic_patterns import is_pattern, matches
from .formats.decode import Decoded
from .formats.messages import Messages
from .kafka.outgoing_message import Outgoing
from .sinks.sink import ClosedWindow, Origin, PartitionSink, Sink, StatefulSink, WritingSink, topics_of
from .sketching.account import Account
from .sketching.forwarded_rows import outgoing
from .sketching.message_warnings import Remarks
from .sketching.partition_buffer import PartitionBuffer
from .sketching.partition_state import PartitionState
from .steps.join_state import JoinStates
from .steps.table_reader import TableReader
from .steps.table_readers import bound
from .table.query import query
from .table.schema import schema_of
from .table.sketch_table import SketchTable
from .table.window_groups import WindowGroups
from .watching.figures import Figures
from .watermarks.idle_timer import IdleTimer, Rest
from .watermarks.position import Input, inputs_of

_START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """A row that became a dead letter."""

    partition: int
    offset: int
    reason: str
    topic: str = ""


@dataclass(frozen=True, slots=True)
class LateRow:
    """A late row, and how many seconds its partition's watermark was past the end of its last window."""

    partition: int
    offset: int
    late_by: float


class StreamTester:
    """Feed rows, move the clock, and get the windows that closed.

    `partitions` is the number of partitions of each topic, `start` the initial time of the clock,
    `idle_seconds` the silence after which a partition is idle. Messages have the clock's time as their
    timestamp. `refused` lists the rows that became dead letters, `late` the rows that a run with ``late=""``
    would forward. `sinks` are the sinks of a run: `sent` returns the messages that they send, and they really
    write their files.

    >>> import polars as pl
    >>> import streamgauge as sg
    >>> rows = sg.Stream.from_schema({"at": pl.Datetime("us")}, time="at")
    >>> tester = sg.StreamTester(rows.tumbling("1m").agg(posts=sg.count()))
    >>> _ = tester.feed([{"at": datetime(2026, 1, 1, 0, 0, 30)}])
    >>> tester.advance(39).windows().height, tester.advance(2).windows()["posts"].to_list()
    (0, [1])
    """

    def __init__(
        self,
        stream: Stream,
        partitions: int = 1,
        start: datetime = _START,
        idle_seconds: float = 5.0,
        sinks: Sequence[Sink] = (),
    ) -> None:
        self.stream = stream.complete()
        self.refused: list[RefusedRow] = []
        self.late: list[LateRow] = []
        self._now = start.timestamp()
        self._tables = {id(table): TableReader(table) for table in stream.reading.tables}
        self._bound = bound(self.stream, lambda table: self._tables[id(table)].contents)
        self._partitions = partitions
        self._topics = _topics_of(self.stream)
        self._inputs: dict[Input, PartitionState] = {}
        self._pairings = JoinStates(self._bound)
        self._silences: dict[Input, IdleTimer] = {}
        self._merger = Merger(self._bound, [])
        self._patience_us = int(idle_seconds * 1e6)
        self._log = 0
        self._sinks, self._sent = tuple(sinks), list[Outgoing]()
        self._origin = Origin.of(self.stream, "tester", named=True)
        topics_of(self._sinks, self._origin)
        self._foldings = self._restored_sinks({})
        self._closed, self._emitted = self._none(), 0
        for topic in self._topics:
            if not is_pattern(topic):
                self._add_topic(topic)

    @property
    def account(self) -> Account:
        """The account of all rows so far; after `finish`, including unmatched rows of a join."""
        return self._merger.state_at_end.account

    def figures(self) -> Figures:
        """The figures that a run would report now (see `Run.figures`).

        `operators.watching.metrics.watch` shows them in a registry, without a port.
        """
        inputs = list(self._inputs)
        group_figures = figures_of(self._merger.state, self.stream, "tester", inputs, lambda _: 0, self._now)
        windows, groups = self._merger.window_counts()
        return replace(
            group_figures,
            open_windows=windows,
            open_groups=groups,
            state_bytes=self._merger.state_bytes,
            closed_windows=self._emitted,
            owned=True,
            caught_up=True,
        )

    def feed(
        self,
        rows: pl.DataFrame | Iterable[Mapping[str, Any]],
        partition: int = 0,
        topic: str | None = None,
    ) -> Account:
        """Send rows to a partition; returns their account.

        Name the topic if the stream has several; a topic that matches its pattern exists from its first rows
        on. Raises `ValueError` for a topic that the stream doesn't read.
        """
        where = Input(self._topic(topic), partition)
        schema = self.stream.reading.of_topic(where.topic).source.schema
        frame = rows if isinstance(rows, pl.DataFrame) else pl.DataFrame(list(rows), schema=schema)
        progress = self._inputs[where]
        start = progress.next_offset

        def refuse(numbers: np.ndarray, reason: str) -> None:
            refused = [RefusedRow(partition, start + int(n), reason, where.topic) for n in numbers]
            self.refused += refused

        def late(numbers: np.ndarray, late_us: np.ndarray) -> None:
            pairs = zip(numbers.tolist(), late_us.tolist())
            self.late += [LateRow(partition, start + number, us / 1e6) for number, us in pairs]

        before = self._merger.state.account
        stamps = np.full(frame.height, int(self._now * 1000), np.int64)
        end = start + frame.height
        progress.add(frame, stamps, np.arange(start, end), end, refuse, late)
        self._received(where)
        return self._merger.state.account - before

    def feed_messages(
        self,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None = None,
        headers: Sequence[list[tuple[str, bytes | None]]] | None = None,
        timestamps: Sequence[datetime] | None = None,
        partition: int = 0,
        topic: str | None = None,
    ) -> Account:
        """Send messages to a partition, for the stream's own decoder; returns their account.

        `timestamps` are the messages' timestamps, by default the clock's time. Raises `TypeError` for a
        stream that reads no topic, `ValueError` if the stream has several topics and none is named.

        >>> import polars as pl
        >>> import streamgauge as sg
        >>> trades = sg.Stream.from_kafka("trades", value=sg.csv({"symbol": pl.String, "price": pl.Float64}))
        >>> tester = sg.StreamTester(trades.group_by("symbol").tumbling("1m").agg(trades=sg.count()))
        >>> tester.feed_messages([b"ACME,9.75", b"ACME,cheap"])
        Account(read=2, counted=1, filtered=0, late=0, dead_lettered=1)
        >>> print(tester.refused[0].reason)
        "price" is 'cheap', not Float64
        """
        where, before = Input(self._topic(topic), partition), self._merger.state.account
        now = datetime.fromtimestamp(self._now, UTC)
        messages = Messages.of(
            values,
            keys,
            topic=where.topic,
            partition=partition,
            first_offset=self._inputs[where].next_offset,
            timestamps=[int(at.timestamp() * 1000) for at in timestamps or [now] * len(values)],
            headers=headers,
        )
        self._feed(where, messages)
        return self._merger.state.account - before

    def feed_batch(self, messages: Messages) -> None:
        """Send recorded messages with their own topic, partition and offsets.

        The clock advances to the latest of their timestamps. Missing offsets have no message. Raises
        `TypeError` for a stream that reads no topic, and `ValueError` for a topic that it doesn't read.
        """
        where = Input(self._topic(messages.topics[int(messages.topic[0])]), int(messages.partition[0]))
        self._now = max(self._now, int(messages.timestamp.max()) / 1000)
        self._feed(where, messages)

    def _feed(self, where: Input, messages: Messages) -> None:
        for part, decoded in self.stream.reading.of_topic(where.topic).reading.kafka_source.decoded(messages):
            self.feed_decoded(part, decoded)

    def feed_decoded(self, messages: Messages, decoded: Decoded) -> None:
        """Send messages to their partition together with their decoded rows.

        Streams with the same decoder then need to decode a topic only once.
        """
        if not len(messages):
            return
        where = Input(*messages.topic_partition(0))
        intake = PartitionBuffer(Remarks(where.topic, {}), keeps_late=True)
        intake.add_partition(self._inputs[where], [])
        intake.add(messages, decoded)
        intake.remarks.report_due()
        self.refused += [
            RefusedRow(where.partition, letter.offset, letter.reason, where.topic)
            for letter in intake.dead_letters
        ]
        self.late += [
            LateRow(where.partition, late.letter.offset, late.late_us / 1e6) for late in intake.late
        ]
        self._received(where)

    def feed_lookup(self, topic: str, rows: Mapping[Any, Mapping[str, Any] | None]) -> None:
        """Set rows of a joined table by key, under the name of its topic; None deletes a key.

        If a key has several columns, it is a tuple. In a table that keeps versions the rows are valid from
        the table's `time` on, by default the clock's, and a key is deleted at the clock's time. Raises
        `ValueError` for a topic that the stream is not joined with.
        """
        for table in self._joined(topic):
            given = [row for row in rows.values() if row is not None]
            numbers = np.cumsum([row is not None for row in rows.values()]) - 1
            gone = np.array([row is None for row in rows.values()], bool)
            frame = pl.DataFrame(given, schema=table.source.schema)
            parts = zip(*rows) if len(table.keys) > 1 else [rows]
            keys = [pl.Series(list(part), dtype=kind) for part, kind in zip(parts, table.keys)]
            times = np.full(len(gone), int(self._now * 1e6))
            if table.time is not None:
                times[~gone] = in_utc(frame.select(table.time).to_series()).to_physical().to_numpy()
            self._tables[id(table)].contents.update(keys, frame, np.where(gone, -1, numbers), times)

    def feed_lookup_messages(self, topic: str, messages: Messages) -> None:
        """Send messages to a joined table, for its own decoders.

        Raises `ValueError` for a topic that the stream is not joined with.
        """
        for table in self._joined(topic):
            self._tables[id(table)].update(messages)

    def _joined(self, topic: str) -> list[LookupTable]:
        joined = [table for table in self.stream.reading.tables if table.topic == topic]
        if not joined:
            known = ", ".join(table.topic for table in self.stream.reading.tables) or "none"
            raise ValueError(f"feed_lookup: {topic!r} is not a table of the stream; there are {known}")
        return joined

    def advance(self, seconds: float) -> StreamTester:
        """Advance the clock while nothing arrives."""
        self._now += seconds
        for where, progress in self._inputs.items():
            silence = self._silences[where]
            silent_us = int(silence.update(progress.next_offset, progress.next_offset, self._now) * 1e6)
            if silent_us >= self._patience_us:
                progress.rest = Rest(silent_us, self._patience_us, int(self._now * 1e6))
            self._send(progress)
        return self

    def windows(self) -> pl.DataFrame:
        """The answers of the windows that closed since the last call.

        A window that only silence has closed may be emitted again, complete (see `Stream.tumbling`).
        """
        return self.tables().answers()

    def tables(self) -> SketchTable:
        """The table of sketches of the windows that closed since the last call."""
        closed, self._closed = self._closed, self._none()
        return SketchTable(closed.table())

    def filling(self) -> pl.DataFrame:
        """The answers so far of open windows that have had rows since the last call.

        A run with ``emit="checkpoint"`` or ``"both"`` emits these at a checkpoint.
        """
        tables = self._merger.updates()
        return query(pa.concat_tables(tables) if tables else schema_of(self.stream).empty_table())

    def finish(self) -> StreamTester:
        """Close all windows, as at the end of a bounded run.

        Rows buffered in a join are emitted without a partner. They stay buffered, as in a run that is
        continued: a partner that is fed later changes the window, which is emitted again.
        """
        joined = self.stream.reading.joined
        if joined is not None and joined.how != "inner":
            for progress in self._inputs.values():
                self._send(progress)  # an empty partition reports that everything is read
            for progress in self._inputs.values():
                delta = progress.unpaired(last=False)
                if (sending := self.stream.sending) is not None:
                    self._sent += outgoing(delta.sent, delta.input, sending.topic, self._partitions)
                self._merger.offer(delta, self._log)
        for table in self._merger.at_end():
            self._close(WindowGroups.of_table(table), final=False)
        return self

    def restart(self) -> StreamTester:
        """Restore sinks with a state, such as `Alerting`, from the state that a run would have stored."""
        memory = {name: folding.state() for name, folding in self._foldings.items()}
        self._foldings = self._restored_sinks(memory)
        return self

    def sent(self) -> list[Outgoing]:
        """The messages that `Stream.rows_to_kafka` or sinks would have sent since the last call, in order.

        Their partition is -1 if the key determines it.
        """
        sent, self._sent = self._sent, []
        return sent

    def _received(self, where: Input) -> None:
        progress = self._inputs[where]
        if progress.heard:
            self._silences[where].heard(self._now)
            progress.heard = False
        self._send(progress)

    def _topic(self, topic: str | None) -> str:
        """The topic that rows are for, which is created if missing."""
        if topic is None:
            if len(self._topics) > 1 or is_pattern(self._topics[0]):
                raise ValueError(
                    f"feed: the stream reads {' and '.join(self._topics)}; name the topic, as in "
                    f'.feed(rows, topic="{next((one for one in self._topics if not is_pattern(one)), "…")}")'
                )
            topic = self._topics[0]
        if not matches(self._topics, topic):
            raise ValueError(f"feed: the stream doesn't read {topic!r}, but {' and '.join(self._topics)}")
        if Input(topic, 0) not in self._inputs:
            self._add_topic(topic)
        return topic

    def _add_topic(self, topic: str) -> None:
        for where in inputs_of({topic: self._partitions}):
            pairing = self._pairings.of(where)
            self._inputs[where] = PartitionState(self._bound, *where, 0, clock=self._clock, pairing=pairing)
            self._silences[where] = IdleTimer(self._now)
            self._merger.inputs.add(where)

    def _send(self, progress: PartitionState) -> None:
        if progress.pending:
            delta = progress.delta()
            if (sending := self.stream.sending) is not None:
                self._sent += outgoing(delta.sent, delta.input, sending.topic, self._partitions)
            self._merger.offer(delta, self._log)
            self._log += 1
            while (groups := self._merger.due()) is not None:
                for window in groups.windows():
                    self._close(window, self._merger.final)
                self._merger.mark_emitted()
        for folding in self._foldings.values():
            self._sent += folding.advance(self._merger.progress(self._now))

    def _close(self, groups: WindowGroups, final: bool) -> None:
        self._closed.add(0, groups)
        self._emitted += 1
        window = ClosedWindow(groups, 0, final, self._origin)
        for sink in self._sinks:
            if isinstance(sink, StatefulSink):
                self._sent += self._foldings[sink.name].update(window)
            elif isinstance(sink, WritingSink):
                sink.write(window)
            else:
                self._sent += sink.messages(window)

    def _restored_sinks(self, memory: Mapping[str, str]) -> dict[str, PartitionSink]:
        states = {
            s.name: s.for_partition(self._origin, 0) for s in self._sinks if isinstance(s, StatefulSink)
        }
        for name, folding in states.items():
            if name in memory:
                folding.restore(memory[name])
        return states

    def _none(self) -> ClosedWindows:
        return ClosedWindows(schema_of(self.stream), None)

    def _clock(self) -> float:
        return self._now


def _topics_of(stream: Stream) -> list[str]:
    """The names and patterns of the topics that a stream reads; a made-up name for rows from frames."""
    if isinstance(stream.source, FrameSource):
        return ["input"]
    return [topic for source in stream.reading.kafka_sources for topic in source.topics]
