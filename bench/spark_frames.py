"""Cached DataFrames into sketches, against what Spark itself offers for the same question.

20 M rows in memory, 8 partitions. One ungrouped HLL; HLL, KLL and frequent items by 1,000 keys, against the
native sketches; a uniform sample of 1,000 rows, against `orderBy(rand()).limit` and `max_by(x, rand(), k)`.
Each result is brought to the driver. Medians of three turns after one that warms up.

What Catalyst can sketch as we do stays in the JVM (`spark_udafs.merge.lowered`), so HLL, KLL and frequent
items by keys cost what they cost natively, and twice that speed can't be had: a row of these four columns
takes 0.5 µs of a core through the pipe into Python (`mapInArrow` or an `arrow_udf`), even if only counted
there, and the three native sketches together take 0.5 to 0.57. Of 3 M rows by 1,000 keys one family alone
took 2.0 to 3.8 s of processor time through the pipe and 0.2 to 2.2 s in Catalyst, each family less there; by
10 keys 2.0 to 2.4 s and 0.3 to 1.2.

A sample of a cached frame compares a random number a row and counts the rows. `where(rand() < t)` alone takes
0.06 µs of a core a row, and Spark's two ways of sampling hardly more: whatever draws a random number for each
row can't be five times as fast. Ours also reads the rows twice in one query and is left with some ten
thousand of them a task, so it is a little behind. One ungrouped HyperLogLog is behind by the 20 to 30 ms in
which its plan is made.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable
from typing import Any

from pyspark.sql import functions as F

from streamgauge import as_table, distinct, kll_quantiles, sample, sketch, top_k
from streamgauge.spark_udafs.session import session

from .measure import line
from .spark_parquet import timed

ROWS = int(os.environ.get("ROWS", 20_000_000))
"""Fewer only to try the script."""
KEYS, RUNS = 1_000, 3


def turns(*calls: Callable[[], object]) -> list[float]:
    """Median seconds of each call, the calls taking turns."""
    found = [[timed(call) for call in calls] for _ in range(RUNS + 1)][1:]
    return [statistics.median(column) for column in zip(*found)]


def main() -> list[dict[str, Any]]:
    """A row a question."""
    spark = session("bench", "local[2]", {"spark.ui.enabled": "false", "spark.driver.memory": "6g"})
    columns = [
        f"cast(pmod(xxhash64(id), {KEYS}) AS INT) AS key",
        "pmod(xxhash64(id, 1), 5000000) AS user",
        "exp(2 * (pmod(xxhash64(id, 2), 1000003) / 1000003)) AS price",
        "cast(floor(1 / (0.00001 + pmod(xxhash64(id, 3), 1000003) / 1000003)) AS BIGINT) AS tag",
    ]
    rows = spark.range(ROWS, numPartitions=8).selectExpr(*columns).cache()
    assert rows.count() == ROWS

    def hll() -> None:
        assert as_table(sketch(rows).agg(users=distinct("user"))).num_rows == 1

    def native_hll() -> None:
        assert rows.agg(F.hll_sketch_agg("user", 12)).collect()

    def by_key() -> None:
        asked = {"users": distinct("user"), "prices": kll_quantiles("price"), "tags": top_k("tag")}
        assert as_table(sketch(rows).groupBy("key").agg(**asked)).num_rows == KEYS

    def native_by_key() -> None:
        asked = [
            "hll_sketch_agg(user, 12)",
            "kll_sketch_agg_double(price)",
            "approx_top_k_accumulate(tag, 10000)",
        ]
        assert rows.groupBy("key").agg(*map(F.expr, asked)).toArrow().num_rows == KEYS

    def reservoir() -> None:
        assert as_table(sketch(rows).agg(some=sample("user", k=1_000))).num_rows == 1

    def ordered() -> None:
        assert len(rows.select("user").orderBy(F.rand()).limit(1_000).collect()) == 1_000

    def greatest() -> None:
        drawn = rows.withColumn("priority", F.rand())
        assert drawn.agg(F.expr("max_by(user, priority, 1000)")).collect()

    told = f"{ROWS / 1e6:,.0f} M cached rows"
    found = []
    mine, theirs = turns(hll, native_hll)
    found.append(_line(f"{told}, one ungrouped HLL", mine, "hll_sketch_agg", theirs, "≥ 0.95"))
    mine, theirs = turns(by_key, native_by_key)
    found.append(_line(f"{told}, HLL + KLL + top-k by {KEYS:,} keys", mine, "native", theirs, "≥ 2"))
    mine, *others = turns(reservoir, ordered, greatest)
    for name, theirs in zip(("orderBy(rand()).limit", "max_by(x, rand(), k)"), others):
        found.append(_line(f"{told}, a sample of 1,000", mine, name, theirs, "≥ 5"))
    spark.stop()
    return found


def _line(claim: str, mine: float, name: str, theirs: float, target: str) -> dict[str, Any]:
    return line(claim, f"{mine:.2f} s", f"{name} {theirs:.2f} s", theirs / mine, target)


if __name__ == "__main__":
    for row in main():
        print(row)
