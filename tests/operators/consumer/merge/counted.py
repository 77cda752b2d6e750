"""Windows by count, recomputed in plain Python, and the same stream as deltas of workers that restart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from streamgauge.operators.consumer.log.messages import split
from streamgauge.operators.consumer.merge.merger import Merger
from streamgauge.operators.consumer.worker.count_window_recovery import LastCounts
from streamgauge.operators.definition.aggregates import count, distinct
from streamgauge.operators.definition.aggregates import sum as total
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.sketching.delta import Delta
from streamgauge.operators.sketching.partition_state import PartitionState
from streamgauge.operators.table.query import query
from streamgauge.operators.watermarks.position import Input

SIZE = 7
SOURCE = Stream.from_schema({"at": pl.Int64, "key": pl.String, "n": pl.Int64}, time=pl.from_epoch("at", "us"))
KEYED = SOURCE.group_by("key").count_window(SIZE)
STREAM = KEYED.agg(rows=count(), sum=total("n"), different=distinct("n"))

Rows = list[tuple[int, str | None, int]]


def rows_of(seed: int, partitions: int, each: int) -> list[Rows]:
    """Rows of any times: nothing is late. Keys are few or many, one of them null and one empty."""
    random = np.random.default_rng(seed)
    keys = [None, "", "a", "b", *(f"rare {number}" for number in range(30))]
    collected = []
    for _ in range(partitions):
        often = random.random(each) < 0.8
        chosen = np.where(often, random.integers(0, 4, each), random.integers(4, len(keys), each))
        times = random.integers(0, 50, each) * 1_000_000  # so that windows lie alike
        numbers = random.integers(0, 20, each)
        reported = zip(times.tolist(), chosen.tolist(), numbers.tolist())
        collected.append([(at, keys[key], n) for at, key, n in reported])
    return collected


def windows_of(
    rows: list[Rows], size: int = SIZE, topic: str = "input"
) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Full windows and open ones: by key and id, their edges, how many rows, their sum, how many differ."""
    full, left = {}, {}
    for partition, of_partition in enumerate(rows):
        groups: dict[Any, list[tuple[int, int, int]]] = defaultdict(list)
        for offset, (at, key, n) in enumerate(of_partition):
            groups[key].append((offset, at, n))
        for key, of_key in groups.items():
            for low in range(0, len(of_key), size):
                inside = of_key[low : low + size]
                times, numbers = [at for _, at, _ in inside], [n for *_, n in inside]
                result = min(times), max(times) + 1, len(inside), sum(numbers), len(set(numbers))
                (full if len(inside) == size else left)[key, f"{topic}[{partition}]:{inside[0][0]}"] = result
    return full, left


def given(tables: Iterable[pa.Table], again: bool = False) -> dict[Any, Any]:
    """What tables of windows hold; each window must come once, or `again` as it was."""
    by_key: dict[Any, Any] = {}
    for table in tables:
        for row in query(table).with_columns(pl.col("window_start", "window_end").dt.epoch("us")).to_dicts():
            key = row["key"], row["window_id"]
            answers = row["rows"], row["sum"], round(row["different"]["estimate"])
            reported = row["window_start"], row["window_end"], *answers
            assert key not in by_key or (again and by_key[key] == reported), f"{key} came twice"
            by_key[key] = reported
    return by_key


def frame_of(rows: Rows) -> pl.DataFrame:
    """Rows as a frame of the source."""
    return pl.DataFrame(rows, schema=SOURCE.source.schema, orient="row")


class Workers:
    """Makes the deltas of a log with `tables` partitions; a worker may die at any time."""

    def __init__(self, stream: Stream, rows: list[Rows], tables: int = 1) -> None:
        self.stream, self.rows = stream, rows
        self.logs: list[list[Delta]] = [[] for _ in range(tables)]
        self.inputs = [PartitionState(stream, "input", p, 0, clock=lambda: 0.0) for p in range(len(rows))]

    def read(self, partition: int, rows: int, random: np.random.Generator) -> None:
        """Let a partition's worker read some rows, in batches."""
        progress, of_partition = self.inputs[partition], self.rows[partition]
        until = min(len(of_partition), progress.next_offset + rows)
        while progress.next_offset < until:
            low, high = progress.next_offset, min(progress.next_offset + int(random.integers(1, 20)), until)
            offsets = np.arange(low, high)
            progress.add(frame_of(of_partition[low:high]), None, offsets, high, lambda numbers, reason: None)

    def send(self, partition: int, tables: Iterable[int] | None = None) -> None:
        """Append what it read to the log, or to some partitions of it alone."""
        delta = self.inputs[partition].delta()
        for table, log in enumerate(self.logs):
            if tables is None or table in tables:
                rows = delta.table if delta.table is None else split(delta.table, len(self.logs))[table]
                log.append(replace(delta, table=rows))

    def restart(self, partition: int) -> list[int]:
        """Another worker takes a partition up, from what the log says; the offsets at which it must cut."""
        where, collected = Input("input", partition), []
        for log in self.logs:
            last = LastCounts(SIZE, [where])
            merger = Merger(self.stream, [], windows=lambda last=last: last)
            for offset, delta in enumerate(log):
                merger.offer(delta, offset)
            mark = merger.state.marks.get(where)
            collected.append((0 if mark is None else mark.position.offset, last.counts[where].known()))
        start = min(at for at, _ in collected)
        self.inputs[partition] = PartitionState(
            self.stream, *where, start, clock=lambda: 0.0, counts=[(max(at, start), k) for at, k in collected]
        )
        return sorted({at for at, _ in collected if at > start})
