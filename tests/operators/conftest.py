"""Posts on a real topic, and what one pass over them gives."""

from __future__ import annotations

import json as plain_json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from streamgauge.operators.consumer.merge.merge_worker import MergeWorker
from streamgauge.operators.definition.aggregates import count, distinct, top_k
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.kafka.produce import connected_producer, transactional_producer
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.sketching.sketcher import Sketcher
from streamgauge.operators.table.query import query
from streamgauge.operators.table.sketch_table import merge
from streamgauge.operators.watermarks.partition_watermark import PartitionTime

from ..faulty_proxy import IMPATIENT

START_US = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1e6)
MALFORMED = b'{"user": 1, "at'


@dataclass
class Posts:
    """A topic of posts, one every 10 ms of event time; one in 500 malformed, one in 50 delayed for long.

    They are sent to `kafka`, and read from `servers` if that is another way to it.
    """

    kafka: Any
    topic: str
    partitions: int
    config: dict[str, Any] = field(default_factory=dict)
    sent: list[list[bytes]] = field(default_factory=list)
    servers: str | None = None
    _producer: Any = None

    def __post_init__(self) -> None:
        self.sent = [[] for _ in range(self.partitions)]
        self.kafka.create_topic(self.topic, partitions=self.partitions)

    def send(self, n: int, transaction: bool = False) -> None:
        """Append the next `n` posts."""
        config = {
            "bootstrap.servers": self.kafka.bootstrap_servers,
            "linger.ms": 5,
            "enable.idempotence": True,  # retries keep their order
        }
        if transaction:
            config["transactional.id"] = f"posts-{uuid.uuid4()}"
            producer = transactional_producer(config, 120)
            producer.begin_transaction()
        else:
            if self._producer is None:
                self._producer = connected_producer(config)
            producer = self._producer
        base = sum(map(len, self.sent))
        random = np.random.default_rng(base)
        users = random.integers(0, 400, n).tolist()
        lags = (random.exponential(300_000, n) + 15e6 * (random.random(n) < 0.02)).astype(int).tolist()
        for number in range(base, base + n):
            user = users[number - base]
            at = START_US + number * 10_000 - lags[number - base]
            post = {"user": user, "at": at, "tags": [f"t{user % 7}", f"t{number % 3}"]}
            value = MALFORMED if number % 500 == 499 else plain_json.dumps(post).encode()
            partition = number % self.partitions
            self.sent[partition].append(value)
            producer.produce(self.topic, value, partition=partition)
            producer.poll(0)
        if transaction:
            producer.commit_transaction(120)
        assert producer.flush(120) == 0

    @property
    def stream(self) -> Stream:
        """The streams over them."""
        from streamgauge.operators.formats.json.decoder import json

        source = Stream.from_kafka(
            self.topic,
            value=json({"user": pl.Int64, "at": pl.Int64, "tags": pl.List(pl.String)}),
            time=pl.from_epoch("at", time_unit="us"),
            bootstrap_servers=self.servers or self.kafka.bootstrap_servers,
            config={**IMPATIENT, **self.config},
        )
        return (
            source.filter(pl.col("user") != 13)
            .tumbling("10s", delay="2s")
            .agg(posts=count(), users=distinct("user"), tags=top_k("tags", k=3))
        )

    def one_pass(self, stream: Stream | None = None) -> tuple[pa.Table, Account]:
        """The table and the account of everything sent, sketched in one go a partition."""
        stream = stream or self.stream
        tables, account = [], Account()
        for values in self.sent:
            good = [plain_json.loads(value) for value in values if value != MALFORMED]
            sketcher = Sketcher(stream)
            frame = pl.DataFrame(good, schema=stream.source.schema)
            account += sketcher.add(frame, PartitionTime())
            dead = len(values) - len(good)
            account += Account(read=dead, dead_lettered=dead)
            tables.append(sketcher.drain())
        return merge(tables), account


@pytest.fixture
def posts(kafka: Any) -> Callable[..., Posts]:
    """Makes topics of posts: ``posts(partitions=3)``."""

    def make(partitions: int = 3, broker: Any = None, servers: str | None = None, **config: Any) -> Posts:
        name = f"posts-{uuid.uuid4().hex[:8]}"
        return Posts(broker or kafka, name, partitions, config, servers=servers)

    return make


def answers(table: pa.Table) -> list[dict[str, Any]]:
    """A table's answers as plain values."""
    return query(table).to_dicts()


@pytest.fixture
def missed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Mergers that were missed for so long that their group went on without them.

    What they handed over since their place was last kept comes again.
    """
    collected: list[Any] = []
    lost = MergeWorker._lost

    def losing(self: MergeWorker, consumer: Any, partitions: list[Any]) -> None:
        collected.extend([] if self._leaving else [self])
        lost(self, consumer, partitions)

    monkeypatch.setattr(MergeWorker, "_lost", losing)
    return collected


@pytest.fixture
def same() -> Callable[[pa.Table, pa.Table], None]:
    """Asserts that two tables hold the same sketches."""

    def check(result: pa.Table, wanted: pa.Table) -> None:
        assert result.column("window_start").to_pylist() == wanted.column("window_start").to_pylist()
        assert result.column("posts").to_pylist() == wanted.column("posts").to_pylist()
        assert answers(merge(result)) == answers(merge(wanted))

    return check
