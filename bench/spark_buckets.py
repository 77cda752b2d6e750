"""Merging on Spark in buckets of groups against Catalyst's own merge, micro-batch by micro-batch.

A stream of 1,000 keys in 10 open windows, 10,000 groups, all touched in each micro-batch of 200,000 rows. Per
aggregate the time of a micro-batch merged by our buckets, and by Catalyst: of the same aggregate where
Catalyst can, else of a HyperLogLog; and of closing all windows. Both keep their state in RocksDB. The two
take turns; medians of micro-batches, the first two of each turn aside.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from streamgauge import distinct, frequency, kll_quantiles, membership, quantiles, top_k
from streamgauge.operators.definition.aggregate import Aggregate
from streamgauge.spark_udafs.frames import frames
from streamgauge.spark_udafs.frames.frames import sketch
from streamgauge.spark_udafs.frames.windows import window
from streamgauge.spark_udafs.merge import merge_plan
from streamgauge.spark_udafs.merge.buckets import BucketedPartials
from streamgauge.spark_udafs.session.session import session

from .measure import line

KEYS, WINDOWS, ROWS, BATCHES = 1_000, 10, 200_000, 7
TURNS = int(os.environ.get("TURNS", 2))
"""Fewer only to try the script."""
MINUTE_US = 60_000_000
REQUESTED = {
    "distinct": distinct("user"),
    "top_k": top_k("user", max_size=64),
    "kll_quantiles": kll_quantiles("price"),
    "quantiles": quantiles("price"),
    "frequency": frequency("user"),
    "membership": membership("user", capacity=1_000),
}
"""Those that Catalyst can merge, then those that it can't."""
ONLY = os.environ.get("ONLY", " ".join(REQUESTED)).split()
"""The names of some of them."""


def write_rows(folder: Path) -> None:
    """A file a micro-batch; the last one's rows are an hour later, so that all windows before it close."""
    random = np.random.default_rng(1)
    for number in range(BATCHES + 1):
        at = random.integers(0, WINDOWS * MINUTE_US, ROWS) + (number == BATCHES) * 120 * MINUTE_US
        frame = pl.DataFrame(
            {
                "at": pl.Series(at).cast(pl.Datetime("us", "UTC")),
                "key": random.integers(0, KEYS, ROWS),
                "user": random.integers(0, 50_000, ROWS),
                "price": random.lognormal(0, 1, ROWS),
            }
        )
        file = folder / f"{number}.parquet"
        frame[: ROWS if number < BATCHES else 1].write_parquet(file)
        os.utime(file, (1_700_000_000 + number,) * 2)


def micro_batches(spark: Any, folder: Path, requested: Aggregate) -> tuple[list[float], float]:
    """Milliseconds of the micro-batches, and of the one that closes all windows."""
    files = spark.readStream.schema(spark.read.parquet(str(folder)).schema).option("maxFilesPerTrigger", 1)
    rows = sketch(files.parquet(str(folder))).withWatermark("at", "1 hour")
    table = rows.groupBy("key", window("at", "1 minute")).agg(sketch=requested)
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = table.writeStream.format("noop").outputMode("append").trigger(availableNow=True)
        query = writer.option("checkpointLocation", checkpoint).start()
        assert query.awaitTermination(600)
        elapsed = [p["durationMs"]["triggerExecution"] for p in query.recentProgress]
        closed = sum(p["stateOperators"][0]["numRowsRemoved"] for p in query.recentProgress)
        assert closed, query.lastProgress
    return elapsed[2:BATCHES], elapsed[BATCHES + 1]


def in_buckets(schema: Any, columns: Any, streaming: bool) -> BucketedPartials:
    """The plan that is made only where Catalyst can't merge, for all."""
    return BucketedPartials(schema)


def main() -> list[dict[str, Any]]:
    """A row an aggregate."""
    spark = session("bench", "local[2]", {"spark.ui.enabled": "false"})
    collected = []
    with tempfile.TemporaryDirectory() as folder:
        write_rows(Path(folder))
        for name in ONLY:
            requested = REQUESTED[name]
            peer = name if requested.family.spark_merge else "distinct"
            turns = []
            for _ in range(TURNS):
                theirs = micro_batches(spark, Path(folder), REQUESTED[peer])
                frames.partials_of = in_buckets
                turns.append((micro_batches(spark, Path(folder), requested), theirs))
                frames.partials_of = merge_plan.partials_of
            collected.append(_row(name, peer, *(_median(side) for side in zip(*turns))))
    spark.stop()
    return collected


def _median(turns: Iterable[tuple[list[float], float]]) -> tuple[float, float]:
    steady, closing = zip(*turns)
    return statistics.median(chain(*steady)), statistics.median(closing)


def _row(name: str, peer: str, ours: tuple[float, float], theirs: tuple[float, float]) -> dict[str, Any]:
    return line(
        f"{name}: {ROWS:,} rows in {KEYS:,} keys × {WINDOWS} windows merged (all windows closed)",
        f"buckets {ours[0]:,.0f} ms ({ours[1]:,.0f})",
        f"{peer} by Catalyst {theirs[0]:,.0f} ms ({theirs[1]:,.0f})",
        theirs[0] / ours[0],
        "report" if name == peer else "≥ 0.5",
    )


if __name__ == "__main__":
    for row in main():
        print(row)
