"""Statements without a broker: topics are lists, and queries run on the tester on request."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import polars as pl

from ...views.view import TableView
from ..plan.catalog import Relation
from ..plan.logical_plan import LogicalPlan
from ..plan.selection import ResultSet
from ..scalars.scalars import TIME, Scalars
from ..scalars.time_functions import timestamp_of_text
from .assertions import check_assertion
from .row_reader import ReceivedMessage, RowReader, as_message, topics_of

_START_MS = 1_767_225_600_000
"""The time of messages without one: 2026-01-01, a millisecond later for each."""
_LAST_MS = 4_102_444_800_000


@dataclass
class Memory:
    """An engine for testing statements (``streamgauge sql --test FILE``), and for trying them out.

    A query that writes is run once its output is requested, on everything inserted until then, and its
    windows are closed. ``ASSERT VALUES`` compares the rows after those that it has already compared.
    """

    _inserted: dict[str, list[ReceivedMessage]] = field(default_factory=dict)
    _queries: dict[str, tuple[LogicalPlan, Sequence[Any], str]] = field(default_factory=dict)
    _expected: dict[str, int] = field(default_factory=dict)
    _count: int = 0

    def topics(self) -> list[tuple[str, int]]:
        """See `Engine`."""
        names = {*self._inserted, *(topic for _, _, topic in self._queries.values())}
        return [(name, 1) for name in sorted(names)]

    def messages(self, topic: str, beginning: bool, limit: int | None) -> Iterator[Sequence[Any]]:
        """See `Engine`."""
        for offset, one in enumerate(self.content(topic)[:limit]):
            at = datetime.fromtimestamp(one.timestamp_ms / 1000, UTC).isoformat()
            key, value = (None if part is None else part.decode() for part in (one.key, one.value))
            yield 0, offset, at, key, value

    def rows(self, plan: LogicalPlan) -> Iterator[ResultSet]:
        """See `Engine`."""
        yield self._read(plan).result()

    def keep(self, name: str, plan: LogicalPlan, sinks: Sequence[Any], topic: str) -> None:
        """See `Engine`."""
        self._queries[name] = plan, sinks, topic

    def insert(self, relation: Relation, rows: Sequence[Mapping[str, Any]]) -> None:
        """See `Engine`."""
        for row in rows:
            values = {name: value for name, value in row.items() if name != "ROWTIME"}
            at = row.get("ROWTIME", _time_of(relation, values) or _START_MS + self._count)
            self._count += 1
            key, value = as_message(relation, values)
            self._inserted.setdefault(relation.topic, []).append(
                ReceivedMessage(relation.topic, 0, key, value, at)
            )

    def expect(
        self, relation: Relation, columns: Sequence[str], rows: Sequence[Sequence[Any]], at: Any
    ) -> None:
        """See `Engine`."""
        begin = self._expected.get(relation.topic, 0)
        self._expected[relation.topic] = begin + len(rows)
        check_assertion(relation, columns, rows, self.content(relation.topic)[begin:], begin, at)

    def start(self) -> None:
        """See `Engine`: here queries run when their rows are requested."""

    def terminate(self, names: Collection[str]) -> None:
        """See `Engine`. What the queries have written stays."""
        for name in names:
            plan, sinks, topic = self._queries.pop(name)
            self._inserted.setdefault(topic, []).extend(self._written(plan, sinks, topic))

    def view(self, group: str) -> TableView:
        """See `Engine`."""
        raise ValueError(f"the table of the group {group} is on brokers: run the script without --test")

    def queries(self) -> list[tuple[str, str]]:
        """See `Engine`."""
        return [(name, topic) for name, (_, _, topic) in self._queries.items()]

    def configure(self, name: str, value: str) -> None:
        """See `Engine`."""
        if name != "auto.offset.reset":
            raise ValueError(f"SET: no setting is called {name}; there is auto.offset.reset")

    def content(self, topic: str) -> list[ReceivedMessage]:
        """All messages of a topic: first those inserted, then those that queries write."""
        messages = list(self._inserted.get(topic, ()))
        for plan, sinks, to in self._queries.values():
            if to == topic:
                messages += self._written(plan, sinks, topic)
        return messages

    def _written(self, plan: LogicalPlan, sinks: Sequence[Any], topic: str) -> list[ReceivedMessage]:
        reader = self._read(plan, sinks)
        return [
            ReceivedMessage(topic, 0, one.key, one.value, _START_MS + number)
            for number, one in enumerate(reader.sent())
        ]

    def _read(self, plan: LogicalPlan, sinks: Sequence[Any] = ()) -> RowReader:
        reader = RowReader(plan, sinks=sinks)
        for topic in reader.lookups:
            reader.feed_lookup(self.content(topic))
        contents = [self.content(topic) for topic in topics_of(plan)]
        if len(contents) > 1 and plan.stream.reading.joined is None:
            # Ordered by time: if topics were read one after another, the second one's rows might be late.
            contents = [list(heapq.merge(*contents, key=lambda one: one.timestamp_ms))]
        for messages in contents:
            for _, own in itertools.groupby(messages, lambda one: one.topic):
                reader.feed(own)
        reader.finish()
        return reader


def _time_of(relation: Relation, values: Mapping[str, Any]) -> int:
    """The event time of a row, with which its message is sent (ms); 0 if it has none."""
    if not relation.time or values.get(relation.time) is None:
        return 0
    kind = relation.columns[relation.time]
    value = values[relation.time]
    column = pl.Series(relation.time, [value], pl.String if isinstance(value, str) else kind)
    time, _ = relation.event_time(relation.time)
    make = Scalars({relation.time: column.dtype})
    expr = timestamp_of_text(make, make.column(time)).expr if isinstance(time, str) else time
    if isinstance(time, str) and column.dtype != pl.String:
        expr = pl.col(time).cast(TIME)
    at = column.to_frame().select(expr.dt.timestamp("ms"))[relation.time][0]
    return at if at is not None and 0 < at < _LAST_MS else 0
