"""Hopping windows of 60 s by 1 s against tumbling ones of 60 s: what overlap costs, in one process.

The real parts of worker and merger, without Kafka: rows of 100 seconds, 100,000 a second, somewhat out of
order, in one group or in 100, are sketched (count, distinct users, quantiles of prices) in batches of a
second of event time, sent on as a delta each second as encoded bytes, merged, and given out as windows close.
Kafka Streams makes 60 updates a message for the hopping ones; here a row is sketched once. Both sides in
turn, the median of the ratios.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from streamgauge import Stream, count, distinct, quantiles
from streamgauge.operators.consumer.log.messages import decode, encode
from streamgauge.operators.consumer.log.parts import Gather
from streamgauge.operators.consumer.merge.merger import Merger
from streamgauge.operators.sketching.position import Input
from streamgauge.operators.sketching.progress import Progress

SECONDS, RATE, RUNS = 100, 100_000, 3
START_US = 1_767_225_600_000_000
WHERE = Input("rows", 0)
SCHEMA = {"at": pl.Int64, "user": pl.Int64, "price": pl.Float64, "group": pl.Int64}


def frames(groups: int) -> list[pl.DataFrame]:
    """The rows, a frame a second."""
    random = np.random.default_rng(1)
    n = SECONDS * RATE
    times = START_US + np.arange(n) * (1_000_000 // RATE) - random.exponential(300_000, n).astype(np.int64)
    rows = pl.DataFrame(
        {
            "at": times,
            "user": random.integers(0, 50_000, n),
            "price": random.lognormal(3, 1, n),
            "group": random.integers(0, groups, n),
        },
        schema=SCHEMA,
    )
    return [rows.slice(second * RATE, RATE) for second in range(SECONDS)]


def spent(stream: Stream, given: list[pl.DataFrame]) -> tuple[float, float]:
    """Seconds in the worker and in the merger."""
    progress, merger, gather = Progress(stream, *WHERE, 0), Merger(stream, [WHERE]), Gather()
    worker = merging = 0.0
    windows = rows = 0
    for second, frame in enumerate(given):
        began = time.perf_counter()
        low = second * RATE
        progress.add(frame, None, np.arange(low, low + RATE), low + RATE, lambda numbers, reason: None)
        (message,) = encode(progress.delta(), "table", 1, 1 << 30)
        sent = time.perf_counter()
        _, record = gather.take(message.value, message.headers, second)
        assert record is not None
        merger.offer(decode(record), second)
        for table in merger.close():
            windows, rows = windows + 1, rows + table.num_rows
        worker, merging = worker + sent - began, merging + time.perf_counter() - sent
    assert merger.state.account.counted > 0.99 * SECONDS * RATE and windows and rows
    return worker, merging


def main() -> list[dict[str, Any]]:
    """A row for each number of groups."""
    source = Stream.from_batches(SCHEMA, time=pl.from_epoch("at", time_unit="us"))
    asked = {"rows": count(), "users": distinct("user"), "prices": quantiles("price")}
    found = []
    for groups in (1, 100):
        given = frames(groups)
        keyed = source.group_by("group") if groups > 1 else source
        sides: list[Callable[[], tuple[float, float]]] = [
            partial(spent, keyed.tumbling("60s", delay="2s").agg(**asked), given),
            partial(spent, keyed.hopping("60s", every="1s", delay="2s").agg(**asked), given),
        ]
        times = [[side() for side in sides] for _ in range(RUNS)]
        whole = [sum(hopping) / sum(tumbling) for tumbling, hopping in times]
        of_worker = [hopping[0] / tumbling[0] for tumbling, hopping in times]
        tumbling, hopping = (min(sum(run[side]) for run in times) for side in (0, 1))
        found.append(
            {
                "claim": f"hopping 60 s by 1 s against tumbling 60 s, {groups} groups (worker alone "
                f"{statistics.median(of_worker):.2f})",
                "ours": f"{hopping / SECONDS / RATE * 1e9:.0f} ns a row",
                "peer": f"{tumbling / SECONDS / RATE * 1e9:.0f} ns",
                "ratio": f"{statistics.median(whole):.2f}",
                "target": "≤ 1.5",
            }
        )
    return found


if __name__ == "__main__":
    for row in main():
        print(row)
