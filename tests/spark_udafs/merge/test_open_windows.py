"""Sessions and sliding windows from workers' rows to those that close, without Spark in between."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from streamgauge.operators.sketching.partition_state import PartitionState
from streamgauge.operators.table.schema import from_ipc, schema_of
from streamgauge.operators.windows.window import LATEST
from streamgauge.spark_udafs.merge.merge_plan import partials_of
from streamgauge.spark_udafs.merge.open_windows import OpenWindowsMerge, OpenWindowsPartials

from ...engines.test_windows import SCHEMA, counted_in, stream_of
from ...engines.window_cases import CASES, DAY

KINDS = ("sliding", "session")
BATCHES = 12


class Bucket:
    """A bucket's state, its timers, and what it has emitted."""

    def __init__(self, merging: OpenWindowsMerge) -> None:
        self.value: Any = None
        self.timers: set[int] = set()
        self.emitted: list[pa.Table] = []
        self._merging = merging

    def get(self) -> Any:
        return self.value

    def update(self, value: Any) -> None:
        self.value = value

    def clear(self) -> None:
        self.value = None

    def registerTimer(self, at: int) -> None:
        self.timers.add(at)

    def deleteTimer(self, at: int) -> None:
        self.timers.remove(at)

    def step(self, parts: list[bytes], watermark_ms: int) -> None:
        """A micro-batch: rows first, then timers, as Spark has it."""
        self._merging._state = self._merging._handle = self  # type: ignore[assignment]
        values = SimpleNamespace(getCurrentWatermarkInMs=lambda: watermark_ms)
        rows = []
        if parts:
            rows += self._merging.handleInputRows((0,), iter([{"__table": part} for part in parts]), values)
        for timer in sorted(self.timers):
            if timer <= watermark_ms:
                rows += self._merging.handleExpiredTimer((0,), values, None)
                self.timers.discard(timer)
        self.emitted += [from_ipc(row["table"]) for row in rows]


def worked(kind: str, batches: int) -> list[tuple[list[tuple[int, bytes]], int]]:
    """For each micro-batch: parts with their buckets, and the watermark that closes windows in the next."""
    stream = stream_of(kind, "rows", buckets=True).complete()
    partials = plan_of(kind)
    case = CASES[kind][-1]
    workers = [PartitionState(stream, "rows", number, 0) for number in range(len(case.partitions))]
    done = []
    for number in range(batches):
        parts: list[tuple[int, bytes]] = []
        for worker, rows in zip(workers, case.partitions):
            low, high = (len(rows) * at // batches for at in (number, number + 1))
            at = [round((DAY + second) * 1e6) for second, _ in rows[low:high]]
            keys = [key for _, key in rows[low:high]]
            frame = pl.DataFrame(
                {"at": at, "case": len(CASES[kind]) - 1, "key": keys}, schema_overrides=SCHEMA
            )
            worker.add(frame, None, np.arange(low, high), high, lambda *_: None)
            for batch in partials.batches_of(worker.delta()):
                parts += [(row["__bucket"], row["__table"]) for row in batch.to_pylist()]
        done.append((parts, min(worker.time.watermark(stream.delay_us) for worker in workers) // 1_000))
    return done


def plan_of(kind: str) -> OpenWindowsPartials:
    stream = stream_of(kind, "rows", buckets=True).complete()
    partials = partials_of(schema_of(stream), stream.reading.arrow_types(), window=stream.window)
    assert isinstance(partials, OpenWindowsPartials)
    return partials


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_windows_close_with_the_watermark_and_nothing_stays(kind: str) -> None:
    merging = plan_of(kind)._merging
    buckets: dict[int, Bucket] = {}
    watermark, most = 0, 0
    for parts, reached in [*worked(kind, BATCHES), ([], LATEST // 1_000)]:
        for bucket in {bucket for bucket, _ in parts} | buckets.keys():
            state = buckets.setdefault(bucket, Bucket(merging))
            state.step([part for at, part in parts if at == bucket], watermark)
            assert len(state.timers) <= 1 and bool(state.timers) == (state.value is not None)
        most = max(most, sum(len(state.timers) for state in buckets.values()))
        watermark = reached
    for state in buckets.values():
        before = sum(table.num_rows for table in state.emitted)
        state.step([], watermark)
        assert state.value is None and not state.timers and before
    assert most
    case = CASES[kind][-1]
    tables = [table for state in buckets.values() for table in state.emitted]
    assert counted_in(pa.concat_tables(tables), kind)[case.name] == case.counted


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_has_all_windows(kind: str) -> None:
    merging = plan_of(kind)._merging
    by_bucket: dict[int, list[bytes]] = {}
    for parts, _ in worked(kind, 2):
        for bucket, part in parts:
            by_bucket.setdefault(bucket, []).append(part)
    table = pa.concat_tables([merging.fold(parts, (bucket,)) for bucket, parts in by_bucket.items()])
    case = CASES[kind][-1]
    assert counted_in(table, kind)[case.name] == case.counted
