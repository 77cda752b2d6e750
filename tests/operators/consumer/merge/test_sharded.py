"""Eight mergers, each of a partition of the table topic, have what one merger has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from streamgauge.operators.consumer.log.messages import decode, encode
from streamgauge.operators.consumer.merge.merger import Merger
from streamgauge.operators.definition.aggregates import count, distinct, quantiles
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.kafka.chunked_records import Record
from streamgauge.operators.sketching.partition_state import PartitionState
from streamgauge.operators.table.query import query
from streamgauge.operators.watermarks.position import Input

SHARDS, PARTITIONS, MINUTES, KEYS = 8, 12, 5, 300
SCHEMA = {"at": pl.Datetime("us"), "key": pl.Int64, "user": pl.Int64}
WINDOWS = {
    "tumbling": lambda rows: rows.tumbling("1m"),
    "hopping": lambda rows: rows.hopping("2m", every="1m"),
    "sessions": lambda rows: rows.session("20s"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", WINDOWS)
def test_eight_mergers_have_what_one_has(kind: str) -> None:
    rows = Stream.from_schema(SCHEMA, time="at").group_by("key")
    stream = WINDOWS[kind](rows).agg(n=count(), users=distinct("user"), of=quantiles("user"))
    inputs = [Input("posts", number) for number in range(PARTITIONS)]
    states = [PartitionState(stream, *where, 0, clock=lambda: 2e9) for where in inputs]
    mergers = {shards: [Merger(stream, inputs) for _ in range(shards)] for shards in (1, SHARDS)}
    closed: dict[int, list[pa.Table]] = {shards: [] for shards in mergers}
    random = np.random.default_rng(8)
    largest = 0
    for minute in range(MINUTES):
        for number, state in enumerate(states):
            times = 1_767_225_600_000_000 + 60_000_000 * minute + np.sort(random.integers(0, 60_000_000, 400))
            frame = pl.DataFrame(
                {
                    "at": pl.Series(times).cast(pl.Datetime("us")),
                    "key": random.integers(0, KEYS, 400),
                    "user": random.integers(0, 1_000, 400),
                }
            )
            offsets = np.arange(400) + 400 * minute
            state.add(frame, None, offsets, 400 * (minute + 1), lambda numbers, reason: None)
            delta = replace(state.delta(), more=number < PARTITIONS - 1)
            for shards, own in mergers.items():
                messages = encode(delta, "table", shards)
                assert [message.partition for message in messages] == list(range(shards))
                for merger, message in zip(own, messages):
                    part = decode(Record(message.value, dict(message.headers), 0, ""))
                    largest = max(largest, 0 if part.table is None or shards == 1 else part.table.num_rows)
                    assert merger.offer(part, minute * PARTITIONS + number)
        for shards, own in mergers.items():
            # Each closes its windows with the others, whether it has rows or none.
            assert len({merger.state.closed_us for merger in own}) == 1
            closed[shards] += [table for merger in own for table in merger.close()]
    for shards, own in mergers.items():
        closed[shards] += [table for merger in own for table in merger.close_all()]
        assert all(merger.state.account == own[0].state.account for merger in own)
    one, several = (
        query(pa.concat_tables(closed[shards])).sort("window_start", "window_end", "key")
        for shards in mergers
    )
    assert one.equals(several)
    assert largest < KEYS / SHARDS * 2, "one shard has the keys of several"
