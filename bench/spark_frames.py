"""Cached DataFrames into sketches, against what Spark itself offers for the same question.

20 M rows in memory, 8 partitions. One ungrouped HLL; HLL, KLL and frequent items by 1,000 keys, against the
native sketches; a uniform sample of 1,000 rows, against `orderBy(rand()).limit` and `max_by(x, rand(), k)`.
Each result is brought to the driver. Medians of turns after one that warms up, by the clock and of the
processor: driver, JVM and Python workers.

By a thousand keys Catalyst sorts the rows and makes each sketch an object's method call: 0.37 to 0.40 µs of a
core a row. Ours go to Python in Arrow batches that Spark writes whole (`session.map_in_arrow`), at 0.09
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
from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import functions as F

from streamgauge import distinct, kll_quantiles, sample, top_k
from streamgauge.spark import as_table, sketch
from streamgauge.spark_udafs.session.session import session

from .measure import line, spent_with
from .spark_parquet import timed

ROWS = int(os.environ.get("ROWS", 20_000_000))
"""Fewer only to try the script."""
KEYS = 1_000
ONLY = os.environ.get("ONLY", "hll by_key sample").split()
"""The names of some questions."""


class Turns:
    """Seconds of some calls, by the clock and of the processor; they take turns, forwards and backwards."""

    def __init__(self, jvm: int, runs: int, *calls: Callable[[], object]) -> None:
        self._spent: list[list[tuple[float, float]]] = [[] for _ in calls]
        for run in range(runs + 1):
            for at in range(len(calls))[:: 1 if run % 2 else -1]:
                before = spent_with(jvm)
                elapsed = timed(calls[at])
                self._spent[at].append((elapsed, spent_with(jvm) - before))

    def lines(self, claim: str, names: Sequence[str], target: str) -> list[dict[str, Any]]:
        """The first call against each of the others: medians, and the medians of their ratios."""
        mine, *others = (turns[1:] for turns in self._spent)
        collected = []
        for name, theirs in zip(names, others, strict=True):
            for which, unit in enumerate(("by the clock", "of the processor")):
                ours, peer = ([turn[which] for turn in side] for side in (mine, theirs))
                ratio = statistics.median(their / our for our, their in zip(ours, peer, strict=True))
                shown = [f"{statistics.median(side):.2f} s" for side in (ours, peer)]
                collected.append(line(f"{claim}, {unit}", shown[0], f"{name} {shown[1]}", ratio, target))
        return collected


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
    jvm = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    collected = []
    if "hll" in ONLY:
        whole = Turns(jvm, 14, hll, native_hll)
        collected += whole.lines(f"{reported}, one ungrouped HLL", ["hll_sketch_agg"], "≥ 0.95")
    if "by_key" in ONLY:
        whole = Turns(jvm, 6, by_key, native_by_key)
        collected += whole.lines(f"{reported}, HLL + KLL + top-k by {KEYS:,} keys", ["native"], "≥ 2")
    if "sample" in ONLY:
        names = ["orderBy(rand()).limit", "max_by(x, rand(), k)"]
        whole = Turns(jvm, 8, reservoir, ordered, greatest)
        collected += whole.lines(f"{reported}, a sample of 1,000", names, "≥ 1")
    spark.stop()
    return collected


if __name__ == "__main__":
    for row in main():
        print(row)
