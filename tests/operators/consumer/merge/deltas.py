"""Deltas of a stream of posts, made without a broker."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import polars as pl

from streamgauge.operators.consumer.merge.merger import Merger
from streamgauge.operators.definition.aggregates import count, distinct
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.sketching.delta import Delta
from streamgauge.operators.sketching.partition_state import PartitionState
from streamgauge.operators.watermarks.idle_timer import Rest
from streamgauge.operators.watermarks.position import Input, inputs_of

START = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1e6)
STREAM = (
    Stream.from_schema({"at": pl.Datetime("us", "UTC"), "user": pl.Int64}, time="at")
    .tumbling("1m", delay="5s")
    .agg(posts=count(), users=distinct("user"))
)


def posts(partitions: int) -> list[Input]:
    return inputs_of({"posts": partitions})


def log(seed: int, cut: int, partitions: int = 3, rows: int = 2_000) -> list[Delta]:
    """Ten minutes of deltas, one partition after the other, each of `cut` messages."""
    random = np.random.default_rng(seed)
    times = START + np.linspace(0, 600e6, rows).astype(np.int64)
    collected = []
    inputs = [
        PartitionState(STREAM, "posts", p, 0, clock=lambda: START / 1e6 + 600) for p in range(partitions)
    ]
    frames = [
        pl.DataFrame(
            {
                "at": pl.Series(times - random.exponential(2e6, rows).astype(np.int64)).cast(
                    pl.Datetime("us", "UTC")
                ),
                "user": random.integers(0, 500, rows),
            }
        )
        for _ in inputs
    ]
    for low in range(0, rows, cut):
        for progress, frame in zip(inputs, frames):
            part = frame[low : low + cut]
            offsets = np.arange(low, low + part.height)
            progress.add(part, None, offsets, low + part.height, lambda numbers, reason: None)
            collected.append(progress.delta())
    return collected


def windows(merger: Merger) -> dict[object, int]:
    return {
        row["window_start"]: row["posts"]
        for table in (*merger.close(), *merger.close_all())
        for row in table.select(["window_start", "posts"]).to_pylist()
    }


def merged(deltas: list[Delta], **options) -> Merger:
    merger = Merger(STREAM, posts(3), **options)
    for offset, delta in enumerate(deltas):
        merger.offer(delta, offset)
    return merger


def paused(*steps: range | int) -> list[Delta]:
    """One partition: rows of each second in a range, and at a number so many seconds of silence."""
    progress, collected = PartitionState(STREAM, "posts", 0, 0, clock=lambda: START / 1e6 + 600), []
    for step in steps:
        if isinstance(step, range):
            at = pl.Series([START + second * 1_000_000 for second in step]).cast(pl.Datetime("us", "UTC"))
            rows = pl.DataFrame({"at": at, "user": list(step)})
            offsets = np.arange(progress.next_offset, progress.next_offset + len(step))
            progress.add(rows, None, offsets, progress.next_offset + len(step), lambda numbers, reason: None)
        else:
            progress.rest = Rest(step * 1_000_000, 5_000_000, START + 10**9)
        collected.append(progress.delta())
    return collected


def windows_of(merger: Merger, deltas: list[Delta], begin: int = 0) -> list[tuple[int, int, int]]:
    """At which offset which minute's window was emitted, and with how many rows."""
    collected = []
    for offset in range(begin, len(deltas)):
        merger.offer(deltas[offset], offset)
        for table in merger.close():
            row = table.select(["window_start", "posts"]).to_pylist()[0]
            minute = int(row["window_start"].timestamp() * 1e6 - START) // 60_000_000
            collected.append((offset, minute, row["posts"]))
    return collected
