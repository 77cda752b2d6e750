"""Windows of every kind, recomputed row by row in plain Python, and the same stream as deltas."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from streamgauge.operators.consumer.log.messages import split
from streamgauge.operators.consumer.merge.merger import Merger
from streamgauge.operators.definition.aggregates import count, distinct
from streamgauge.operators.definition.aggregates import sum as total
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.sketching.delta import Delta
from streamgauge.operators.sketching.partition_state import PartitionState
from streamgauge.operators.table.query import query
from streamgauge.operators.table.windows import edges
from streamgauge.operators.watermarks.position import Input
from streamgauge.operators.windows.cumulate import Cumulate
from streamgauge.operators.windows.session import Session
from streamgauge.operators.windows.sliding import Sliding
from streamgauge.operators.windows.window import EARLIEST

SECOND = 1_000_000
SOURCE = Stream.from_schema({"at": pl.Int64, "key": pl.String, "n": pl.Int64}, time=pl.from_epoch("at", "us"))


class Row(NamedTuple):
    """A row, and how far its partition was before it."""

    at: int
    key: str | None
    n: int
    reached: int


Answers = dict[tuple[Any, ...], tuple[int, int, int]]
"""By key, start and end of a window: how many rows, the sum of n, and how many different n."""


def streams() -> dict[str, Stream]:
    """A stream of each kind of windows, with and without keys."""
    keyed = SOURCE.group_by("key")
    aggregates = {"rows": count(), "sum": total("n"), "different": distinct("n")}
    windowed = {
        "tumbling": keyed.tumbling("10s", delay="3s", max_ahead=None),
        "hopping": keyed.hopping("10s", every="2s", delay="3s", max_ahead=None),
        "hopping by parts": keyed.hopping("9s", every="6s", delay="3s", max_ahead=None),
        "hopping side by side": keyed.hopping("10s", every="10s", delay="3s", max_ahead=None),
        "hopping unkeyed": SOURCE.hopping("10s", every="1s", delay="1s", max_ahead=None),
        "cumulate": keyed.cumulate("12s", every="2s", delay="3s", max_ahead=None),
        "cumulate by itself": keyed.cumulate("5s", every="5s", delay="3s", max_ahead=None),
        "cumulate unkeyed": SOURCE.cumulate("20s", every="1s", delay="1s", max_ahead=None),
        "sliding": keyed.sliding("8s", step="2s", delay="2s", max_ahead=None),
        "session": keyed.session("4s", delay="3s", max_ahead=None),
        "session without delay": keyed.session("4s", delay="0s", max_ahead=None),
        "session of all keys": keyed.session("300ms", by=(), delay="1s", max_ahead=None),
        "session unkeyed": SOURCE.session("300ms", delay="1s", max_ahead=None),
    }
    return {name: stream.agg(**aggregates) for name, stream in windowed.items()}


def partitions(seed: int, count: int, rows: int, stream: Stream) -> list[list[Row]]:
    """Rows out of order, some of them late for all or for some of their windows, in a minute around 1970."""
    random = np.random.default_rng(seed)
    collected = []
    for _ in range(count):
        steady = np.sort(random.integers(-30 * SECOND, 30 * SECOND, rows))
        lag = np.where(random.random(rows) < 0.3, random.exponential(5 * SECOND, rows), 0)
        times = (steady - lag).astype(np.int64)
        whole = random.random(rows) < 0.3  # ties, and rows at the edges of windows
        times = np.where(whole, times // SECOND * SECOND, times)
        latest, reported = EARLIEST, []
        for at in times.tolist():
            reached = max(EARLIEST, latest - stream.delay_us)
            key = [None, "", "a", "b", "c"][random.integers(5)]
            reported.append(Row(at, key, int(random.integers(20)), reached))
            latest = max(latest, at)
        collected.append(reported)
    return collected


def windows_of(stream: Stream, rows: Iterable[Row]) -> Answers:
    """What the windows hold, by their definition."""
    window = stream.window
    together = isinstance(window, Session) and window.by == ()
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        if isinstance(window, Session):
            late = row.at + window.gap_us <= row.reached
        elif isinstance(window, Cumulate):
            late = row.at - row.at % window.size_us + window.size_us <= row.reached
        else:
            late = row.at - row.at % window.every_us + window.size_us <= row.reached
        if not late:
            groups[row.key if stream.keys and not together else ()].append(row)
    by_key: Answers = {}
    for key, of_key in groups.items():
        parts = sessions(of_key, window.gap_us) if isinstance(window, Session) else paned(of_key, window)
        for (start, end), inside in parts.items():
            for own in {row.key for row in inside} if together else {key}:
                numbers = [row.n for row in inside if not together or row.key == own]
                assert (own, start, end) not in by_key
                by_key[own, start, end] = len(numbers), sum(numbers), len(set(numbers))
    return by_key


def paned(rows: list[Row], window: Any) -> dict[tuple[int, int], list[Row]]:
    """Rows by window: in each that holds their time and had not ended by their partition's watermark."""
    by_key: dict[tuple[int, int], list[Row]] = defaultdict(list)
    if isinstance(window, Cumulate):
        for row in rows:
            start = row.at - row.at % window.size_us
            for end in range(start + window.every_us, start + window.size_us + 1, window.every_us):
                if end > row.at and end > row.reached:
                    by_key[start, end].append(row)
        return by_key
    for row in rows:
        start = row.at - row.at % window.every_us
        while start + window.size_us > row.at:
            if start + window.size_us > row.reached:
                by_key[start, start + window.size_us].append(row)
            start -= window.every_us
    if isinstance(window, Sliding):
        of_last = {(end - window.every_us, end) for _, end in by_key}
        lasting = {
            (start, end)
            for start, end in of_last
            for row in rows
            if start <= row.at < end and row.reached < end
        }
        return {(s, e): inside for (s, e), inside in by_key.items() if (e - window.every_us, e) in lasting}
    return by_key


