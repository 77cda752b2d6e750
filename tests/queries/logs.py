"""The log of a stream of posts, made without a broker, and the tables that it makes."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from streamgauge.operators.consumer.log.messages import encode
from streamgauge.operators.consumer.merge.merger import Merger
from streamgauge.operators.definition.aggregates import (
    count,
    distinct,
    distinct_set,
    first,
    frequency,
    kll_quantiles,
    membership,
    quantiles,
    sample,
    sum,
    top_k,
)
from streamgauge.operators.definition.described_stream import described_stream
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.kafka.outgoing_message import Outgoing
from streamgauge.operators.sketching.partition_state import PartitionState
from streamgauge.operators.watermarks.position import inputs_of
from streamgauge.queries.views.live import LiveTable

START = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = 60_000_000
COLUMNS = {
    "at": pl.Datetime("us", "UTC"),
    "lang": pl.String,
    "user": pl.Int64,
    "tag": pl.String,
    "price": pl.Float64,
}
STREAM = (
    Stream.from_schema(COLUMNS, time="at")
    .group_by("lang")
    .tumbling("1m", delay="5s")
    .agg(
        posts=count(),
        users=distinct("user"),
        people=distinct_set("user"),
        prices=quantiles("price"),
        ranks=kll_quantiles("user"),
        tags=top_k("tag"),
        often=frequency("tag"),
        seen=membership("user", capacity=2_000),
        some=sample("tag", k=5),
        spent=sum("user"),
        opened=first("tag"),
    )
)


def rows(seed: int, minutes: int, a_minute: int = 60) -> pl.DataFrame:
    """Posts in their order, some of them out of it."""
    chance = random.Random(seed)
    collected = []
    for number in range(minutes * a_minute):
        at = START + timedelta(seconds=60 * number / a_minute - chance.random() * 3)
        collected.append(
            {
                "at": max(at, START),
                "lang": chance.choice(["en", "de", "", None]),
                "user": chance.randrange(300),
                "tag": f"t{int(chance.paretovariate(1)) % 50}",
                "price": chance.lognormvariate(0, 1),
            }
        )
    return pl.DataFrame(collected, schema=COLUMNS)


def deltas(frame: pl.DataFrame, inputs: int = 2, cut: int = 50, stream: Stream = STREAM) -> list[Any]:
    """The deltas of rows that were dealt out to the partitions of the input, a cut of each at a time."""
    progresses = [
        PartitionState(stream, "posts", p, 0, clock=lambda: START.timestamp() + 36_000) for p in range(inputs)
    ]
    parts = [frame.gather_every(inputs, p) for p in range(inputs)]
    collected = []
    for low in range(0, max(part.height for part in parts), cut):
        for progress, part in zip(progresses, parts):
            some = part[low : low + cut]
            offsets = np.arange(low, low + some.height)
            progress.add(some, None, offsets, low + some.height, lambda numbers, reason: None)
            collected.append(progress.delta())
    return collected


def messages(messages: Iterable[Any], partitions: int = 1, **options: Any) -> list[Outgoing]:
    """The messages of deltas, in the order of the log."""
    return [message for delta in messages for message in encode(delta, "table", partitions, **options)]


class Fed:
    """A live table that is fed from a list, as from a topic."""

    def __init__(self, partitions: int = 1, inputs: int = 2, stream: Stream = STREAM, **options: Any) -> None:
        self.table = LiveTable("posts", **options)
        self.offsets = dict.fromkeys(range(partitions), 0)
        reported = described_stream(stream.definition())
        self.table.begin(reported, dict.fromkeys(self.offsets), inputs_of({"posts": inputs}), {})

    def feed(self, fed: Iterable[Outgoing]) -> Fed:
        for message in fed:
            partition = message.partition
            self.table.merge_message(partition, self.offsets[partition], message.value, list(message.headers))
            self.offsets[partition] += 1
        self.table.update_lag(0)
        return self


def expected(
    result: Iterable[Any], inputs: int = 2, stream: Stream = STREAM
) -> tuple[list[pa.Table], list[pa.Table]]:
    """What the merging worker itself makes of the deltas: closed windows, and those still open."""
    merger = Merger(stream, inputs_of({"posts": inputs}), "exactly_once")
    closed: list[pa.Table] = []
    for offset, delta in enumerate(result):
        merger.offer(delta, offset)
        closed += merger.close()
    return closed, merger.close_all()
