"""Running statements on brokers: queries are consumers that read topics directly."""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaPartition

from ....operators.kafka.client_config import producer_config
from ....operators.kafka.faults import passing, refused
from ....operators.kafka.produce import connected_producer
from ....operators.kafka.topics import TopicError, admin, begin_offsets, end_offsets, ensure_topic
from ....operators.watermarks.position import Input
from ...views.followed_groups import FollowedGroups
from ...views.topic_reading import reader, whole
from ...views.view import TableView
from ..errors import nearest
from ..plan.catalog import Relation
from ..plan.logical_plan import LogicalPlan
from ..plan.selection import ResultSet
from .assertions import check_assertion
from .consumer_runs import ConsumerRuns, KeptQuery, QueryRuns, RunningQueries, Start
from .row_reader import ReceivedMessage, RowReader, as_message, topics_of
from .statement_result import warnings_of

_SECONDS = 10.0
_ANSWER_SECONDS = 5.0
_MOST = 10_000
"""The number of messages processed at a time."""


@dataclass
class Brokers:
    """An engine on brokers; `settings` are librdkafka's, including the address.

    If `until` is ``"latest"``, every query ends when all existing messages are processed; otherwise a push
    query, and queries that write, continue until `stop`. Queries that write and read the same topics share a
    consumer. `runs` runs them: as consumers, which resume if they have a group (each query's table has the
    group ``<group>.<topics>.<query>``), or on Spark.
    """

    settings: Mapping[str, Any]
    until: str | None = None
    runs: QueryRuns = field(default_factory=ConsumerRuns)
    _running: list[RunningQueries] = field(default_factory=list)
    _pending: list[KeptQuery] = field(default_factory=list)
    _written: list[tuple[str, str]] = field(default_factory=list)
    _expected: dict[str, int] = field(default_factory=dict)
    _begin: Start = "earliest"
    _groups: FollowedGroups | None = None

    def topics(self) -> list[tuple[str, int]]:
        """See `Engine`."""
        return [(name, len(partitions)) for name, partitions in self._known().items() if name[:2] != "__"]

    def messages(self, topic: str, beginning: bool, limit: int | None) -> Iterator[Sequence[Any]]:
        """See `Engine`. Without `beginning`, the last ten, or as many as the limit says."""
        self.start()
        chosen: list[tuple[int, ReceivedMessage]]
        if beginning:
            chosen = list(islice(self._read([topic]), limit))
        else:
            chosen = sorted(self._read([topic]), key=lambda pair: pair[1].timestamp_ms)[-(limit or 10) :]
        for offset, one in chosen:
            at = datetime.fromtimestamp(one.timestamp_ms / 1000, UTC).isoformat()
            yield one.partition, offset, at, _text(one.key), _text(one.value)

    def rows(self, plan: LogicalPlan) -> Iterator[ResultSet]:
        """See `Engine`."""
        self.start()
        ends = self.until == "latest" or not plan.push
        if plan.selection is not None:
            yield from self._windows(plan, ends)
        else:
            yield from self._rows(plan, ends)

    def keep(self, name: str, plan: LogicalPlan, sinks: Sequence[Any], topic: str) -> None:
        """See `Engine`. `start` starts it, together with others that read the same topics."""
        self._ensure(topic, plan)
        read = {*topics_of(plan), *(table.topic for table in plan.stream.reading.tables)}
        if self.until == "latest" and read & {one.topic for one in self._pending}:
            self.start()
        self._pending.append(KeptQuery(name, plan, tuple(sinks), topic))
        self._written.append((name, topic))

    def start(self) -> None:
        """See `Engine`. Queries of the same topics share a consumer."""
        pending, self._pending = self._pending, []
        if not pending:
            return
        if self.until == "latest":
            self.runs.run(pending, self._begin)
        else:
            self._running += self.runs.start(pending, self._begin)

    def insert(self, relation: Relation, rows: Sequence[Mapping[str, Any]]) -> None:
        """See `Engine`."""
        self.start()
        ensure_topic(admin(self.settings), relation.topic, 1)
        producer = connected_producer(producer_config(self.settings, 1_000_000))
        failed: list[KafkaError] = []

        def delivered(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                failed.append(error)

        for row in rows:
            key, value = as_message(relation, {name: one for name, one in row.items() if name != "ROWTIME"})
            stamp = {"timestamp": row["ROWTIME"]} if row.get("ROWTIME") is not None else {}
            producer.produce(relation.topic, value, key, on_delivery=delivered, **stamp)
        producer.flush(_SECONDS)
        if failed or len(producer):
            raise TopicError(
                f"{relation.topic} took no message: {failed[0].str() if failed else 'no answer'}"
            )

    def expect(
        self, relation: Relation, columns: Sequence[str], rows: Sequence[Sequence[Any]], at: Any
    ) -> None:
        """See `Engine`."""
        self.start()
        begin = self._expected.get(relation.topic, 0)
        until = time.monotonic() + _SECONDS
        while True:
            messages = [one for _, one in islice(self._read([relation.topic]), begin + len(rows))][begin:]
            # Continuous queries may not have written them yet.
            if len(messages) == len(rows) or self.until == "latest" or time.monotonic() > until:
                break
            time.sleep(0.2)
        self._expected[relation.topic] = begin + len(rows)
        check_assertion(relation, columns, rows, messages, begin, at)

    def terminate(self, names: Collection[str]) -> None:
        """See `Engine`. A group resumes where it ended when the script is run again."""
        self.start()
        ended = [going for going in self._running if set(going.names) & set(names)]
        for going in ended:
            if not set(going.names) <= set(names):
                raise ValueError(
                    f"{', '.join(going.names)} share one consumer of their topic and end together: write "
                    "TERMINATE ALL"
                )
        self._written = [one for one in self._written if one[0] not in names]
        self._running = [going for going in self._running if going not in ended]
        self._end(ended)

    def view(self, group: str) -> TableView:
        """See `Engine`."""
        self.start()
        if self._groups is None:
            self._groups = FollowedGroups(self.settings)
        return self._groups.view(group)

    def queries(self) -> list[tuple[str, str]]:
        """See `Engine`."""
        return list(self._written)

    def configure(self, name: str, value: str) -> None:
        """See `Engine`."""
        self.start()
        if name != "auto.offset.reset":
            raise ValueError(
                f"SET: no setting is called {name}; there is auto.offset.reset, and --config for brokers"
            )
        if value not in ("earliest", "latest"):
            raise ValueError(f"auto.offset.reset must be earliest or latest, got {value}")
        self._begin = "latest" if value == "latest" else "earliest"

    def wait(self) -> None:
        """Wait for the queries that write. Raises the error that ends one of them."""
        while any(going.running for going in self._running):
            for going in self._running:
                if not going.running:
                    going.wait()
            time.sleep(0.2)
        for going in self._running:
            going.wait()

    def stop(self) -> None:
        """End the queries that write in an orderly way, and stop following groups' tables."""
        if self._groups is not None:
            self._groups.close()
        self._end(self._running)

    @staticmethod
    def _end(runs: Sequence[RunningQueries]) -> None:
        for run in runs:
            run.stop()
        for run in runs:
            run.wait()

    def _windows(self, plan: LogicalPlan, ends: bool) -> Iterator[ResultSet]:
        """A query's windows: all at the end, or as they close or, with EMIT CHANGES, change."""
        assert plan.selection is not None
        if plan.whole:
            # A run has no window that never closes; the tester has.
            yield from self._rows(plan, ends)
            return
        if ends:
            table, account, reason = self.runs.table(plan)
            yield replace(plan.selection.result(table), warnings=warnings_of(account, reason))
            return
        with closing(self.runs.tables(plan, self._begin)) as tables:
            for table in tables:
                yield from _some(plan.selection.result(table))

    def _rows(self, plan: LogicalPlan, ends: bool) -> Iterator[ResultSet]:
        """The results of a query of rows, as they are read. Tables for joins are read first."""
        known = self._known()
        topics = topics_of(plan)
        partitions = max(len(self._partitions(known, topic)) for topic in topics)
        reading = RowReader(plan, partitions)
        for topic in reading.lookups:
            reading.feed_lookup(one for _, one in self._read([topic]))
        batch: list[ReceivedMessage] = []
        # A few messages may be enough for a LIMIT; if they aren't, twice as many are next.
        size = _MOST if plan.limit is None or plan.whole else min(plan.limit, _MOST)
        total = ends or plan.limit is not None
        begin_at_end = self._begin == "latest" and not ends
        if not begin_at_end:
            for _, one in self._read(topics):
                batch.append(one)
                if len(batch) >= size:
                    reading.feed(batch)
                    batch, size = [], min(2 * size, _MOST)
                    if not plan.whole:
                        for result in _some(reading.result(total)):
                            yield replace(result, more=ends)
            reading.feed(batch)
        if ends:
            reading.finish()
            yield reading.result()
            return
        yield from _some(reading.result(total))
        for messages in self._following(topics):
            reading.feed(messages)
            yield from _some(reading.result(total))

    def _known(self) -> dict[str, list[int]]:
        """All topics with their partitions. Raises `TopicError` if no broker answers."""
        client = admin(self.settings)
        try:
            topics = client.list_topics(timeout=_ANSWER_SECONDS).topics
        except KafkaException as error:
            raise TopicError(
                f"no broker answered at {client.address} within {_ANSWER_SECONDS:g} s: "
                f"{error.args[0].str()}; check --bootstrap-servers and that the broker runs"
            ) from None
        return {name: sorted(topics[name].partitions) for name in sorted(topics)}

    def _partitions(self, known: Mapping[str, list[int]], topic: str) -> list[int]:
        if topic not in known:
            raise TopicError(f"the topic {topic!r} doesn't exist; {nearest(topic, known)}")
        return known[topic]

    def _places(self, topics: Sequence[str]) -> list[Input]:
        known = self._known()
        return [Input(topic, one) for topic in topics for one in self._partitions(known, topic)]

    def _read(self, topics: Sequence[str]) -> Iterator[tuple[int, ReceivedMessage]]:
        """The messages that are in topics now, topic by topic."""
        client = admin(self.settings)
        places = self._places(topics)
        begins, ends = begin_offsets(client, places, _SECONDS), end_offsets(client, places, _SECONDS)
        with closing(reader(self.settings, f"streamgauge-sql-{uuid.uuid4().hex[:8]}")) as consumer:
            for topic in topics:
                spans = {w.partition: (begins[w], ends[w]) for w in places if w.topic == topic}
                for partition, offset, message in whole(consumer, topic, spans, "be read"):
                    if offset < spans[partition][1]:
                        yield offset, _received(message)

    def _following(self, topics: Sequence[str]) -> Iterator[list[ReceivedMessage]]:
        """Messages after the current end of topics, for ever."""
        client = admin(self.settings)
        places = self._places(topics)
        ends = end_offsets(client, places, _SECONDS)
        with closing(reader(self.settings, f"streamgauge-sql-{uuid.uuid4().hex[:8]}")) as consumer:
            consumer.assign([KafkaPartition(w.topic, w.partition, ends[w]) for w in places])
            while True:
                messages = []
                for message in consumer.consume(500, 0.2):
                    error = message.error()
                    if error is None:
                        messages.append(_received(message))
                    elif not passing(error) and error.code() != KafkaError._PARTITION_EOF:
                        raise refused(error, "be read", topic=message.topic() or "")
                if messages:
                    yield messages

    def _ensure(self, topic: str, plan: LogicalPlan) -> None:
        """Create the topic that rows are written to, so that the next statement can read it."""
        known = self._known()
        read = topics_of(plan)
        most = max((len(known.get(name, ())) for name in read), default=1) or 1
        for name in read:
            self._partitions(known, name)
        ensure_topic(admin(self.settings), topic, 1 if plan.selection is not None else most)


def _some(result: ResultSet) -> Iterator[ResultSet]:
    if result.rows.height or result.warnings:
        yield result


def _received(message: Message) -> ReceivedMessage:
    headers: Any = message.headers() or ()
    _, stamp = message.timestamp()
    topic, partition = message.topic() or "", message.partition() or 0
    return ReceivedMessage(topic, partition, message.key(), message.value(), max(stamp, 0), tuple(headers))


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")
