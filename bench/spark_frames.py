"""Cached DataFrames into sketches, against what Spark itself offers for the same question.

20 M rows in memory, 8 partitions. One ungrouped HLL; HLL, KLL and frequent items by 1,000 keys, against the
native sketches; a uniform sample of 1,000 rows, against `orderBy(rand()).limit` and `max_by(x, rand(), k)`.
Each result is brought to the driver. Medians of turns after one that warms up.

By a thousand keys Catalyst sorts the rows and makes each sketch an object's method call: 0.37 to 0.40 µs of a
core a row. Ours go to Python in Arrow batches that Spark writes whole (`spark_udafs.python_workers`), at 0.09
µs, where three sketches take 0.06; what is left of 0.2 µs is merging, Spark's compiler, and 80 ms to see how
many keys there are. Of ten keys, or of a hundred thousand, Catalyst is faster and stays.

A sample of a cached frame compares a random number a row and counts the rows. Merely to compare a column of
the cached rows takes 0.010 to 0.014 µs of a core a row, to count it as much, and `rand()` another 0.012;
Spark's two ways of sampling take 0.045 to 0.06 in all. So what reads each row once can't be five times as
fast, and ours, which must also count, reads them twice in one query. One ungrouped HyperLogLog is Catalyst's
own, and behind by the 5 to 7 ms more in which its plan is made.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable
from typing import Any

from pyspark.sql import functions as F

from streamgauge import distinct, kll_quantiles, sample, top_k
from streamgauge.spark import as_table, sketch
from streamgauge.spark_udafs.session import session

from .measure import line
from .spark_parquet import timed

ROWS = int(os.environ.get("ROWS", 20_000_000))
"""Fewer only to try the script."""
KEYS = 1_000


def turns(runs: int, *calls: Callable[[], object]) -> list[float]:
    """Median seconds of each call; they take turns, forwards and backwards."""
    result: list[list[float]] = [[] for _ in calls]
    for run in range(runs + 1):
        for at in range(len(calls))[:: 1 if run % 2 else -1]:
            result[at].append(timed(calls[at]))
    return [statistics.median(seconds[1:]) for seconds in result]


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
        aggregates = {"users": distinct("user"), "prices": kll_quantiles("price"), "tags": top_k("tag")}
        assert as_table(sketch(rows).groupBy("key").agg(**aggregates)).num_rows == KEYS

    def native_by_key() -> None:
        requested = [
            "hll_sketch_agg(user, 12)",
            "kll_sketch_agg_double(price)",
            "approx_top_k_accumulate(tag, 10000)",
        ]
        assert rows.groupBy("key").agg(*map(F.expr, requested)).toArrow().num_rows == KEYS

    def reservoir() -> None:
        assert as_table(sketch(rows).agg(some=sample("user", k=1_000))).num_rows == 1

    def ordered() -> None:
        assert len(rows.select("user").orderBy(F.rand()).limit(1_000).collect()) == 1_000

    def greatest() -> None:
        drawn = rows.withColumn("priority", F.rand())
        assert drawn.agg(F.expr("max_by(user, priority, 1000)")).collect()

    reported = f"{ROWS / 1e6:,.0f} M cached rows"
    collected = []
    mine, theirs = turns(14, hll, native_hll)
    collected.append(_line(f"{reported}, one ungrouped HLL", mine, "hll_sketch_agg", theirs, "≥ 0.95"))
    mine, theirs = turns(6, by_key, native_by_key)
    collected.append(_line(f"{reported}, HLL + KLL + top-k by {KEYS:,} keys", mine, "native", theirs, "≥ 2"))
    mine, *others = turns(8, reservoir, ordered, greatest)
    for name, theirs in zip(("orderBy(rand()).limit", "max_by(x, rand(), k)"), others):
        collected.append(_line(f"{reported}, a sample of 1,000", mine, name, theirs, "≥ 5"))
    spark.stop()
    return collected


def _line(claim: str, mine: float, name: str, theirs: float, target: str) -> dict[str, Any]:
    return line(claim, f"{mine:.2f} s", f"{name} {theirs:.2f} s", theirs / mine, target)


if __name__ == "__main__":
    for row in main():
        print(row)
