"""Try out a stream without a broker, on a clock that you move: for the tests of your own streams.

The real parts of the worker and the merger run, as in Kafka's `TopologyTestDriver`; only Kafka is left out.
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
from .definition.sources import FrameSource
from .definition.stream import Stream
from .definition.topics import is_pattern, takes
from .formats.messages import Messages
from .joins.contents import Contents
from .joins.joined import bound
from .joins.pairing import Pairings
from .kafka.outgoing import Outgoing
from .sinks.sink import ClosedWindow, Folding, FoldingSink, Origin, Sink, WritingSink, topics_of
from .sketching.accounting import Account
from .sketching.intake import Intake
from .sketching.position import Input, inputs_of
from .sketching.progress import Progress
from .sketching.remarks import Remarks
from .sketching.sent_rows import outgoing
from .sketching.silence import Rest, Silence
from .table.query import query
from .table.schema import schema_of
from .watching.figures import Figures

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
    """A row that came too late, and how many seconds its partition's watermark was past its last window."""

    partition: int
    offset: int
    late_by: float


class StreamTester:
    """Feed rows, move the clock, see the windows that closed.

    `partitions` is the number of partitions of each topic, `start` the time that the clock shows at first,
    `idle_seconds` the silence after which a partition is idle. Messages have the clock's time as their
    timestamp. `refused` lists the rows that became dead letters, `late` those that a run with ``late=""``
    would send on. `sinks` are those of a run: what they send is seen with `sent`, what they write they write.

    >>> import polars as pl
    >>> from streamgauge.operators.definition.aggregates import count
    >>> stream = Stream.from_batches({"at": pl.Datetime("us")}, time="at").tumbling("1m").agg(posts=count())
    >>> tester = StreamTester(stream)
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
        self._tables = {id(table): Contents(table.source.schema) for table in stream.tables}
        self._bound = bound(self.stream, lambda table: self._tables[id(table)])
        self._partitions = partitions
        self._asked = _asked(self.stream)
        self._inputs: dict[Input, Progress] = {}
        self._pairings = Pairings(self._bound)
        self._silences: dict[Input, Silence] = {}
        self._merger = Merger(self._bound, [])
        self._patience_us = int(idle_seconds * 1e6)
        self._log = 0
        self._sinks, self._sent = tuple(sinks), list[Outgoing]()
        self._origin = Origin.of(self.stream, "tester", named=True)
        topics_of(self._sinks, self._origin)
        self._foldings = self._remembering({})
        self._closed, self._told = self._none(), 0
        for topic in self._asked:
            if not is_pattern(topic):
                self._take_up(topic)

    @property
    def account(self) -> Account:
        """What became of all rows so far."""
        return self._merger.state.account

    def figures(self) -> Figures:
        """What a run would tell of itself now: what its metrics are made of (see `Run.figures`).

        `operators.watching.metrics.watch` shows them in a registry, without a port.
        """
        inputs = list(self._inputs)
        told = figures_of(self._merger.state, self.stream, "tester", inputs, lambda _: 0, self._now)
        windows, groups = self._merger.held()
        return replace(
            told,
            open_windows=windows,
            open_groups=groups,
            state_bytes=self._merger.state_bytes,
            closed_windows=self._told,
            owned=True,
            caught_up=True,
        )

    def feed(
        self,
        rows: pl.DataFrame | Iterable[Mapping[str, Any]],
        partition: int = 0,
        topic: str | None = None,
    ) -> Account:
        """Let a partition receive rows; gives what became of them.

        A stream of several topics needs to be told which one; a topic that matches its pattern is there from
        its first rows on. Raises `ValueError` for a topic that the stream doesn't read.
        """
        where = Input(self._topic(topic), partition)
        schema = self.stream.of_topic(where.topic).source.schema
        frame = rows if isinstance(rows, pl.DataFrame) else pl.DataFrame(list(rows), schema=schema)
        progress = self._inputs[where]
        start = progress.next

        def refuse(numbers: np.ndarray, reason: str) -> None:
            refused = [RefusedRow(partition, start + int(n), reason, where.topic) for n in numbers]
            self.refused += refused

        def late(numbers: np.ndarray, late_us: np.ndarray) -> None:
            told = zip(numbers.tolist(), late_us.tolist())
            self.late += [LateRow(partition, start + number, us / 1e6) for number, us in told]

        before = self.account
        stamps = np.full(frame.height, int(self._now * 1000), np.int64)
        end = start + frame.height
        progress.add(frame, stamps, np.arange(start, end), end, refuse, late)
        return self._received(where, before)

    def feed_messages(
        self,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None = None,
        headers: Sequence[list[tuple[str, bytes | None]]] | None = None,
        timestamps: Sequence[datetime] | None = None,
        partition: int = 0,
        topic: str | None = None,
    ) -> Account:
        """Let a partition receive messages, which the stream's own decoder reads; gives what became of them.

        `timestamps` are the messages', the clock's time unless given. Raises `TypeError` for a stream that
        reads no topic, `ValueError` for one of several that isn't told which.

        >>> import polars as pl
        >>> from streamgauge import Stream, StreamTester, count, csv
        >>> trades = Stream.from_kafka("trades", value=csv({"symbol": pl.String, "price": pl.Float64}))
        >>> tester = StreamTester(trades.group_by("symbol").tumbling("1m").agg(trades=count()))
        >>> tester.feed_messages([b"ACME,9.75", b"ACME,cheap"])
        Account(read=2, counted=1, filtered=0, late=0, dead_lettered=1)
        >>> print(tester.refused[0].reason)
        "price" is 'cheap', not Float64
        """
        where, before = Input(self._topic(topic), partition), self.account
        progress, now = self._inputs[where], datetime.fromtimestamp(self._now, UTC)
        stamps = [int(at.timestamp() * 1000) for at in timestamps or [now] * len(values)]
        messages = Messages.of(
            values,
            keys,
            topic=where.topic,
            partition=partition,
            first_offset=progress.next,
            timestamps=stamps,
            headers=headers,
        )
        intake = Intake(Remarks(where.topic, {}), keeps_late=True)
        intake.begin(progress, [])
        intake.take(self.stream.of_topic(where.topic).kafka_source, messages)
        refused = [RefusedRow(partition, letter.offset, letter.reason, where.topic) for letter in intake.dead]
        self.refused += refused
        self.late += [LateRow(partition, late.letter.offset, late.late_us / 1e6) for late in intake.late]
        return self._received(where, before)

    def feed_table(self, topic: str, rows: Mapping[Any, Mapping[str, Any] | None]) -> None:
        """Give keys of a joined table their rows, by the name of its topic; None deletes a key.

        Of keys that are several columns, each is a tuple. Raises `ValueError` for a topic that the stream is
        not joined with.
        """
        joined = [table for table in self.stream.tables if table.topic == topic]
        if not joined:
            known = ", ".join(table.topic for table in self.stream.tables) or "none"
            raise ValueError(f"feed_table: {topic!r} is not a table of the stream; there are {known}")
        for table in joined:
            given = [row for row in rows.values() if row is not None]
            numbers = np.cumsum([row is not None for row in rows.values()]) - 1
            gone = np.array([row is None for row in rows.values()], bool)
            frame = pl.DataFrame(given, schema=table.source.schema)
            parts = zip(*rows) if len(table.keys) > 1 else [rows]
            keys = [pl.Series(list(part), dtype=kind) for part, kind in zip(parts, table.keys)]
            self._tables[id(table)].update(keys, frame, np.where(gone, -1, numbers))

    def advance(self, seconds: float) -> StreamTester:
        """Move the clock on while nothing arrives."""
        self._now += seconds
        for where, progress in self._inputs.items():
            silence = self._silences[where]
            silent_us = int(silence.look(progress.next, progress.next, self._now) * 1e6)
            if silent_us >= self._patience_us:
                progress.rest = Rest(silent_us, self._patience_us, int(self._now * 1e6))
            self._send(progress)
        return self

    def windows(self) -> pl.DataFrame:
        """The answers of the windows that closed since the last call.

        A window that only silence has closed may come again, whole (see `Stream.tumbling`).
        """
        return query(self.tables())

    def tables(self) -> pa.Table:
        """The table of sketches of the windows that closed since the last call."""
        closed, self._closed = self._closed, self._none()
        return closed.table()

    def filling(self) -> pl.DataFrame:
        """The answers so far of windows that fill, if rows have come for them since the last call.

        That is what a run with ``emit="checkpoint"`` or ``"both"`` gives at a checkpoint.
        """
        tables = self._merger.updates()
        return query(pa.concat_tables(tables) if tables else schema_of(self.stream).empty_table())

    def finish(self) -> StreamTester:
        """Close all windows, as at the end of a bounded run."""
        for table in self._merger.close_all():
            self._close(table, final=False)
        return self

    def restart(self) -> StreamTester:
        """Let sinks that remember, such as `Alerting`, go on from what a run would have kept of them."""
        memory = {name: folding.memory() for name, folding in self._foldings.items()}
        self._foldings = self._remembering(memory)
        return self

    def sent(self) -> list[Outgoing]:
        """The messages that `Stream.to_kafka` or sinks would have sent since the last call, in order.

        Their partition is -1 where the key decides it.
        """
        sent, self._sent = self._sent, []
        return sent

    def _received(self, where: Input, before: Account) -> Account:
        progress = self._inputs[where]
        if progress.heard:
            self._silences[where].heard(self._now)
            progress.heard = False
        self._send(progress)
        return self.account - before

    def _topic(self, topic: str | None) -> str:
        """The topic that rows are for, which is there then."""
        if topic is None:
            if len(self._asked) > 1 or is_pattern(self._asked[0]):
                raise ValueError(
                    f"feed: the stream reads {' and '.join(self._asked)}; name the topic, as in "
                    f'.feed(rows, topic="{next((one for one in self._asked if not is_pattern(one)), "…")}")'
                )
            topic = self._asked[0]
        if not takes(self._asked, topic):
            raise ValueError(f"feed: the stream doesn't read {topic!r}, but {' and '.join(self._asked)}")
        if Input(topic, 0) not in self._inputs:
            self._take_up(topic)
        return topic

    def _take_up(self, topic: str) -> None:
        for where in inputs_of({topic: self._partitions}):
            pairing = self._pairings.of(where)
            self._inputs[where] = Progress(self._bound, *where, 0, clock=self._clock, pairing=pairing)
            self._silences[where] = Silence(self._now)
            self._merger.inputs.add(where)

    def _send(self, progress: Progress) -> None:
        if progress.pending:
            delta = progress.delta()
            if (sending := self.stream.sending) is not None:
                self._sent += outgoing(delta.sent, delta.input, sending.topic, self._partitions)
            self._merger.offer(delta, self._log)
            self._log += 1
            while (table := self._merger.due()) is not None:
                self._close(table, self._merger.final)
                self._merger.told()
        for folding in self._foldings.values():
            self._sent += folding.passed(self._merger.progress(self._now))

    def _close(self, table: pa.Table, final: bool) -> None:
        self._closed.add(0, table)
        self._told += 1
        window = ClosedWindow(table, 0, final, self._origin)
        for sink in self._sinks:
            if isinstance(sink, FoldingSink):
                self._sent += self._foldings[sink.name].take(window)
            elif isinstance(sink, WritingSink):
                sink.write(window)
            else:
                self._sent += sink.messages(window)

    def _remembering(self, memory: Mapping[str, str]) -> dict[str, Folding]:
        found = {s.name: s.folding(self._origin, 0) for s in self._sinks if isinstance(s, FoldingSink)}
        for name, folding in found.items():
            if name in memory:
                folding.resume(memory[name])
        return found

    def _none(self) -> ClosedWindows:
        return ClosedWindows(schema_of(self.stream), None)

    def _clock(self) -> float:
        return self._now


def _asked(stream: Stream) -> list[str]:
    """The names and patterns of the topics that a stream reads; one is made up for rows from frames."""
    if isinstance(stream.source, FrameSource):
        return ["input"]
    return [topic for source in stream.kafka_sources for topic in source.topics]
