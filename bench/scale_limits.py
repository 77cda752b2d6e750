"""What a merger comes to with many partitions, many workers and many keys, and what sharding it changes.

The input has ``PARTITIONS`` partitions, and ``SHARDS`` mergers share the table topic, of which one is
measured: it gets every delta, and of each the rows of its own keys. Deltas are recorded once and moved on in
time.

- **Deltas**: a checkpoint of all partitions with no row in it, and with some.
- **Keys**: a window of ``WINDOW_KEYS`` keys, of which the shard has its part; two rows each, from a topic
  that is keyed (every key in one partition). Memory is what the process grows by; closing hands the answers
  over.
- **A day**: a delta of each of 64 workers every ``STEP`` minutes, from midnight to midnight.
"""

from __future__ import annotations

import gc
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from streamgauge.operators.consumer.log.messages import decode, encode
from streamgauge.operators.consumer.merge.merger import Merger
from streamgauge.operators.kafka.chunked_records import Record
from streamgauge.operators.watermarks.position import Input

from .measure import line
from .scale import BEGIN, STREAM, close, frame_of, moved, records, sketched

PARTITIONS = int(os.environ.get("PARTITIONS", 1_000))
SHARDS = int(os.environ.get("SHARDS", 8))
KEYS = [int(keys) for keys in os.environ.get("WINDOW_KEYS", "80000,800000,10000000").split(",")]
WORKERS = 64
STEP = int(os.environ.get("STEP", 10))
CHECKPOINTS = 5


def checkpoint(rows: int) -> tuple[float, int]:
    """Seconds of a core that a merger needs for a delta of each partition, and the log's bytes for it."""
    recorded = [sketched(frame_of(2 * max(rows, 1), max(rows, 1), n), n) for n in range(PARTITIONS)]
    merger = Merger(STREAM, [Input("input", n) for n in range(PARTITIONS)])
    spent = offset = size = 0
    for number in range(CHECKPOINTS):
        logged = []
        for delta in recorded:
            own = moved(delta, number, number)
            logged += records(own if rows else _empty(own))
        size = sum(len(record.value) + 200 for record in logged)
        begin = time.process_time()
        offset = fold(merger, logged, offset)
        close(merger)
        spent += time.process_time() - begin if number else 0  # the first compiles kernels
    return spent / (CHECKPOINTS - 1), size


def _empty(delta: Any) -> Any:
    return replace(delta, table=None, messages={})


def fold(merger: Merger, logged: list[Record], offset: int) -> int:
    """Have a merger take in messages of the log; gives the next offset."""
    for record in logged:
        merger.offer(decode(record), offset)
        offset += 1
    return offset


def resident() -> int:
    """Bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def window_of(keys: int) -> dict[str, Any]:
    """A window of this shard's part of so many keys: what it takes to merge, to hold and to close it."""
    own = keys // SHARDS
    merger = Merger(STREAM, [Input("input", worker) for worker in range(WORKERS)])
    each = -(-own // WORKERS)
    gc.collect()
    before, merged, offset = resident(), 0.0, 0
    for worker in range(WORKERS):
        random = np.random.default_rng(worker)
        frame = pl.DataFrame(
            {
                "at": np.full(2 * each, BEGIN + 30),
                "key": np.repeat(np.arange(each) + worker * each, 2),
                "user": random.integers(0, 1_000_000, 2 * each),
                "price": random.lognormal(3, 1, 2 * each),
            }
        )
        logged = records(sketched(frame, worker))
        begin = time.process_time()
        offset = fold(merger, logged, offset)
        merged += time.process_time() - begin
    gc.collect()
    held, said = resident() - before, merger.state_bytes
    last = [sketched(frame_of(1, 1, 1, 5), worker) for worker in range(WORKERS)]
    logged = [
        record
        for delta in last
        for record in records(replace(delta, first_offset=2 * each, next_offset=2 * each + 1))
    ]
    begin = time.process_time()
    fold(merger, logged, offset)
    closed = close(merger)
    closing = time.process_time() - begin
    return line(
        f"{keys:,} keys in {SHARDS} shards, {own:,} in each: a window of one shard",
        f"{merged:.1f} s to merge, {held / 1e6:,.0f} MB to hold ({said / 1e6:,.0f} by its own count), "
        f"{closing:.1f} s to close ({closed:,} groups)",
        "",
        "",
    )


def day(shards: int) -> tuple[float, float]:
    """Seconds of a core for a day of 64 workers with 1,000 keys, in the busiest of so many mergers.

    And the largest part of all rows that one of them had.
    """
    recorded = [sketched(frame_of(2_000, 1_000, worker), worker) for worker in range(WORKERS)]
    mergers = [Merger(STREAM, [Input("input", w) for w in range(WORKERS)]) for _ in range(shards)]
    spent, rows = [0.0] * shards, [0] * shards
    for number in range(1_440 // STEP):
        logged: list[list[Record]] = [[] for _ in range(shards)]
        for delta in recorded:
            for message in encode(moved(delta, number * STEP, number), "table", shards, 1 << 30):
                logged[message.partition].append(Record(message.value, dict(message.headers), 0, ""))
        for shard, merger in enumerate(mergers):
            begin = time.process_time()
            fold(merger, logged[shard], number * WORKERS)
            rows[shard] += close(merger)
            spent[shard] += time.process_time() - begin
    return max(spent), max(rows) / sum(rows)


def main() -> list[dict[str, Any]]:
    """A line for each measurement."""
    collected = []
    for rows in (0, 10, 100):
        spent, size = checkpoint(rows)
        shown = f"{spent:.2f} s of a core, {size / 1e6:.1f} MB of the log"
        collected.append(line(f"{PARTITIONS:,} deltas of {rows} rows each, one checkpoint", shown, "", ""))
    collected += [window_of(keys) for keys in KEYS]
    for shards in (1, SHARDS):
        spent, part = day(shards)
        shown = f"{spent:.1f} s of a core in the busiest, which has {100 * part:.1f} % of the groups"
        what = f"a day of {WORKERS} workers and 1,000 keys, a delta each {STEP} minutes, {shards} mergers"
        collected.append(line(what, shown, "", ""))
    return collected