def sessions(rows: list[Row], gap: int) -> dict[tuple[int, int], list[Row]]:
    """Rows by session: of two, the later meets the earlier if that had not ended before it came."""
    part = list(range(len(rows)))

    def root(at: int) -> int:
        while part[at] != at:
            at = part[at]
        return at

    for i, row in enumerate(rows):
        for j, earlier in enumerate(rows):
            if earlier.at <= row.at <= earlier.at + gap and earlier.at + gap > row.reached:
                part[root(i)] = root(j)
    groups: dict[int, list[Row]] = defaultdict(list)
    for i, row in enumerate(rows):
        groups[root(i)].append(row)
    return {
        (min(row.at for row in inside), max(row.at for row in inside) + gap): inside
        for inside in groups.values()
    }


def deltas(stream: Stream, rows: list[list[Row]], seed: int, cut: int) -> list[Delta]:
    """The rows as deltas, of up to `cut` rows each, in batches of their own, the partitions in any order."""
    random = np.random.default_rng(seed)
    inputs = [PartitionState(stream, "input", p, 0, clock=lambda: 0.0) for p in range(len(rows))]
    collected = []
    while waiting := [p for p, progress in enumerate(inputs) if progress.next_offset < len(rows[p])]:
        # The slowest first as often as not, so that windows close all along.
        p = (
            min(waiting, key=lambda p: inputs[p].next_offset)
            if random.random() < 0.5
            else int(random.choice(waiting))
        )
        progress = inputs[p]
        until = min(progress.next_offset + int(random.integers(1, cut + 1)), len(rows[p]))
        while progress.next_offset < until:
            low, high = progress.next_offset, min(progress.next_offset + int(random.integers(1, 40)), until)
            part = rows[p][low:high]
            frame = pl.DataFrame(
                {name: [getattr(row, name) for row in part] for name in ("at", "key", "n")},
                schema=stream.source.schema,
            )
            progress.add(frame, None, np.arange(low, high), high, lambda numbers, reason: None)
        collected.append(progress.delta())
    return collected


def given(stream: Stream, tables: Iterable[pa.Table]) -> Answers:
    """What tables of windows hold; each window and group must come once."""
    by_key: Answers = {}
    for table in tables:
        starts, ends = edges(table)
        for row, start, end in zip(query(table).to_dicts(), starts.tolist(), ends.tolist()):
            key = (row["key"] if stream.keys else (), start, end)
            assert key not in by_key, f"{key} came twice"
            by_key[key] = row["rows"], row["sum"], round(row["different"]["estimate"])
    return by_key


def share(stream: Stream, log: list[Delta], partition: int, count: int) -> list[Delta]:
    """The log of one partition of a table topic."""
    by = stream.window.by if isinstance(stream.window, Session) else None
    return [
        delta
        if delta.table is None or count == 1
        else replace(delta, table=split(delta.table, count, by)[partition])
        for delta in log
    ]


def merger_of(stream: Stream, count: int) -> Merger:
    """A merger of so many input partitions."""
    return Merger(stream, [Input("input", p) for p in range(count)])
