"""A query's rows from messages: runs the worker's own code on messages that the caller has read."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import polars as pl

from ....operators.formats.messages import Messages
from ....operators.kafka.outgoing_message import Outgoing
from ....operators.testing import StreamTester
from ..plan.logical_plan import LogicalPlan
from ..plan.selection import ResultSet
from ..scalars.scalars import Map, map_places
from .statement_result import warnings_of

_ROWS = "sql.rows"


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """A message as received."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[tuple[str, bytes | None], ...] = ()


class RowReader:
    """A plan's rows, from messages that it is fed; `partitions` is the largest number in a topic."""

    def __init__(self, plan: LogicalPlan, partitions: int = 1, sinks: Sequence[Any] = ()) -> None:
        self._plan = plan
        stream: Any = plan.stream
        if plan.selection is None and stream.sending is None:
            stream = stream.rows_to_kafka(_ROWS)
        self._tester = StreamTester(stream, partitions, datetime.now(UTC), sinks=sinks)
        self._reason, self._missing = "", 0

    @property
    def lookups(self) -> list[str]:
        """The topics of joined tables, which must be fed first."""
        return list(dict.fromkeys(table.topic for table in self._plan.stream.reading.tables))

    def feed_lookup(self, messages: Iterable[ReceivedMessage]) -> None:
        """Feed messages of tables, in the order of each partition."""
        given = list(messages)
        for topic in self.lookups:
            own = [one for one in given if one.topic == topic]
            if own:
                keys, stamps = [one.key for one in own], [one.timestamp_ms for one in own]
                values = [one.value for one in own]
                self._tester.feed_lookup_messages(
                    topic, Messages.of(values, keys, topic=topic, timestamps=stamps)
                )

    def feed(self, messages: Iterable[ReceivedMessage]) -> None:
        """Feed messages of streams, in the order of each partition."""
        parts: dict[tuple[str, int], list[ReceivedMessage]] = {}
        for one in messages:
            parts.setdefault((one.topic, one.partition), []).append(one)
        for (topic, partition), own in parts.items():
            self._tester.feed_messages(
                [one.value for one in own],
                [one.key for one in own],
                [list(one.headers) for one in own],
                [datetime.fromtimestamp(one.timestamp_ms / 1000, UTC) for one in own],
                partition,
                topic,
            )
        refused = self._tester.refused
        self._reason = self._reason or (str(refused[0].reason) if refused else "")
        # A topic may have more of them than memory holds.
        refused.clear()
        self._tester.late.clear()

    def finish(self) -> None:
        """End the input: windows close."""
        self._tester.finish()

    def sent(self) -> list[Outgoing]:
        """The messages that the query writes, since the last call."""
        return self._tester.sent()

    def result(self, repeat: bool = True) -> ResultSet:
        """The rows since the last call, with warnings about all messages so far.

        Without `repeat`, it warns only if more messages are missing than at the last call.
        """
        selection = self._plan.selection
        account = self._tester.account
        missing, before = account.dead_lettered + account.late, self._missing
        self._missing = missing
        warnings = warnings_of(account, self._reason) if repeat or missing > before else ()
        if selection is not None:
            return replace(selection.result(self._tester.tables()), warnings=warnings)
        columns = self._plan.columns
        sent = [json.loads(one.value) for one in self._tester.sent() if one.value is not None]
        rows = [[row.get(name) for name in columns] for row in sent]
        exact = {
            name: pl.col(name).cast(pl.String).cast(kind)
            for name, kind in columns.items()
            if isinstance(kind, pl.Decimal)
        }
        # The type comes from all rows: the first hundred may be only nulls.
        frame = pl.DataFrame(rows, list(columns), orient="row", strict=False, infer_schema_length=None)
        return ResultSet(frame.with_columns(**exact), warnings=warnings)


def topics_of(plan: LogicalPlan) -> list[str]:
    """The topics that a plan's stream reads."""
    sources: list[Any] = [part.source for part in plan.stream.reading.parts()]
    return list(dict.fromkeys(topic for source in sources for topic in source.topics))


def _objects(value: Any, kind: Any) -> Any:
    """A value with its MAPs as objects."""
    if value is None or not map_places(kind):
        return value
    if isinstance(kind, Map):
        return {one["key"]: _objects(one["value"], kind.value) for one in value}
    if isinstance(kind, pl.List):
        return [_objects(one, kind.inner) for one in value]
    return {one.name: _objects(value[one.name], one.dtype) for one in kind.fields}


def as_message(relation: Any, values: Mapping[str, Any]) -> tuple[bytes | None, bytes]:
    """The key and the value of a row's message."""
    from ....operators.formats.encode import json_bytes, key_bytes

    key = key_bytes([values[relation.key]]) if values.get(relation.key) is not None else None
    rest = {name: value for name, value in values.items() if name != relation.key}
    if relation.format == "JSON":
        return key, json_bytes(
            {name: _objects(value, relation.columns[name]) for name, value in rest.items()}
        )
    line = io.StringIO()
    fields = ["" if rest.get(name) is None else str(rest[name]) for name in relation.values]
    # It quotes fields with anything that may end a line.
    csv.writer(line, delimiter=relation.delimiter, lineterminator="\r\n").writerow(fields)
    return key, line.getvalue().removesuffix("\r\n").encode()
